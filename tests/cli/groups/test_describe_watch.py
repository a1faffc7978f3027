"""``kgctl describe group --watch``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kgctl.errors import TimedOutError, UnreachableError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.groups.test_describe_group import G1, G1_NOTICES
from tests.cli.harness import Cli, Ran

LATER = G1.replace(" 50             100   50", " 75             100   25")
LATER_NOTICES = G1_NOTICES.replace("lag 50", "lag 25")


def meanwhile(cli: Cli, *acts: Callable[[], object]) -> list[int]:
    """Call these between the frames, one after the other; returns how long each pause was."""
    pauses: list[int] = []

    def sleep_ms(milliseconds: int) -> None:
        cli.now_ms += milliseconds
        acts[len(pauses)]()
        pauses.append(milliseconds)

    cli.sleep_ms = sleep_ms
    return pauses


def read_on(cluster: FakeGroupAdmin) -> None:
    cluster.groups["g1"].offsets[TopicPartition("t1", 1)] = OffsetAndMetadata(75)


def test_frames_have_a_line_with_their_time(cli: Cli, cluster: FakeGroupAdmin) -> None:
    pauses = meanwhile(cli, lambda: read_on(cluster))
    first, second = f"2024-01-01T00:00:00.000Z  fake:9092\n{G1}", f"2024-01-01T00:00:02.000Z  fake:9092\n{LATER}"
    ran = cli("describe group g1 --watch --iterations 2")
    assert (ran, pauses) == (Ran(0, f"{first}\n{second}", G1_NOTICES + LATER_NOTICES), [2000])


def test_a_terminal_is_drawn_anew(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli.terminal = True
    pauses = meanwhile(cli, lambda: read_on(cluster))
    ran = cli("describe group g1 --state --watch --interval 500ms --iterations 2")
    _, first, second = ran.out.split("\x1b[H\x1b[2J\x1b[3J")
    assert first.replace("00:00:00.000Z", "00:00:00.500Z") == second
    assert first.startswith("2024-01-01T00:00:00.000Z  fake:9092\n")
    assert pauses == [500]


def test_rows_after_the_last_look(cli: Cli, cluster: FakeGroupAdmin) -> None:
    meanwhile(cli, lambda: None, lambda: read_on(cluster))
    assert cli("describe group g1 --watch --iterations 3 -o csv").csv[1]["current_offset"] == "75"
    meanwhile(cli, lambda: None)
    ran = cli("describe group g1 --watch --iterations 2 -o json")
    assert (ran.json["status"], ran.json["summary"]["lag"]) == ("ok", 25)


def test_members_and_limits_are_those_of_the_last_look(cli: Cli, cluster: FakeGroupAdmin) -> None:
    meanwhile(cli, lambda: cluster.group("g2", {}, []))
    assert cli("describe group g2 --members --watch --iterations 2").err == "Group 'g2' has no active members.\n"
    for limit, codes in (("60", (0, 0)), ("30", (6, 0))):
        cluster.groups["g1"].offsets[TopicPartition("t1", 1)] = OffsetAndMetadata(50)
        line = f"describe group g1 --allow-unknown --fail-if-lag-over {limit}"
        meanwhile(cli, lambda: read_on(cluster))
        assert (cli(line).code, cli(f"{line} --watch --iterations 2").code) == codes


def test_a_lost_connection_is_told_once_and_watching_goes_on(cli: Cli, cluster: FakeGroupAdmin) -> None:
    def lose() -> None:
        cluster.failure = TimedOutError("no answer")

    def find() -> None:
        cluster.failure = None

    meanwhile(cli, lose, lose, find, lose)
    ran = cli("describe group g1 --watch --iterations 4")
    assert (ran.code, ran.err) == (0, f"{G1_NOTICES}kgctl: no answer; trying again\n{G1_NOTICES}")
    assert [line for line in ran.out.splitlines() if "Z  " in line] == [
        "2024-01-01T00:00:00.000Z  fake:9092",
        "2024-01-01T00:00:06.000Z  fake:9092",
    ]


def test_the_exit_code_is_that_of_the_last_look(cli: Cli, cluster: FakeGroupAdmin) -> None:
    def lose() -> None:
        cluster.failure = TimedOutError("no answer")

    meanwhile(cli, lose)
    assert cli("describe group g1 --watch --iterations 2").code == 7
    cluster.failure = None
    meanwhile(cli, lose)
    ran = cli("describe group g1 --watch --iterations 2 -o json")
    assert (ran.code, ran.data, [error["message"] for error in ran.json["errors"]]) == (7, [], ["no answer"])


def test_a_group_that_goes_away_is_one_line(cli: Cli, cluster: FakeGroupAdmin) -> None:
    meanwhile(cli, lambda: cluster.groups.pop("g1"))
    ran = cli("describe group g1 --watch --iterations 2")
    assert (ran.code, ran.err) == (4, f"{G1_NOTICES}kgctl: Group 'g1' does not exist; trying again\n")


@pytest.mark.parametrize("terminal", [False, True])
def test_what_fails_at_the_first_look_ends_it(cli: Cli, cluster: FakeGroupAdmin, terminal: bool) -> None:
    cli.terminal = terminal
    assert cli("describe group nope --watch") == Ran(4, "", "kgctl: Group 'nope' does not exist\n")
    cluster.failure = TimedOutError("no answer")
    assert cli("describe group g1 --watch") == Ran(7, "", "kgctl: no answer\n")
    cli.connect_failure = UnreachableError("nobody there")
    assert cli("describe group g1 --watch") == Ran(7, "", "kgctl: nobody there\n")


def test_ctrl_c_ends_it(cli: Cli) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    meanwhile(cli, lambda: None, interrupt)
    ran = cli("describe group g1 --watch")
    assert (ran.code, ran.out.count("GROUP")) == (130, 2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--iterations 2", "--iterations belongs to --watch"),
        ("--interval 2s", "--interval belongs to --watch"),
        ("--watch --interval soon", "--interval: cannot read 'soon'"),
        ("--watch -o json", "-o json needs --iterations N"),
        ("--watch --iterations 0", "0 is not in the range x>=1"),
    ],
)
def test_usage_errors(cli: Cli, line: str, message: str) -> None:
    ran = cli(f"describe group g1 {line}")
    assert (ran.code, message in ran.err, cli.settings) == (2, True, []), ran.err
