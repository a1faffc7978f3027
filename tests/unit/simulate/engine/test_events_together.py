"""Deploys, evictions, failures and scaling that overlap: the set has the pods, and the version, that it is to have in the end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgctl.simulate.metrics.result import run
from kgctl.simulate.metrics.troubles import troubles_of
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import read_yaml

HEAD = """\
kgctl: 1
name: x
warmup: 60s
topics: {orders: 8}
cluster: {nodes: 3}
duration: 40m
allow: [unread, kicked, no_effect]
"""
BATCH = "max.poll.records"
DEPLOYS = (
    "rollout: app",
    "rollout: app, max_surge: 0, max_unavailable: 1",
    "rollout: app, strategy: recreate",
    "rollout: app, strategy: blue-green, pause: 30s",
    "rollout: app, strategy: canary, pause: 30s",
    "rollout: app, workload: statefulset",
    "rollout: app, strategy: canary, pause: 30s, abort_if: members > 0",
)
OTHERS = (
    *("drain: app/0..1", "drain: node/1", "drain: app/0..1, workload: statefulset"),
    *("spot_loss: app/1", "spot_loss: app/1, workload: statefulset"),
    *("rolling_restart: app", "restart: app/1, for: 10s", "crash: app/0, for: 10s", "stop: app/2, for: 10s"),
    *("stall: app/1, for: 20s", "pause_process: app/1, for: 30s"),
)
SCALES = {"scale: app, to: 6": (0, 6), "scale: app, to: 2": (0, 2), "scale: app, by: +1": (1, 1)}
"""Event -> what it keeps of the number, and what it adds to that."""
AT_S = st.integers(0, 150)
EVENTS = st.lists(st.tuples(AT_S, st.sampled_from((*DEPLOYS, *OTHERS, *SCALES))), min_size=2, max_size=4).map(sorted)


def written(number: int, at_s: int, text: str) -> str:
    version = f", set: {{{BATCH}: {number + 10}}}" if text in DEPLOYS else ""
    return f"- {{at: {at_s}s, {text}{version}}}\n"


@settings(max_examples=60, deadline=None)
@given(EVENTS, st.sampled_from(("", ", boot: 15s", ", boot: 5s..40s")))
def test_what_overlaps_leaves_the_pods_that_are_to_be(events: list[tuple[int, str]], boot: str) -> None:
    text = "".join(written(number, *event) for number, event in enumerate(events))
    (variant,) = load(read_yaml(f"{HEAD}members: {{app: {{count: 4{boot}}}}}\nevents:\n{text}", "file.yaml")).variants
    result = run(variant.scenario, 1)
    pods = [pod for pod in result.recording.history.pods if pod.running.since_us is not None]
    replicas = 4
    for _, event in events:
        kept, added = SCALES.get(event, (1, 0))
        replicas = kept * replicas + added
    assert (len(pods), [each for each in troubles_of(result) if not each.is_allowed]) == (replicas, [])
    last = max((number for number, (_, event) in enumerate(events) if event in DEPLOYS), default=None)
    if last is not None and "abort_if" not in events[last][1]:
        assert {pod.settings.get(BATCH) for pod in pods} == {str(last + 10)}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # a newer version while the one before is rolled out
        (["{at: 0s, rollout: app, strategy: recreate}", "{at: 5s, rollout: app}"], 4),
        (["{at: 0s, rollout: app, strategy: canary, pause: 5m}", "{at: 60s, rollout: app}"], 4),
        # a pod of a rollout is evicted, or was to come back when the rollout was past it
        (["{at: 0s, spot_loss: app/1}", "{at: 30s, rollout: app}"], 4),
        (["{at: 0s, crash: app/0, for: 60s}", "{at: 5s, rollout: app}"], 4),
        # whoever was evicted twice is replaced once
        (["{at: 0s, drain: app/0..1}", "{at: 1s, drain: app/0..1}"], 4),
        # pods that are to go before their machines have come
        (["{at: 0s, spot_loss: app/1}", "{at: 30s, scale: app, to: 2}"], 2),
        # and those that are wanted again while they still end
        (["{at: 0s, scale: app, to: 2}", "{at: 0s, scale: app, to: 6}"], 6),
    ],
)
def test_two_that_overlap(events: list[str], expected: int) -> None:
    text = "".join(f"- {event}\n" for event in events)
    (variant,) = load(read_yaml(f"{HEAD}members: {{app: {{count: 4, boot: 15s}}}}\nevents:\n{text}", "file.yaml")).variants
    result = run(variant.scenario, 1)
    pods = [pod for pod in result.recording.history.pods if pod.running.since_us is not None]
    assert (len(pods), [each for each in troubles_of(result) if not each.is_allowed]) == (expected, [])
