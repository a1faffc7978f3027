"""Who waits is told so, and how far the command is: each second on a terminal, each half a minute elsewhere."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kgctl.cli.environment import Environment, Waiting
from kgctl.cli.selection import confirm
from kgctl.cli.session import Session
from kgctl.errors import UnreachableError
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, Terminal
from tests.support.patience import PATIENCE_S

ASKED = ("cluster_id", "list_groups", "describe_groups", "list_committed_offsets", "list_log_offsets")


class Told:
    """Notes what is told while a command runs; calls of ``slow_down`` last until something was."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch, self._event = monkeypatch, threading.Event()
        self.lines: list[str] = []
        self.waits: list[bool] = []
        monkeypatch.setattr("kgctl.cli.environment.TOLD_S", 0.01)

        def notice(environment: Environment, line: str) -> None:
            environment.stderr.write(f"{line}\n")
            self.lines.append(line)
            self._event.set()

        monkeypatch.setattr(Environment, "notice", notice)

    def slow_down(self, cluster: FakeGroupAdmin, *names: str) -> None:
        for name in names:
            self._patch.setattr(cluster, name, self._late(getattr(cluster, name)))

    def _late(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, **options: Any) -> Any:
            self._event.clear()
            self.waits.append(self._event.wait(5))
            return ask(*args, **options)

        return asked


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    return Told(monkeypatch)


@pytest.mark.parametrize(
    "line",
    [
        "list groups --lag",
        "describe group g1",
        "peek g1",
        "diff-offsets g1 g3",
        "undo last",
        "top --iterations 2",
        "top g1 --iterations 1 --fail-if-lag-over 5",
        "remove-members g2 --all --dry-run",
        "reset-offsets --match g1 --all-topics --to-latest",
        "delete-groups --match g1 --dry-run",
        "delete-offsets --match g1 --topic t1 --dry-run",
    ],
)
def test_whoever_waits_for_a_look_is_told_so_in_a_pipe_too(cli: Cli, cluster: FakeGroupAdmin, told: Told, line: str) -> None:
    """Whatever it is that the cluster does not answer first."""
    assert cli("reset-offsets g3 --all-topics --to-latest --execute").code == 0
    told.slow_down(cluster, *ASKED)
    ran = cli(line)
    assert (bool(told.waits), all(told.waits)) == (True, True), ran.err


def test_a_migration_looks_at_both_sides(cli: Cli, cluster: FakeGroupAdmin, told: Told) -> None:
    """The side that is no ZooKeeper here refuses the look in the end."""
    old = FakeGroupAdmin()
    cli.connect = lambda settings: old if settings.zookeeper else cluster
    told.slow_down(old, "list_groups")
    told.slow_down(cluster, "cluster_id")
    ran = cli("migrate-offsets --zookeeper zk:2181 --bootstrap-server fake:9092 --match old")
    assert told.waits == [True, True], ran.err


@pytest.mark.parametrize(
    ("line", "far"),
    [
        ("reset-offsets g1 g3 --all-topics --to-latest --execute --no-backup", "0 of 2 groups"),
        ("delete-groups g1 g3 --yes --no-backup", "0 of 2 groups"),
        ("delete-offsets g1 g3 --topic t1:0,1 --topic t2 --yes --no-backup", "0 of 2 groups"),
        ("remove-members g2 --all --yes", "0 of 2 members"),
    ],
)
def test_long_work_counts_how_far_it_is_in_a_pipe_too(cli: Cli, cluster: FakeGroupAdmin, told: Told, line: str, far: str) -> None:
    told.slow_down(cluster, "list_committed_offsets", "remove_members")
    assert cli(line).code in (0, 3)
    assert any(text.endswith(f" s, {far}") for text in told.lines), told.lines


def test_nobody_is_told_while_a_question_stands(cli: Cli, cluster: FakeGroupAdmin, told: Told) -> None:
    so_far: list[int] = []

    def while_asked() -> None:
        so_far.append(len(told.lines))
        threading.Event().wait(0.1)
        so_far.append(len(told.lines))

    told.slow_down(cluster, "list_groups")
    cli.while_asked = while_asked
    assert cli("delete-groups --match g1 --no-backup", "y\n").code in (0, 3)
    assert (so_far[0], so_far[0] > 0) == (so_far[1], True)


def test_nobody_is_told_between_two_looks_of_top(cli: Cli, told: Told) -> None:
    so_far: list[int] = []

    def sleep_ms(_: int) -> None:
        so_far.append(len(told.lines))
        threading.Event().wait(0.1)
        so_far.append(len(told.lines))

    cli.sleep_ms = sleep_ms
    assert cli("top --iterations 2").code == 0
    assert so_far[0] == so_far[1]


def test_nothing_is_told_after_a_command_that_failed(cli: Cli, told: Told, cluster: FakeGroupAdmin) -> None:
    cluster.failure = UnreachableError("nobody is there")
    cli("list groups")
    before = list(told.lines)
    threading.Event().wait(0.1)
    assert told.lines == before


def test_nothing_is_told_after_a_question_about_no_cluster(cli: Cli, told: Told) -> None:
    session = Session(Environment(stdin=Terminal("y\n"), stderr=io.StringIO()))
    confirm(session, "Remove the tables?", yes=False)
    threading.Event().wait(0.1)
    assert told.lines == []


def test_on_a_terminal_one_line_is_written_again_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.cli.environment.TOLD_ON_TERMINAL_S", 0.01)
    has_looked = threading.Event()

    def how_far() -> str:
        has_looked.set()
        return "half way"

    err = Terminal()
    waiting = Waiting(replace(Environment(), stderr=err))
    waiting.begin("peek", how_far)
    assert has_looked.wait(PATIENCE_S)
    while "half way" not in err.getvalue():
        pass
    waiting.end()
    shown = err.getvalue()
    assert shown.startswith("\r\x1b[Kpeek: 0 s, half way")
    assert (shown.endswith("\r\x1b[K"), "\n" in shown) == (True, False)
    waiting.end()
    assert err.getvalue() == shown


def test_who_never_waited_sees_nothing() -> None:
    for err in (io.StringIO(), Terminal()):
        waiting = Waiting(replace(Environment(), stderr=err))
        waiting.begin("peek", lambda: "")
        waiting.end()
        assert err.getvalue() == ""
