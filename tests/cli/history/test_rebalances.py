"""``kgctl history rebalances``."""

from __future__ import annotations

import pytest

from tests.cli.harness import Cli


def test_generations_of_a_group(cli: Cli) -> None:
    ran = cli("history rebalances payments")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "GROUP     GENERATION  STARTED                   DURATION-MS  MEMBERS  JOINED  LEFT  CAUSE          INFERRED\n"
        "payments           1  2026-03-02T08:00:00.000Z         3004        1       1     0  member_joined  -\n"
        "payments           2  2026-03-02T08:20:00.000Z         2150        2       1     0  member_joined  -\n"
        "payments           3  2026-03-02T08:35:00.000Z           41        1       0     1  member_left    -\n"
    )


def test_programs_get_who_came_and_went(cli: Cli) -> None:
    (row,) = cli("history rebalances --group payments --at 2026-03-02T08:34:59.999Z -o json").data

    assert row == {
        "group": "payments",
        "type": "classic",
        "generation": 2,
        "started": "2026-03-02T08:20:00.000Z",
        "stable": "2026-03-02T08:20:02.150Z",
        "duration_ms": 2150,
        "started_by": "join_phase_ended",
        "members": 2,
        "joined": 1,
        "left": 0,
        "cause": "member_joined",
        "inferred": None,
        "assignor": "range",
        "leader": "app-1",
        "members_joined": ["app-2"],
        "members_left": [],
    }


@pytest.mark.parametrize(
    ("span", "generations"),
    [
        ("--from 2026-03-02T08:20:00Z", ["2", "3"]),
        ("--to 2026-03-02T08:20:00Z", ["1"]),
        ("--from 2026-03-02T08:20:00Z --to 2026-03-02T08:35:00Z", ["2"]),
        ("--from 2026-03-02T08:21:00Z --to 2026-03-02T08:22:00Z", []),
    ],
)
def test_stretch_of_time_has_those_that_began_in_it(cli: Cli, span: str, generations: list[str]) -> None:
    assert [row["generation"] for row in cli(f"history rebalances {span} -o csv").csv] == generations


def test_time_outside_the_collection_is_said(cli: Cli) -> None:
    ran = cli("history rebalances payments --from 2026-03-01 --to 2026-03-02")
    assert (ran.code, ran.out, ran.err) == (
        0,
        "",
        "No generation is known of that time.\nNothing from before 2026-03-02T08:00:00.000Z was collected.\n",
    )
    ran = cli("history rebalances payments --from 2026-03-02T08:30:00Z --to 2026-03-03 -o name")
    assert (ran.out, ran.err) == ("payments\n", "Collected up to 2026-03-02T09:00:00.000Z: what came later is not known.\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--at 2026-03-02 --from 2026-03-01", "--at is a moment, --from and --to are a stretch of time: give one of the two"),
        ("--from 2026-03-02 --to 2026-03-02", "--from 2026-03-02 is not before --to 2026-03-02"),
        ("--to soon", "--to: cannot read 'soon' as a time"),
    ],
)
def test_times_that_make_no_sense(cli: Cli, line: str, message: str) -> None:
    ran = cli(f"history rebalances {line}")

    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_unknown_group(cli: Cli) -> None:
    assert cli("history rebalances nosuch").code == 4
