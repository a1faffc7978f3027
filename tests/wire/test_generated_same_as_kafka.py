"""Generated requests, good and bad, said to kgctl's server and to Apache Kafka; the deep run is `tests.wire.generated.search`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.wire.generated.compare import Server, compare
from tests.wire.generated.search import GOLDEN, run
from tests.wire.generated.servers import both_servers

pytestmark = pytest.mark.kafka

FEWEST = 20


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    with both_servers(tmp_path_factory.mktemp("generated")) as both:
        yield both


@pytest.mark.parametrize(("scripts", "budget_s"), [(20, 30.0), pytest.param(3_000, 780.0, marks=pytest.mark.deep)])
def test_generated_scripts_get_kafkas_answers(servers: tuple[Server, Server], scripts: int, budget_s: float) -> None:
    tally = run(*servers, scripts, start=1, budget_s=budget_s, fewest=FEWEST)

    assert not tally.differing, "\n\n".join(tally.differing)
    assert FEWEST <= tally.scripts <= scripts


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.jsonl")))
def test_a_script_that_once_differed_gets_kafkas_answers(name: str, servers: tuple[Server, Server]) -> None:
    script = [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]

    assert compare(*servers, script) == []
