"""A share group that is loaded: what its records say, its sessions, and the tombstones of what is not there."""

from __future__ import annotations

import pytest

from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.consumer.records import group_record as consumer_group_record
from kgctl.coordinator.consumer.records import member_record as consumer_member_record
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.share.records import group_record, group_tombstone_keys, member_tombstone_keys
from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.error_codes import ErrorCode
from tests.support.coordinator_harness import CoordinatorHarness
from tests.unit.coordinator.share.beats import A, Shares


def test_a_group_is_the_same_after_a_reload_and_sessions_start_anew() -> None:
    shares = Shares()
    shares.running("a", "b")
    shares.harness.sleep_ms(44_000)
    before = shares.harness.driver.coordinator.durable()

    shares.harness.driver.reload()

    assert shares.harness.driver.coordinator.durable() == before
    shares.harness.sleep_ms(44_999)
    assert not shares.state.is_empty
    shares.harness.sleep_ms(1)
    assert shares.state.is_empty


def test_what_could_not_be_written_is_as_before() -> None:
    shares = Shares()
    shares.running("a")
    core, written = shares.harness.driver.coordinator, fresh(shares)
    shares.beat("n", 0, "b")
    core.restore({"g": False}, written, shares.harness.now_ms)

    assert sorted(shares.state.members) == ["m"]
    assert shares.partitions == ({}, {A: (0, 1, 2)}, ())
    assert [key for key in core.shard.timers.keys() if key.group_id] == [shares.state.session_timer("m")]  # noqa: SIM118
    core.check()


def fresh(shares: Shares) -> GroupCoordinator:
    """A coordinator that has read the log so far."""
    written = GroupCoordinator(shares.harness.driver.config, str, shares.harness.driver.image)
    for entry in shares.harness.log:
        written.replay(entry.record)
    return written


@pytest.mark.parametrize("keys", [group_tombstone_keys("g", ["m"]), member_tombstone_keys("g", "m")])
def test_tombstones_of_what_is_not_there_change_nothing(keys: list[object]) -> None:
    harness = CoordinatorHarness()
    harness.driver.load([AppendRecord(CoordinatorRecord(key, None)) for key in keys])  # type: ignore[arg-type]
    assert harness.list_groups() == []


def test_it_takes_the_place_of_a_group_that_was_only_forgotten() -> None:
    harness = CoordinatorHarness()
    harness.driver.load([AppendRecord(consumer_group_record("g", 3, 0)), AppendRecord(group_record("g", 2, 0))])
    assert isinstance(harness.any_group("g"), ShareGroup)


def test_it_takes_no_place_that_is_somebody_elses() -> None:
    harness = CoordinatorHarness()
    records = [consumer_group_record("g", 3, 0), consumer_member_record("g", ConsumerMember("m")), group_record("g", 2, 0)]
    with pytest.raises(InvariantViolation, match="which is a consumer group"):
        harness.driver.load([AppendRecord(record) for record in records])


def test_unloading_ends_it() -> None:
    shares = Shares()
    shares.running("a")
    shares.harness.driver.coordinator.unload(shares.harness.now_ms)
    assert shares.beat("m", 3).error is ErrorCode.NOT_COORDINATOR
