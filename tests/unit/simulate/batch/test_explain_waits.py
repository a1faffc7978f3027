"""What explain says was waited for, as the engine recorded it."""

from __future__ import annotations

import re
from importlib.resources import files

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
