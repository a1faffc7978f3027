"""``kgctl top``: frames without a terminal, the live view with its own pilot."""

from __future__ import annotations

import asyncio

import pytest

from kgctl.cli.groups.top import Look
from kgctl.cli.selection import name_filter
from kgctl.cli.session import NamedCluster, Session
from kgctl.errors import TimedOutError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, Ran


def test_frames_without_a_terminal(cli: Cli, cluster: FakeGroupAdmin) -> None:
    def read_on(milliseconds: int) -> None:
        cli.now_ms += milliseconds
        cluster.groups["g1"].offsets[TopicPartition("t1", 1)] = OffsetAndMetadata(75)

    cli.sleep_ms = read_on
    ran = cli("top --iterations 2 --interval 5s")
    assert (ran.code, ran.err) == (0, "")
    assert (
        ran.out
        == (
            "2024-01-01T00:00:00.000Z  fake:9092  3 groups, total lag 130, sorted by lag\n"
            "GROUP  STATE   LAG  READ/S  WRITTEN/S  DRAIN-S  VERDICT\n"
            "g1     Empty    50  -       -          -        -\n"
            "g3     Empty    50  -       -          -        -\n"
            "g2     Stable   30  -       -          -        -\n"
            "\n"
            "2024-01-01T00:00:05.000Z  fake:9092  3 groups, total lag 105, sorted by lag\n"
            "GROUP  STATE   LAG  READ/S  WRITTEN/S  DRAIN-S  VERDICT\n"
            "g3     Empty    50  0.0     0.0        -        -\n"
            "g2     Stable   30  0.0     0.0        -        -\n"
            "g1     Empty    25  5.0     0.0        5.0      OK\n"
        )
        or ran.out.count("GROUP") == 2
    )


def test_rows_after_the_last_look(cli: Cli) -> None:
    rows = cli("top g1 --iterations 3 -o json").data
    assert [(row["group"], row["lag"], row["verdict"]) for row in rows] == [("g1", 50, "STOP")]


def test_a_group_that_has_members_stalls_and_one_without_has_stopped(cli: Cli) -> None:
    rows = cli("top g1 g2 --iterations 3 -o json").data
    assert [(row["group"], row["verdict"]) for row in rows] == [("g1", "STOP"), ("g2", "STALL")]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_group_that_does_not_exist_is_not_found(cli: Cli, terminal: bool) -> None:
    cli.terminal = terminal
    assert cli("top nosuch") == Ran(4, "", "kgctl: group 'nosuch' does not exist\n")
    assert cli("top g1 nosuch --iterations 1 -o name").code == 3


def test_frames_go_on_after_a_lost_connection_but_not_without_a_first_look(cli: Cli, cluster: FakeGroupAdmin) -> None:
    def lose_and_find(_: int) -> None:
        cluster.failure = None if cluster.failure else TimedOutError("no answer")

    cli.sleep_ms = lose_and_find
    ran = cli("top g1 --iterations 3")
    assert (ran.code, ran.out.count("VERDICT"), ran.err) == (0, 2, "kgctl: no answer; trying again\n")
    cluster.failure = TimedOutError("no answer")
    assert cli("top") == Ran(7, "", "kgctl: no answer\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("top -o json", "-o json needs --iterations N"),
        ("top --interval soon", "--interval: cannot read 'soon'"),
        ("top --sort size", "--sort 'size' is unknown; known: lag, name, rate, drain, verdict"),
    ],
)
def test_usage_errors(cli: Cli, line: str, message: str) -> None:
    ran = cli(line)
    assert (ran.code, message in ran.err, cli.settings) == (2, True, []), ran.err


def test_live_view_sorts_filters_and_survives_an_outage(cli: Cli, cluster: FakeGroupAdmin) -> None:
    from textual.widgets import DataTable, Input, Static

    from kgctl.cli.environment import Environment
    from kgctl.cli.groups.top_app import TopApp

    session = Session(Environment(now_ms=lambda: 0))
    look = Look(session, cluster, (), name_filter(None, None), "lag")
    app = TopApp(look, NamedCluster("fake:9092", None, ()), 3_600_000)

    def shown() -> list[str]:
        table = app.query_one(DataTable)
        return [str(table.get_row_at(number)[0]) for number in range(table.row_count)]

    async def play() -> None:
        async with app.run_test() as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert shown() == ["g3", "g1", "g2"]
            await pilot.press("s")
            assert (look.sort, shown()) == ("name", ["g1", "g2", "g3"])
            await pilot.press("slash", "3", "enter")
            assert shown() == ["g3"]
            await pilot.press("escape")
            assert (shown(), app.query_one(Input).display) == (["g1", "g2", "g3"], False)
            cluster.failure = TimedOutError("no answer")
            app.look()
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "no answer; trying again" in str(app.query_one("#title", Static).render())
            await pilot.press("q")

    asyncio.run(play())
