"""The consumer protocol's states as tables that the code reads: groups, members, answers, and what brings a change about.

A group's state is computed, never set: `GROUP_STATES` is tried from the top. A member's state says how far it is on the way to
its target assignment (see `kgctl.coordinator.consumer.assignment.current_assignment`).

Kafka: ConsumerGroup.ConsumerGroupState, MemberState.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState
from kgctl.model.quick_enum import quick_enum
from kgctl.model.transition import Transition

EMPTY = GroupState.EMPTY
ASSIGNING = GroupState.ASSIGNING
RECONCILING = GroupState.RECONCILING
STABLE = GroupState.STABLE


@quick_enum
class MemberState(IntEnum):
    """A member's state, with the number that its record has."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of_record(cls, value: int) -> MemberState:
        """The state a record says; UNKNOWN for a number of a newer broker."""
        return cls(value) if value in _MEMBER_STATE_VALUES else cls.UNKNOWN


_MEMBER_STATE_VALUES = frozenset(MemberState)


class Group(Protocol):
    """What a group's state is computed from."""

    group_epoch: int
    assignment_epoch: int

    @property
    def member_count(self) -> int:
        """How many members it has."""

    @property
    def is_reconciled(self) -> bool:
        """Whether every member is STABLE at the assignment epoch."""


@dataclass(frozen=True, slots=True)
class GroupStateFacts:
    """What a group state stands for, and when a group is in it."""

    state: GroupState
    meaning: str
    when: str
    holds: Callable[[Group], bool]


GROUP_STATES = (
    GroupStateFacts(
        EMPTY,
        "no members; offsets may be left",
        "there are no members",
        lambda group: not group.member_count,
    ),
    GroupStateFacts(
        ASSIGNING,
        "a new target assignment has to be computed, on somebody's next heartbeat",
        "the group epoch is above the assignment epoch",
        lambda group: group.group_epoch > group.assignment_epoch,
    ),
    GroupStateFacts(
        STABLE,
        "every member owns its target",
        "every member is STABLE at the assignment epoch",
        lambda group: group.is_reconciled,
    ),
    GroupStateFacts(
        RECONCILING,
        "members are on the way to their targets",
        "otherwise",
        lambda _: True,
    ),
)
"""The first that holds is the state. A group that does not exist is described as Dead."""

GROUP_TRANSITIONS = (
    Transition(EMPTY, ASSIGNING, "a member joins, within the assignment interval"),
    Transition(EMPTY, STABLE, "a member joins and gets its target"),
    Transition(ASSIGNING, RECONCILING, "a heartbeat computes the target (assignment epoch = group epoch)"),
    Transition(ASSIGNING, STABLE, "the new target is what everybody owns"),
    Transition(RECONCILING, STABLE, "the last member has given up and got what it should"),
    Transition(RECONCILING, ASSIGNING, "subscriptions, topics or members change (group epoch + 1)"),
    Transition(STABLE, ASSIGNING, "subscriptions, topics or members change (group epoch + 1)"),
    Transition(STABLE, RECONCILING, "a change whose target is computed at once"),
    Transition(ASSIGNING, EMPTY, "the last member leaves or is fenced"),
    Transition(RECONCILING, EMPTY, "the last member leaves or is fenced"),
    Transition(STABLE, EMPTY, "the last member leaves or is fenced"),
)


@quick_enum
class Step(Enum):
    """What reconciliation does with a member on its heartbeat."""

    NOTHING = "nothing"
    TRIM = "topics it no longer subscribes to are taken away"
    COMPUTE_NEXT = "its next assignment is computed"


@dataclass(frozen=True, slots=True)
class MemberRules:
    """The steps of a member in one state, by what its request says.

    ``at_target``: it is at the target's epoch; ``behind``: it is not. ``holding``: it has not given up everything it has to.
    The steps of ``changed_*`` count when the request changed the subscription.
    """

    behind: Step
    at_target: Step
    changed_at_target: Step
    holding: Step
    changed_holding: Step


MEMBER_RULES = {
    MemberState.STABLE: MemberRules(
        behind=Step.COMPUTE_NEXT,
        at_target=Step.NOTHING,
        changed_at_target=Step.TRIM,
        holding=Step.COMPUTE_NEXT,
        changed_holding=Step.COMPUTE_NEXT,
    ),
    MemberState.UNREVOKED_PARTITIONS: MemberRules(
        behind=Step.COMPUTE_NEXT,
        at_target=Step.COMPUTE_NEXT,
        changed_at_target=Step.COMPUTE_NEXT,
        holding=Step.NOTHING,
        changed_holding=Step.TRIM,
    ),
    MemberState.UNRELEASED_PARTITIONS: MemberRules(
        behind=Step.COMPUTE_NEXT,
        at_target=Step.COMPUTE_NEXT,
        changed_at_target=Step.COMPUTE_NEXT,
        holding=Step.COMPUTE_NEXT,
        changed_holding=Step.COMPUTE_NEXT,
    ),
}
"""``holding`` can only be asked of a member that has partitions to revoke."""

_S, _V, _L = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
MEMBER_TRANSITIONS = (
    Transition(_S, _V, "it owns partitions that its target lacks"),
    Transition(_S, _L, "partitions of its target still belong to others"),
    Transition(_V, _S, "it has given them up, and gets its whole target"),
    Transition(_V, _L, "it has given them up, and waits for partitions of others"),
    Transition(_L, _S, "the last partition it waited for is free"),
    Transition(_L, _V, "a newer target takes partitions away"),
)


@dataclass(frozen=True, slots=True)
class ClassicResponses:
    """What a member that uses the classic protocol is answered when it is at the assignment epoch, and when behind."""

    heartbeat: ErrorCode
    heartbeat_behind: ErrorCode
    sync: ErrorCode
    sync_behind: ErrorCode


CLASSIC_RESPONSES = {
    MemberState.STABLE: ClassicResponses(
        heartbeat=ErrorCode.NONE,
        heartbeat_behind=ErrorCode.REBALANCE_IN_PROGRESS,
        sync=ErrorCode.NONE,
        sync_behind=ErrorCode.REBALANCE_IN_PROGRESS,
    ),
    # It has to revoke first: it syncs the smaller assignment and is then told to join again.
    MemberState.UNREVOKED_PARTITIONS: ClassicResponses(
        heartbeat=ErrorCode.REBALANCE_IN_PROGRESS,
        heartbeat_behind=ErrorCode.REBALANCE_IN_PROGRESS,
        sync=ErrorCode.NONE,
        sync_behind=ErrorCode.NONE,
    ),
    # REBALANCE_IN_PROGRESS also as soon as nothing of its target is blocked any more.
    MemberState.UNRELEASED_PARTITIONS: ClassicResponses(
        heartbeat=ErrorCode.NONE,
        heartbeat_behind=ErrorCode.REBALANCE_IN_PROGRESS,
        sync=ErrorCode.NONE,
        sync_behind=ErrorCode.REBALANCE_IN_PROGRESS,
    ),
    MemberState.UNKNOWN: ClassicResponses(
        heartbeat=ErrorCode.NONE,
        heartbeat_behind=ErrorCode.REBALANCE_IN_PROGRESS,
        sync=ErrorCode.NONE,
        sync_behind=ErrorCode.REBALANCE_IN_PROGRESS,
    ),
}
