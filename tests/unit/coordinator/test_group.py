"""Records of newer brokers: kept in the log, and passed over."""

from __future__ import annotations

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.coordinator_records import CoordinatorRecord, OpaqueKey
from tests.support.coordinator_harness import CoordinatorHarness


def test_records_that_belong_to_no_group_are_passed_over() -> None:
    harness = CoordinatorHarness()
    harness.driver.load([AppendRecord(CoordinatorRecord(OpaqueKey(99, b"k"), b"v"))])

    assert harness.list_groups() == []
