"""The manual's diagrams and tables of group states, made from the tables that the coordinator reads."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from kgctl.coordinator.classic.group import DEAD, EMPTY, RESPONSES, STATE, TRANSITIONS
from kgctl.coordinator.consumer.member import CLASSIC_RESPONSES, GROUP_STATES, GROUP_TRANSITIONS, MEMBER_RULES, MEMBER_TRANSITIONS
from kgctl.coordinator.modern.member import MemberState
from kgctl.coordinator.share.group import SHARE_TRANSITIONS
from kgctl.coordinator.streams.group import STREAMS_TRANSITIONS
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, Transition


def diagram(transitions: Iterable[Transition[Enum]], first: Enum) -> str:
    """A Mermaid state diagram. Its labels may hold neither colons nor semicolons."""
    edges = [f"    {_state(row.source)} --> {_state(row.target)}: {row.trigger.replace(':', ',')}\n" for row in transitions]
    return "".join(["```mermaid\n", "stateDiagram-v2\n", f"    [*] --> {_state(first)}\n", *edges, "```\n"])


def _state(state: Enum) -> str:
    return state.value if isinstance(state, GroupState) else state.name


def classic_states() -> str:
    """The classic group's diagram, without the way to Dead, which leads there from everywhere."""
    return diagram([row for row in TRANSITIONS if row.target is not DEAD], EMPTY)


def classic_responses() -> str:
    """One row a state: what it means, and what a member of the current generation is answered."""
    rows = []
    for state, facts in STATE.items():
        answers = RESPONSES[state]
        cells = [_name(answers.heartbeat), _name(answers.sync), _name(answers.commit)]
        rows.append(f"| {state} | {facts.meaning} | {' | '.join(cells)} |\n")
    return "".join(rows)


def consumer_states() -> str:
    """The diagram of a group of the consumer protocol."""
    return diagram(GROUP_TRANSITIONS, GroupState.EMPTY)


def consumer_when() -> str:
    """One row a state: when a group is in it, tried from the top, and what it means."""
    return "".join(f"| {facts.state} | {facts.when} | {facts.meaning} |\n" for facts in GROUP_STATES)


def share_states() -> str:
    """The diagram of a share group."""
    return diagram(SHARE_TRANSITIONS, GroupState.EMPTY)


def streams_states() -> str:
    """The diagram of a streams group."""
    return diagram(STREAMS_TRANSITIONS, GroupState.EMPTY)


def member_states() -> str:
    """The diagram of a member of the consumer protocol."""
    return diagram(MEMBER_TRANSITIONS, MemberState.STABLE)


def member_steps() -> str:
    """One row a state: what a member's heartbeat does, and what a member that uses the classic protocol is answered."""
    rows = []
    for state, rules in MEMBER_RULES.items():
        answers = CLASSIC_RESPONSES[state]
        errors = (answers.heartbeat, answers.heartbeat_behind, answers.sync, answers.sync_behind)
        cells = [state.name, rules.at_target.value, rules.changed_at_target.value, *(error.name for error in errors)]
        rows.append(f"| {' | '.join(cells)} |\n")
    return "".join(rows)


def _name(error: ErrorCode | None) -> str:
    """None is a SyncGroup's: it waits for the leader, or has its assignment at once."""
    return "the assignment" if error is None else error.name
