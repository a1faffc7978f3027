"""Other clients than Java's: three plays of each case on Apache Kafka 4.3.1 (``--against``), beside the simulation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kgctl.member.config import STREAMS, get_profile, profile_names
from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.fields import changed
from tests.calibration.cases import FOLDER, all_cases
from tests.calibration.profiles import PROFILES, table
from tests.docs.pages import MANUAL

CLIENTS: dict[str, dict[str, dict[str, list[float]]]] = json.loads((FOLDER / "clients.json").read_text())
"""Client -> case -> metric -> least, median and most of the plays."""
SEEDS = range(1, 9)


@pytest.mark.parametrize(("client", "name"), [(client, name) for client, cases in CLIENTS.items() for name in cases])
def test_what_was_measured_lies_within_the_seeds(client: str, name: str) -> None:
    scenario = next(case.scenario for case in all_cases() if case.name == name)
    scenario = changed(scenario, members=tuple(changed(each, client=client) for each in scenario.members))
    results = [run(scenario, seed) for seed in SEEDS]
    for metric, (_, median, _) in CLIENTS[client][name].items():
        found: Any = [result.metric(metric) for result in results]
        room = max(0.1 * median, 0.25)
        assert min(found) - room <= median <= max(found) + room, (metric, found)


def test_each_client_starts_as_it_was_measured() -> None:
    kept = json.loads(PROFILES.read_text())
    assert set(kept) | {STREAMS} == set(profile_names())  # which is played in tests/calibration/streams
    for client, found in kept.items():
        least, _, most = found["made"]
        assert get_profile(client)[0].behaviour.made_us == (int(least + 0.5) * 1000, int(most + 0.5) * 1000), client
        low, high = get_profile(client)[0].behaviour.start_us
        if client == "java":  # there its classes are loaded; a process that has just begun takes longer
            assert found["join"][0] * 1000 < low < high
            continue
        first, joined = (1000 * value for value in (found["start"][0], found["join"][2]))
        assert (client, first <= low < high <= joined) == (client, True)


def test_the_page_has_the_figures() -> None:
    assert table() in (MANUAL / "believing-it.md").read_text(encoding="utf-8")
