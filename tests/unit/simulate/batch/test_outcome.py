"""What a run goes by, and what is made to happen in it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kgctl.simulate.batch.outcome import assumptions_of, outcome_of
from kgctl.simulate.batch.plan import BatchOptions, run_all, tasks_of
from kgctl.simulate.engine.pods import with_drift
from kgctl.simulate.report.outcome import Outcome
from kgctl.simulate.report.text import junit_xml
from kgctl.simulate.scenario.fields import member_config
from kgctl.simulate.scenario.load import Variant, load
from kgctl.simulate.scenario.model import MemberSet
from kgctl.yaml_files import read_yaml

FILE = """\
kgctl: 1
name: x
topics: {t: 4}
cluster: {network: {latency: 'lognormal(2ms, 1ms)', between: {broker: 500us}, loss: 0.1%}}
members:
  a: {count: 2, client: librdkafka, rate: 100/s, commit: every 5s, heartbeat_drift: random}
  b:
    poll: {timeout: 1s, pause: 20ms..40ms}
    boot: exp(10s)
    on_stop: none
    instance_id: $name
    callbacks: {revoked: 'normal(1s, 150ms)'}
variants: {classic: {}, consumer: {group: {config: {group.protocol: consumer}}}}
"""


def test_everything_that_shapes_a_run_is_told_in_the_words_of_a_file() -> None:
    classic, consumer = (assumptions_of(variant) for variant in load(read_yaml(FILE, "f")).variants)
    assert {what: value for what, value in classic.items() if not what.startswith(("a:", "b:"))} == {
        "a message between pod and broker, one way": "lognormal(2ms, 1ms)",
        "a message between brokers, one way": "500us",
        "messages lost": "0.1%",
        "a record of the group is written in": "lognormal(5ms, 8ms)",
        "group.initial.rebalance.delay.ms": "3s",
        "a leader's assignor computes for": "5ms + 0.002ms a partition + 0.01ms a member",
    }
    of_a = {what.removeprefix("a: "): value for what, value in classic.items() if what.startswith("a: ")}
    assert of_a["client"] == "librdkafka, classic protocol"
    assert of_a["client.id"] == "rdkafka"
    assert of_a["processes"] == "100/s, batches of up to 500: a full one takes 5s"
    assert of_a["commits"] == "every 5s"
    assert of_a["each heartbeat is late by"] == "anything: phases are random"
    of_b = {what.removeprefix("b: "): value for what, value in consumer.items() if what.startswith("b: ")}
    assert of_b["client"] == "java, consumer protocol"
    assert of_b["client.id"] == "consumer-group-$name"
    assert of_b["boot, then client start"] == "exp(10s), then 36ms..114ms"
    assert of_b["poll()"] == "waits 1s, then the batch, then a pause of 20ms..40ms"
    assert of_b["callbacks"] == "revoked normal(1s, 150ms), assigned 0s, lost 0s"
    assert of_b["a clean stop"] == "ends the process without close()"
    assert "session.timeout.ms" not in of_b


def test_a_share_group_that_waits_for_its_acknowledgements_says_so() -> None:
    text = "kgctl: 1\nname: x\ntopics: {t: 4}\ngroup: {type: share}\nmembers: {a: {commit: after-batch}}\n"
    (variant,) = load(read_yaml(text, "f")).variants
    assert assumptions_of(variant)["a: acknowledges"] == "after each batch (commitSync())"


OTHERWISE = {
    "boot": "9s",
    "pre_stop": "5s",
    "subscribe": "^t",
    "instance_id": "$name",
    "client": "librdkafka",
    "config": "{session.timeout.ms: 7s}",
    "client_id": "mine",
    "client_start": "3s",
    "poll": "{timeout: 1s}",
    "rate": "5/s",
    "process_time": "5ms",
    "commit": "every 5s",
    "on_stop": "none",
    "on_failure": "restart",
    "callbacks": "{assigned: 1s}",
    "heartbeat_drift": "random",
}
"""Setting of members -> another value than the usual one."""
ELSEWHERE = {"name", "group", "count", "start", "rack", "streams", "on_poison"}
"""Which pods there are, and where: results have it; what a Streams application goes by, its own lines tell; and what share groups
alone have is told of them.
"""


def test_every_setting_of_members_is_told() -> None:
    """Where two variants differ in it, that is how their assumptions differ."""
    settings = {str(each.validation_alias or name) for name, each in MemberSet.model_fields.items() if name not in ELSEWHERE}
    assert settings == set(OTHERWISE)
    told = [assumptions_of(variant) for key in ("count", *OTHERWISE) for variant in _of(f"{key}: {OTHERWISE.get(key, 1)}")]
    assert [key for key, found in zip(OTHERWISE, told[1:], strict=True) if found == told[0]] == []


def _of(setting: str) -> Sequence[Variant]:
    return load(read_yaml(f"kgctl: 1\nname: x\ntopics: {{t: 4}}\nmembers: {{a: {{{setting}}}}}\n", "f")).variants


@pytest.mark.parametrize("what", ["crash", "reject"])
def test_what_members_of_a_share_group_do_with_a_record_that_nobody_can_process_is_told(what: str) -> None:
    members = f"{{on_poison: {what}, config: {{share.acknowledgement.mode: explicit}}}}"
    text = f"kgctl: 1\nname: x\ntopics: {{t: 4}}\ngroup: {{type: share}}\nmembers: {{a: {members}}}\n"
    (variant,) = load(read_yaml(text, "f")).variants
    told = {what.removeprefix("a: "): value for what, value in assumptions_of(variant).items()}
    assert told["a record that nobody can process"] == what
    assert (told["client"], told["acknowledges"]) == ("java, share protocol", "with the next poll()")
    assert told["each heartbeat is late by"].startswith("0s, ±11ms")
    assert not {"session.timeout.ms", "partition.assignment.strategy", "commits", "callbacks"} & set(told)


@pytest.mark.parametrize(
    ("poll", "drift"), [("0ms", "5ms, ±5ms that adds up, ±5ms"), ("0ms..9ms", "20ms, ±20ms that adds up, ±36ms")]
)
def test_the_drift_that_is_told_is_that_of_the_poll_loop(poll: str, drift: str) -> None:
    (variant,) = load(read_yaml(f"kgctl: 1\nname: x\ntopics: {{t: 4}}\nmembers: {{a: {{poll: {poll}}}}}\n", "f")).variants
    assert assumptions_of(variant)["a: each heartbeat is late by"] == f"{drift}; beats begin anew with each generation"


@pytest.mark.parametrize(
    ("given", "goes_on"), [("", True), (", heartbeat_drift: 10ms", True), (", heartbeat_drift: random", False)]
)
def test_beats_that_no_generation_touches_go_on_with_a_drift_of_the_scenario_too(given: str, goes_on: bool) -> None:
    (variant,) = _of(f"client: librdkafka{given}")
    (members,) = variant.scenario.members
    assert with_drift(members, member_config(members, members.config)).behaviour.classic_drift.goes_on == goes_on
    told = assumptions_of(variant)["a: each heartbeat is late by"]
    assert given or told == "1ms, ±2ms that adds up, ±2ms; phases are kept from each start"


def test_an_expectation_that_was_never_asked_has_not_passed() -> None:
    file = """
kgctl: 1
name: never
topics: {orders: 2}
members: {app: {count: 1, boot: 0s}}
warmup: 20s
duration: 20s
expect: [{check: max_gap < 1s, when: lag > 5}, {check: max_gap < 1s, when: lag == 0}]
"""
    loaded = load(read_yaml(file, "never.yaml"))
    values = run_all(tasks_of(loaded, [1], BatchOptions(), None), 1, lambda _: None)
    never, asked = outcome_of(loaded, [1], values).expectations
    assert (never.passed, never.severity, never.note) == (False, "warn", "not asked: `when` held in no seed")
    assert (asked.passed, asked.severity) == (True, "fail")


def test_clients_that_spin_while_a_broker_is_away_are_told() -> None:
    file = """
kgctl: 1
name: away
topics: {orders: 2}
members: {app: {count: 1, boot: 0s}}
warmup: 20s
duration: 20s
events: [{at: 1s, broker_down: 2, for: 5s}]
variants: {classic: {}, consumer: {group: {config: {group.protocol: consumer}}}}
"""
    loaded = load(read_yaml(file, "away.yaml"))
    values = run_all(tasks_of(loaded, [1], BatchOptions(), None), 1, lambda _: None)
    told = [note for note in outcome_of(loaded, [1], values).notes if "spin" in note]
    assert [note.rpartition(" ")[2] for note in told] == ["(consumer)"]


CALM = """\
kgctl: 1
name: busy
topics: {t: 4}
members: {app: {count: 2}}
"""


def test_an_event_whose_condition_never_held_did_not_happen_and_that_is_a_warning() -> None:
    events = "{at: 0s, name: deploy, rollout: app, when: lag > 5}, {at: 0s, scale: app, by: +1, when: lag == 0}"
    file = f"{CALM}warmup: 20s\nduration: 60s\nevents: [{events}]\n"
    loaded = load(read_yaml(file, "never.yaml"))
    values = run_all(tasks_of(loaded, [1, 2], BatchOptions(), None), 1, lambda _: None)
    (warned,) = outcome_of(loaded, [1, 2], values).expectations
    assert (warned.check, warned.passed, warned.severity) == ("event deploy app happens", False, "warn")
    assert warned.note == "its `when` held in no seed"


def _told(more: str, seeds: Sequence[int] = (1, 2)) -> Outcome:
    loaded = load(read_yaml(f"{CALM}warmup: 20s\nduration: 60s\n{more}", "f.yaml"))
    return outcome_of(loaded, seeds, run_all(tasks_of(loaded, seeds, BatchOptions(), None), 1, lambda _: None))


@pytest.mark.parametrize("entry", ["lag < 5", "{check: duplicates == 0, at: mean}", "{always: lag == 0}", "{steady: backlog}"])
def test_what_holds_of_records_that_nobody_writes_is_not_asked_and_is_skipped(entry: str) -> None:
    found = _told(f"expect: ['max_gap < 5s', {entry if entry[0] == '{' else repr(entry)}]\n")
    _, told = found.expectations
    assert (told.passed, told.severity, told.was_asked, told.note) == (False, "warn", False, "not asked: nothing is written")
    assert '<skipped message="not asked: nothing is written" />' in junit_xml(found)
    assert 'tests="2" failures="0" errors="0" skipped="1"' in junit_xml(found)
    assert 'skipped="0"' in junit_xml(_told(f"traffic: {{t: 1/s}}\nexpect: [{entry}]\n"))


def test_an_expectation_of_other_things_besides_is_asked_where_nobody_writes_records() -> None:
    (told,) = _told("expect: [lag < 5 and max_gap < 5s]\n").expectations
    assert (told.passed, told.was_asked) == (True, True)


def test_what_does_not_hold_of_records_that_nobody_writes_fails() -> None:
    (told,) = _told("expect: [lag > 5]\n").failures
    assert (told.check, told.was_asked) == ("lag > 5", True)


def test_a_nemesis_that_drew_nothing_is_a_warning_and_one_that_did_with_some_seed_is_none() -> None:
    (told,) = _told("nemesis: {rate: 1 per 10m, until: 1s, of: [stall]}\n").expectations
    assert (told.check, told.severity, told.note) == ("the nemesis strikes", "warn", "it drew no fault with any seed")
    assert _told("nemesis: {rate: 1 per 20s, until: 30s, of: [stall]}\n", range(1, 7)).warnings == ()
