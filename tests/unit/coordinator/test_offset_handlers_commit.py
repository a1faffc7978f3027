"""OffsetCommit, TxnOffsetCommit and the end of transactions."""

from __future__ import annotations

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.coordinator_records import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue, TransactionMarker
from kgctl.model.error_codes import ErrorCode
from tests.support.coordinator_harness import CoordinatorHarness


def test_a_commit_from_outside_creates_the_group_with_its_first_record() -> None:
    harness = CoordinatorHarness()
    harness.sleep_ms(5)

    assert harness.commit({"t-0": 7}, metadata=None) == {"t-0": ErrorCode.NONE}
    assert harness.log == [
        AppendRecord(CoordinatorRecord(OffsetCommitKey("g", "t", 0), OffsetCommitValue(7, commit_timestamp_ms=5)), member_id="")
    ]
    assert harness.describe().state == "Empty"
    assert harness.describe().protocol_type == ""


def test_a_commit_to_an_unknown_group_needs_no_generation() -> None:
    harness = CoordinatorHarness()

    assert harness.commit({"t-0": 7}, "m", 1, version=9) == {"t-0": ErrorCode.GROUP_ID_NOT_FOUND}
    assert harness.commit({"t-0": 7}, "m", 1, version=8) == {"t-0": ErrorCode.ILLEGAL_GENERATION}
    assert harness.commit({"t-0": 7}, group=None) == {"t-0": ErrorCode.INVALID_GROUP_ID}
    assert harness.txn_commit(1, {"t-0": 7}, "m", 1) == {"t-0": ErrorCode.ILLEGAL_GENERATION}
    assert harness.txn_commit(1, {"t-0": 7}, group="") == {"t-0": ErrorCode.INVALID_GROUP_ID}
    assert harness.commit({"t-0": 7}, group="") == {"t-0": ErrorCode.NONE}


def test_a_member_s_commit_names_the_member_and_extends_its_session() -> None:
    harness = CoordinatorHarness()
    (member,) = harness.stable_group()
    harness.sleep_ms(2_000)

    assert harness.commit({"t-0": 7}, member, 1) == {"t-0": ErrorCode.NONE}
    assert harness.log[-1].member_id == member
    harness.expect_timer(harness.group().session_timer(member), at_ms=harness.now_ms + 10_000)


def test_a_commit_while_syncs_are_awaited_is_told_to_rejoin() -> None:
    harness = CoordinatorHarness()
    harness.join(version=3)
    harness.sleep_ms(3_000)
    deadline_ms = harness.shard.timers.deadline_ms(harness.group().session_timer("c-1"))
    harness.sleep_ms(10)

    assert harness.commit({"t-0": 7}, "c-1", 1) == {"t-0": ErrorCode.REBALANCE_IN_PROGRESS}
    harness.expect_timer(harness.group().session_timer("c-1"), at_ms=deadline_ms)
    assert harness.offsets() == {}


def test_metadata_that_is_too_long_fails_alone() -> None:
    harness = CoordinatorHarness({"offset.metadata.max.bytes": "4"})

    assert harness.commit({"t-0": 1}, metadata="1234") == {"t-0": ErrorCode.NONE}
    assert harness.commit({"t-0": 2, "t-1": 3}, metadata="12345") == {
        "t-0": ErrorCode.OFFSET_METADATA_TOO_LARGE,
        "t-1": ErrorCode.OFFSET_METADATA_TOO_LARGE,
    }
    assert harness.offsets() == {"t-0": 1}


def test_metadata_is_measured_in_utf_16_units() -> None:
    harness = CoordinatorHarness({"offset.metadata.max.bytes": "4"})

    assert harness.commit({"t-0": 1}, metadata="\u00e4\u00e4\u00e4\u00e4") == {"t-0": ErrorCode.NONE}
    assert harness.commit({"t-0": 1}, metadata="\U0001f600" * 3) == {"t-0": ErrorCode.OFFSET_METADATA_TOO_LARGE}


def test_a_retention_of_its_own_gives_an_expire_time() -> None:
    harness = CoordinatorHarness()
    harness.sleep_ms(10)
    harness.commit({"t-0": 1}, version=2, retention_ms=500)

    value = harness.log[-1].record
    assert isinstance(value, CoordinatorRecord)
    assert value.value == OffsetCommitValue(1, commit_timestamp_ms=10, expire_timestamp_ms=510)


def test_a_retention_without_end_overflows_as_in_java() -> None:
    """OffsetMetadataManager#expireTimestampMs adds two longs: the commit expires at the next look."""
    harness = CoordinatorHarness()
    harness.sleep_ms(10)
    harness.commit({"t-0": 1}, version=2, retention_ms=2**63 - 1)

    value = harness.log[-1].record
    assert isinstance(value, CoordinatorRecord)
    assert value.value == OffsetCommitValue(1, commit_timestamp_ms=10, expire_timestamp_ms=-(2**63) + 9)


def test_a_transactional_offset_counts_when_the_transaction_is_committed() -> None:
    harness = CoordinatorHarness()
    harness.commit({"t-0": 1})

    assert harness.txn_commit(9, {"t-0": 5, "t-1": 6}) == {"t-0": ErrorCode.NONE, "t-1": ErrorCode.NONE}
    assert harness.offsets() == {"t-0": 1}
    harness.end_txn(9)

    assert harness.offsets() == {"t-0": 5, "t-1": 6}
    assert [entry.producer_id for entry in harness.log] == [None, 9, 9, 9]
    assert harness.log[-1].record == TransactionMarker(9, 0, committed=True)


def test_an_aborted_transaction_changes_nothing() -> None:
    harness = CoordinatorHarness()
    harness.commit({"t-0": 1})
    harness.txn_commit(9, {"t-0": 5})
    harness.end_txn(9, committed=False)

    assert harness.offsets() == {"t-0": 1}


def test_pending_offsets_survive_a_reload() -> None:
    harness = CoordinatorHarness()
    harness.txn_commit(9, {"t-0": 5})

    harness.driver.reload()

    assert harness.fetch("t-0", require_stable=True).offsets[0].error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    harness.end_txn(9)
    assert harness.offsets() == {"t-0": 5}
