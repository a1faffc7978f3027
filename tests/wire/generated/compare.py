"""Plays a script to two servers, step by step, and says where they part.

Most answers come at once. Whether a JoinGroup or SyncGroup is answered or parked cannot be seen in a moment, so kgctl's server
leads: what it has answered when it has come to rest is what Apache Kafka must answer, and no more. A difference counts when it is
there each of `TRIES` times, waited for `MORE_PATIENT` times as long each time: a machine that is busy or slow is none.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tests.wire.differential.differences import differences
from tests.wire.generated.side import Side
from tests.wire.generated.steps import Step

PARKED_S = 0.03
AT_MOST_S = 1.5
TRIES = 3
MORE_PATIENT = 5
CONVERSATION = "generated"
PARKABLE = ("join", "sync")
DRAWING = ("join", "consumer heartbeat")
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Server:
    """Where it listens, and the ids of its topics; ``next_ids`` are the next member ids that it draws."""

    bootstrap: str
    topic_ids: Mapping[str, UUID]
    next_ids: deque[str] = field(default_factory=deque)


def compare(kafka: Server, kgctl: Server, script: list[Step], tries: int = TRIES) -> list[str]:
    """What differs, one line for each field; empty where the two say the same."""
    found: list[str] = []
    for number in range(tries):
        found = _play(kafka, kgctl, script, MORE_PATIENT**number)
        if not found:
            break
    return found


def _play(kafka: Server, kgctl: Server, script: list[Step], patience: int) -> list[str]:
    # Dots, so that no part of it looks like an id that a server has drawn.
    group = f"generated.{os.getpid()}.{next(_numbers)}"
    theirs, ours = (Side(server.bootstrap, server.topic_ids, group, patience) for server in (kafka, kgctl))
    try:
        for index, step in enumerate(script):
            found = _step(theirs, ours, index, step, kgctl.next_ids)
            if found:
                return [f"step {index} {step}", *found]
    finally:
        theirs.close()
        ours.close()
    return []


def _step(theirs: Side, ours: Side, index: int, step: Step, next_ids: deque[str]) -> list[str]:
    next_ids.clear()
    theirs.ask(index, step)
    if step["api"] in DRAWING:
        _rest(theirs, index, step)
        next_ids.extend(theirs.drawn_id(index))
    ours.ask(index, step)
    _rest(ours, index, step)
    deadline = time.monotonic() + AT_MOST_S * ours.patience
    while True:
        ours.collect()
        theirs.collect()
        found = _answers(theirs, ours, set(theirs.answers) & set(ours.answers))
        if found:
            return found  # an answer does not change any more
        found = _answers(theirs, ours, set(theirs.answers) | set(ours.answers))
        found = found or differences(CONVERSATION, theirs.look(), ours.look())
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.005)


def _rest(side: Side, index: int, step: Step) -> None:
    """Wait until the step is answered, or parked as far as one can see."""
    deadline = time.monotonic() + (PARKED_S if step["api"] in PARKABLE else AT_MOST_S) * side.patience
    while index not in side.answers and time.monotonic() < deadline:
        side.collect(0.01)


def _answers(theirs: Side, ours: Side, indexes: set[int]) -> list[str]:
    expected, found = (
        {f"answer {index}": side.answers.get(index, "not answered") for index in sorted(indexes)} for side in (theirs, ours)
    )
    return differences(CONVERSATION, expected, found)


def signature(found: list[str]) -> str:
    """What is the same in one difference found twice: the API, the fields and the texts, without names and numbers."""
    return re.sub(r"\d+", "N", "\n".join(re.sub(r"^step.*('api': '[^']*').*", r"\1", line) for line in found))
