"""``kgctl top``: frames without a terminal, the live view with its own pilot."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kgctl.admin import Results, Sight
from kgctl.cli.columns import rounded
from kgctl.cli.groups.top import TopLook
from kgctl.cli.session import NamedCluster, Session
from kgctl.errors import TimedOutError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroup, FakeGroupAdmin, error
from tests.cli.harness import Cli, Ran

FRAMES = """\
2024-01-01T00:00:00.000Z  fake:9092  3 groups, total lag 80, unknown for 1 group, sorted by lag
GROUP  STATE   LAG  READ/S  WRITTEN/S  DRAIN-S  VERDICT  FLAGS
g3     Empty     -  -       -          -        LOST     below-log-start
g1     Empty    50  -       -          -        -        -
g2     Stable   30  -       -          -        -        -

2024-01-01T00:00:05.000Z  fake:9092  3 groups, total lag 55, unknown for 1 group, sorted by lag
GROUP  STATE   LAG  READ/S  WRITTEN/S  DRAIN-S  VERDICT  FLAGS
g3     Empty     -  0.0     0.0        -        LOST     below-log-start
g2     Stable   30  0.0     0.0        -        -        -
g1     Empty    25  5.0     0.0        5.0      OK       -
"""


def test_frames_without_a_terminal(cli: Cli, cluster: FakeGroupAdmin) -> None:
    def read_on(milliseconds: int) -> None:
        cli.now_ms += milliseconds
        cluster.groups["g1"].offsets[TopicPartition("t1", 1)] = OffsetAndMetadata(75)

    cli.sleep_ms = read_on
    assert cli("top --iterations 2 --interval 5s") == Ran(0, FRAMES, "")


def test_rows_after_the_last_look(cli: Cli) -> None:
    rows = cli("top g1 --iterations 3 -o json").data
    assert [(row["group"], row["lag"], row["verdict"]) for row in rows] == [("g1", 50, "STOP")]


def test_a_group_that_has_members_stalls_and_one_without_has_stopped(cli: Cli) -> None:
    rows = cli("top g1 g2 --iterations 3 -o json").data
    assert [(row["group"], row["verdict"]) for row in rows] == [("g1", "STOP"), ("g2", "STALL")]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_group_that_does_not_exist_is_not_found(cli: Cli, terminal: bool) -> None:
    cli.terminal = terminal
    assert cli("top nosuch") == Ran(4, "", "kgctl: Group 'nosuch' does not exist\n")
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
        ("top --fail-if-verdict stall", "--fail-if options need --iterations N"),
        (
            "top --iterations 3 --fail-if-verdict bad",
            "--fail-if-verdict 'bad' is unknown; known: ok, warn, stall, stop, rewind, lost",
        ),
        ("top --state asleep", "--state 'asleep' is unknown"),
        ("top --interval soon", "--interval: cannot read 'soon'"),
        ("top --sort size", "--sort 'size' is unknown; known: lag, name, rate, drain, verdict"),
    ],
)
def test_usage_errors(cli: Cli, line: str, message: str) -> None:
    ran = cli(line)
    assert (ran.code, message in ran.err, cli.settings) == (2, True, []), ran.err


def test_rates_have_one_digit() -> None:
    read = rounded("rate", 1)
    assert [read(SimpleNamespace(rate=rate)) for rate in (2 / 3, 5.0, None)] == [0.7, 5.0, None]


LONG = "payments-" + 230 * "x" + "-eu"


def add_long(cluster: FakeGroupAdmin) -> None:
    known = cluster.groups["g1"]
    cluster.groups[LONG] = FakeGroup(replace(known.description, group_id=LONG), known.offsets)


def test_a_long_name_leaves_room_for_the_other_columns_and_stands_whole_below(cli: Cli, cluster: FakeGroupAdmin) -> None:
    add_long(cluster)
    cli.terminal = True
    lines = cli("top --iterations 1", variables={"COLUMNS": "100"}).out.splitlines()
    bare = [re.sub("\x1b[^m]*m", "", line).rstrip() for line in lines]
    assert (len(bare[1:-1]), max(map(len, bare[1:-1])) <= 100, bare[-1].endswith(f" is {LONG}")) == (5, True, True), bare


@pytest.mark.parametrize(
    "line", ["top --iterations 1", "list groups --lag", "describe group LONG", "describe group LONG --state"]
)
def test_names_are_cut_on_a_terminal_alone(cli: Cli, cluster: FakeGroupAdmin, line: str) -> None:
    add_long(cluster)
    narrow, line = {"COLUMNS": "100"}, line.replace("LONG", LONG)
    whole = cli(line, variables=narrow).out
    cli.terminal = True
    wide, cut = cli(f"{line} -o wide", variables=narrow).out, cli(line, variables=narrow).out
    assert (LONG in whole, LONG in wide, "…" in whole + wide) == (True, True, False)
    assert (cut.count(LONG), cut.splitlines()[-1].endswith(f" is {LONG}")) == (1, True)


def test_groups_of_a_state_or_a_type(cli: Cli) -> None:
    assert [row["group"] for row in cli("top --state stable --iterations 1 -o json").data] == ["g2"]
    assert [row["group"] for row in cli("top --type share,consumer --iterations 1 -o json").data] == []
    assert cli("top --state stable --iterations 1 -o json").err == ""


@pytest.mark.parametrize("output", ["", " -o json"])
def test_named_groups_that_the_filters_leave_out_are_told(cli: Cli, output: str) -> None:
    told = "--match, --exclude, --state and --type leave out at present: 'g1'"
    for groups in ("g1", "g1 g2"):
        ran = cli(f"top {groups} --state stable --iterations 1{output}")
        assert (ran.code, ran.err.splitlines()) == (0, [told]), ran.err
    ran = cli(f"top g1 g2 nosuch --state stable --iterations 1{output}")
    assert (ran.code, told in ran.err, "'nosuch' does not exist" in ran.err) == (3, True, True)
    assert cli(f"top g2 --state stable --iterations 1{output}").err == ""


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("top g2 --iterations 3 --fail-if-verdict stall -o csv", 6, "group 'g2': STALL"),
        ("top g2 --iterations 3 --fail-if-verdict stall", 6, "group 'g2': STALL"),
        ("top g2 --iterations 3 --fail-if-verdict stop,warn -o csv", 0, ""),
        ("top g2 --iterations 2 --fail-if-verdict stop", 6, "group 'g2': no verdict yet"),
        ("top g2 --iterations 2 --fail-if-verdict stop --allow-unknown", 0, "group 'g2': no verdict yet"),
        ("top g2 --iterations 1 --fail-if-lag-over 29", 6, "group 'g2': total lag 30 is over 29"),
        ("top g2 --iterations 1 --fail-if-lag-over 30", 0, ""),
        ("top g3 --iterations 1 --fail-if-flagged", 6, "below-log-start"),
        ("top --match nosuch --iterations 1 --fail-if-lag-over 30", 4, "no group matches"),
    ],
)
def test_limits_are_held_at_the_last_look(cli: Cli, line: str, code: int, says: str) -> None:
    ran = cli(line)
    assert (ran.code, says in ran.err) == (code, True), ran.err


def test_no_verdict_is_none(cli: Cli) -> None:
    assert [row["verdict"] for row in cli("top g2 --iterations 1 -o json").data] == [None]
    assert cli("top g2 --iterations 1 -o csv").out.splitlines()[1] == "g2,Stable,30,,,,,"


def test_a_verdict_that_a_worse_one_of_another_partition_hides_is_found(cli: Cli, cluster: FakeGroupAdmin) -> None:
    def rewind(_: int) -> None:
        cluster.groups["g2"].offsets[TopicPartition("t1", 1)] = OffsetAndMetadata(80)

    cli.sleep_ms = rewind
    ran = cli("top g2 --iterations 3 --fail-if-verdict stall -o json")
    assert ([row["verdict"] for row in ran.data], ran.code, "group 'g2': STALL" in ran.err) == (["REWIND"], 6, True), ran.err


def test_whoever_has_members_and_stalls_stands_above_groups_without(cli: Cli) -> None:
    rows = cli("top g1 g2 --iterations 3 --sort verdict -o json").data
    assert [(row["group"], row["verdict"]) for row in rows] == [("g2", "STALL"), ("g1", "STOP")]


def test_the_live_view_cuts_long_names_and_tells_the_one_at_the_cursor(cli: Cli, cluster: FakeGroupAdmin) -> None:
    from textual.widgets import DataTable, Static

    from kgctl.cli.environment import Environment
    from kgctl.cli.groups.top_app import TopApp

    add_long(cluster)
    look = TopLook(Session(Environment(now_ms=lambda: 0)), cluster, (), lambda _: True, "name")
    app = TopApp(look, NamedCluster("fake:9092", None, ()), 3_600_000)

    async def play() -> list[str]:
        async with app.run_test(size=(100, 24)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            told = [str(app.query_one("#whole", Static).render())]
            await pilot.press("end", "down", "down", "down")
            await pilot.pause()
            assert app.query_one(DataTable).virtual_size.width <= 100
            return [*told, str(app.query_one("#whole", Static).render())]

    assert asyncio.run(play()) == ["", LONG]


def test_live_view_sorts_filters_and_survives_an_outage(cli: Cli, cluster: FakeGroupAdmin) -> None:
    from textual.widgets import DataTable, Input, Static

    from kgctl.cli.environment import Environment
    from kgctl.cli.groups.top_app import TopApp

    session = Session(Environment(now_ms=lambda: 0))
    look = TopLook(session, cluster, (), lambda _: True, "lag")
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


def test_a_group_that_may_not_be_described_is_not_one_that_does_not_exist(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group_errors["shut"] = error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "not authorised for group 'shut'")
    assert cli("top shut --iterations 1") == Ran(8, "", "kgctl: not authorised for group 'shut'\n")


def test_a_group_that_moves_is_on_no_list_and_is_looked_at(
    cli: Cli, cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeGroupAdmin, "list_groups", lambda *_, **__: Results({}))
    assert [row["lag"] for row in cli("top g1 --iterations 1 -o json").data] == [50]


def test_what_rights_may_hide_is_told_with_each_look(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.own_sight = Sight(all_groups=False, all_topics=False, user="alice")
    commits = "group 'g1': user 'alice' lacks the right DESCRIBE on all topics: commits on others are not shown, nor their lag\n"
    assert cli("top g1 --iterations 2").err == 2 * commits
    assert cli("top --iterations 1").err.startswith("user 'alice' lacks the right DESCRIBE on all groups: there may be groups")
    assert [name for name, _ in cluster.calls].count("sight") == 2
    assert cli("top g1 --iterations 1 --fail-if-lag-over 1000").err.count(commits) == 1
