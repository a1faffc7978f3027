"""Classic groups across a reload."""

from __future__ import annotations

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.rebalance import restore
from kgctl.model.coordinator_records import GroupMetadataValue, MemberMetadata
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import JoinGroupResult, SyncGroupResult
from tests.support.coordinator_harness import CoordinatorHarness, subscription


def test_a_stable_group_is_the_same_after_a_reload() -> None:
    harness = CoordinatorHarness()
    ids = harness.stable_group(3, instances=["i"])
    before = harness.describe()
    harness.sleep_ms(3_000)

    harness.driver.reload()

    assert harness.describe() == before
    for member_id in ids:
        harness.expect_timer(harness.group().session_timer(member_id), at_ms=harness.now_ms + 10_000)
    assert harness.group().subscribed_topics == frozenset({"t"})


def test_a_rebalance_under_way_is_lost_with_the_coordinator() -> None:
    harness = CoordinatorHarness()
    leader, _ = harness.stable_group(2)
    waiting = harness.join(leader)
    newcomer = harness.join(version=3)
    pending = harness.join().join.member_id

    harness.driver.reload()

    assert waiting.join == JoinGroupResult(error=ErrorCode.NOT_COORDINATOR, member_id=leader)
    assert newcomer.error is ErrorCode.NOT_COORDINATOR
    assert (harness.group().state, harness.group().generation_id, len(harness.group().members)) == ("Stable", 1, 2)
    assert harness.join(pending).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_parked_sync_is_told_to_look_elsewhere() -> None:
    harness = CoordinatorHarness()
    calls = [harness.join(version=3), harness.join(version=3)]
    harness.sleep_ms(6_000)
    follower = next(call.join.member_id for call in calls if not call.join.members)
    waiting = harness.sync(follower, 1)

    harness.driver.reload()

    assert waiting.sync == SyncGroupResult(error=ErrorCode.NOT_COORDINATOR)
    assert (harness.group().state, harness.group().generation_id) == ("Empty", 0)


def test_a_group_above_a_new_limit_has_to_shrink() -> None:
    harness = CoordinatorHarness()
    harness.stable_group(3)
    limited = CoordinatorHarness({"group.max.size": "2"})

    limited.driver.load(harness.log)

    assert limited.group().state == "PreparingRebalance"


def test_a_restored_member_supports_the_elected_protocol_only() -> None:
    harness = CoordinatorHarness()
    harness.stable_group(protocols=["range", "sticky"])

    harness.driver.reload()

    (member,) = harness.group().members.values()
    assert [(protocol.name, protocol.metadata) for protocol in member.protocols] == [("range", subscription("t"))]


def test_an_old_record_lacks_timeout_and_time() -> None:
    group = ClassicGroup("g", 5)
    member = MemberMetadata("m", session_timeout_ms=7_000, subscription=subscription("t"))
    group.recorded = GroupMetadataValue("consumer", 3, "range", "m", members=(member,))

    restore(group)

    assert group.members["m"].rebalance_timeout_ms == 7_000
    assert group.state_timestamp_ms is None


def test_a_group_without_a_record_stays_as_it_is() -> None:
    group = ClassicGroup("g", 5)
    restore(group)

    assert (group.state, group.protocol_type, group.state_timestamp_ms) == ("Empty", None, 5)
