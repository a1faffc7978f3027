"""The classic group's states as tables that the code reads: what holds in a state, which changes there are, what is answered.

Kafka: ClassicGroupState. The diagram in the README is made from `TRANSITIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState
from kgctl.model.transition import Transition

EMPTY = GroupState.EMPTY
PREPARING_REBALANCE = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE = GroupState.COMPLETING_REBALANCE
STABLE = GroupState.STABLE
DEAD = GroupState.DEAD


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What is true as long as a group is in a state; `kgctl.coordinator.invariants` holds groups to it."""

    meaning: str
    may_have_members: bool = True
    may_park_joins: bool = False
    may_park_syncs: bool = False
    has_protocol: bool = False
    has_join_timer: bool = False


STATE = {
    EMPTY: StateFacts("no members; offsets may be left, and go when their retention is over", may_have_members=False),
    PREPARING_REBALANCE: StateFacts("waits for the members to join", may_park_joins=True, has_join_timer=True),
    COMPLETING_REBALANCE: StateFacts("waits for the leader's assignment", may_park_syncs=True, has_protocol=True),
    STABLE: StateFacts("every member may have its assignment", has_protocol=True),
    DEAD: StateFacts("the coordinator has given the group up", may_have_members=True),
}

TRANSITIONS = (
    Transition(EMPTY, PREPARING_REBALANCE, "first member joins"),
    Transition(PREPARING_REBALANCE, COMPLETING_REBALANCE, "all have joined, or the time is up (generation + 1)"),
    Transition(PREPARING_REBALANCE, EMPTY, "nobody is left (generation + 1)"),
    Transition(COMPLETING_REBALANCE, STABLE, "the leader syncs"),
    Transition(COMPLETING_REBALANCE, PREPARING_REBALANCE, "a member joins, leaves, expires or does not sync"),
    Transition(STABLE, PREPARING_REBALANCE, "a member joins, leaves, expires or changes its protocols"),
    Transition(EMPTY, DEAD, "the coordinator is unloaded"),
    Transition(PREPARING_REBALANCE, DEAD, "the coordinator is unloaded"),
    Transition(COMPLETING_REBALANCE, DEAD, "the coordinator is unloaded"),
    Transition(STABLE, DEAD, "the coordinator is unloaded"),
)
ALLOWED = frozenset((transition.source, transition.target) for transition in TRANSITIONS)


@dataclass(frozen=True, slots=True)
class Responses:
    """What a known member of the current generation is answered in a state.

    ``sync`` None: the request is parked or gets the stored assignment. ``extends_session_on_commit``: a commit counts as a sign
    of life.
    """

    heartbeat: ErrorCode
    sync: ErrorCode | None
    commit: ErrorCode
    extends_session_on_commit: bool = False
    may_rebalance: bool = False


RESPONSES = {
    EMPTY: Responses(
        heartbeat=ErrorCode.UNKNOWN_MEMBER_ID,
        sync=ErrorCode.UNKNOWN_MEMBER_ID,
        commit=ErrorCode.UNKNOWN_MEMBER_ID,
        may_rebalance=True,
    ),
    PREPARING_REBALANCE: Responses(
        heartbeat=ErrorCode.REBALANCE_IN_PROGRESS,
        sync=ErrorCode.REBALANCE_IN_PROGRESS,
        commit=ErrorCode.NONE,
        extends_session_on_commit=True,
    ),
    COMPLETING_REBALANCE: Responses(
        heartbeat=ErrorCode.NONE, sync=None, commit=ErrorCode.REBALANCE_IN_PROGRESS, may_rebalance=True
    ),
    STABLE: Responses(
        heartbeat=ErrorCode.NONE, sync=None, commit=ErrorCode.NONE, extends_session_on_commit=True, may_rebalance=True
    ),
    DEAD: Responses(
        heartbeat=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        sync=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        commit=ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ),
}
