"""What a leader reads and writes: Kafka's bytes, and the same as the codec reads and writes one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.assignors import get_assignor
from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import TopicSpec
from kgctl.assignors.wire_form import encode_sticky
from kgctl.model.groups import ConsumerSubscription, TopicPartition
from kgctl.serde.consumer_protocol import decode_assignment, decode_subscription
from kgctl.serde.consumer_protocol import encode_subscription as encode_one_by_one
from tests.support.assignor_leader import AssignmentWriter, JoinedMember, SubscriptionReader, encode_subscription, lead

VERSION_0 = bytes.fromhex("000000000002000161000174ffffffff")
VERSION_1 = bytes.fromhex("000100000002000161000174ffffffff000000020001610000000100000002000174000000020000000000000001")
VERSION_3 = bytes.fromhex(
    "000300000002000161000174ffffffff0000000200016100000001000000020001740000000200000000000000010000000700027231"
)


@pytest.mark.parametrize(
    ("data", "owned", "generation", "rack"),
    [
        (VERSION_0, {}, -1, None),
        (VERSION_1, {"a": [2], "t": [0, 1]}, -1, None),
        (VERSION_3, {"a": [2], "t": [0, 1]}, 7, "r1"),
        (VERSION_3 + b"newer versions append", {"a": [2], "t": [0, 1]}, 7, "r1"),
        (b"\x00\x09" + VERSION_3[2:], {"a": [2], "t": [0, 1]}, 7, "r1"),
    ],
)
def test_subscription_of_each_version_is_read(
    data: bytes, owned: dict[str, list[int]], generation: int, rack: str | None
) -> None:
    said = SubscriptionReader().read(data)

    assert (said.topics, said.user_data, said.owned.by_topic(), said.generation, said.rack) == (
        ("a", "t"), None, owned, generation, rack,
    )  # fmt: skip


@pytest.mark.parametrize("data", [b"", b"\xff\xff" + VERSION_0[2:], *(VERSION_3[:end] for end in range(1, len(VERSION_3) - 3))])
def test_bytes_that_are_no_subscription_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        SubscriptionReader().read(data)


@pytest.mark.parametrize(
    ("numbers", "data"),
    [
        ([1, 2, 0], "0003 00000002 000174 00000002 00000000 00000001 000161 00000001 00000000 ffffffff"),
        ([2, 0], "0003 00000002 000174 00000001 00000001 000161 00000001 00000000 ffffffff"),
        ([], "0003 00000000 ffffffff"),
    ],
)
def test_assignment_is_kafkas_bytes(numbers: list[int], data: str) -> None:
    assert AssignmentWriter(PartitionSpace({"a": 1, "t": 2})).write(numbers) == bytes.fromhex(data)


def test_partitions_that_do_not_exist_can_be_written() -> None:
    space = PartitionSpace({"a": 1})
    numbers = space.numbers({"a": [0, 9]})

    assert decode_assignment(AssignmentWriter(space).write(numbers)).partitions == (
        TopicPartition("a", 0),
        TopicPartition("a", 9),
    )


_NAMES = st.lists(st.text("abä", min_size=1, max_size=3), unique=True, max_size=4).map(sorted)


@given(
    topics=_NAMES,
    owned=st.dictionaries(
        st.text("abä", min_size=1, max_size=2), st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True)
    ),
    generation=st.integers(-1, 5),
    rack=st.sampled_from([None, "r", "ä"]),
    user_data=st.none() | st.binary(max_size=5),
)
def test_the_codec_reads_the_same(
    topics: list[str], owned: dict[str, list[int]], generation: int, rack: str | None, user_data: bytes | None
) -> None:
    ordered = {name: sorted(owned[name]) for name in sorted(owned)}
    data = encode_subscription(topics, user_data=user_data, owned=ordered, generation=generation, rack=rack)
    partitions = tuple(TopicPartition(name, partition) for name, numbers in ordered.items() for partition in numbers)
    said = SubscriptionReader().read(data)

    assert decode_subscription(data) == ConsumerSubscription(tuple(topics), user_data, partitions, generation, rack)
    assert data == encode_one_by_one(ConsumerSubscription(tuple(topics), user_data, partitions, generation, rack))
    assert (said.topics, said.user_data, said.owned.by_topic(), said.generation, said.rack) == (
        tuple(topics), user_data, ordered, generation, rack,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_a_leader_answers_with_assignments(name: str) -> None:
    topics = {"a": TopicSpec(3), "t": TopicSpec(2)}
    members = [JoinedMember(member, encode_subscription(["a", "t"])) for member in ("m1", "m2")]

    assignments, highest = lead(get_assignor(name), topics, members)

    given_out = sorted(partition for data in assignments.values() for partition in decode_assignment(data).partitions)
    assert given_out == [TopicPartition(topic, n) for topic, count in (("a", 3), ("t", 2)) for n in range(count)]
    assert (list(assignments), highest) == (["m1", "m2"], -1)


def test_range_lists_topics_in_the_order_of_a_java_map() -> None:
    topics = {name: TopicSpec(1) for name in ("orders", "payments", "audit")}
    assignments, _ = lead(get_assignor("range"), topics, [JoinedMember("m", encode_subscription(sorted(topics)))])

    assert [partition.topic for partition in decode_assignment(assignments["m"]).partitions] == ["audit", "payments", "orders"]


def test_what_members_own_is_read_from_their_bytes() -> None:
    topics = {"a": TopicSpec(2), "t": TopicSpec(2)}
    owned = {"m1": {"a": [0], "gone": [5]}, "m2": {"t": [0, 1]}}
    members = [JoinedMember(m, encode_subscription(["a", "t"], user_data=encode_sticky(own, 4))) for m, own in owned.items()]

    assignments, highest = lead(get_assignor("sticky"), topics, members)

    assert [str(partition) for partition in decode_assignment(assignments["m1"]).partitions] == ["a-0", "a-1"]
    assert [str(partition) for partition in decode_assignment(assignments["m2"]).partitions] == ["t-0", "t-1"]
    assert highest == 4
