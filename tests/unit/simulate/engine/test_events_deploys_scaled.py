"""A set that is scaled while it is rolled out."""

from __future__ import annotations

import pytest

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.metrics.troubles import troubles_of
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.vocabulary import EventStage
from kgctl.yaml_files import read_yaml

HEAD = "kgctl: 1\nname: x\nwarmup: 60s\ntopics: {orders: 8}\nmembers: {app: {count: 4}}\nduration: 20m\n"
BATCH = "max.poll.records"
STRATEGIES = (
    "ready: 20s",
    "ready: 20s, max_surge: 0, max_unavailable: 1",
    "ready: 20s, workload: statefulset",
    "ready: 20s, strategy: recreate",
    "ready: 20s, strategy: blue-green, pause: 30s",
    "ready: 20s, strategy: canary, pause: 30s",
)


def played(rest: str, members: str = "count: 4") -> RunResult:
    (variant,) = load(read_yaml(HEAD.replace("count: 4", members) + rest, "file.yaml")).variants
    return run(variant.scenario, 1)


def versions_at_end(result: RunResult) -> list[str | None]:
    """The setting that a rollout gives, of each pod that runs at the end; nothing has gone wrong until then."""
    assert [each for each in troubles_of(result) if not each.is_allowed] == []
    return [pod.settings.get(BATCH) for pod in result.recording.history.pods if pod.running.since_us is not None]


@pytest.mark.parametrize("minimum", [4, 6])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_autoscaler_counts_no_pods_that_a_rollout_has_for_a_while(strategy: str, minimum: int) -> None:
    result = played(
        f"traffic: {{orders: {{rate: 10/s}}}}\nautoscale: {{members: app, min: {minimum}, max: 8, target: 100}}\n"
        f"events: [{{at: 0s, rollout: app, {strategy}, set: {{{BATCH}: 7}}}}]\n"
    )
    assert versions_at_end(result) == ["7"] * minimum
    assert {each.replicas for each in result.recording.history.scalings} <= {minimum}


@pytest.mark.parametrize("at", ["10s", "29s", "45s", "65s", "85s"])
@pytest.mark.parametrize("change", ["to: 9", "to: 2", "by: +5", "by: -2"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_set_is_scaled_in_the_middle_of_a_rollout(strategy: str, change: str, at: str) -> None:
    rollout = f"{{at: 0s, rollout: app, {strategy}, set: {{{BATCH}: 7}}}}"
    result = played(f"events: [{rollout}, {{at: {at}, scale: app, {change}}}]\nallow: [unread]\n")
    assert versions_at_end(result) == ["7"] * (9 if change in ("to: 9", "by: +5") else 2)


def test_both_versions_get_their_share_of_new_pods() -> None:
    result = played(
        f"events: [{{at: 0s, rollout: app, never_ready: true, set: {{{BATCH}: 7}}}}, {{at: 10s, scale: app, to: 8}}]\n"
        "allow: [not_ended]\n"
    )
    assert versions_at_end(result) == [None] * 3 + ["7"] * 2 + [None] * 3 + ["7"] * 2


def test_both_versions_lose_their_share_of_pods() -> None:
    result = played(
        f"events: [{{at: 0s, rollout: app, never_ready: true, set: {{{BATCH}: 7}}}}, {{at: 10s, scale: app, to: 2}}]\n"
        "allow: [not_ended]\n"
    )
    assert versions_at_end(result) == [None] * 2 + ["7"]


def test_steps_of_a_canary_beyond_the_new_number_are_left_out() -> None:
    rollout = f"rollout: app, strategy: canary, steps: [1, 3], pause: 60s, set: {{{BATCH}: 7}}"
    assert versions_at_end(played(f"events: [{{at: 0s, {rollout}}}, {{at: 30s, scale: app, to: 2}}]\n")) == ["7"] * 2


@pytest.mark.parametrize("number", [1, 3, 6])
def test_a_canary_is_scaled_while_it_is_taken_back(number: int) -> None:
    rollout = "rollout: app, strategy: canary, steps: [50%], pause: 30s, abort_if: members > 0"
    text = f"events: [{{at: 0s, {rollout}, set: {{{BATCH}: 7}}}}, {{at: 60s, scale: app, to: {number}}}]\n"
    assert versions_at_end(played(text, "count: 4, boot: 20s")) == [None] * number


def test_no_more_pods_get_the_new_version_than_there_are_to_be() -> None:
    text = f"events: [{{at: 0s, rollout: app, max_surge: 3, ready: 20s, set: {{{BATCH}: 7}}}}, {{at: 10s, scale: app, to: 1}}]\n"
    assert versions_at_end(played(text, "count: 2")) == ["7"]


def test_a_pod_that_was_taken_away_before_it_was_ready_is_not_available() -> None:
    result = played("events: [{at: 0s, rollout: app, ready: 20s}, {at: 10s, scale: app, to: 2}]\n")
    events = [(event.event, event.what, event.at_us // 1_000_000 - 60) for event in result.recording.history.events]
    assert events[-1] == ("rollout", EventStage.ENDS, 52)


def test_a_canary_that_is_taken_back_leaves_the_number_that_was_asked_for_last() -> None:
    rollout = "rollout: app, strategy: canary, steps: [50%], pause: 30s, abort_if: members > 0"
    result = played(f"events: [{{at: 0s, {rollout}, set: {{{BATCH}: 7}}}}, {{at: 10s, scale: app, to: 6}}]\n")
    assert versions_at_end(result) == [None] * 6


def test_the_number_that_there_is_already_is_no_change() -> None:
    result = played("events: [{at: 0s, rollout: app, ready: 20s}, {at: 10s, scale: app, to: 4}]\n")
    (trouble,) = troubles_of(result)
    assert trouble.text == "event scale app has no effect at 10.0s"
