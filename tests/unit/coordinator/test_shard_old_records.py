"""Logs of older brokers: every version of every record becomes the same state."""

from __future__ import annotations

import pytest

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.modern.member import MemberState
from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.serde.coordinator_records import decode_record
from tests.conformance.notation import START_MS, topic_id
from tests.differential.choices import TOPIC_IDS
from tests.differential.old_records import CLASSIC, CONSUMER, EMPTY, OFFSETS
from tests.support.coordinator_harness import CoordinatorHarness

T1 = topic_id(TOPIC_IDS["T1"])


def records(logged: dict[str, tuple[str, str, str]], *names: str) -> list[AppendRecord]:
    entries = [logged[name] for name in names or logged]
    decoded = [decode_record(bytes.fromhex(key), bytes.fromhex(value)) for _, key, value in entries]
    return [AppendRecord(record) for record in decoded]


def loaded(log: list[AppendRecord]) -> CoordinatorHarness:
    harness = CoordinatorHarness()
    harness.driver.now_ms = START_MS
    harness.driver.load(log)
    return harness


@pytest.mark.parametrize("version", range(5))
def test_a_classic_group_of_any_version_goes_on(version: int) -> None:
    harness = loaded(records(CLASSIC, f"group v{version}"))
    group = harness.group("old-k")
    (member,) = group.members.values()

    assert (group.state, group.generation_id, group.protocol_name, group.leader_id) == ("Stable", 2, "range", "o1")
    assert group.subscribed_topics == frozenset({"T1", "T2"})
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, 20_000 if version >= 1 else 10_000)
    assert member.group_instance_id == ("i-1" if version >= 3 else None)
    assert harness.heartbeat("o1", 2, group="old-k", instance=member.group_instance_id) == 0


@pytest.mark.parametrize("version", range(5))
def test_an_offset_of_any_version_is_there(version: int) -> None:
    (fetched,) = loaded(records(OFFSETS, f"offset v{version}")).fetch(group="old-k").offsets

    assert (fetched.offset, fetched.metadata, fetched.leader_epoch) == (40 + version, f"v{version}", 7 if version >= 3 else -1)


def test_an_offset_with_a_time_of_its_own_expires_then() -> None:
    harness = loaded(records(OFFSETS, "offset v1"))
    harness.driver.run_to(START_MS + 600_000)

    assert harness.any_group("old-k") is None


def test_an_empty_group_keeps_its_generation() -> None:
    harness = loaded(records(EMPTY))

    assert (harness.group("old-e").state, harness.group("old-e").generation_id) == ("Empty", 6)
    assert harness.offsets("old-e") == {"T2-0": 9}


@pytest.mark.parametrize(
    ("left_out", "epoch", "state", "assigned", "pending"),
    [
        ("consumer current pending", 5, MemberState.STABLE, {T1: {0: 5, 1: 5}}, {}),
        ("consumer current", 4, MemberState.UNREVOKED_PARTITIONS, {T1: {0: 4}}, {T1: {1: 4}}),
    ],
)
def test_a_consumer_group_without_assignment_epochs(
    left_out: str, epoch: int, state: MemberState, assigned: object, pending: object
) -> None:
    """Before 4.3 there were none, and before 4.1 the topics' metadata were written; a member has what it has since its epoch."""
    harness = loaded(records(CONSUMER, *(name for name in CONSUMER if name != left_out)))
    group = harness.any_group("old-c")
    assert isinstance(group, ConsumerGroup)
    member = group.members["o1"]

    assert (group.group_epoch, group.assignment_epoch, group.has_partition_metadata_record) == (5, 5, True)
    assert (member.member_epoch, member.state) == (epoch, state)
    assert (member.assigned, member.pending_revocation) == (assigned, pending)
    assert group.resolved_regexes["T.*"].topics == ("T1",)


def test_what_is_read_is_written_as_today() -> None:
    """An old value has the bytes of today's version when it is written again."""
    old, new = records(OFFSETS, "offset v3", "offset v4")
    assert isinstance(old.record, CoordinatorRecord)
    assert isinstance(new.record, CoordinatorRecord)
    harness = loaded([old])

    assert harness.commit({"T1-2": 44}, group="old-k") == {"T1-2": 0}
    written = harness.log[-1].record
    assert isinstance(written, CoordinatorRecord)
    assert written.key == new.record.key
