"""Records of streams groups, in the bytes that Apache Kafka 4.3.1 writes; the differential has many more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.streams_records import (
    AssignedTaskIds,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    TaskIds,
    UserEndpoint,
)
from kgctl.model.streams_topology import CopartitionGroup, DeclaredSubtopology, StreamsTopology, TopicInfo
from kgctl.serde.coordinator_records import decode_record, encode_record
from tests.support.kafka_records import int32s, int64s, names, optional_texts, texts, tuples

HOST = "/127.0.0.1"
RECORDS = [
    ("0011000167", "000000000002000000000000000000", StreamsGroupMetadataKey("g"), StreamsGroupMetadataValue(2)),
    (
        "0011000167",
        "000000000003000000000000000702000400000001011902156e756d2e7374616e6462792e7265706c69636173023100",
        StreamsGroupMetadataKey("g"),
        StreamsGroupMetadataValue(3, 7, 1, (("num.standby.replicas", "1"),)),
    ),
    (
        "001300016700016d",
        "000002690002630b2f3132372e302e302e310000afc8000000010270010268ea600002057a6f6e65027a0000",
        StreamsGroupMemberMetadataKey("g", "m"),
        StreamsGroupMemberMetadataValue("i", None, "c", HOST, 45_000, 1, "p", UserEndpoint("h", 60_000), (("zone", "z"),)),
    ),
    (
        "001300016700016d",
        "000002690002630b2f3132372e302e302e310000afc8000000010270ff02057a6f6e65027a0000",
        StreamsGroupMemberMetadataKey("g", "m"),
        StreamsGroupMemberMetadataValue("i", None, "c", HOST, 45_000, 1, "p", None, (("zone", "z"),)),
    ),
    (
        "0014000167",
        "00000000000300",
        StreamsGroupTargetAssignmentMetadataKey("g"),
        StreamsGroupTargetAssignmentMetadataValue(3),
    ),
    (
        "001500016700016d",
        "000002023003000000010000000200010100",
        StreamsGroupTargetAssignmentMemberKey("g", "m"),
        StreamsGroupTargetAssignmentMemberValue((TaskIds("0", (1, 2)),)),
    ),
    (
        "001600016700016d",
        "000000000003000000020202023003000000010000000201000903000000020000000302023102000000000001020230020000000000010100",
        StreamsGroupCurrentMemberAssignmentKey("g", "m"),
        StreamsGroupCurrentMemberAssignmentValue(
            3,
            2,
            2,
            (AssignedTaskIds("0", (1, 2), (2, 3)),),
            (AssignedTaskIds("1", (0,)),),
            (),
            (AssignedTaskIds("0", (0,)),),
        ),
    ),
    ("0017000167", "0000000000010100", StreamsGroupTopologyKey("g"), StreamsTopology(1)),
    (
        "001700027374",
        "000000000001020373300203543101010101010000",
        StreamsGroupTopologyKey("st"),
        StreamsTopology(1, (DeclaredSubtopology("s0", ("T1",)),)),
    ),
]


@pytest.mark.parametrize(("key_hex", "value_hex", "key", "value"), RECORDS)
def test_each_is_written_and_read_as_kafka_does(key_hex: str, value_hex: str, key: object, value: object) -> None:
    record = CoordinatorRecord(key, value)  # type: ignore[arg-type]  # they belong together

    assert encode_record(record) == (bytes.fromhex(key_hex), bytes.fromhex(value_hex))
    assert decode_record(bytes.fromhex(key_hex), bytes.fromhex(value_hex)) == record
    assert encode_record(CoordinatorRecord(record.key, None)) == (bytes.fromhex(key_hex), None)


pairs = tuples(st.tuples(texts, texts))
topics = tuples(st.builds(TopicInfo, texts, int32s, st.integers(-32_768, 32_767), pairs))
indexes = tuples(st.integers(-32_768, 32_767))
subtopologies = st.builds(
    DeclaredSubtopology,
    texts,
    names,
    names,
    topics,
    names,
    topics,
    tuples(st.builds(CopartitionGroup, indexes, indexes, indexes)),
)
tasks = tuples(st.builds(TaskIds, texts, tuples(int32s)))
held = tuples(st.builds(AssignedTaskIds, texts, tuples(int32s), tuples(int32s)))
endpoints = st.none() | st.builds(UserEndpoint, texts, st.integers(0, 65_535))
VALUES_OF = {
    st.builds(StreamsGroupMetadataKey, texts): st.builds(StreamsGroupMetadataValue, int32s, int64s, int32s, pairs),
    st.builds(StreamsGroupMemberMetadataKey, texts, texts): st.builds(
        StreamsGroupMemberMetadataValue,
        optional_texts,
        optional_texts,
        texts,
        texts,
        int32s,
        int32s,
        texts,
        endpoints,
        pairs,
    ),
    st.builds(StreamsGroupTargetAssignmentMetadataKey, texts): st.builds(
        StreamsGroupTargetAssignmentMetadataValue, int32s, int64s
    ),
    st.builds(StreamsGroupTargetAssignmentMemberKey, texts, texts): st.builds(
        StreamsGroupTargetAssignmentMemberValue, tasks, tasks, tasks
    ),
    st.builds(StreamsGroupCurrentMemberAssignmentKey, texts, texts): st.builds(
        StreamsGroupCurrentMemberAssignmentValue, int32s, int32s, st.integers(-128, 127), held, held, held, held, held, held
    ),
    st.builds(StreamsGroupTopologyKey, texts): st.builds(StreamsTopology, int32s, tuples(subtopologies)),
}
records = st.one_of(*(st.builds(CoordinatorRecord, key, st.none() | value) for key, value in VALUES_OF.items()))


@given(records)
def test_any_record_is_read_as_it_was_written(record: CoordinatorRecord) -> None:
    key, value = encode_record(record)

    assert decode_record(key, value) == record
