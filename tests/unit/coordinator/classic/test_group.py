"""What a classic group answers about itself, and its members' book-keeping."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.coordinator.classic.group import DEAD, ClassicGroup
from kgctl.model.coordinator_records import OffsetCommitValue
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.requests import OffsetCommit, TxnOffsetCommit
from tests.support.coordinator_harness import CoordinatorHarness
from tests.unit.coordinator.classic.test_group_generation import group_of

ANONYMOUS: dict[str, Any] = {}
MEMBER: dict[str, Any] = {"member_id": "i-1", "generation_id": 1}


def group_in(state: str) -> ClassicGroup:
    """A group with the static member i-1 in this state."""
    harness = CoordinatorHarness()
    harness.join(instance="i")
    if state == "PreparingRebalance":
        harness.group().generation_id = 1
        return harness.group()
    harness.sleep_ms(3_000)
    if state in ("Stable", "Empty"):
        harness.sync("i-1", 1, instance="i")
    if state == "Empty":
        harness.leave("i-1")
    assert harness.group().state == state
    return harness.group()


@pytest.mark.parametrize(
    ("state", "fields", "commit", "transactional"),
    [
        ("Empty", ANONYMOUS, "NONE", "NONE"),
        ("Empty", {"member_id": "ghost"}, "NONE", "NONE"),
        ("Empty", MEMBER, "UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"),
        ("PreparingRebalance", MEMBER, "NONE", "NONE"),
        ("CompletingRebalance", MEMBER, "REBALANCE_IN_PROGRESS", "NONE"),
        ("Stable", MEMBER, "NONE", "NONE"),
        ("Stable", MEMBER | {"group_instance_id": "i"}, "NONE", "NONE"),
        ("Stable", ANONYMOUS, "UNKNOWN_MEMBER_ID", "NONE"),
        ("Stable", MEMBER | {"generation_id": -1}, "ILLEGAL_GENERATION", "ILLEGAL_GENERATION"),
        ("Stable", MEMBER | {"generation_id": 2}, "ILLEGAL_GENERATION", "ILLEGAL_GENERATION"),
        ("Stable", {"generation_id": 1}, "UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"),
        ("Stable", {"member_id": "ghost", "group_instance_id": "i"}, "FENCED_INSTANCE_ID", "FENCED_INSTANCE_ID"),
    ],
)
def test_a_commit_is_judged_by_state_identity_and_generation(
    state: str, fields: dict[str, Any], commit: str, transactional: str
) -> None:
    group = group_in(state)
    plain = OffsetCommit(request_id=1, group_id="g", **fields)
    in_transaction = TxnOffsetCommit(request_id=1, group_id="g", producer_id=1, **fields)

    assert group.offset_commit_error(plain, MetadataImage()).name == commit
    assert group.offset_commit_error(in_transaction, MetadataImage()).name == transactional


def test_a_dead_group_is_not_available() -> None:
    group = group_in("Stable")
    group.transition_to(DEAD, 1)

    request = OffsetCommit(request_id=1, group_id="g")
    assert group.offset_commit_error(request, MetadataImage()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group.offset_delete_error() is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("state", "base_ms"), [("Empty", 3_000), ("PreparingRebalance", None), ("CompletingRebalance", None), ("Stable", 77)]
)
def test_retention_counts_from_the_commit_or_from_the_last_members_end(state: str, base_ms: int | None) -> None:
    assert group_in(state).expiry_base_ms(OffsetCommitValue(1, commit_timestamp_ms=77)) == base_ms


def test_retention_of_a_group_that_only_has_commits_counts_from_the_commit() -> None:
    group = ClassicGroup("g", 5)
    assert group.expiry_base_ms(OffsetCommitValue(1, commit_timestamp_ms=77)) == 77
    group.protocol_type = "consumer"
    assert group.expiry_base_ms(OffsetCommitValue(1, commit_timestamp_ms=77)) == 5
    group.state_timestamp_ms = None
    assert group.expiry_base_ms(OffsetCommitValue(1, commit_timestamp_ms=77)) == 77


def test_consumers_of_unknown_topics_count_as_subscribed_to_all() -> None:
    group = group_of("range")
    assert group.is_subscribed_to("t")
    group.subscribed_topics = frozenset({"u"})
    assert not group.is_subscribed_to("t")
    assert group.is_subscribed_to("u")
    assert not group_of("range", protocol_type="connect").is_subscribed_to("t")


def test_other_protocol_types_keep_their_offsets_while_they_have_members() -> None:
    group = group_of("default", protocol_type="connect")
    assert group.offset_delete_error() is ErrorCode.NONE
    group.state = group_in("Stable").state
    assert group.offset_delete_error() is ErrorCode.NON_EMPTY_GROUP


def test_removing_the_leader_makes_the_first_one_left_lead() -> None:
    group = group_of("range", "range", "range")

    group.remove("m0")
    assert group.leader_id == "m1"
    group.remove("m1")
    group.remove("m2")
    assert group.remove("m2") is None
    assert group.leader_id is None


def test_metadata_of_a_protocol_that_a_member_does_not_support_is_an_error() -> None:
    with pytest.raises(KeyError, match="sticky"):
        group_of("range").members["m0"].metadata("sticky")
