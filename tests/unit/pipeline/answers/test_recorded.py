"""What is measured of a group's doings, by hand."""

from __future__ import annotations

from typing import Any

from kgctl.pipeline.answers.recorded import MemberStay, RecordedPast, measures


def generation(number: int, started_ms: int, stable_ms: int | None, cause: str = "member_joined") -> dict[str, Any]:
    duration_ms = None if stable_ms is None else stable_ms - started_ms
    return {
        "generation_id": number,
        "started_ms": started_ms,
        "stable_ms": stable_ms,
        "duration_ms": duration_ms,
        "cause": cause,
    }


def stay(member: str, from_ms: int, to_ms: int | None) -> MemberStay:
    return MemberStay(member, "app", None, 10_000, 300_000, from_ms, to_ms)


def test_measures_of_what_happened() -> None:
    found = RecordedPast(
        generations=[
            generation(1, 0, 1_000),
            generation(2, 30_000, None),
            generation(3, 33_000, 36_500),
            generation(3, 50_000, 50_000, "static_member_returned"),
        ],
        stays=[stay("a", 0, None), stay("b", 30_000, 50_000), stay("c", 0, 60_000)],
        owned=[
            (("t", 0), 0, 36_500, "a"),
            (("t", 0), 36_500, None, "c"),
            (("t", 1), 0, None, "a"),
            (("t", 1), 40_000, None, "a"),
        ],
        commits={("t", 0): [(0, 1), (2_000, 2), (9_000, 3)], ("t", 1): [(1_000, 5), (3_000, 6)]},
    )
    assert measures(found, 0, 60_000) == {
        "generations": 3,
        "overtaken": 1,
        "rebalance_s": 4.5,
        "longest_unrest_s": 6.5,
        "partitions_moved": 1,
        "members_at_end": 2,
        "commit_interval_s": 2,
        "longest_commit_gap_s": 7,
    }


def test_measures_of_nothing() -> None:
    nothing = RecordedPast(generations=[], stays=[], owned=[], commits={})
    assert measures(nothing, 0, 1) == {
        "generations": 0,
        "overtaken": 0,
        "rebalance_s": 0,
        "longest_unrest_s": 0,
        "partitions_moved": None,
        "members_at_end": 0,
        "commit_interval_s": None,
        "longest_commit_gap_s": None,
    }
