"""What is called exact is exact, whatever the broker compacted away between and before the collections."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.answers.history import CollectedRun
from kgctl.pipeline.answers.series import CommitAt, Exactness, commits_at
from kgctl.pipeline.decode.schemas import OFFSET_COMMITS
from tests.support.pipeline.gold import commit


@dataclass(frozen=True)
class Record:
    """A commit for a partition, or with ``offset`` None its deletion."""

    log_offset: int
    time_ms: int
    partition: int
    offset: int | None


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Record], list[Record]]:
    """(every record there ever was, those that were collected): it is written, compacted, collected, written on, and so on."""
    ever: list[Record] = []
    log: list[Record] = []
    collected: list[Record] = []
    position = 0
    for _ in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(0, 6))):
            time_ms = (ever[-1].time_ms if ever else 0) + draw(st.integers(0, 3))
            record = Record(len(ever), time_ms, draw(st.integers(0, 2)), draw(st.one_of(st.none(), st.integers(0, 99))))
            ever.append(record)
            log.append(record)
        if draw(st.booleans()):
            log = compacted(log, draw(st.integers(0, len(ever))), drops_deletions=draw(st.booleans()))
        if draw(st.booleans()):
            collected += [record for record in log if record.log_offset >= position]
            position = len(ever)
    return ever, collected


def compacted(log: list[Record], end: int, *, drops_deletions: bool) -> list[Record]:
    """As Kafka's cleaner leaves it: up to ``end`` the last record of each key, deletions if they are not yet a day old."""
    last = {record.partition: record.log_offset for record in log if record.log_offset < end}
    kept = [record for record in log if record.log_offset >= end or last[record.partition] == record.log_offset]
    return [record for record in kept if record.log_offset >= end or record.offset is not None or not drops_deletions]


def runs_of(collected: list[Record]) -> list[CollectedRun]:
    runs: list[CollectedRun] = []
    for record in collected:
        if runs and runs[-1].last_offset + 1 == record.log_offset:
            runs[-1] = CollectedRun(runs[-1].first_offset, record.log_offset, runs[-1].first_ms, record.time_ms)
        else:
            runs.append(CollectedRun(record.log_offset, record.log_offset, record.time_ms, record.time_ms))
    return runs


def committed_at(records: list[Record], at_ms: int) -> dict[int, int]:
    known = {record.partition: record.offset for record in records if record.time_ms <= at_ms}
    return {partition: offset for partition, offset in known.items() if offset is not None}


@given(histories(), st.integers(0, 40))
def test_exact_answers_are_true_and_doubtful_ones_say_so(history: tuple[list[Record], list[Record]], at_ms: int) -> None:
    ever, collected = history
    rows = [commit("g", "t", each.partition, each.offset, each.time_ms, each.log_offset) for each in collected]
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=OFFSET_COMMITS)
    asked_ms = min(at_ms, collected[-1].time_ms - 1 if collected else 0)  # the end of a collection is said beside the answer

    found: dict[int, CommitAt] = {each.partition: each for each in commits_at(table, runs_of(collected), asked_ms)}

    truth = committed_at(ever, asked_ms)
    heard_of = {record.partition for record in collected}
    for partition, answer in found.items():
        if answer.exactness is Exactness.EXACT:
            assert answer.offset == truth[partition]
        assert (answer.offset is None) == (answer.exactness is Exactness.UNKNOWN)
    assert truth.keys() & heard_of <= found.keys()
