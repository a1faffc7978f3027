"""The manual's diagrams and tables of group states, made from the tables that the coordinator reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kgctl.coordinator.classic.states import DEAD, EMPTY, RESPONSES, STATE, TRANSITIONS
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState


class Transition(Protocol):
    """A row of a table of transitions."""

    @property
    def source(self) -> GroupState:
        """From which state."""

    @property
    def target(self) -> GroupState:
        """To which state."""

    @property
    def trigger(self) -> str:
        """What brings it about."""


def diagram(transitions: Iterable[Transition], first: GroupState) -> str:
    """A Mermaid state diagram. Its labels may hold neither colons nor semicolons."""
    edges = [f"    {row.source} --> {row.target}: {row.trigger.replace(':', ',')}\n" for row in transitions]
    return "".join(["```mermaid\n", "stateDiagram-v2\n", f"    [*] --> {first}\n", *edges, "```\n"])


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


def _name(error: ErrorCode | None) -> str:
    """None is a SyncGroup's: it waits for the leader, or has its assignment at once."""
    return "the assignment" if error is None else error.name
