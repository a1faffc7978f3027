"""A preview says what the deed does: every changing command, over groups of every type and state of Apache Kafka."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ShareConsumer
from confluent_kafka import TopicPartition as ConfluentPartition

from kgctl.admin import GroupAdmin
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.model.groups import GroupState, StartOffset, TopicPartition
from tests.support.kafka import KafkaBroker, commit, create_topic, produce, unique
from tests.support.kafka.consumers import joined
from tests.support.kafka.kgctl import KgctlRun, run_kgctl
from tests.support.kafka.streams import streams_member
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS

pytestmark = pytest.mark.kafka

TYPES_AND_STATES = {
    "simple": ("classic", "Empty"),
    "classic-empty": ("classic", "Empty"),
    "classic-stable": ("classic", "Stable"),
    "consumer-empty": ("consumer", "Empty"),
    "consumer-stable": ("consumer", "Stable"),
    "share-empty": ("share", "Empty"),
    "share-stable": ("share", "Stable"),
    "streams-empty": ("streams", "Empty"),
    "streams-stable": ("streams", "Stable"),
}


@contextlib.contextmanager
def shared(bootstrap: str, admin: GroupAdmin, group: str, topic: str) -> Iterator[None]:
    """A share group with one member for as long as the block lasts."""
    member = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    member.subscribe([topic])

    def is_stable() -> bool:
        member.poll(0.05)
        found = admin.list_groups().values.get(group)
        return found is not None and found.state is GroupState.STABLE

    try:
        wait_until(is_stable, "the share group is Stable")
        yield
    finally:
        member.close()


@pytest.fixture
def groups(kafka_broker: KafkaBroker) -> Iterator[tuple[str, dict[str, str]]]:
    """A topic with commits of all consumer groups, and one group of every kind, by kind."""
    bootstrap = kafka_broker.bootstrap
    topic = create_topic(bootstrap, unique("topic"), 1)
    produce(bootstrap, topic, {0: 10})
    names = {kind: unique(kind) for kind in (*TYPES_AND_STATES, "missing")}
    commit(bootstrap, names["simple"], {(topic, 0): 5})
    with contextlib.ExitStack() as staying, connect(ConnectionSettings(bootstrap, timeout_ms=PATIENCE_MS)) as admin:
        for protocol in ("classic", "consumer"):
            for state in ("empty", "stable"):
                block = joined(bootstrap, names[f"{protocol}-{state}"], topic, {"m": 1}, group_protocol=protocol)
                with contextlib.ExitStack() as leaving:
                    members = (staying if state == "stable" else leaving).enter_context(block)
                    members["m"].commit(offsets=[ConfluentPartition(topic, 0, 5)], asynchronous=False)
        with shared(bootstrap, admin, names["share-empty"], topic):
            pass
        start = {TopicPartition(topic, 0): StartOffset(5)}
        wait_until(lambda: admin.alter_offsets(names["share-empty"], start).status == "ok", "the share group takes an offset")
        staying.enter_context(shared(bootstrap, admin, names["share-stable"], topic))
        with streams_member(bootstrap, names["streams-empty"], topic):
            pass
        commit(bootstrap, names["streams-empty"], {(topic, 0): 5})
        staying.enter_context(streams_member(bootstrap, names["streams-stable"], topic))

        def kinds() -> dict[str, tuple[str, str]]:
            listed = admin.list_groups().values
            return {kind: (listed[names[kind]].type.value, listed[names[kind]].state.value) for kind in TYPES_AND_STATES}

        wait_until(lambda: kinds() == TYPES_AND_STATES, "every group is of its type and state")
        yield topic, names


def by_kind(run: KgctlRun, names: dict[str, str]) -> dict[str, tuple[str, str | None]]:
    """Result and error of each group that has a row."""
    rows = {row["group"]: (row["result"], row.get("error")) for row in run.data}
    return {kind: rows[name] for kind, name in names.items() if name in rows}


@pytest.mark.parametrize("command", ["delete-groups", "delete-offsets"])
def test_what_is_deletable_is_deleted_and_all_else_fails_alike(
    kafka_broker: KafkaBroker, groups: tuple[str, dict[str, str]], command: str
) -> None:
    topic, names = groups
    line = [command, *names.values(), *(["--topic", f"{topic}:0"] if command == "delete-offsets" else []), "--no-backup"]
    preview = run_kgctl(kafka_broker.bootstrap, *line, "--dry-run", code=3)
    deed = run_kgctl(kafka_broker.bootstrap, *line, "--yes", code=3)

    shown, done = by_kind(preview, names), by_kind(deed, names)
    assert done == {
        kind: ("deleted", error) if result == "deletable" else (result, error) for kind, (result, error) in shown.items()
    }
    deletable = {kind for kind, (result, _) in shown.items() if result == "deletable"}
    empty = {kind for kind, (_, state) in TYPES_AND_STATES.items() if state == "Empty"}
    assert deletable == empty
    assert errors(preview) == errors(deed)


def errors(run: KgctlRun) -> list[tuple[str, str | None]]:
    """What failed: the code, and the group."""
    return sorted((each["code"], each["group"] or "") for each in run.document["errors"])


def test_a_dry_run_of_a_reset_counts_what_executing_resets(
    kafka_broker: KafkaBroker, groups: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    topic, names = groups
    line = ["reset-offsets", *names.values(), "--topic", topic, "--to-earliest"]
    preview = run_kgctl(kafka_broker.bootstrap, *line, code=3)
    deed = run_kgctl(kafka_broker.bootstrap, *line, "--execute", "--backup", str(tmp_path / "undo.csv"), code=3)

    planned = {row["group"]: row["new_offset"] for row in preview.data}
    refused = {name for name in planned if f"Group {name!r} is active" in preview.err}
    reset = {row["group"]: row["new_offset"] for row in deed.data if row["result"] == "reset"}
    assert reset == {name: offset for name, offset in planned.items() if name not in refused}
    assert f"Add --execute to change {len(reset)} partitions of {len(reset)} groups" in preview.err
    assert refused == {each["group"] for each in deed.document["errors"] if each["code"] == "NON_EMPTY_GROUP"}
    assert {kind for kind, name in names.items() if name in reset} == {
        kind for kind, (_, state) in TYPES_AND_STATES.items() if state == "Empty"
    }
    assert [error for error in errors(deed) if error[0] != "NON_EMPTY_GROUP"] == errors(preview)


def test_members_that_a_preview_names_are_removed_and_all_else_fails_alike(
    kafka_broker: KafkaBroker, groups: tuple[str, dict[str, str]]
) -> None:
    _, names = groups
    line = ["remove-members", *names.values(), "--all"]
    preview, deed = (run_kgctl(kafka_broker.bootstrap, *line, answer, code=3) for answer in ("--dry-run", "--yes"))

    stable = {f"{protocol}-stable" for protocol in ("classic", "consumer")}
    assert by_kind(preview, names) == dict.fromkeys(stable, ("removable", None))
    assert by_kind(deed, names) == dict.fromkeys(stable, ("removed", None))
    assert errors(preview) == errors(deed)
    unfit = {each["group"] for each in preview.document["errors"] if each["code"] == "INCONSISTENT_GROUP_PROTOCOL"}
    assert unfit == {name for kind, name in names.items() if kind.startswith(("share", "streams"))}
