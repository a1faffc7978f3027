"""The leader's work, and what members say when they join."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgctl.assignors.spec import AssignorError, GroupSpec
from kgctl.assignors.wire_form import decode_cooperative, encode_sticky
from kgctl.member.config import PROFILES
from kgctl.member.leader import LeaderAssignor, Remembered, group_spec
from kgctl.model.groups import ConsumerSubscription, TopicPartition
from kgctl.model.requests import JoinGroupMember, JoinProtocol
from kgctl.serde.consumer_protocol import decode_assignment, decode_subscription, encode_subscription
from tests.support.coordinator_harness import image_of

OWNED = (TopicPartition("a", 0), TopicPartition("a", 2))


def protocols(*strategy: str, remembered: Remembered | None = None) -> dict[str, JoinProtocol]:
    subscription = ConsumerSubscription(("a",), None, OWNED, 4, "rack-1")
    return {protocol.name: protocol for protocol in LeaderAssignor("", strategy).join_protocols(subscription, remembered)}


def test_subscription_says_what_is_owned_and_since_which_generation() -> None:
    found = decode_subscription(protocols("range")["range"].metadata)

    assert found == ConsumerSubscription(("a",), None, OWNED, 4, "rack-1")


def test_sticky_assignors_send_what_they_remember() -> None:
    sent = protocols("range", "sticky", "cooperative-sticky", remembered=Remembered(frozenset(OWNED), 3))

    assert list(sent) == ["range", "sticky", "cooperative-sticky"]
    assert decode_subscription(sent["sticky"].metadata).user_data == encode_sticky({"a": (0, 2)}, 3)
    assert decode_cooperative(decode_subscription(sent["cooperative-sticky"].metadata).user_data) == 3
    assert decode_subscription(protocols("sticky")["sticky"].metadata).user_data is None


def members(*names: str, protocol: str = "range") -> list[JoinGroupMember]:
    metadata = LeaderAssignor("", (protocol,)).join_protocols(ConsumerSubscription(("a",)), None)[0].metadata
    return [JoinGroupMember(member_id=name, metadata=metadata) for name in names]


def test_every_member_gets_its_assignment_as_bytes() -> None:
    spec = group_spec(members("m1", "m2"), image_of({"a": 3, "other": 9}))
    assignments = LeaderAssignor("").assign("range", spec)

    assert [(name, [str(partition) for partition in decode_assignment(data).partitions]) for name, data in assignments] == [
        ("m1", ["a-0", "a-1"]),
        ("m2", ["a-2"]),
    ]
    assert list(spec.topics) == ["a"]


def test_a_subscription_that_ends_too_early_is_read_as_far_as_it_goes() -> None:
    """kafka-go 0.4.51 says version 1 and has no owned partitions."""
    kafka_go = encode_subscription(ConsumerSubscription(("a",), b"zone", version=0))
    joined = JoinGroupMember(member_id="m1", metadata=b"\0\1" + kafka_go[2:])
    (spec,) = group_spec([joined], image_of({"a": 1})).members

    assert (spec.topics, spec.user_data, spec.owned) == (("a",), b"zone", {})
    with pytest.raises(AssignorError, match="subscription of member 'm2' cannot be read"):
        group_spec([JoinGroupMember(member_id="m2", metadata=b"\0\1\0")], image_of({}))


def test_assignor_of_the_clients_own_is_preferred() -> None:
    spec = group_spec(members("m1", "m2", "m3", "m4"), image_of({"a": 6}))
    kafka, kafka_go = (
        [len(decode_assignment(data).partitions) for _, data in LeaderAssignor(prefix).assign("range", spec)]
        for prefix in ("", "kafka-go:")
    )

    assert kafka == [2, 2, 1, 1]
    assert sum(kafka_go) == 6
    assert kafka_go != kafka


def test_librdkafkas_leader_begins_with_the_highest_of_what_nobody_owns() -> None:
    spec = group_spec(members("m1", "m2"), image_of({"a": 4}))
    owned = GroupSpec(spec.topics, [replace(spec.members[0], owned={"a": [0]}, generation=1), spec.members[1]])
    (_, kafka), (_, librdkafka) = (
        [decode_assignment(data).partitions for _, data in LeaderAssignor(prefix).assign("cooperative-sticky", owned)]
        for prefix in ("", PROFILES["librdkafka"].behaviour.assignor_prefix)
    )

    assert [partition for _, partition in sorted(kafka)] == [2, 3]
    assert [partition for _, partition in sorted(librdkafka)] == [1, 3]


def test_topic_that_does_not_exist_is_left_out() -> None:
    assert group_spec(members("m1"), image_of({})).topics == {}
