"""Left or crashed: what the time between the last commit and the rebalance tells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kgctl.pipeline.answers.history import History
from kgctl.pipeline.answers.inferred import infer_departures
from kgctl.pipeline.answers.series import REBALANCES, flooded, rows_between
from tests.support.pipeline.gold import Row, commit, run, write_gold

TIMEOUT_MS = 10_000


def generation(started_ms: int, log_offset: int, *, kind: str = "classic") -> Row:
    return {
        "group": "g",
        "type": kind,
        "protocol_type": "consumer",
        "generation_id": 2,
        "time_ms": started_ms,
        "started_ms": started_ms,
        "stable_ms": started_ms,
        "duration_ms": 0,
        "started_by": "join_phase_ended",
        "members": 1,
        "members_joined": [],
        "members_left": ["m"],
        "cause": "member_left",
        "log_offset": log_offset,
    }


def member(change: str, log_offset: int, instance: str | None = None, timeout_ms: int | None = TIMEOUT_MS) -> Row:
    named = {"group": "g", "member_id": "m", "time_ms": log_offset, "change": change, "generation_id": 1, "client_id": "c"}
    return {
        **named,
        "group_instance_id": instance,
        "client_host": "h",
        "session_timeout_ms": timeout_ms,
        "log_offset": log_offset,
    }


def assigned(change: str, log_offset: int) -> Row:
    named = {"group": "g", "topic": "t", "partition": 0, "member_id": "m", "time_ms": log_offset}
    return {**named, "change": change, "generation_id": 1, "log_offset": log_offset}


def inferred(
    folder: Path,
    commits_s: Sequence[float],
    started_s: int,
    lag: int | None = 5,
    kind: str = "classic",
    after: int | None = None,
    changes: Sequence[Row] = (member("joined", 1), member("left", 900)),
) -> Any:
    times = [round(at * 1000) for at in commits_s]
    behind = {"group": "g", "topic": "t", "partition": 0, "time_ms": 1, "committed_offset": 1, "lag": lag, "kind": "commit"}
    later = [{**behind, "time_ms": started_s * 1000 + 900, "lag": after, "kind": "sample"}] if after is not None else []
    tables = {
        "offset_commits": [commit("g", "t", 0, at, at, 10 + place) for place, at in enumerate(times)],
        "generations": [generation(started_s * 1000, 900, kind=kind)],
        "member_changes": list(changes),
        "assignment_changes": [assigned("assigned", 1), assigned("revoked", 900)],
        "lag": [behind, *later],
        "coverage": [run(0, 999, 0, 99_000)],
    }
    write_gold(folder, tables)
    history = History.open(folder)
    rows = rows_between(history, REBALANCES, None, None, None)
    infer_departures(history, rows)
    return rows[0]["inferred"]


@pytest.mark.parametrize(
    ("commits_s", "started_s", "lag", "expected"),
    [
        ([1, 2, 3, 4], 5, 5, ["left"]),
        ([1, 2, 3, 4], 13, 5, ["left"]),
        ([1, 2, 3, 4], 14, 5, ["crashed"]),
        ([1, 2, 3, 4], 14, 0, None),
        ([1, 2, 3, 4], 14, None, None),
        ([1, 8, 20], 40, 5, None),
        ([4], 30, 5, None),
        ([], 30, 5, None),
    ],
)
def test_classic_members(tmp_path: Path, commits_s: list[int], started_s: int, lag: int | None, expected: Any) -> None:
    assert inferred(tmp_path / "w", commits_s, started_s, lag) == expected


def test_what_was_unread_may_be_seen_by_the_next_sample(tmp_path: Path) -> None:
    assert inferred(tmp_path / "w", [1, 2, 3, 4], 14, lag=0, after=7) == ["crashed"]
    assert inferred(tmp_path / "v", [1, 2, 3, 4], 14, lag=0, after=0) is None


def test_of_the_consumer_protocol_nothing_is_inferred(tmp_path: Path) -> None:
    assert inferred(tmp_path / "w", [1, 2, 3, 4], 14, kind="consumer") is None


@pytest.mark.parametrize(
    ("commits_s", "expected"),
    [
        ([1, 2, 3, 4, 5, 5.3], ["left"]),
        ([1, 2, 3, 4, 5, 6], ["crashed"]),
        ([1, 2, 3, 4, 5, 5.9], ["crashed"]),
        ([1, 2, 4, 4.2, 5, 5.3], None),
        ([3, 4, 5, 5.3], None),
        ([5], None),
    ],
)
def test_a_static_member_closed_if_its_last_commit_came_before_its_time(
    tmp_path: Path, commits_s: list[float], expected: Any
) -> None:
    changes = [member("joined", 1, "i"), member("left", 900, "i")]
    assert inferred(tmp_path / "w", commits_s, 16, changes=changes) == expected


def test_a_static_member_of_the_consumer_protocol_says_that_it_closes(tmp_path: Path) -> None:
    changes = [member(change, at, "i", None) for change, at in (("joined", 1), ("closed", 800), ("left", 900))]
    assert inferred(tmp_path / "w", [1, 2, 3, 4], 60, kind="consumer", changes=changes) == ["left"]
    assert inferred(tmp_path / "v", [1, 2, 3, 4], 60, kind="consumer", changes=[changes[0], changes[2]]) is None


def reset(time_ms: int, before: int, after: int, *evidence: str) -> dict[str, Any]:
    place = {"group": "g", "topic": "t", "partition": 0, "time_ms": time_ms, "log_offset": time_ms}
    return {**place, "offset_before": before, "offset_after": after, "records": after - before, "evidence": list(evidence)}


def test_a_flood_past_the_log_end_is_one_row() -> None:
    flood = [reset(at, 10 * at, 10 * at + 10, "past_log_end") for at in range(1, 5)]
    found = flooded([reset(0, 50, 10, "went_back"), *flood, reset(9, 50, 90, "past_log_end", "group_empty")])
    told = [
        (row["time_ms"], row["until_ms"], row["times"], row["offset_before"], row["offset_after"], row["records"])
        for row in found
    ]
    assert told == [(0, 0, 1, 50, 10, -40), (1, 4, 4, 10, 50, 40), (9, 9, 1, 50, 90, 40)]
    assert [row["times"] for row in flooded([reset(1, 10, 20, "past_log_end"), reset(2, 30, 40, "past_log_end")])] == [1, 1]
