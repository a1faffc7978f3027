"""Listing, describing and offsets: the same contract for Apache Kafka and ``kgctl serve``, values checked by kafka-python."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ConfluentPartition

from kgctl.admin import (
    EARLIEST_LOCAL,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    GroupAdmin,
    ReadsRecords,
    Record,
    Span,
    TellsCommitTimes,
    confluent,
)
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    Node,
    OffsetAndMetadata,
    TopicPartition,
)
from tests.support.admin_targets import RECORDS, Target
from tests.support.kafka import commit, create_topic, produce, unique
from tests.support.kafka.consumers import joined
from tests.support.kafka_python import committed_offsets, log_bounds
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS, PATIENCE_S, SOON_S
from tests.support.serve import ServeFactory


def test_a_group_that_only_has_commits_is_listed_empty(target: Target, any_admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    commit(target.bootstrap, group, {(topic, 0): 1})
    listed = any_admin.list_groups()

    found = listed.values[group]
    assert (found.group_id, found.protocol_type, found.state, found.type) == (
        group,
        "",
        GroupState.EMPTY,
        GroupType.CLASSIC,
    )
    assert list(listed.values) == sorted(listed.values)
    assert not listed.errors
    assert not listed.unreachable


def test_the_coordinator_is_listed(target: Target, admin: GroupAdmin) -> None:
    group = unique("group")
    commit(target.bootstrap, group, {(target.topic(), 0): 1})
    host, _, port = target.bootstrap.rpartition(":")

    coordinator = admin.list_groups().values[group].coordinator

    assert coordinator is not None
    assert (coordinator.host, coordinator.port) == (host, int(port))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_filters_by_state_and_type_are_exact(target: Target, any_admin: GroupAdmin, protocol: str) -> None:
    topic, group, idle = target.topic(), unique("group"), unique("idle")
    commit(target.bootstrap, idle, {(topic, 0): 1})
    with joined(target.bootstrap, group, topic, {"c": 3}, group_protocol=protocol):
        own = {group, idle}
        stable = own & set(any_admin.list_groups(states=[GroupState.STABLE]).values)
        empty = own & set(any_admin.list_groups(states=[GroupState.EMPTY, GroupState.DEAD]).values)
        of_type = own & set(any_admin.list_groups(types=[GroupType(protocol)]).values)
        both = any_admin.list_groups(states=[GroupState.STABLE], types=[GroupType(protocol)]).values

    assert (stable, empty) == ({group}, {idle})
    assert of_type == (own if protocol == "classic" else {group})
    assert (both[group].state, both[group].type) == (GroupState.STABLE, GroupType(protocol))


def test_a_classic_group_is_described_with_members_and_assignment(target: Target, any_admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    with joined(target.bootstrap, group, topic, {"one": 2, "two": 1}) as members:
        described = any_admin.describe_groups([group]).values[group]
        owned = {name: _by_topic(member.assignment()) for name, member in members.items()}

    assert (described.group_id, described.state, described.type) == (group, GroupState.STABLE, GroupType.CLASSIC)
    assert (described.protocol_type, described.assignor) == ("consumer", "range")
    assert (described.group_epoch, described.assignment_epoch) == (None, None)
    assert {member.client_id: member.assignment for member in described.members} == owned
    assert [member.member_id for member in described.members] == sorted(each.member_id for each in described.members)
    assert {member.host for member in described.members} == {"/127.0.0.1"}
    assert {member.target_assignment for member in described.members} == {None}
    assert described.coordinator is not None
    assert str(described.coordinator) == target.bootstrap


def _by_topic(partitions: list[ConfluentPartition]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for each in sorted(partitions, key=lambda each: (each.topic, each.partition)):
        found[each.topic] = (*found.get(each.topic, ()), each.partition)
    return found


def test_static_members_have_their_instance_id(target: Target, any_admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    with joined(target.bootstrap, group, topic, {"c": 3}, group_instance_id="inst-1"):
        (member,) = any_admin.describe_groups([group]).values[group].members
        any_id = member.member_id

    assert member.group_instance_id == "inst-1"
    assert any_id.startswith("inst-1-")


def test_what_members_subscribed_to_is_told(target: Target, admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    with joined(target.bootstrap, group, topic, {"c": 3}):
        (member,) = admin.describe_groups([group]).values[group].members

    assert member.subscribed_topics == (topic,)


def test_a_consumer_protocol_group_is_described_with_epochs_and_targets(target: Target, admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    with joined(target.bootstrap, group, topic, {"c": 3}, group_protocol="consumer"):
        wait_until(lambda: admin.describe_groups([group]).values[group].state is GroupState.STABLE, "the group is Stable")
        described = admin.describe_groups([group]).values[group]

    (member,) = described.members
    assert (described.type, described.protocol_type, described.assignor) == (GroupType.CONSUMER, "consumer", "uniform")
    assert described.group_epoch == described.assignment_epoch == member.member_epoch
    assert (described.group_epoch or 0) >= 1
    assert member.assignment == member.target_assignment == {topic: (0, 1, 2)}
    assert (member.client_id, member.host, member.subscribed_topics) == ("c", "/127.0.0.1", (topic,))
    assert member.is_classic_in_consumer_group is False


def test_an_empty_group_has_no_members(target: Target, any_admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    with joined(target.bootstrap, group, topic, {"c": 3}) as members:
        members["c"].commit(offsets=[ConfluentPartition(topic, 0, 1)], asynchronous=False)
    described = any_admin.describe_groups([group]).values[group]

    assert (described.state, described.members, described.protocol_type) == (GroupState.EMPTY, (), "consumer")


def test_a_missing_group_is_not_found_and_harms_no_other(target: Target, any_admin: GroupAdmin) -> None:
    group, missing = unique("group"), unique("missing")
    commit(target.bootstrap, group, {(target.topic(), 0): 1})
    described = any_admin.describe_groups([missing, group])

    assert {name: error.code for name, error in described.errors.items()} == {missing: ErrorCode.GROUP_ID_NOT_FOUND}
    assert described.errors[missing].message == f"group '{missing}' does not exist"
    assert list(described.values) == [group]


def test_many_groups_are_described_in_the_order_asked(target: Target, any_admin: GroupAdmin) -> None:
    topic = target.topic()
    groups = [unique("group") for _ in range(5)]
    for group in groups:
        commit(target.bootstrap, group, {(topic, 0): 1})

    assert list(any_admin.describe_groups(groups[::-1]).values) == groups[::-1]


def test_committed_offsets_come_with_their_metadata(target: Target, any_admin: GroupAdmin) -> None:
    topic, group, missing = target.topic(), unique("group"), unique("missing")
    commit(target.bootstrap, group, {(topic, 2): 7, (topic, 0): 0}, metadata="note")
    found = any_admin.list_committed_offsets([group, missing])

    assert found.values == {
        group: {
            TopicPartition(topic, 0): OffsetAndMetadata(0, "note"),
            TopicPartition(topic, 2): OffsetAndMetadata(7, "note"),
        },
        missing: {},
    }
    assert list(found.values[group]) == sorted(found.values[group])


def test_metadata_of_a_consumers_commit_has_no_nul_at_its_end(target: Target, any_admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    with joined(target.bootstrap, group, topic, {"c": 3}) as members:
        members["c"].commit(offsets=[ConfluentPartition(topic, 1, 4, "mine")], asynchronous=False)
        found = any_admin.list_committed_offsets([group], require_stable=True).values[group]

    assert found[TopicPartition(topic, 1)].metadata == "mine"


def test_committed_offsets_agree_with_kafka_python(target: Target, admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    commit(target.bootstrap, group, {(topic, number): number * 3 for number in range(3)})
    found = admin.list_committed_offsets([group]).values[group]

    assert {each: offset.offset for each, offset in found.items()} == committed_offsets(target.bootstrap, group)


def test_log_offsets_are_the_bounds_of_the_log(target: Target, any_admin: GroupAdmin) -> None:
    topic = target.topic(partitions=2, records=RECORDS)
    empty = target.topic(partitions=1, records=0)
    found = any_admin.list_log_offsets([TopicPartition(empty, 0), TopicPartition(topic, 1), TopicPartition(topic, 0)])

    assert found.values == {
        TopicPartition(topic, 0): LogOffsets(0, RECORDS),
        TopicPartition(topic, 1): LogOffsets(0, RECORDS),
        TopicPartition(empty, 0): LogOffsets(0, 0),
    }
    assert not found.errors


def test_records_have_times_and_the_newest_is_found(target: Target, any_admin: GroupAdmin) -> None:
    """Compressed, since every batch of a real producer may be."""
    topic = create_topic(target.bootstrap, unique("topic"), 2)
    producer = Producer({"bootstrap.servers": target.bootstrap, "compression.type": "gzip", "linger.ms": 50})
    for offset, timestamp_ms in enumerate((5_000, 9_000, 7_000)):
        producer.produce(topic, b"x" * 100, partition=0, timestamp=timestamp_ms, key=str(offset))
    assert producer.flush(PATIENCE_S) == 0
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    found = any_admin.list_record_times([(first, 2), (first, 0), (second, 0), (first, 3)])
    assert (found.errors, found.values) == ({}, {(first, 0): 5_000, (first, 2): 7_000, (first, 3): None, (second, 0): None})
    assert isinstance(any_admin, ReadsRecords)
    ahead, behind, end = Span(first, 1), Span(first, 0, 5, 2), Span(first, 2, 9)
    records = [Record(offset, time, str(offset).encode(), b"x" * 100) for offset, time in enumerate((5_000, 9_000, 7_000))]
    read = any_admin.read_records([ahead, behind, end, Span(second, 0)])
    assert read.values == {ahead: (records[1],), behind: tuple(records[:2]), end: (records[2],), Span(second, 0): ()}
    assert any_admin.list_offsets_at([first, second], MAX_TIMESTAMP).values == {first: 1, second: None}
    with target.admin() as admin:  # where nothing is in remote storage all is local
        assert admin.list_offsets_at([first, second], EARLIEST_LOCAL).values == {first: 0, second: 0}
        assert admin.list_offsets_at([first, second], LATEST_TIERED).values == {first: None, second: None}


@pytest.mark.parametrize("block", [1, 2_000])
def test_commit_times_are_read_from_the_end_of_the_offsets_topic(
    target: Target, any_admin: GroupAdmin, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Whole, and in blocks that begin with one record; what was deleted has no time, and the latest commit counts."""
    monkeypatch.setattr(confluent, "FIRST_BLOCK", block)
    assert isinstance(any_admin, TellsCommitTimes)
    topic = target.topic(partitions=3, records=1)
    groups, partitions = [unique("aged") for _ in range(3)], [TopicPartition(topic, number) for number in range(3)]
    commit(target.bootstrap, groups[0], {(topic, 0): 1, (topic, 1): 1, (topic, 2): 1})
    commit(target.bootstrap, groups[1], {(topic, 0): 1})
    began_ms = time.time_ns() // 1_000_000 - 1
    commit(target.bootstrap, groups[0], {(topic, 1): 0})
    with target.admin() as admin:
        assert not admin.delete_offsets(groups[0], partitions[2:]).errors
    found = any_admin.list_commit_times({groups[0]: partitions, groups[1]: partitions[:1], groups[2]: partitions})
    assert (found.errors, {group: set(times) for group, times in found.values.items()}) == (
        {},
        {groups[0]: set(partitions[:2]), groups[1]: set(partitions[:1]), groups[2]: set()},
    )
    times = found.values[groups[0]]
    assert times[partitions[0]] <= began_ms <= times[partitions[1]] <= time.time_ns() // 1_000_000 + 1


def test_lag_ends_at_the_last_stable_offset_where_that_is_wanted(target: Target, any_admin: GroupAdmin) -> None:
    partition = TopicPartition(target.topic(partitions=1, records=5), 0)
    producer = Producer({"bootstrap.servers": target.bootstrap, "transactional.id": unique("open")})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(partition.topic, b"open", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    try:
        assert any_admin.list_log_offsets([partition]).values == {partition: LogOffsets(0, 6)}
        assert any_admin.list_log_offsets([partition], read_committed=True).values == {partition: LogOffsets(0, 5)}
    finally:
        producer.abort_transaction(PATIENCE_S)


def test_log_offsets_agree_with_kafka_python(target: Target, admin: GroupAdmin) -> None:
    partition = TopicPartition(target.topic(partitions=1, records=5), 0)
    found = admin.list_log_offsets([partition]).values[partition]

    assert (found.log_start_offset, found.log_end_offset) == log_bounds(target.bootstrap, partition)


def test_unknown_topics_and_partitions_are_errors_of_their_own(target: Target, any_admin: GroupAdmin) -> None:
    topic, gone = target.topic(partitions=1), unique("gone")
    wanted = [TopicPartition(topic, 0), TopicPartition(topic, 9), TopicPartition(gone, 0)]
    started = time.monotonic()
    found = any_admin.list_log_offsets(wanted)

    assert list(found.values) == wanted[:1]
    assert {each: error.code for each, error in found.errors.items()} == dict.fromkeys(
        wanted[1:], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert time.monotonic() - started < SOON_S


def test_the_offset_at_a_time_is_that_of_the_first_record_not_before_it(target: Target, any_admin: GroupAdmin) -> None:
    topic = target.topic(partitions=2, records=0)
    first_ms = int(time.time() * 1000) - 100_000
    produce(target.bootstrap, topic, {0: RECORDS}, timestamp_ms=first_ms, step_ms=1_000)
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]

    def at(timestamp_ms: int) -> list[int | None]:
        found = any_admin.list_offsets_at(partitions, timestamp_ms)
        assert not found.errors
        return [found.values[partition] for partition in partitions]

    assert at(0) == [0, None]
    assert at(first_ms + 3_000) == [3, None]
    assert at(first_ms + 3_001) == [4, None]
    assert at(first_ms + 9_000) == [9, None]
    assert at(first_ms + 9_001) == [None, None]


def test_topics_are_listed_with_their_partitions(target: Target, any_admin: GroupAdmin) -> None:
    one, two = target.topic(partitions=1, records=0), target.topic(partitions=4, records=0)

    assert any_admin.list_topics([two, one, unique("gone")]) == {one: 1, two: 4}
    assert any_admin.list_topics([]) == {}
    found = any_admin.list_topics()
    assert (found[one], found[two]) == (1, 4)


def test_nothing_asked_is_nothing_answered(any_admin: GroupAdmin) -> None:
    assert any_admin.describe_groups([]).values == {}
    assert any_admin.list_committed_offsets([]).values == {}
    assert any_admin.list_log_offsets([]).values == {}
    assert any_admin.list_offsets_at([], 0).values == {}


def test_a_description_compares_whole(target: Target, admin: GroupAdmin) -> None:
    group = unique("group")
    commit(target.bootstrap, group, {(target.topic(), 0): 1})
    host, _, port = target.bootstrap.rpartition(":")
    listing = admin.list_groups().values[group]
    node = listing.coordinator or Node(-1, "", 0)

    assert listing == GroupListing(group, "", GroupState.EMPTY, GroupType.CLASSIC, Node(node.node_id, host, int(port)))
    assert admin.describe_groups([group]).values == {
        group: GroupDescription(group, GroupState.EMPTY, GroupType.CLASSIC, coordinator=node)
    }


@pytest.mark.interop
def test_groups_of_several_brokers_are_one_picture(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve(topics={"t": 6}, brokers=3)
    produce(server.bootstrap, "t", dict.fromkeys(range(6), 4))
    groups = sorted(unique("group") for _ in range(12))
    for number, group in enumerate(groups):
        commit(server.bootstrap, group, {("t", number % 6): number % 4})
    with connect(ConnectionSettings(server.bootstrap, timeout_ms=PATIENCE_MS)) as admin:
        listed = admin.list_groups().values
        described = admin.describe_groups(groups).values
        offsets = admin.list_committed_offsets(groups).values
        logs = admin.list_log_offsets([TopicPartition("t", number) for number in range(6)]).values
        deleted = admin.delete_groups(groups)

    assert list(listed) == list(described) == groups
    assert {group: each.coordinator for group, each in listed.items()} == {
        group: each.coordinator for group, each in described.items()
    }
    assert len({each.coordinator for each in listed.values()}) == 3
    assert offsets == {
        group: {TopicPartition("t", number % 6): OffsetAndMetadata(number % 4)} for number, group in enumerate(groups)
    }
    assert logs == {TopicPartition("t", number): LogOffsets(0, 4) for number in range(6)}
    assert (list(deleted.values), deleted.errors) == (groups, {})
