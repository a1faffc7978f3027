"""``__consumer_offsets`` read as any monitor reads it: by a consumer, and by old ListOffsets."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from kgctl.model.groups import ZERO_UUID
from kgctl.model.values import partition_for
from kgctl.serde.coordinator_records import decode_record
from tests.support.members import wait_until
from tests.support.serve import ServeFactory
from tests.support.wire.classic_member import ClassicMember
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.interop

OFFSET_COMMIT, LIST_OFFSETS, METADATA = 8, 2, 3
OFFSETS_TOPIC, GROUP = "__consumer_offsets", "payments"


def commit(raw: RawClient, offset: int) -> None:
    entry = {"partition_index": 1, "committed_offset": offset, "committed_metadata": "m", "committed_leader_epoch": 0}
    body = raw.call(OFFSET_COMMIT, 8, {"group_id": GROUP, "topics": [{"name": "orders", "partitions": [entry]}]})

    assert int(body.topics[0].partitions[0].error_code) == 0


def test_a_consumer_reads_what_the_coordinator_wrote_and_waits_for_more(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve(topics={"orders": 2})
    with RawClient(server.bootstrap) as raw:
        commit(raw, 5)
        commit(raw, 6)
        partition = partition_for(GROUP, 50)
        config = {"bootstrap.servers": server.bootstrap, "group.id": "monitor", "fetch.wait.max.ms": 10_000}
        consumer = Consumer(config)
        consumer.assign([TopicPartition(OFFSETS_TOPIC, partition, 0)])
        seen: list[CoordinatorRecord] = []

        def has(count: int) -> bool:
            for message in consumer.consume(10, 0.1):
                assert message.error() is None
                key, value = message.key(), message.value()
                assert isinstance(key, bytes)
                seen.append(decode_record(key, value if isinstance(value, bytes) else None))
            return len(seen) == count

        wait_until(lambda: has(2), "two commits")
        commit(raw, 7)
        wait_until(lambda: has(3), "the third commit")
        ClassicMember(raw, GROUP, ["orders"]).join(3)
        wait_until(lambda: has(4), "the group's record")
        consumer.close()
    key, value = seen[0].key, seen[0].value

    assert key == OffsetCommitKey(GROUP, "orders", 1)
    assert isinstance(value, OffsetCommitValue)
    assert (value.offset, value.leader_epoch, value.metadata) == (5, 0, "m")
    assert value.topic_id != ZERO_UUID
    assert [record.value.offset for record in seen[:3] if isinstance(record.value, OffsetCommitValue)] == [5, 6, 7]
    assert seen[3].key == GroupMetadataKey(GROUP)


def test_an_old_monitor_asks_without_negotiation(kgctl_serve: ServeFactory) -> None:
    """Burrow: Metadata first, then ListOffsets version 0, no ApiVersions ever."""
    server = kgctl_serve(topics={"orders": 2})
    with RawClient(server.bootstrap) as raw:
        topics = {topic.name: topic for topic in raw.call(METADATA, 1, {"topics": None}).topics}

        assert topics[OFFSETS_TOPIC].is_internal
        assert len(topics[OFFSETS_TOPIC].partitions) == 50

        commit(raw, 5)
        partition = partition_for(GROUP, 50)
        for timestamp, expected in ((-1, (1, 0)), (-2, (0,))):
            entry = {"partition_index": partition, "timestamp": timestamp, "max_num_offsets": 2}
            body = raw.call(LIST_OFFSETS, 0, {"replica_id": -1, "topics": [{"name": OFFSETS_TOPIC, "partitions": [entry]}]})

            assert body.topics[0].partitions[0].old_style_offsets == expected
