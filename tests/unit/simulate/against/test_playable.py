"""What of a scenario can be played with real clients, and what these are told."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from kgctl.simulate.against import fleet
from kgctl.simulate.against.client import ClientLoop
from kgctl.simulate.against.consumers import CONSUMERS
from kgctl.simulate.against.playable import can_be_killed, is_measured, obstacles, settings_of, unknown_to
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.simulate.scenario.metric import TASKS, metric_kinds
from kgctl.simulate.scenario.sources import builtin_text
from kgctl.yaml_files import read_yaml
from tests.calibration.cases import FOLDER
from tests.docs.pages import MANUAL

AGAINST = Path(fleet.__file__).parent
SOURCES = (AGAINST / "client.py", AGAINST / "Fleet.java", FOLDER / "clients" / "main.go")
"""One protocol of lines in three languages, which only the tests here hold together."""
BASE = """\
kgctl: 1
name: tiny
topics: {orders: 4}
members:
  app: {count: 2, boot: 0s}
  other: {count: 1, start: never}
"""


def loaded(more: str = "", base: str = BASE) -> LoadedFile:
    return load(read_yaml(base + more, "tiny.yaml"))


def told(more: str = "", profile: str = "librdkafka", base: str = BASE) -> dict[str, str]:
    scenario = loaded(more, base).variants[0].scenario
    scenario = changed(scenario, members=tuple(changed(each, client=profile) for each in scenario.members))
    return settings_of(Simulation(scenario, 1).pods[0], "prefix-group")


def test_the_page_names_what_a_play_does_not_measure() -> None:
    page = (MANUAL / "believing-it.md").read_text(encoding="utf-8")
    told = page.partition("**What is not measured**")[2].partition("\n- **")[0]
    assert set(re.findall(r"`(\w+)`", told)) - {"step"} == {
        kind.name for kind in metric_kinds().values() if not kind.is_playable and kind.about != TASKS
    }


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("events: [{at: 1s, network: app, loss: 10%, for: 1s}]", "event 1, network: not done to a real cluster"),
        ("events: [{at: 1s, broker_down: coordinator, for: 1s}]", "event 1, broker_down: not done to a real cluster"),
        ("events: [{at: 1s, stop: app/leader}]", "event 1, stop: who leads a real group is not known to others"),
        (
            "events: [{at: 1s, stop: app, when: requests > 5}]",
            "event 1, stop: its condition asks for what a play does not measure",
        ),
        ("nemesis: {rate: 1 per 1m, of: [crash, network]}", "nemesis: faults of the network are not made against real clients"),
    ],
)
def test_what_cannot_be_played_is_told(more: str, why: str) -> None:
    assert list(obstacles(loaded(more).variants[0].scenario)) == [why]


def test_every_event_of_a_rollout_can_be_played() -> None:
    file = load(read_yaml(builtin_text("rolling-restart"), "rolling-restart"))
    assert [list(obstacles(variant.scenario)) for variant in file.variants] == [[]] * 4
    assert all(is_measured(check) for check in file.checks)


def test_expectations_of_causes_that_nobody_sees_are_not_measured() -> None:
    checks = loaded('expect: ["lag(end) < 5", "max_gap < 5s", "rebalances(cause join) < 5", "thrash(lag) < 5"]').checks
    assert [is_measured(check) for check in checks] == [True, True, False, False]


def test_only_who_may_be_killed_needs_a_process_alone() -> None:
    for more, wanted in (
        ("events: [{at: 1s, restart: app, for: 1s}, {at: 2s, add_partitions: orders, by: 1}]", [False, False]),
        ("events: [{at: 1s, crash: app/0}]", [True, False]),
        ("events: [{at: 1s, pause_process: not app, for: 1s}]", [True, True]),
        ("nemesis: {rate: 1 per 1m}", [True, True]),
    ):
        scenario = loaded(more).variants[0].scenario
        assert [can_be_killed(scenario, members) for members in scenario.members] == wanted


def test_a_consumer_has_its_clients_own_settings() -> None:
    group = "group: {config: {partition.assignment.strategy: [cooperative-sticky], metadata.max.age.ms: 5s, max.poll.records: 9}}"
    found = told(group)
    assert found.pop("poll.pauses.ms") == "0"
    assert found == {
        "group.protocol": "classic",
        "partition.assignment.strategy": "cooperative-sticky",
        "topic.metadata.refresh.interval.ms": "5000",
        "max.poll.records": "9",
        "group.id": "prefix-group",
        "client.id": "rdkafka",
        "commit.mode": "auto",
        "poll.timeout.ms": "100.0",
        "poll.pauses.always": "true",
    }
    java = told(group, "java")
    assert java["partition.assignment.strategy"] == "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert java["metadata.max.age.ms"] == "5000"


def test_the_application_is_told_how_it_polls() -> None:
    base = BASE.replace(
        "count: 2, boot: 0s",
        "count: 2, poll: {timeout: 50ms, pause: 20ms}, rate: 10/s, commit: every 2s, instance_id: $name,"
        " callbacks: {assigned: 30ms}, config: {group.protocol: consumer}",
    )
    found = told(base=base)
    assert found.pop("poll.pauses.ms").split(",") == ["20"] * 64
    assert found.pop("callback.assigned.ms").split(",") == ["30"] * 64
    assert found == {
        "group.protocol": "consumer",
        "group.instance.id": "app-0",
        "group.id": "prefix-group",
        "client.id": "rdkafka",
        "commit.mode": "every",
        "commit.every.ms": "2000.0",
        "poll.timeout.ms": "50.0",
        "poll.pauses.always": "true",
        "records.per.second": "10.0",
        "max.poll.records": "500",
    }


def test_an_assignor_that_a_client_lacks_is_told() -> None:
    scenario = loaded("group: {config: {partition.assignment.strategy: [sticky]}}").variants[0].scenario
    scenario = changed(scenario, members=scenario.members[:1])
    why = "members app: this client has no assignor 'sticky'; it has range, roundrobin, cooperative-sticky"
    assert list(unknown_to("librdkafka", scenario)) == [why] * len(scenario.members)
    assert list(unknown_to("java", scenario)) == []


def test_a_protocol_that_a_client_does_not_speak_is_told() -> None:
    scenario = loaded("group: {config: {group.protocol: consumer}}").variants[0].scenario
    why = [f"members {each.name}: this client does not speak the consumer protocol" for each in scenario.members]
    assert list(unknown_to("aiokafka", scenario)) == why
    assert list(unknown_to("librdkafka", scenario)) == []


def test_each_client_is_told_settings_by_its_own_names() -> None:
    group = "group: {config: {partition.assignment.strategy: [range], metadata.max.age.ms: 5s, group.remote.assignor: null}}"
    names = {"group.protocol", "topic.metadata.refresh.interval.ms", "metadata.max.age.ms"}
    told_to = {client: names & set(told(group, client)) for client in ("librdkafka", "aiokafka", "java")}
    assert told_to == {
        "librdkafka": {"group.protocol", "topic.metadata.refresh.interval.ms"},
        "aiokafka": {"metadata.max.age.ms"},
        "java": {"group.protocol", "metadata.max.age.ms"},
    }


def test_a_setting_of_the_other_protocol_reaches_the_client_that_refuses_it() -> None:
    """As the simulation has it: such a member does not start."""
    other = "group: {config: {group.protocol: consumer, session.timeout.ms: 9s, partition.assignment.strategy: [range]}}"
    asked = ("session.timeout.ms", "partition.assignment.strategy")
    assert [told(other, client).get(name) for client in ("java", "librdkafka") for name in asked] == ["9000", "range"] * 2


def test_what_members_are_told_of_their_loop_every_client_reads() -> None:
    base = BASE.replace(
        "count: 2, boot: 0s",
        "count: 2, poll: {timeout: 50ms, pause: 20ms}, rate: 10/s, commit: every 2s,"
        " callbacks: {assigned: 30ms, revoked: 30ms, lost: 30ms}",
    )
    kafkas = {"group.protocol", "group.id", "client.id", "partition.assignment.strategy"}
    assert set(told(base=base)) - kafkas == ClientLoop.NAMES
    begins = {"callback." if name.startswith("callback.") else name for name in ClientLoop.NAMES - {"max.poll.records"}}
    left_out = {path.name: [name for name in begins if name not in path.read_text(encoding="utf-8")] for path in SOURCES}
    assert left_out == {"client.py": [], "Fleet.java": [], "main.go": []}


def test_what_clients_say_of_their_members_is_heard() -> None:
    """But for ``stalls``, which is for who looks at one client alone, and what the process and the helper say of themselves."""
    said = re.compile(r'say\((?:\w+(?:\.\w+)?, )?"([a-z-]+)')
    words = {path.name: set(said.findall(path.read_text(encoding="utf-8"))) - {"client", "helper"} for path in SOURCES}
    assert {name: "subscribed" in found for name, found in words.items()} == dict.fromkeys(words, True)
    assert {name: found - {*fleet._HEAR, "stalls"} for name, found in words.items()} == {name: set() for name in words}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of kafka-python, as it is imported
@pytest.mark.parametrize(("client", "consumer"), [("kafka-python", "KafkaConsumer"), ("aiokafka", "AIOKafkaConsumer")])
def test_each_setting_that_a_client_of_python_is_told_is_one_of_its_own(client: str, consumer: str) -> None:
    kind = getattr(import_module(CONSUMERS[client][0]), consumer)
    known = {*getattr(kind, "DEFAULT_CONFIG", ()), *signature(kind).parameters}
    names = ("session.timeout", "heartbeat.interval", "max.poll.interval", "retry.backoff", "metadata.max.age", "request.timeout")
    settings = {f"{name}.ms" for name in names}
    text = ", ".join(f"{name}: 9000" for name in settings)
    group = f"group: {{config: {{{text}, enable.auto.commit: true, auto.offset.reset: latest}}}}"
    found = told(f"cluster: {{racks: [a]}}\n{group}", client, BASE.replace("boot: 0s", "boot: 0s, rack: a"))
    assert {*settings, "client.rack"} < found.keys()
    assert {name for name in found.keys() - ClientLoop.NAMES if name.replace(".", "_") not in known} == set()
