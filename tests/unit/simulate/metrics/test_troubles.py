"""What fails a run though nobody asked about it."""

from __future__ import annotations

import re

import pytest

from kgctl.simulate.lint.rules import lint
from kgctl.simulate.metrics.result import run
from kgctl.simulate.metrics.troubles import troubles_of
from kgctl.simulate.scenario.load import Variant, load
from kgctl.simulate.scenario.vocabulary import TROUBLES
from kgctl.yaml_files import FileError, read_yaml

HEAD = "kgctl: 1\nname: x\nwarmup: 60s\ntopics: {orders: 8}\n"
RANGE = "group: {config: {partition.assignment.strategy: [range]}}\n"
MIGRATION = "events: [{at: 0s, rollout: app, set: {partition.assignment.strategy: [cooperative-sticky]}}]\n"
APP = "members: {app: {count: 4}}\n"
SHARED = "group: {type: share}\nmembers: {app: {count: 8, process_time: 1ms}}\n"
REJECTING = SHARED.replace("1ms", "1ms, on_poison: reject, config: {share.acknowledgement.mode: explicit}")
STALL = "events: [{at: 10s, stall: app/2, for: 40s}]\n"
KICKED = f"{RANGE}members: {{app: {{count: 4, config: {{max.poll.interval.ms: 20s}}}}}}\n{STALL}"

FAILS = {
    "failed": (
        f"{RANGE}{APP}duration: 5m\n{MIGRATION}allow: [unread]\n",
        "app-5 failed at 5.0s: INCONSISTENT_GROUP_PROTOCOL; then app-4, app-6, app-7",
    ),
    "kicked": (KICKED, "app-2 left the group, past max.poll.interval.ms=20s without a poll(), at 30.0s"),
    "archived": (
        f"{REJECTING}traffic: {{orders: 80/s}}\nduration: 1m\nevents: [{{at: 10s, poison: orders, records: 2}}]\n",
        "record 725 of orders-0 given up at 10.0s, delivered once: its application rejected it (app-4)"
        "; then record 725 of orders-1",
    ),
    "timed_out": (
        f"{SHARED}traffic: {{orders: 8/s}}\nduration: 2m\nevents: [{{at: 10s, stall: app/2, for: 50s}}]\n",
        "app-2 had 1 record of orders-1 for longer than their lock at 40.0s",
    ),
    "stuck": (
        f"{RANGE}{APP}events: [{{at: 10s, network: app/2, partition: true, for: 200s}}]\nallow: [kicked]\n",
        "app-2 ran outside of the group from 53.5s on, for more than 60 s",
    ),
    "missing": (
        f"{RANGE}members: {{app: {{count: 4}}, more: {{count: 1, boot: 10m, start: 10s}}}}\nduration: 5m\n",
        "more-0 is wanted and not in the group at the end, 300.0s: it never was",
    ),
    "unread": (
        f"{APP}duration: 90s\nevents: [{{at: 60s, crash: app/1}}]\n",
        "orders-4 had no consumer at the end, 90.0s: nobody read it from 60.0s on (detection); then orders-5",
    ),
    "no_effect": (f"{APP}events: [{{at: 10s, crash: app/9}}]\n", "event crash app/9 has no effect at 10.0s"),
    "not_started": (
        "members: {app: {count: 4}, canary: {count: 1, start: 5m}}\n",
        "canary-0 was to start at 5m, and the run ended at 60.0s: give it a `duration`",
    ),
    "not_ended": (
        f"{APP}duration: 3m\nevents: [{{at: 10s, name: deploy, rollout: app, never_ready: true}}]\n",
        "event deploy app was not over at the end, 180.0s: give it a longer `duration`",
    ),
    "unsettled": (
        f"{APP}events: [{{at: 0s, crash: app}}]\nallow: [unread]\n",
        "the run was ended at 3,600.0s: not stable after its last event",
    ),
}
"""Kind -> a scenario that has it and no other, and what is said."""


def variant_of(text: str) -> Variant:
    (variant,) = load(read_yaml(HEAD + text, "file.yaml")).variants
    return variant


def found(text: str, *, is_allowed: bool = False) -> dict[str, str]:
    troubles = troubles_of(run(variant_of(text).scenario, 1))
    return {each.kind: each.text for each in troubles if each.is_allowed is is_allowed}


TO_CONSUMER = "events: [{at: 10s, upgrade: app, set: {group.protocol: consumer%s}, settle: 5s}]\n"


@pytest.mark.parametrize("client", ["java", "librdkafka"])
def test_an_upgrade_that_leaves_a_setting_of_the_other_protocol_behind_fails(client: str) -> None:
    text = f"members: {{app: {{count: 4, client: {client}, config: {{session.timeout.ms: 30s}}}}}}\n"
    why = f"{client} refuses session.timeout.ms beside group.protocol=consumer: leave it out (null)"
    told = found(text + TO_CONSUMER % "")["failed"]
    assert re.fullmatch(rf"app-0 failed at 15\.\ds: INVALID_CONFIG: {re.escape(why)}; then app-1, app-2, app-3", told)
    assert found(text + TO_CONSUMER % ", session.timeout.ms: null") == {}


def test_a_setting_that_an_event_leaves_out_has_to_be_one() -> None:
    with pytest.raises(FileError, match=r"unknown consumer setting 'session\.timeout'; did you mean session\.timeout\.ms"):
        variant_of(APP + TO_CONSUMER % ", session.timeout: null")


@pytest.mark.parametrize("client", ["aiokafka", "franz-go"])
def test_clients_that_pass_such_a_setting_over_go_on(client: str) -> None:
    text = f"members: {{app: {{count: 4, client: {client}, config: {{group.remote.assignor: range}}}}}}\n"
    assert found(text + "events: [{at: 10s, rolling_restart: app, settle: 5s}]\n") == {}


def test_each_kind_has_a_case() -> None:
    assert list(FAILS) == list(TROUBLES)


@pytest.mark.parametrize("kind", FAILS)
def test_each_kind_is_found_with_the_pod_the_rule_and_the_time(kind: str) -> None:
    text, told = FAILS[kind]
    assert found(text) == {kind: told}


@pytest.mark.parametrize("kind", FAILS)
def test_what_is_allowed_fails_nothing_and_is_known(kind: str) -> None:
    text = f"{FAILS[kind][0].partition('allow:')[0]}allow: [{kind}, kicked, unread]\n"
    assert found(text) == {}
    assert found(text, is_allowed=True)[kind] == FAILS[kind][1]


@pytest.mark.parametrize(
    "text",
    [
        APP,
        f"{APP}duration: 5m\n"
        "events: [{at: 10s, crash: app/3}, {at: 20s, stop: app/1}, {at: 30s, network: app/0, latency: 9ms}]\n",
        f"{APP}duration: 64s\nevents: [{{at: 60s, crash: app/1}}]\n",
        f"{APP}events: [{{at: 10s, crash: app/3, when: lag > 5}}]\n",
        f"{APP}events: [{{at: 10s, rolling_restart: app, abort_if: rebalances >= 1}}]\n",
        f"{APP}duration: 10m\n"
        "events: [{at: 10s, scale: app, to: 2}, {at: 1m, crash: app/0, for: 5s, every: 30s, times: 4}]\n",
    ],
    ids=[
        "nothing happens",
        "taken away for good",
        "a short time without a consumer at the end",
        "left out",
        "called off as planned",
        "scaled and crashed",
    ],
)
def test_what_the_file_says_is_no_trouble(text: str) -> None:
    assert found(text) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{APP}events: [{{at: 10s, scale: app, to: 4}}]\n", {"no_effect": "event scale app has no effect at 10.0s"}),
        (
            f"{APP}duration: 3m\nevents: [{{at: 10s, restart: app/0, every: 1m, times: 5}}]\n",
            {"not_started": "event restart app/0 began 3 of 5 times: the run ended at 180.0s"},
        ),
        (
            f"{APP}duration: 3m\nevents: [{{at: 10s, restart: app/0}}, {{at: 4m, restart: app/0}}]\n",
            {"not_started": "event restart app/0 did not begin: the run ended at 180.0s"},
        ),
        (
            f"{APP}duration: 3m\nevents: [{{at: 10s, scale: app, to: 5}}, {{at: 1m, scale: app, to: 5}}]\n",
            {"no_effect": "event scale app has no effect at 60.0s"},
        ),
        (
            f"{APP}duration: 1s\nevents: [{{at: 0s, crash: app}}]\n",
            {"unread": "orders-0 had no consumer at the end, 1.0s: nobody read it from 0.0s on (boot); then"},
        ),
    ],
    ids=[
        "as many pods as there are",
        "repeated beyond the end",
        "the same again beyond the end",
        "as many again as there are by then",
        "a run of one second",
    ],
)
def test_what_does_nothing_or_never_came_is_told(text: str, expected: dict[str, str]) -> None:
    told = found(text)
    assert {kind: told[kind][: len(expected[kind])] for kind in expected} == expected
    assert told.keys() == expected.keys()


VAIN = {
    "slow: app, factor: 1": "its factor is 1",
    "slow: app, factor: 2, for: 0s": "it lasts for 0s",
    "network: app, loss: 0%": "the network has this latency and loss anyway",
    "network: app, latency: 1ms, for: 5s": "the network has this latency and loss anyway",
    "network: app, partition: false": "the network has this latency and loss anyway",
    "network: app, loss: 100%, for: 0s": "it lasts for 0s",
    "stall: app/1, for: 0s": "it lasts for 0s",
    "pause_process: app/1, for: 0s..0s": "it lasts for 0s",
    "set_traffic: orders, rate: 80/s": "",
}


@pytest.mark.parametrize("event", VAIN)
def test_an_event_that_does_nothing_as_it_stands_is_told_by_check_and_by_run(event: str) -> None:
    text = f"members: {{app: {{count: 4, rate: 100/s}}}}\ntraffic: {{orders: 80/s}}\nevents: [{{at: 10s, {event}}}]\n"
    kind, target = event.partition(",")[0].split(": ")
    assert found(text) == {"no_effect": f"event {kind} {target} has no effect at 10.0s"}
    doubts = [each.message for each in lint(load(read_yaml(HEAD + text, "f.yaml"))) if each.rule == "event-without-effect"]
    assert doubts == ([f"it does nothing: {VAIN[event]}"] if VAIN[event] else [])


@pytest.mark.parametrize(
    "event",
    ["slow: app, factor: 0.5", "network: app/0, latency: 2ms", "network: app/0, loss: 1%", "set_traffic: orders, rate: 81/s"],
)
def test_an_event_that_does_a_little_is_no_trouble(event: str) -> None:
    text = f"members: {{app: {{count: 4, rate: 100/s}}}}\ntraffic: {{orders: 80/s}}\nevents: [{{at: 10s, {event}}}]\n"
    assert (found(text), lint(load(read_yaml(HEAD + text, "f.yaml")))) == ({}, [])


def test_what_was_so_before_the_window_has_no_time_of_its_own() -> None:
    never = "members: {app: {count: 1, client: librdkafka, process_time: 1000s, config: {max.poll.interval.ms: 30000}}}\n"
    text = f"{never}traffic: {{orders: 30/s}}\nduration: 3m\nallow: [kicked, stuck, unread]\n"
    assert found(text) == {"missing": "app-0 is wanted and not in the group at the end, 180.0s: out from the warm-up on"}


def test_an_expectation_about_it_takes_its_place() -> None:
    assert found(f"{KICKED}expect: [kicked <= 2]\n") == {}
    loaded = load(
        read_yaml(f"{HEAD}{KICKED}expect: [a.kicked <= 2]\nvariants: {{a: {{}}, b: {{}}}}\n", "f.yaml"), checks=["moves < 9"]
    )
    assert [each.scenario.decided for each in loaded.variants] == [("kicked",), ()]


def test_an_expectation_does_not_take_the_place_of_what_failed_in_the_warm_up() -> None:
    """`errors` counts what came after it: three pods with one id are one from then on, and errors == 0 held."""
    fenced = "members: {app: {count: 3, instance_id: same}}\nduration: 2m\n"
    told = {"failed": "app-0 failed at the warm-up: FENCED_INSTANCE_ID; then app-2"}
    assert found(f"{fenced}expect: [errors == 0, fenced == 0]\n") == found(fenced) == told
    assert found(f"{fenced}expect: [errors == 0]\nallow: [failed]\n") == {}


def test_what_is_allowed_is_one_of_the_kinds() -> None:
    with pytest.raises(FileError, match=r"allow\[0\]: nothing that fails a run is named 'stuck_members'; write 'stuck'"):
        variant_of(f"{APP}allow: [stuck_members]\n")
    with pytest.raises(FileError, match=r"named 'kickd'; did you mean 'kicked'"):
        variant_of(f"{APP}allow: [kickd]\n")


ROLLED = (
    f"{APP}events: [{{at: 0s, name: deploy, rollout: app, max_surge: 1, max_unavailable: 0}}, "
    "{after: deploy, at: 2m, crash: app/3, for: 5s}]\n"
)


def test_a_pod_is_meant_by_its_place_in_the_set_as_it_is_then() -> None:
    result = run(variant_of(ROLLED).scenario, 1)
    gone = [pod.name for pod in result.recording.history.pods if len(pod.running.ended) == 1 and pod.running.since_us is not None]
    assert (gone, troubles_of(result)) == (["app-7"], ())


BATCH = "max.poll.records"
LATER = "{after: deploy, at: 60s, scale: app, to: 2}, {after: last, at: 60s, scale: app, to: 6}"


@pytest.mark.parametrize(
    ("deploy", "expected"),
    [
        ("rollout: app", ["7"] * 6),
        ("rollout: app, workload: statefulset", ["7"] * 6),
        ("upgrade: app", ["7"] * 6),
        ("upgrade: app/0..1", ["7", "7", None, None, None, None]),
        ("rollout: app, strategy: canary, pause: 5s, abort_if: members > 0", [None] * 6),
        ("rollout: app, strategy: blue-green, pause: 5s, abort_if: members > 0", [None] * 6),
    ],
)
def test_pods_that_come_after_a_deploy_have_its_settings(deploy: str, expected: list[str | None]) -> None:
    text = f"{APP}duration: 20m\nevents: [{{at: 0s, name: deploy, {deploy}, set: {{{BATCH}: 7}}}}, {LATER}]\n"
    assert settings_at_end(variant_of(text)) == expected


def test_pods_of_an_autoscaler_have_the_settings_of_the_deploy_before_it() -> None:
    text = (
        f"{APP}duration: 20m\nautoscale: {{members: app, min: 2, max: 8, target: 100}}\n"
        f"events: [{{at: 0s, name: deploy, rollout: app, max_surge: 0, max_unavailable: 1, set: {{{BATCH}: 7}}}}]\n"
        "traffic: {orders: {0s: 10/s, 5m: 3000/s}}\n"
    )
    assert settings_at_end(variant_of(text)) == ["7"] * 8


def settings_at_end(variant: Variant) -> list[str | None]:
    """Of one key, of the pods that run."""
    pods = run(variant.scenario, 1).recording.history.pods
    return [pod.settings.get(BATCH) for pod in pods if pod.running.since_us is not None]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("scale: app, to: 2", "rolling_restart: app", ["app-0", "app-1"]),
        ("rollout: app", "rolling_restart: app", ["app-4", "app-5", "app-6", "app-7"]),
        ("rollout: app", "rolling_restart: not app/3", ["app-4", "app-5", "app-6", "app-7"]),
        ("drain: app/1", "restart: app", ["app-0", "app-2", "app-3", "app-4"]),
        ("scale: app, to: 2", "stop: app/50%", ["app-0"]),
        ("scale: app, to: 2", "start: app", ["app-0", "app-1", "app-2", "app-3"]),
    ],
)
def test_a_set_means_the_pods_that_it_is_to_have_then(before: str, after: str, expected: list[str]) -> None:
    text = f"{APP}duration: 20m\nevents: [{{at: 0s, {before}}}, {{after: last, at: 60s, {after}}}]\n"
    pods = run(variant_of(text).scenario, 1).recording.history.pods
    assert [pod.name for pod in pods if pod.running.since_us is not None] == expected


def test_a_pod_that_takes_the_place_of_an_evicted_one_is_told_with_its_settings() -> None:
    text = (
        f"{APP}duration: 20m\nevents: [{{at: 0s, drain: app/1}}, {{after: last, at: 60s, upgrade: app, set: {{{BATCH}: 7}}}}]\n"
    )
    assert settings_at_end(variant_of(text)) == ["7"] * 4


def test_what_is_started_is_meant_by_its_number() -> None:
    text = (
        "members: {app: {count: 2}, new: {count: 3, start: never}}\n"
        "events: [{at: 1s, start: new/1}, {at: 60s, crash: new/1, for: 1s}]\n"
    )
    result = run(variant_of(text).scenario, 1)
    assert [bool(pod.running.ended) for pod in result.recording.history.pods if pod.member_set == "new"] == [False, True, False]


@pytest.mark.parametrize(
    ("group", "session"),
    [
        ("config: {partition.assignment.strategy: [range], session.timeout.ms: 10s}", r"session\.timeout\.ms=10s"),
        ("config: {group.protocol: consumer}", r"group\.consumer\.session\.timeout\.ms"),
        ("type: share", r"group\.share\.session\.timeout\.ms"),
    ],
)
def test_who_is_cut_off_is_told_by_the_session_timeout_that_holds_for_its_protocol(group: str, session: str) -> None:
    cut = f"group: {{{group}}}\n{APP}events: [{{at: 10s, network: app/2, partition: true, for: 55s}}]\n"
    assert re.search(rf"^app-2 was taken out of the group \({session} without a heartbeat, or ", found(cut)["kicked"])
