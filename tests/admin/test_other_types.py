"""Groups whose members are no consumers: listed with their type, described by an error that names it, never taken for missing."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest
from confluent_kafka import ShareConsumer

from kgctl.admin import GroupAdmin, ItemError
from kgctl.admin.changes import decide_deletion
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.admin.group_view import is_consumer_group, view_offsets
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, OffsetAndMetadata, TopicPartition
from tests.support.admin_targets import Target
from tests.support.kafka import KafkaBroker, unique
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS, PATIENCE_S

pytestmark = pytest.mark.kafka

SHARE = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.fixture(scope="module")
def kafka(kafka_broker: KafkaBroker) -> Target:
    return Target("kafka", kafka_broker.bootstrap)


@pytest.fixture(scope="module")
def own_admin(kafka: Target) -> Iterator[GroupAdmin]:
    with connect(ConnectionSettings(kafka.bootstrap, timeout_ms=PATIENCE_MS)) as admin:
        yield admin


@pytest.fixture(scope="module")
def share_group(kafka: Target, own_admin: GroupAdmin) -> Iterator[tuple[str, TopicPartition]]:
    """A share group with one member on a topic of its own."""
    topic, group = kafka.topic(partitions=1), unique("share")
    member = ShareConsumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "log_level": 0})
    member.subscribe([topic])

    def is_stable() -> bool:
        member.poll(0.05)
        found = own_admin.list_groups().values.get(group)
        return found is not None and found.state is GroupState.STABLE

    wait_until(is_stable, "the share group is Stable")
    yield group, TopicPartition(topic, 0)
    member.close()


def test_a_share_group_is_listed_with_its_type(own_admin: GroupAdmin, share_group: tuple[str, TopicPartition]) -> None:
    group, _ = share_group
    found = own_admin.list_groups(types=[GroupType.SHARE]).values

    assert (found[group].type, found[group].protocol_type) == (GroupType.SHARE, "share")
    assert group not in own_admin.list_groups(types=[GroupType.CLASSIC, GroupType.CONSUMER]).values


def test_where_it_cannot_be_described_its_type_is_named(kafka: Target, share_group: tuple[str, TopicPartition]) -> None:
    group, _ = share_group
    with kafka.confluent() as confluent:
        found = confluent.describe_groups([group])

    assert found.errors[group].code is SHARE
    assert found.errors[group].message == f"group '{group}' is a share or streams group, not a consumer group"


def test_a_commit_for_it_and_removal_of_its_members_are_refused(
    own_admin: GroupAdmin, share_group: tuple[str, TopicPartition]
) -> None:
    group, partition = share_group

    altered = own_admin.alter_offsets(group, {partition: OffsetAndMetadata(1)})
    assert [(error.code, error.message) for error in altered.errors.values()] == [
        (SHARE, f"group '{group}' is a share group: it has start offsets in the place of commits")
    ]
    removed = own_admin.remove_members(group, member_ids=["m"])
    assert [(error.code, error.message) for error in removed.errors.values()] == [
        (SHARE, f"group '{group}' is a share group: members are removed from classic and consumer groups only")
    ]


def test_it_cannot_be_deleted_while_it_has_members(own_admin: GroupAdmin, share_group: tuple[str, TopicPartition]) -> None:
    group, _ = share_group

    assert own_admin.delete_groups([group]).errors[group].code is ErrorCode.NON_EMPTY_GROUP


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _blob(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _call(broker: socket.socket, api: int, body: bytes) -> bytes:
    """One request of version 0, and the answer behind its correlation id."""
    broker.sendall(_blob(struct.pack(">hhi", api, 0, 1) + _text("worker") + body))
    stream = broker.makefile("rb")
    (length,) = struct.unpack(">i", stream.read(4))
    return stream.read(length)[4:]


@pytest.fixture(scope="module")
def connect_group(kafka: Target) -> Iterator[str]:
    """A group as Kafka Connect's workers form it: protocol type ``connect``, assignments that are no consumer's. One worker."""
    group, (host, port) = unique("connect"), kafka.bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), PATIENCE_S) as broker:
        protocols = struct.pack(">i", 1) + _text("sessioned") + _blob(b"url of the worker")

        def join() -> bytes:
            return _call(broker, 11, _text(group) + struct.pack(">i", 30_000) + _text("") + _text("connect") + protocols)

        joined = join()
        while joined[:2] in (struct.pack(">h", 15), struct.pack(">h", 14), struct.pack(">h", 16)):  # the coordinator is loading
            joined = join()
        error, generation = struct.unpack_from(">hi", joined)
        assert error == 0
        at = 6
        for _ in range(2):  # the protocol's name, the leader
            at += 2 + struct.unpack_from(">h", joined, at)[0]
        member = joined[at + 2 : at + 2 + struct.unpack_from(">h", joined, at)[0]].decode()
        assignments = struct.pack(">i", 1) + _text(member) + _blob(b"connectors and tasks")
        synced = _call(broker, 14, _text(group) + struct.pack(">i", generation) + _text(member) + assignments)
        assert struct.unpack_from(">h", synced)[0] == 0
        yield group
        _call(broker, 13, _text(group) + _text(member))


def test_no_offset_of_a_group_of_kafka_connect_is_deleted_while_it_has_workers(
    kafka: Target, own_admin: GroupAdmin, connect_group: str
) -> None:
    found = own_admin.delete_offsets(connect_group, [TopicPartition(kafka.topic(partitions=1), 0)])
    assert [error.code for error in found.errors.values()] == [ErrorCode.NON_EMPTY_GROUP]


def test_a_group_of_kafka_connect_is_listed_and_described_with_its_type(own_admin: GroupAdmin, connect_group: str) -> None:
    listing = own_admin.list_groups().values[connect_group]
    assert (listing.type, listing.protocol_type, listing.state) == (GroupType.CLASSIC, "connect", GroupState.STABLE)
    assert not is_consumer_group(listing)

    description = own_admin.describe_groups([connect_group]).values[connect_group]
    (member,) = description.members
    assert (description.protocol_type, description.assignor, member.client_id) == ("connect", "sessioned", "worker")
    assert (member.assignment, member.subscribed_topics) == (None, None)
    assert view_offsets(own_admin, [connect_group]).views[0].partitions == ()
    assert decide_deletion(own_admin, [connect_group])[connect_group].refused == ItemError(
        ErrorCode.NON_EMPTY_GROUP, f"group '{connect_group}' is active (Stable): it has members"
    )
