"""Election of protocol and leader, subscribed topics, the record."""

from __future__ import annotations

import pytest

from kgctl.coordinator.classic.group import (
    ClassicGroup,
    ClassicMember,
    compute_subscribed_topics,
    elect_leader_that_joined,
    elect_protocol,
    record_value,
)
from kgctl.model.coordinator_records import GroupMetadataValue
from kgctl.model.requests import JoinProtocol
from tests.support.coordinator_harness import subscription


def group_of(*protocols_of_members: str, metadata: bytes = b"", protocol_type: str = "consumer") -> ClassicGroup:
    """A group whose members m0, m1... offer these protocols, written with spaces between."""
    group = ClassicGroup("g", 0)
    for number, names in enumerate(protocols_of_members):
        protocols = tuple(JoinProtocol(name=name, metadata=metadata) for name in names.split())
        member_id = f"m{number}"
        member = ClassicMember(member_id, None, "c", "/h", 30_000, 10_000, protocols, group.session_timer(member_id))
        group.add_member(member, protocol_type)
    return group


@pytest.mark.parametrize(
    ("protocols_of_members", "elected"),
    [
        (["range"], "range"),
        (["range sticky", "sticky range", "sticky range"], "sticky"),
        (["a range", "b range", "range a b"], "range"),
        (["range sticky", "sticky range"], "sticky"),
        (["roundrobin cooperative-sticky", "cooperative-sticky roundrobin"], "roundrobin"),
    ],
)
def test_protocol_is_elected_as_in_kafka(protocols_of_members: list[str], elected: str) -> None:
    assert elect_protocol(group_of(*protocols_of_members)) == elected


def test_the_leader_that_joined_stays() -> None:
    group = group_of("range", "range")
    group.park_join(group.members["m0"], 1)

    assert elect_leader_that_joined(group)
    assert group.leader_id == "m0"


def test_otherwise_the_first_that_joined_leads() -> None:
    group = group_of("range", "range", "range")
    group.park_join(group.members["m1"], 1)
    group.park_join(group.members["m2"], 2)

    assert elect_leader_that_joined(group)
    assert group.leader_id == "m1"


def test_nobody_leads_when_nobody_joined() -> None:
    assert not elect_leader_that_joined(group_of("range"))
    assert not elect_leader_that_joined(ClassicGroup("g", 0))


@pytest.mark.parametrize(
    ("metadata", "protocol_type", "topics"),
    [
        (subscription("t", "u"), "consumer", {"t", "u"}),
        (b"\x00", "consumer", None),
        (subscription("t"), "connect", None),
    ],
)
def test_subscribed_topics_are_read_from_the_metadata(metadata: bytes, protocol_type: str, topics: set[str] | None) -> None:
    group = group_of("range", metadata=metadata, protocol_type=protocol_type)
    group.protocol_name = "range"

    assert compute_subscribed_topics(group) == topics


def test_the_record_of_a_group_without_members_names_no_leader_and_no_protocol() -> None:
    assert record_value(ClassicGroup("g", 5)) == GroupMetadataValue("", 0, None, None, current_state_timestamp_ms=5)


def test_the_record_lacks_a_time_that_is_not_known() -> None:
    group = ClassicGroup("g", 5)
    group.state_timestamp_ms = None

    assert record_value(group).current_state_timestamp_ms == -1
