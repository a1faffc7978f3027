"""Records of share and streams groups in the bytes that Apache Kafka 4.3.1's GroupCoordinatorRecordSerde writes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kgctl.model.coordinator_records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kgctl.model.streams_records import AssignedTaskIds, StreamsGroupTopologyKey
from kgctl.serde.epoch_groups import CurrentTasksValue, TopicNamesValue

T, U, D = UUID("11111111-1111-1111-2222-222222222222"), UUID(int=3 << 64 | 4), UUID(int=5 << 64 | 6)
HOST = "/127.0.0.1"
STREAMS_MEMBER = ConsumerGroupMemberMetadataValue("i", None, "c", HOST, rebalance_timeout_ms=45_000)
RECORDS: list[tuple[str, str, Any, Any]] = [
    ("000b000167", "000000000003000000000000000700", ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(3, 7)),
    (
        "000a00016700016d",
        "0000027202630b2f3132372e302e302e31030261027400",
        ConsumerGroupMemberMetadataKey("g", "m"),
        ConsumerGroupMemberMetadataValue(None, "r", "c", HOST, ("a", "t")),
    ),
    (
        "000c000167",
        "00000000000301000800000000000003e8",
        ConsumerGroupTargetAssignmentMetadataKey("g"),
        ConsumerGroupTargetAssignmentMetadataValue(3, 1_000),
    ),
    (
        "000d00016700016d",
        "000002111111111111111122222222222222220300000000000000020000",
        ConsumerGroupTargetAssignmentMemberKey("g", "m"),
        ConsumerGroupTargetAssignmentMemberValue(((T, (0, 2)),)),
    ),
    (
        "000e00016700016d",
        "000000000003000000020002111111111111111122222222222222220300000000000000020000",
        ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
        ConsumerGroupCurrentMemberAssignmentValue(3, 2, 0, (AssignedTopicPartitions(T, (0, 2)),)),
    ),
    (
        "000f000167",
        "00000211111111111111112222222222222222027402000000000002000000000000000300000000000000040275020000000100"
        "020000000000000005000000000000000602640000",
        ConsumerGroupPartitionMetadataKey("g"),
        TopicNamesValue(((T, "t"), (U, "u"), (D, "d"))),
    ),
    (
        "0011000167",
        "000000000003000000000000000702000400000001011902156e756d2e7374616e6462792e7265706c69636173023100",
        ConsumerGroupMetadataKey("g"),
        ConsumerGroupMetadataValue(3, 7),
    ),
    (
        "001300016700016d",
        "000002690002630b2f3132372e302e302e310000afc8000000010270ff02057a6f6e65027a0000",
        ConsumerGroupMemberMetadataKey("g", "m"),
        STREAMS_MEMBER,
    ),
    (
        "001300016700016d",
        "000002690002630b2f3132372e302e302e310000afc8000000010270010268ea600002057a6f6e65027a0000",
        ConsumerGroupMemberMetadataKey("g", "m"),
        STREAMS_MEMBER,
    ),
    (
        "0014000167",
        "00000000000300",
        ConsumerGroupTargetAssignmentMetadataKey("g"),
        ConsumerGroupTargetAssignmentMetadataValue(3),
    ),
    (
        "001500016700016d",
        "000002023003000000010000000200010100",
        ConsumerGroupTargetAssignmentMemberKey("g", "m"),
        ConsumerGroupTargetAssignmentMemberValue(),
    ),
    (
        "001600016700016d",
        "000000000003000000020202023003000000010000000201000903000000020000000302023102000000000001020230020000000000010100",
        ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
        CurrentTasksValue(3, 1, (AssignedTaskIds("0", (0,)), AssignedTaskIds("0", (1, 2), (2, 3)))),
    ),
    ("0017000167", "0000000000010100", StreamsGroupTopologyKey("g"), bytes.fromhex("0000000000010100")),
]
"""Key and value as bytes in hex, and what they are read as."""
