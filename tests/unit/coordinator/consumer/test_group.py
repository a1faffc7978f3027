"""Who owns which partition, as records say it."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.consumer.records import current_assignment_record
from kgctl.coordinator.shard import apply_to_group
from kgctl.errors import InvariantViolation

TOPIC = UUID(int=7)


def _at(group: ConsumerGroup, member_id: str, epoch: int, *numbers: int) -> None:
    """A record says that the member is at this epoch and owns these."""
    assigned = {TOPIC: dict.fromkeys(numbers, 1)}
    member = ConsumerMember(member_id, member_epoch=epoch, previous_member_epoch=epoch - 1, assigned=assigned)
    apply_to_group(group, current_assignment_record("g", member, group.partition_form))


def test_the_epoch_of_a_partition_is_its_owners() -> None:
    group = ConsumerGroup("g")
    _at(group, "a", 5, 0, 1)
    _at(group, "a", 6, 0, 1)
    assert [group.partition_epoch(TOPIC, number) for number in (0, 1, 2)] == [6, 6, -1]
    with pytest.raises(InvariantViolation, match="has an owner at epoch 6"):
        _at(group, "b", 6, 1)


def test_a_log_in_which_somebody_at_a_later_epoch_takes_a_partition() -> None:
    group = ConsumerGroup("g")
    _at(group, "a", 5, 0, 1)
    _at(group, "b", 6, 1)
    assert group.partition_epoch(TOPIC, 1) == 6
    with pytest.raises(InvariantViolation, match="goes to 'a' while it has an owner at epoch 6"):
        _at(group, "a", 6, 0, 1)
    _at(group, "a", 7, 0, 1)
    assert group.partition_epoch(TOPIC, 1) == 7
    group.remove_member("a")
    assert group.partition_epoch(TOPIC, 0) == -1
