"""What explain says was waited for, as the engine recorded it."""

from __future__ import annotations

import re
from importlib.resources import files

from kgctl.simulate.batch.explain import Explanation, checks_of, explain
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import read_yaml


def explained(text: str) -> Explanation:
    given = load(read_yaml(f"kgctl: 1\nname: x\nwarmup: 60s\n{text}\n", "x.yaml"))
    return explain(given.variants[0].scenario, 1, checks=checks_of(given, "default"), settings=given.variants[0].settings)


def test_the_network_of_another_pod_is_no_reason() -> None:
    cut = "events: [{at: 5s, network: app/%d, latency: 4s}, {at: 10s, crash: app/1}]\nduration: 2m"
    told = {
        pod: [
            "; event network" in piece.rule
            for piece in explained(f"topics: {{orders: 12}}\nmembers: {{app: {{count: 4}}}}\n{cut % pod}").story.pieces  # type: ignore[union-attr]
            if piece.cause == "detection"
        ]
        for pod in (1, 2)
    }
    assert told == {1: [True], 2: [False]}


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
