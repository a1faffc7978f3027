"""Worked bytes printed by Kafka's own classes, kio as a second opinion, and damaged bytes."""

from __future__ import annotations

import io
import random

import pytest
from kio.index import load_entity_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kgctl.model.groups import ConsumerAssignment, ConsumerSubscription, TopicPartition
from kgctl.serde.consumer_protocol import (
    MalformedConsumerProtocol,
    decode_assignment,
    decode_assignment_by_topic,
    decode_subscription,
    decode_topics,
    encode_assignment,
    encode_assignment_by_topic,
    encode_subscription,
)

OWNED = (TopicPartition("a", 2), TopicPartition("t", 0), TopicPartition("t", 1))
T0 = TopicPartition("t", 0)

SUBSCRIPTIONS = {
    "000000000002000161000174ffffffff": ConsumerSubscription(("a", "t"), version=0),
    "000100000002000161000174ffffffff000000020001610000000100000002000174000000020000000000000001": ConsumerSubscription(
        ("a", "t"), owned_partitions=OWNED, version=1
    ),
    "000200000002000161000174ffffffff00000002000161000000010000000200017400000002000000000000000100000007": ConsumerSubscription(
        ("a", "t"), owned_partitions=OWNED, generation_id=7, version=2
    ),
    "000300000002000161000174ffffffff0000000200016100000001000000020001740000000200000000000000010000000700027231": (
        ConsumerSubscription(("a", "t"), owned_partitions=OWNED, generation_id=7, rack_id="r1")
    ),
    "000300000001000174ffffffff00000000ffffffffffff": ConsumerSubscription(("t",)),
    "000000000001000174000000020102": ConsumerSubscription(("t",), user_data=b"\x01\x02", version=0),
    "000300000001000174000000040000000500000001000174000000010000000000000005ffff": ConsumerSubscription(
        ("t",), user_data=b"\x00\x00\x00\x05", owned_partitions=(T0,), generation_id=5
    ),
}
ASSIGNMENTS = {
    "0003000000020001740000000200000000000000010001610000000100000002ffffffff": ConsumerAssignment(
        (T0, TopicPartition("t", 1), TopicPartition("a", 2))
    ),
    "000300000000ffffffff": ConsumerAssignment(),
    "000100000001000174000000010000000000000001ff": ConsumerAssignment((T0,), user_data=b"\xff", version=1),
}


@pytest.mark.parametrize(("data", "subscription"), SUBSCRIPTIONS.items(), ids=lambda value: str(value)[:20])
def test_worked_subscriptions_are_read_and_written(data: str, subscription: ConsumerSubscription) -> None:
    assert decode_subscription(bytes.fromhex(data)) == subscription
    assert encode_subscription(subscription).hex() == data
    assert decode_topics(bytes.fromhex(data)) == subscription.topics


@pytest.mark.parametrize(("data", "assignment"), ASSIGNMENTS.items(), ids=lambda value: str(value)[:20])
def test_worked_assignments_are_read_and_written(data: str, assignment: ConsumerAssignment) -> None:
    assert decode_assignment(bytes.fromhex(data)) == assignment
    assert encode_assignment(assignment).hex() == data


def test_a_version_of_the_future_is_read_as_the_newest_known_and_bytes_after_it_are_ignored() -> None:
    data = bytes.fromhex("000900000001000174ffffffff00000000ffffffffffff") + b"more"

    assert decode_subscription(data) == ConsumerSubscription(("t",))


def test_an_empty_rack_is_none_and_a_negative_generation_is_minus_one() -> None:
    data = bytes.fromhex("000300000001000174ffffffff00000000fffffff00000")

    assert decode_subscription(data) == ConsumerSubscription(("t",))


def test_empty_user_data_is_not_null() -> None:
    assert decode_assignment(encode_assignment(ConsumerAssignment(user_data=b""))).user_data == b""


def test_an_assignment_by_topic_has_the_partitions_as_written() -> None:
    topics = [("t", [1, 0]), ("a", [2]), ("t", [7])]

    assert decode_assignment_by_topic(encode_assignment_by_topic(topics)) == {"t": (1, 0, 7), "a": (2,)}


@pytest.mark.parametrize("data", [bytes.fromhex(key) for key in (*SUBSCRIPTIONS, *ASSIGNMENTS)], ids=lambda data: data.hex()[:20])
def test_cut_off_bytes_raise(data: bytes) -> None:
    decode = decode_subscription if data.hex() in SUBSCRIPTIONS else decode_assignment
    for end in range(len(data)):
        with pytest.raises(MalformedConsumerProtocol):
            decode(data[:end])


@pytest.mark.parametrize(
    "data",
    [
        "ffff00000000ffffffff",  # version -1
        "00007fffffffffffffff",  # 2147483647 topics
        "0000ffffffffffffffff",  # null topics
        "000000000001ffffffffffff",  # a topic that is null
        "000000000001000100ffffffff"[:-8] + "ff",  # user data cut off
        "0000000000010001ffffffffff",  # a topic that is not UTF-8
    ],
)
def test_forged_bytes_raise(data: str) -> None:
    with pytest.raises(MalformedConsumerProtocol):
        decode_subscription(bytes.fromhex(data))


def test_random_subscriptions_are_written_as_kio_writes_them() -> None:
    rng = random.Random(3)
    for version in range(4):
        schema = load_entity_schema("consumer_protocol_subscription", version, EntityType.data)
        for _ in range(50):
            owned = tuple(TopicPartition(topic, p) for topic in ("a", "é") for p in range(rng.randrange(3)))
            subscription = ConsumerSubscription(
                topics=tuple(rng.sample(["a", "b", "é", "x" * 200], rng.randrange(5))),
                user_data=rng.choice([None, b"", rng.randbytes(300)]),
                owned_partitions=owned if version >= 1 else (),
                generation_id=rng.randrange(-1, 9) if version >= 2 else -1,
                rack_id=rng.choice([None, "r"]) if version >= 3 else None,
                version=version,
            )
            data = encode_subscription(subscription)
            entity, size = entity_reader(schema)(data, 2)
            again = io.BytesIO()
            entity_writer(schema)(again, entity)

            assert (size, again.getvalue()) == (len(data) - 2, data[2:])
            assert decode_subscription(data) == subscription
