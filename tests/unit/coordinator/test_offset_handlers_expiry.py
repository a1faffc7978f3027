"""The cycle that expires offsets and groups."""

from __future__ import annotations

import pytest

from kgctl.coordinator import offset_handlers
from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey, OffsetCommitKey
from tests.support.coordinator_harness import CoordinatorHarness

MINUTE = 60_000
CONFIG = {"offsets.retention.minutes": "2", "offsets.retention.check.interval.ms": "60000"}


def test_offsets_without_a_member_expire_and_take_the_group_along() -> None:
    harness = CoordinatorHarness(CONFIG)
    harness.sleep_ms(1)
    harness.commit({"t-0": 1})

    harness.sleep_ms(2 * MINUTE)
    assert harness.offsets() == {"t-0": 1}
    harness.sleep_ms(MINUTE)
    assert harness.list_groups() == []
    assert [entry.record for entry in harness.log[1:]] == [
        CoordinatorRecord(OffsetCommitKey("g", "t", 0), None),
        CoordinatorRecord(GroupMetadataKey("g"), None),
    ]


def test_an_offset_expires_on_the_minute() -> None:
    harness = CoordinatorHarness(CONFIG)
    harness.commit({"t-0": 1})

    harness.sleep_ms(2 * MINUTE)
    assert harness.offsets() == {}


def test_an_explicit_expire_time_counts_alone() -> None:
    harness = CoordinatorHarness(CONFIG)
    harness.commit({"t-0": 1}, version=2, retention_ms=MINUTE)
    harness.commit({"t-1": 1}, version=2, retention_ms=5 * MINUTE)

    harness.sleep_ms(MINUTE)
    assert harness.offsets() == {"t-1": 1}
    harness.sleep_ms(4 * MINUTE - 1)
    assert harness.offsets() == {"t-1": 1}
    harness.sleep_ms(1)
    assert harness.offsets() == {}


def test_topics_in_use_keep_their_offsets() -> None:
    harness = CoordinatorHarness(CONFIG)
    (member,) = harness.stable_group(session_ms=1_800_000)
    harness.commit({"t-0": 1, "u-0": 1}, member, 1)

    harness.sleep_ms(3 * MINUTE)

    assert harness.offsets() == {"t-0": 1}
    assert harness.group().state == "Stable"


def test_nothing_expires_while_the_group_rebalances() -> None:
    harness = CoordinatorHarness(CONFIG)
    (member,) = harness.stable_group(instances=["i"], session_ms=1_800_000)
    harness.commit({"u-0": 1}, member, 1)
    harness.join(member, instance="i", topics=["v"], session_ms=1_800_000)

    assert harness.group().state == "CompletingRebalance"
    harness.sleep_ms(25_000)
    assert harness.offsets() == {"u-0": 1}


def test_a_pending_transaction_keeps_offset_and_group() -> None:
    harness = CoordinatorHarness(CONFIG)
    harness.commit({"t-0": 1})
    harness.txn_commit(9, {"t-0": 2})

    harness.sleep_ms(10 * MINUTE)
    assert harness.offsets() == {"t-0": 1}
    harness.end_txn(9, committed=False)
    harness.sleep_ms(MINUTE)
    assert harness.list_groups() == []


def test_an_empty_group_that_never_committed_goes_with_the_next_cycle() -> None:
    harness = CoordinatorHarness(CONFIG)
    harness.join(protocols=())

    harness.sleep_ms(MINUTE - 1)
    assert harness.list_groups() != []
    harness.sleep_ms(1)
    assert harness.list_groups() == []


def test_the_cycle_starts_anew_with_a_reload() -> None:
    harness = CoordinatorHarness(CONFIG)
    harness.sleep_ms(MINUTE // 2)
    harness.join(protocols=())
    harness.driver.reload()

    harness.sleep_ms(MINUTE - 1)
    assert harness.list_groups() != []
    harness.sleep_ms(1)
    assert harness.list_groups() == []


def test_a_cycle_over_many_groups_lets_requests_come_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_handlers, "_SEEN_AT_ONCE", 2)  # a group and its offset
    harness = CoordinatorHarness(CONFIG)
    for number in range(3):
        harness.commit({"t-0": 1}, group=f"g{number}")

    harness.sleep_ms(2 * MINUTE + 2)  # the cycle before it took two milliseconds
    assert len(harness.list_groups()) == 2
    harness.sleep_ms(2)
    assert harness.list_groups() == []
