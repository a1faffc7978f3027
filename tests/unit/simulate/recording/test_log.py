"""The lines of events, and the digest of them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.simulate.recording.folds import Histories
from kgctl.simulate.recording.log import EventLog
from kgctl.simulate.recording.recording import PodHistory, Recording, Return
from kgctl.simulate.recording.trace import (
    Committed,
    Disowned,
    GroupChanged,
    Happened,
    Kicked,
    Owned,
    PodChanged,
    Removed,
    Scaled,
    Shared,
    TraceEvent,
)
from kgctl.simulate.scenario.vocabulary import EventStage, GivenBack, PodChange
from tests.support.simulated import scenario

ENTRY = Return(0, 0, 3, 5, 0, GivenBack.CLOSED)
LINES: list[tuple[TraceEvent, str]] = [
    (PodChanged(-5, "a-0", PodChange.BOOT), '{"at_us":-5,"kind":"pod","pod":"a-0","what":"boot"}'),
    (PodChanged(5, "a-0", PodChange.FAILED, "X"), '{"at_us":5,"kind":"pod","pod":"a-0","what":"failed","detail":"X"}'),
    (
        GroupChanged(5, "Stable", 2, 3, "", "JoinGroup a-0"),
        '{"at_us":5,"kind":"group","state":"Stable","generation":2,"members":3,"leader":""}',
    ),
    (Removed(5, "a-0", "é-1", "left", 7), '{"at_us":5,"kind":"removed","pod":"a-0","member_id":"\\u00e9-1","why":"left"}'),
    (Owned(5, "a-0", ("t-0", "t-1")), '{"at_us":5,"kind":"own","pod":"a-0","partitions":["t-0","t-1"]}'),
    (Disowned(5, "a-0", "stall", ("t-0",)), '{"at_us":5,"kind":"disown","pod":"a-0","cause":"stall","partitions":["t-0"]}'),
    (
        Committed(5, "a-0", 2, 0, "NONE"),
        '{"at_us":5,"kind":"commit","pod":"a-0","partitions":2,"records":0,"error":"NONE"}',
    ),
    (
        Shared(5, "", "given back: closed", "t-0", 3, 5, 0, ENTRY),
        '{"at_us":5,"kind":"share","pod":"","what":"given back: closed","partition":"t-0","first":3,"last":5,"deliveries":0}',
    ),
    (
        Happened(5, "deploy", EventStage.NO_EFFECT, "", "restart", lifts=True),
        '{"at_us":5,"kind":"event","event":"deploy","what":"has no effect","target":"","event_kind":"restart"}',
    ),
    (
        Scaled(5, "a", "lag", 70, 1, 2, 3, "TooManyReplicas"),
        '{"at_us":5,"kind":"autoscale","members":"a","metric":"lag","value":70,"before":1,"replicas":2,"desired":3,'
        '"why":"TooManyReplicas"}',
    ),
]


@pytest.mark.parametrize(("event", "line"), LINES, ids=[str(place) for place in range(len(LINES))])
def test_an_event_is_a_line_of_canonical_json_without_what_only_the_recording_has(event: TraceEvent, line: str) -> None:
    assert event.line() == line


class Watcher:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_trace(self, event: TraceEvent) -> None:
        self.lines.append(event.line())

    def on_step(self, at_us: int, metrics: object) -> None: ...


def log_of(*observers: Any) -> tuple[EventLog, Recording]:
    recording = Recording(scenario(), 1)
    return EventLog(Histories(recording), observers), recording


def test_the_digest_is_that_of_the_lines_whether_they_are_observed_or_not() -> None:
    watcher, digests = Watcher(), []
    for observers in ((), (watcher,)):
        log, recording = log_of(*observers)
        start_us, members = recording.start_us, recording.scenario.members[0]
        recording.history.pods.append(PodHistory("a-0", "a", 0, None, None, members, {}))
        log.emit(Kicked(3, "", what="in no line"))
        log.requested(start_us - 2, 0, "a-0", "JoinGroup")
        log.requested(start_us, 0, "a-0", "Heartbeat")
        log.replied(start_us + 1, 0, "a-0", "JoinGroup", ErrorCode.NONE)
        log.replied(start_us + 2, 0, "a-0", "Heartbeat", ErrorCode.NONE)
        log.replied(start_us + 3, 0, "a-0", "Heartbeat", ErrorCode.UNKNOWN_MEMBER_ID)
        log.emit(LINES[0][0])
        digests.append((log.count, log.digest()))

    assert watcher.lines == [
        '{"at_us":-2,"kind":"request","pod":"a-0","api":"JoinGroup"}',
        '{"at_us":1,"kind":"reply","pod":"a-0","api":"JoinGroup","error":"NONE"}',
        '{"at_us":3,"kind":"reply","pod":"a-0","api":"Heartbeat","error":"UNKNOWN_MEMBER_ID"}',
        LINES[0][1],
    ]
    assert digests == [(4, sha256("".join(f"{line}\n" for line in watcher.lines).encode()).hexdigest())] * 2
