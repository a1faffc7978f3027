"""What explain says was waited for, as the engine recorded it."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from kgctl.simulate.batch.explain import Explanation, checks_of, explain
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import read_yaml


def explained(text: str) -> Explanation:
    given = load(read_yaml(f"kgctl: 1\nname: x\nwarmup: 60s\n{text}\n", "x.yaml"))
    return explain(given.variants[0].scenario, 1, checks=checks_of(given, "default"), settings=given.variants[0].settings)


@pytest.mark.parametrize(
    ("network", "is_told"),
    [("app/1, latency: 4s", True), ("app/2, latency: 4s", False), ("app/1, latency: 4s, for: 4s", False)],
    ids=["its own", "another pod's", "over by then"],
)
def test_a_bad_network_is_a_reason_for_the_pod_that_has_it_and_while_it_lasts(network: str, is_told: bool) -> None:
    events = f"events: [{{at: 5s, network: {network}}}, {{at: 10s, crash: app/1}}]\nduration: 2m"
    story = explained(f"topics: {{orders: 12}}\nmembers: {{app: {{count: 4}}}}\n{events}").story
    assert story is not None
    rules = [piece.rule for piece in story.pieces if piece.cause == "detection"]
    assert ["; event network " in rule for rule in rules] == [is_told]


def test_the_answer_that_gave_a_partition_is_told() -> None:
    group = "group: {config: {group.protocol: consumer}}"
    story = explained(
        f"topics: {{orders: 12}}\nmembers: {{app: {{count: 2}}}}\n{group}\nevents: [{{at: 5s, scale: app, by: +2}}]"
    ).story
    assert story is not None
    (rule,) = [piece.rule for piece in story.pieces if piece.cause == "handover"]
    by = r"app-3 is given it by the answer to its ConsumerGroupHeartbeat at [\d.]+s"
    assert re.fullmatch(rf"{by} \(group\.consumer\.heartbeat\.interval\.ms=5000\)", rule), rule


def test_a_session_that_began_with_a_parked_join_is_told_so() -> None:
    given = load(read_yaml((files("kgctl.simulate") / "builtin" / "static-surge.yaml").read_text(), "static-surge.yaml"))
    found = explain(given.variants[0].scenario, 1, ablates=False)
    assert found.story is not None
    assert re.search(r"s on, when generation \d+ answered its parked JoinGroup$", found.story.pieces[0].rule)


CALIBRATED = Path(__file__).parents[3] / "calibration" / "scenarios"
HEARD = re.compile(r"the last to join, ([\d.]+)s after [^:]*: it heard [^,]*, ([\d.]+)s after that began [^;]*; \S+ then ([^;]*)")


def rules_of(name: str) -> list[str]:
    file, _, variant = name.partition(":")
    (one,) = load(read_yaml((CALIBRATED / f"{file}.yaml").read_text(), file), variants=[variant]).variants
    story = explain(one.scenario, 1, ablates=False).story
    assert story is not None
    return [piece.rule for piece in story.pieces]


@pytest.mark.parametrize("name", ["behind:eager", "lib-pauses:eager", "slow-move:cooperative", "slow-poll:eager", "tardy:eager"])
def test_the_last_to_join_hears_of_the_rebalance_and_then_waits_for_its_application(name: str) -> None:
    """Both were recorded, and together they are as long as the others waited."""
    found = [match for rule in rules_of(name) if (match := HEARD.search(rule))]
    assert found
    for match in found:
        waited = sum(float(number) for number in re.findall(r"([\d.]+)s\b", match[3]))
        assert float(match[2]) + waited == pytest.approx(float(match[1]), abs=0.15)


def test_a_sync_that_came_too_late_is_told_as_what_it_was() -> None:
    (rule,) = (rule for rule in rules_of("behind:cooperative") if "last to join" in rule)
    assert "its SyncGroup was answered with REBALANCE_IN_PROGRESS at 15.124s; app-3 then is 2.993s in its batch" in rule
