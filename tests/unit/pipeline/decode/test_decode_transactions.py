"""Transactions of a whole log partition against Kafka's rule, replayed record by record."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.coordinator.offset_store import OffsetStore
from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue
from kgctl.pipeline.decode.decode import resolve
from kgctl.pipeline.decode.schemas import COMMITS, MARKERS, OFFSET_COMMITS, Resolved
from tests.support.pipeline.per_row_transactions import resolve_per_row

Row = dict[str, Any]


def commit(log_offset: int, committed: int | None, producer: int | None = None, topic: str = "t", group: str = "g") -> Row:
    return {
        "group": group,
        "topic": topic,
        "partition": 0,
        "committed_offset": committed,
        "leader_epoch": -1,
        "metadata": None if committed is None else "",
        "commit_timestamp_ms": committed,
        "time_ms": 1000 + log_offset,
        "log_partition": 3,
        "log_offset": log_offset,
        "producer_id": producer,
    }


def marker(log_offset: int, producer: int, *, commits: bool = True) -> Row:
    place = {"log_partition": 3, "log_offset": log_offset, "time_ms": 1000 + log_offset}
    return {**place, "producer_id": producer, "producer_epoch": 0, "commits": commits}


def tables(log: list[Row]) -> tuple[pa.Table, pa.Table]:
    commits = [row for row in log if "commits" not in row]
    markers = [row for row in log if "commits" in row]
    return pa.Table.from_pylist(commits, schema=COMMITS), pa.Table.from_pylist(markers, schema=MARKERS)


def shown(resolved: Resolved) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    columns = ("committed_offset", "log_offset", "effect_offset", "time_ms", "transactional")
    resolved.offset_commits.validate(full=True)
    assert resolved.offset_commits.schema == OFFSET_COMMITS
    counts = resolved.counts()
    del counts["took_effect"]
    return [tuple(row[name] for name in columns) for row in resolved.offset_commits.to_pylist()], {
        name: number for name, number in counts.items() if number
    }


CASES: dict[str, tuple[list[Row], list[tuple[Any, ...]], dict[str, int]]] = {
    "a plain commit counts at once": ([commit(1, 10)], [(10, 1, 1, 1001, False)], {}),
    "a transactional one counts at its marker": ([commit(1, 10, 7), marker(4, 7)], [(10, 1, 4, 1004, True)], {}),
    "an aborted one never": ([commit(1, 10, 7), marker(4, 7, commits=False)], [], {"aborted": 1}),
    "without a marker it is open": ([commit(1, 10, 7), marker(4, 8)], [], {"open": 1}),
    "a marker before it does not end it": ([marker(0, 7), commit(1, 10, 7)], [], {"open": 1}),
    "the next marker decides, not a later one": (
        [commit(1, 10, 7), marker(2, 7, commits=False), commit(3, 11, 7), marker(4, 7)],
        [(11, 3, 4, 1004, True)],
        {"aborted": 1},
    ),
    "of one transaction the last commit of a key counts": (
        [commit(1, 10, 7), commit(2, 11, 7), marker(3, 7)],
        [(11, 2, 3, 1003, True)],
        {"overtaken": 1},
    ),
    "a plain commit overtakes an open transaction": (
        [commit(1, 10, 7), commit(2, 20), marker(3, 7)],
        [(20, 2, 2, 1002, False)],
        {"overtaken": 1},
    ),
    "a plain commit before it does not": (
        [commit(1, 20), commit(2, 10, 7), marker(3, 7)],
        [(20, 1, 1, 1001, False), (10, 2, 3, 1003, True)],
        {},
    ),
    "another producer's later record overtakes it": (
        [commit(1, 10, 7), commit(2, 20, 8), marker(3, 8), marker(4, 7)],
        [(20, 2, 3, 1003, True)],
        {"overtaken": 1},
    ),
    "another producer's earlier record does not": (
        [commit(1, 10, 7), commit(2, 20, 8), marker(3, 7), marker(4, 8)],
        [(10, 1, 3, 1003, True), (20, 2, 4, 1004, True)],
        {},
    ),
    "a tombstone removes what is open": (
        [commit(1, 10, 7), commit(2, None), marker(3, 7)],
        [(None, 2, 2, 1002, False)],
        {"overtaken": 1},
    ),
    "a tombstone counts at once, whoever writes it": (
        [commit(1, 10, 7), commit(2, None, 7), marker(3, 7, commits=False)],
        [(None, 2, 2, 1002, False)],
        {"aborted": 1},
    ),
    "another key's commit overtakes nothing": (
        [commit(1, 10, 7), commit(2, 20, topic="u"), marker(3, 7)],
        [(10, 1, 3, 1003, True), (20, 2, 2, 1002, False)],
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name: str) -> None:
    log, rows, numbers = CASES[name]
    assert shown(resolve(*tables(log))) == (rows, numbers)
    assert shown(resolve_per_row(*tables(log))) == (rows, numbers)


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    log: list[Row] = []
    for offset in range(draw(st.integers(0, 14))):
        producer = draw(st.sampled_from([None, 7, 7, 8]))
        if producer is not None and draw(st.integers(0, 2)) == 0:
            log.append(marker(offset, producer, commits=draw(st.booleans())))
        else:
            committed = draw(st.sampled_from([None, 1, 2, 3, 4]))
            log.append(
                commit(offset, committed, producer, draw(st.sampled_from(["t", "t", "u"])), draw(st.sampled_from(["g", "h"])))
            )
    return log


@given(logs())
def test_any_log_resolves_as_record_by_record(log: list[Row]) -> None:
    resolved, expected = resolve(*tables(log)), resolve_per_row(*tables(log))
    assert resolved.offset_commits.to_pylist() == expected.offset_commits.to_pylist()
    assert resolved.counts() == expected.counts()


@given(logs())
def test_what_is_left_at_the_end_is_what_the_coordinator_has(log: list[Row]) -> None:
    store = OffsetStore()
    for row in log:
        if "commits" in row:
            store.end_transaction(row["producer_id"], committed=row["commits"])
            continue
        key = OffsetCommitKey(row["group"], row["topic"], row["partition"])
        if row["committed_offset"] is None:
            store.remove(key)
        elif row["producer_id"] is None:
            store.put(key, OffsetCommitValue(row["committed_offset"]))
        else:
            store.put_pending(row["producer_id"], key, OffsetCommitValue(row["committed_offset"]))
    last = {}
    for row in resolve(*tables(log)).offset_commits.to_pylist():
        last[row["group"], row["topic"]] = row["committed_offset"]
    assert {key: offset for key, offset in last.items() if offset is not None} == {
        (group, topic): value.offset for group in store.group_ids() for (topic, _), value in store.of_group(group)
    }


@given(logs(), st.randoms(use_true_random=False), st.integers(0, 3))
def test_order_and_duplicates_do_not_matter(log: list[Row], random: Any, again: int) -> None:
    in_order = resolve(*tables(log)).offset_commits
    shuffled = log + log[:again]
    random.shuffle(shuffled)
    commits, markers = tables(shuffled)
    mixed = resolve(commits, markers)
    assert mixed.offset_commits.equals(in_order)
    assert mixed.duplicates == sum("commits" not in row for row in log[:again])


@given(logs(), st.randoms(use_true_random=False))
def test_of_different_rows_at_one_offset_the_same_one_is_taken(log: list[Row], random: Any) -> None:
    log += [row | {"producer_id": None, "time_ms": 1} for row in log if "commits" not in row]
    commits, markers = tables(log)
    expected = resolve(commits, markers).offset_commits
    random.shuffle(log)
    assert resolve(*tables(log)).offset_commits.equals(expected)
