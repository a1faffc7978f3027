"""Records of ``__consumer_offsets``: examples in the bytes that Apache Kafka 4.3 writes, and strategies for any record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from kgctl.model.coordinator_records import (
    AssignedTopicPartitions,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    OpaqueKey,
)
from kgctl.model.groups import ZERO_UUID
from kgctl.model.share_records import ShareGroupMetadataKey, ShareGroupMetadataValue
from kgctl.model.streams_records import StreamsGroupMetadataKey, StreamsGroupMetadataValue

A = UUID("11111111-1111-1111-2222-222222222222")
SUBSCRIPTION = bytes.fromhex("000000000001000174ffffffff")
ASSIGNMENT = bytes.fromhex("0000000000010001740000000100000000ffffffff")
G_T_1 = OffsetCommitKey("g", "t", 1)
G_M = ("g", "m")
HOST = "/127.0.0.1"
ID_HEX = "11111111111111112222222222222222"
MEMBER_HEX = "000163000a2f3132372e302e302e310000ea60000027100000000d000000000001000174ffffffff"

STATIC_GROUP = GroupMetadataValue(
    "consumer",
    2,
    "range",
    "c-1",
    1000,
    (
        MemberMetadata("c-1", None, "c", HOST, 60_000, 10_000, SUBSCRIPTION, ASSIGNMENT),
        MemberMetadata("i-2", "i", "c", HOST, 60_000, 10_000, SUBSCRIPTION, b""),
    ),
)
MEMBER = ConsumerGroupMemberMetadataValue(
    client_id="c", client_host=HOST, subscribed_topic_names=("a", "t"), subscribed_topic_regex="", rebalance_timeout_ms=60_000
)


def current(epoch: int, previous: int, state: int = 0, **partitions: Any) -> ConsumerGroupCurrentMemberAssignmentValue:
    return ConsumerGroupCurrentMemberAssignmentValue(epoch, previous, state, **partitions)


def on_a(partitions: tuple[int, ...], epochs: tuple[int, ...] = ()) -> tuple[AssignedTopicPartitions, ...]:
    return (AssignedTopicPartitions(A, partitions, epochs),)


WRITTEN_BY_KAFKA = {
    "offset commit": (
        G_T_1,
        OffsetCommitValue(42, 3, "m", 1000, -1, A),
        "000100016700017400000001",
        f"0004000000000000002a00000003026d00000000000003e8010010{ID_HEX}",
    ),
    "offset commit, nothing optional": (
        G_T_1,
        OffsetCommitValue(42, -1, "", 1000),
        "000100016700017400000001",
        "0004000000000000002affffffff0100000000000003e800",
    ),
    "offset commit with a retention": (
        G_T_1,
        OffsetCommitValue(42, -1, "m", 1000, 2000),
        "000100016700017400000001",
        "0001000000000000002a00016d00000000000003e800000000000007d0",
    ),
    "offset commit, not ASCII": (
        OffsetCommitKey("grü", "t", 7),
        OffsetCommitValue(1_099_511_627_776, 0, "ä", 1_700_000_000_000, -1, A),
        "000100046772c3bc00017400000007",
        f"000400000100000000000000000003c3a40000018bcfe56800010010{ID_HEX}",
    ),
    "offset tombstone": (G_T_1, None, "000100016700017400000001", None),
    "classic group": (
        GroupMetadataKey("g"),
        STATIC_GROUP,
        "0002000167",
        "00030008636f6e73756d657200000002000572616e67650003632d3100000000000003e800000002"
        f"0003632d31ffff{MEMBER_HEX}000000150000000000010001740000000100000000ffffffff"
        f"0003692d32000169{MEMBER_HEX}00000000",
    ),
    "classic group, brand-new": (
        GroupMetadataKey("g"),
        GroupMetadataValue("", 0, None, None, 1000),
        "0002000167",
        "0003000000000000ffffffff00000000000003e800000000",
    ),
    "classic group, left empty by a real member": (
        GroupMetadataKey("hc"),
        GroupMetadataValue("consumer", 2, None, None, 0x1A1FD8C6F30),
        "000200026863",
        "00030008636f6e73756d657200000002ffffffff000001a1fd8c6f3000000000",
    ),
    "offset commit of confluent-kafka, with its NUL": (
        OffsetCommitKey("hc", "t1", 0),
        OffsetCommitValue(3, -1, "meta\0", 0x1A1FD8C6F2F, -1, UUID("39a85ccd50a64a19b2d4d0d3c6dd039f")),
        "00010002686300027431" + "00000000",
        "00040000000000000003ffffffff066d65746100000001a1fd8c6f2f01001039a85ccd50a64a19b2d4d0d3c6dd039f",
    ),
    "consumer group": (
        ConsumerGroupMetadataKey("g"),
        ConsumerGroupMetadataValue(2, 0x0102030405060708),
        "0003000167",
        "0000000000020100080102030405060708",
    ),
    "consumer group without a hash": (
        ConsumerGroupMetadataKey("g"),
        ConsumerGroupMetadataValue(3),
        "0003000167",
        "00000000000300",
    ),
    "consumer group's topics of before 4.1": (
        ConsumerGroupPartitionMetadataKey("g"),
        bytes.fromhex(f"000002{ID_HEX}027400000002010000"),
        "0004000167",
        f"000002{ID_HEX}027400000002010000",
    ),
    "consumer group's topics, tombstone": (ConsumerGroupPartitionMetadataKey("g"), None, "0004000167", None),
    "member": (
        ConsumerGroupMemberMetadataKey(*G_M),
        MEMBER,
        "000500016700016d",
        "0000000002630b2f3132372e302e302e310302610274010000ea600001000100",
    ),
    "member with a regex": (
        ConsumerGroupMemberMetadataKey(*G_M),
        ConsumerGroupMemberMetadataValue("i", "r", "c", HOST, (), "t.*", 60_000, "range"),
        "000500016700016d",
        "00000269027202630b2f3132372e302e302e310104742e2a0000ea600672616e676501000100",
    ),
    "classic member of a consumer group": (
        ConsumerGroupMemberMetadataKey(*G_M),
        replace(
            MEMBER,
            subscribed_topic_names=("t",),
            classic_member_metadata=ClassicMemberMetadata(10_000, (ClassicProtocol("range", SUBSCRIPTION),)),
        ),
        "000500016700016d",
        "0000000002630b2f3132372e302e302e31020274010000ea600001001c0100002710020672616e67650e000000000001000174ffffffff0000",
    ),
    "target": (
        ConsumerGroupTargetAssignmentMetadataKey("g"),
        ConsumerGroupTargetAssignmentMetadataValue(2, 1000),
        "0006000167",
        "00000000000201000800000000000003e8",
    ),
    "target of before 4.3": (
        ConsumerGroupTargetAssignmentMetadataKey("g"),
        ConsumerGroupTargetAssignmentMetadataValue(2),
        "0006000167",
        "00000000000200",
    ),
    "target of a member": (
        ConsumerGroupTargetAssignmentMemberKey(*G_M),
        ConsumerGroupTargetAssignmentMemberValue(((A, (0, 1)),)),
        "000700016700016d",
        f"000002{ID_HEX}0300000000000000010000",
    ),
    "target of a member, nothing": (
        ConsumerGroupTargetAssignmentMemberKey(*G_M),
        ConsumerGroupTargetAssignmentMemberValue(),
        "000700016700016d",
        "00000100",
    ),
    "current assignment": (
        ConsumerGroupCurrentMemberAssignmentKey(*G_M),
        current(2, 0, assigned_partitions=on_a((0, 1), (2, 2))),
        "000800016700016d",
        f"000000000002000000000002{ID_HEX}0300000000000000010100090300000002000000020100",
    ),
    "current assignment, revoking": (
        ConsumerGroupCurrentMemberAssignmentKey(*G_M),
        current(3, 2, 1, assigned_partitions=on_a((0,), (2,)), partitions_pending_revocation=on_a((1,), (2,))),
        "000800016700016d",
        f"000000000003000000020102{ID_HEX}0200000000010005020000000202{ID_HEX}0200000001010005020000000200",
    ),
    "current assignment of before 4.3": (
        ConsumerGroupCurrentMemberAssignmentKey(*G_M),
        current(3, 2, assigned_partitions=on_a((0, 1))),
        "000800016700016d",
        f"000000000003000000020002{ID_HEX}030000000000000001000100",
    ),
    "current assignment of a static member that left": (
        ConsumerGroupCurrentMemberAssignmentKey(*G_M),
        current(-2, 0),
        "000800016700016d",
        "0000fffffffe0000000000010100",
    ),
    "regex": (
        ConsumerGroupRegularExpressionKey("g", "t.*"),
        ConsumerGroupRegularExpressionValue(("t",), 5, 1000),
        "00100001670003742e2a",
        "0000020274000000000000000500000000000003e800",
    ),
    "share group": (
        ShareGroupMetadataKey("s"),
        ShareGroupMetadataValue(2),
        "000b000173",
        "000000000002000000000000000000",
    ),
    "streams group": (
        StreamsGroupMetadataKey("st"),
        StreamsGroupMetadataValue(2),
        "001100027374",
        "000000000002000000000000000000",
    ),
    "a type of the future": (OpaqueKey(99, bytes.fromhex("0063ff")), b"\x00\x07\xff", "0063ff", "0007ff"),
}

texts = st.text(st.characters(codec="utf-8"), max_size=20)
optional_texts = st.none() | texts
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
blobs = st.binary(max_size=20)
assigned = st.builds(
    AssignedTopicPartitions, st.uuids(), st.lists(int32s, max_size=4).map(tuple), st.lists(int32s, max_size=4).map(tuple)
)
members = st.builds(MemberMetadata, texts, optional_texts, texts, texts, int32s, int32s, blobs, blobs)
protocols = st.builds(ClassicProtocol, texts, blobs)
names = st.lists(texts, max_size=3).map(tuple)


def tuples(of: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, max_size=3).map(tuple)


commits = st.builds(OffsetCommitValue, int64s, int32s, texts, int64s, st.just(-1), st.uuids() | st.just(ZERO_UUID))
VALUES_OF = {
    st.builds(OffsetCommitKey, texts, texts, int32s): commits,
    st.builds(GroupMetadataKey, texts): st.builds(
        GroupMetadataValue, texts, int32s, optional_texts, optional_texts, int64s, tuples(members)
    ),
    st.builds(ConsumerGroupMetadataKey, texts): st.builds(ConsumerGroupMetadataValue, int32s, int64s),
    st.builds(ConsumerGroupMemberMetadataKey, texts, texts): st.builds(
        ConsumerGroupMemberMetadataValue,
        optional_texts,
        optional_texts,
        texts,
        texts,
        names,
        optional_texts,
        int32s,
        optional_texts,
        st.none() | st.builds(ClassicMemberMetadata, int32s, tuples(protocols)),
    ),
    st.builds(ConsumerGroupTargetAssignmentMetadataKey, texts): st.builds(
        ConsumerGroupTargetAssignmentMetadataValue, int32s, int64s
    ),
    st.builds(ConsumerGroupTargetAssignmentMemberKey, texts, texts): st.builds(
        ConsumerGroupTargetAssignmentMemberValue, tuples(st.tuples(st.uuids(), tuples(int32s)))
    ),
    st.builds(ConsumerGroupCurrentMemberAssignmentKey, texts, texts): st.builds(
        ConsumerGroupCurrentMemberAssignmentValue, int32s, int32s, st.integers(-128, 127), tuples(assigned), tuples(assigned)
    ),
    st.builds(ConsumerGroupRegularExpressionKey, texts, texts): st.builds(
        ConsumerGroupRegularExpressionValue, names, int64s, int64s
    ),
}
records = st.one_of(*(st.builds(CoordinatorRecord, key, st.none() | value) for key, value in VALUES_OF.items()))
