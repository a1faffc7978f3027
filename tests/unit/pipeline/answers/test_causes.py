"""Why groups fell behind: what happened as a stretch began, and what cannot be known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kgctl.pipeline.answers.causes import GroupEvidence, Spell, spells
from kgctl.pipeline.answers.history import History
from tests.support.pipeline.gold import Row, commit, run, write_gold

MINUTE_MS = 60_000
LAST = 60


def window(minute: int, **values: object) -> Row:
    """A row of ``group_health`` of a group that is well."""
    counts = dict.fromkeys(("rebalances", "resets", "stalled_partitions", "past_end", "below_start"), 0)
    own = {"group": "g", "window_start_ms": minute * MINUTE_MS, "window_ms": MINUTE_MS, "status": "OK", "commits": 1}
    return {**own, **counts, "max_lag": 0, "max_lag_ms": 0, **values}


BEHIND = [*map(window, range(20)), window(20, max_lag=900, max_lag_ms=90_000), window(21, max_lag_ms=150_000), window(25)]

SILENT = [{**row, "commits": 0} for row in BEHIND[20:]]


def generation(at: float, number: int, cause: str, **values: object) -> Row:
    time_ms = int(at * MINUTE_MS)
    kept = {"group": "g", "type": "classic", "protocol_type": "consumer", "generation_id": number, "cause": cause}
    lists: dict[str, list[str]] = {"members_joined": [], "members_left": []}
    times = {"time_ms": time_ms, "started_ms": time_ms, "stable_ms": time_ms + 30_000, "duration_ms": 30_000}
    return {**kept, **lists, **times, "started_by": "epoch_bump", "members": 2, "log_offset": number, **values}


def reset(at: float, partition: int = 0, records: int = -500, evidence: str = "went_back") -> Row:
    moved = {"offset_before": 1_000, "offset_after": 1_000 + records, "records": records}
    place = {"group": "g", "topic": "t", "partition": partition, "time_ms": int(at * MINUTE_MS), "log_offset": int(at * 100)}
    return {**place, **moved, "evidence": evidence}


def member(at: float, name: str, session_ms: int, change: str = "joined") -> Row:
    own = {
        "group": "g",
        "member_id": name,
        "change": change,
        "generation_id": 1,
        "log_offset": int(at * 100),
        "client_id": "c",
        "client_host": "/h",
    }
    return {**own, "time_ms": int(at * MINUTE_MS), "session_timeout_ms": session_ms, "rebalance_timeout_ms": 300_000}


def lag(at: float, end: int) -> Row:
    place = {"group": "g", "topic": "t", "partition": 0, "time_ms": int(at * MINUTE_MS), "kind": "sample"}
    return {**place, "committed_offset": 0, "log_end_offset": end, "lag": end, "lag_ms": 0}


def history(
    folder: Path,
    health: Sequence[Row] = tuple(BEHIND),
    *,
    sampled: Sequence[int] = range(LAST),
    coverage: Sequence[Row] = (run(0, 9_999, 0, LAST * MINUTE_MS),),
    **tables: Sequence[Row],
) -> History:
    told: Mapping[str, Sequence[Row]] = {"offset_commits": [commit("g", "t", 0, 7, 1, 1)], "coverage": coverage, **tables}
    write_gold(folder, {"group_health": health, **told}, sampled_ms=[minute * MINUTE_MS for minute in sampled])
    return History.open(folder)


def asked(opened: History) -> list[Spell]:
    return spells(opened, "g", 0, LAST * MINUTE_MS)


def texts(opened: History) -> list[str]:
    (spell,) = asked(opened)
    return [each.text for each in spell.causes]


def test_a_stretch_is_from_where_it_was_well_to_where_it_is_again(tmp_path: Path) -> None:
    (found,) = asked(history(tmp_path / "w"))
    assert (found.causes, replace(found, causes=())) == (
        [],
        Spell("g", 20 * MINUTE_MS, 21 * MINUTE_MS, 25 * MINUTE_MS, 900, 150_000),
    )
    assert asked(history(tmp_path / "still", [*BEHIND, window(30, max_lag_ms=61_000)]))[1].to_ms is None
    gone = [window(30, past_end=1, commits=0), window(32, status=None, max_lag_ms=None)]
    (_, last) = asked(history(tmp_path / "gone", [*BEHIND, *gone]))
    assert (last.to_ms, last.is_end_known) == (32 * MINUTE_MS, False)
    assert [each.text for each in last.causes] == ["it committed nothing more"]
    assert asked(history(tmp_path / "well", [window(0), window(1)])) == []


def test_a_group_that_has_caught_up_within_the_minute_is_not_behind(tmp_path: Path) -> None:
    """What its status was meanwhile does not prolong a stretch: what begins the next one is told of that."""
    again = [*BEHIND[:22], window(22, status="STOP", max_lag_ms=280), window(23, status="REWIND", max_lag_ms=80_000)]
    first, second = asked(history(tmp_path / "w", again, resets=[reset(23.5)]))
    assert first.to_ms == 22 * MINUTE_MS
    assert [each.text for each in second.causes] == ["reset of t: 1 partition by -500 records (went back)"]


def test_of_very_many_stretches_the_worst_are_explained(tmp_path: Path) -> None:
    many = [window(at, max_lag_ms=0 if at % 2 else 60_000 + at, commits=1) for at in range(1, 60)]
    found = asked(history(tmp_path / "w", many, resets=[reset(at - 0.5) for at in range(2, 60, 2)]))
    assert len(found) == 29
    assert [bool(each.causes) for each in found] == [False] * 19 + [True] * 10


def test_what_happened_as_it_began_is_named_and_nothing_else(tmp_path: Path) -> None:
    opened = history(
        tmp_path / "w",
        resets=[reset(10), reset(20.5), reset(20.5, 1, -700, "group_empty"), reset(20.2, 2, 900), reset(24)],
        generations=[
            generation(1, 1, "member_joined", members_joined=["a", "b"]),
            generation(19.5, 2, "member_left", members_left=["a"], members_joined=["c"]),
            generation(20.1, 3, "members_changed", members_left=["b"], members_joined=["d"]),
            generation(23, 4, "member_left", members_left=["d"], members=1),
        ],
    )
    assert texts(opened) == [
        "2 rebalances, 60 s together (member left, members changed); 2 members, 2 before: all members were replaced, as by a "
        "deploy or a restart",
        "reset of t: 2 partitions by -1200 records (went back, group empty)",
    ]


def test_settings_are_named_with_what_was_before(tmp_path: Path) -> None:
    opened = history(
        tmp_path / "w",
        generations=[
            generation(1, 1, "member_joined", assignor="range", members_joined=["a"]),
            generation(20.1, 2, "subscription_changed", assignor="roundrobin"),
        ],
        member_changes=[member(1, "a", 45_000), member(20.1, "b", 10_000), member(21.5, "c", 10_000), member(40, "d", 6_000)],
    )
    assert texts(opened) == [
        "1 rebalance, 30 s together (subscription changed); 2 members, 2 before",
        "the members subscribe to other topics",
        "assignor roundrobin, before range",
        "session time-out of a member 10 s, before 45 s",
    ]
    assert [each.text for each in GroupEvidence(opened, "g", LAST * MINUTE_MS).changes(30 * MINUTE_MS)] == [
        "session time-out of a member 6 s, before 10 s"
    ]


@pytest.mark.parametrize(("written", "said"), [(1_000, []), (9_000, ["its topics were written 23.7 times as fast as in the te"])])
def test_a_burst_of_the_topics_is_named(tmp_path: Path, written: int, said: list[str]) -> None:
    opened = history(tmp_path / "w", lag=[lag(5, 0), lag(9, 0), lag(19, 2_000), lag(20.9, 2_000 + written)])
    assert [text[:55] for text in texts(opened)] == said


def test_what_cannot_be_known_is_said(tmp_path: Path) -> None:
    from_first = history(tmp_path / "first", SILENT, resets=[reset(20.5)])
    assert [(each.causes, each.doubt) for each in asked(from_first)] == [
        ((), "it was behind from the first minute on of which its lag is known")
    ]

    unknown = [window(0), window(1, status=None, max_lag_ms=None), *SILENT]
    (found,) = asked(history(tmp_path / "unknown", unknown, resets=[reset(20.5)]))
    assert (len(found.causes), found.doubt) == (1, "when it began is not known: its lag was not, for 20 minutes before")

    gap = [run(0, 90, 0, 19 * MINUTE_MS), run(200, 9_999, 20 * MINUTE_MS + 30_000, LAST * MINUTE_MS)]
    (found,) = asked(history(tmp_path / "gap", coverage=gap))
    assert found.doubt == "not all records of that time are there: what happened may be missing"


def test_minutes_without_a_row_count_as_far_as_they_were_measured(tmp_path: Path) -> None:
    health = [window(0), window(40, max_lag_ms=90_000, commits=0)]
    (measured,) = asked(history(tmp_path / "w", health))
    (unmeasured,) = asked(history(tmp_path / "v", health, sampled=[0, 1, 41]))
    assert (measured.well_ms, measured.doubt) == (40 * MINUTE_MS, "")
    assert unmeasured.well_ms == 2 * MINUTE_MS
    assert unmeasured.doubt == "when it began is not known: its lag was not, for 39 minutes before"


def test_a_group_that_commits_now_and_then_is_well_in_between(tmp_path: Path) -> None:
    health = [window(minute, max_lag_ms=(minute % 10) * MINUTE_MS, commits=int(minute % 10 == 0)) for minute in range(50)]
    assert asked(history(tmp_path / "w", health)) == []
    assert len(asked(history(tmp_path / "v", [*health, window(50, max_lag_ms=12 * MINUTE_MS, commits=0)]))) == 1
