"""One run of kgctl: its environment, what was given on the command line, and the connection made from both."""

from __future__ import annotations

import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from kgctl.cli.environment import Environment, StopSignals
from kgctl.cli.settings import Flags, cluster_reference, connection_settings, secret_warnings, without_properties
from kgctl.errors import Interrupted

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin


TOLD_ON_TERMINAL_S, TOLD_S = 1.0, 30.0
"""How often is told how long a command has waited, and how far it is."""


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """The cluster of a command: how the user knows it, its own id where it has one, and the flags that name it again."""

    label: str
    cluster_id: str | None
    arguments: tuple[str, ...]

    @property
    def identity(self) -> str:
        """What tells it from other clusters: its id, or its address where it has none."""
        return self.cluster_id or self.label

    def __str__(self) -> str:
        return f"{self.label} (cluster id {self.cluster_id})" if self.cluster_id else self.label


class Session:
    """Lives as long as one command. Commands get theirs with `session_of`; ``command_line`` is what the user typed."""

    def __init__(self, environment: Environment, argv: Sequence[str] = ()) -> None:
        self.environment = environment
        self.flags = Flags()
        self.command = ""
        self.ended_by = signal.SIGINT
        """The signal that ends the command, where one does."""
        self.argv = argv
        self._held = ExitStack()
        self._admin: GroupAdmin | None = None

    def stop_signals(self) -> StopSignals:
        """What signals say to a change, in force from here on until `close`. The change limits its time itself."""
        self.end_limit()
        return self._held.enter_context(StopSignals())

    def begin_limit(self) -> None:
        """All that is asked of the cluster from here on, until the next time or a change, has one time limit."""
        self._limit(is_one=True)

    def end_limit(self) -> None:
        """Each request has a time limit of its own from here on."""
        self._limit(is_one=False)

    def _limit(self, *, is_one: bool) -> None:
        from kgctl.admin import LimitsTime
        from kgctl.wire import Deadline

        if isinstance(self._admin, LimitsTime):
            self._admin.limit = Deadline(self._admin.timeout_ms) if is_one else None

    def close(self) -> None:
        """Give the signals back: everything has been told."""
        self._held.close()

    @property
    def command_line(self) -> str:
        """What was typed, for a person to recognise; properties may be secrets, and are left out."""
        return shlex.join(["kgctl", *without_properties(self.argv)])

    def notice(self, line: str) -> None:
        self.environment.notice(line)

    @contextmanager
    def waiting(self, how_far: Callable[[], str] | None = None) -> Iterator[None]:
        """Tell how long the cluster has been waited for, and ``how_far`` it has got, looking where that is None: on a terminal
        each second in a line that is gone afterwards, elsewhere in a line every 30 seconds."""
        stderr, how_far = self.environment.stderr, how_far or (lambda: getattr(self._admin, "progress", ""))
        is_terminal, is_over, begun_s = stderr.isatty(), threading.Event(), time.monotonic()

        def tell() -> None:
            has_told = False
            while not is_over.wait(TOLD_ON_TERMINAL_S if is_terminal else TOLD_S):
                line = f"{self.command}: {time.monotonic() - begun_s:.0f} s" + "".join(
                    f", {text}" for text in (how_far(),) if text
                )
                if is_terminal:
                    stderr.write(f"\r\x1b[K{line}")
                    stderr.flush()
                    has_told = True
                else:
                    self.notice(line)
            if has_told:
                stderr.write("\r\x1b[K")
                stderr.flush()

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    @contextmanager
    def connect(self) -> Iterator[GroupAdmin]:
        """The cluster that flags, environment or context name.

        Raises:
            KgctlError: no cluster is named, or it cannot be reached.
        """
        settings = connection_settings(self.flags, self.environment)
        for line in secret_warnings(self.flags, self.environment, settings):
            self.notice(line)
        with self.terminating(), self.environment.connect(settings) as admin:
            self._admin = admin
            self.begin_limit()
            yield admin

    @contextmanager
    def terminating(self) -> Iterator[None]:
        """Let SIGTERM end the command as Ctrl-C does, with a word of its own, where nobody else has a use for it."""
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            yield
            return

        def terminate(number: int, _: object) -> None:
            self.ended_by = signal.Signals(number)
            raise Interrupted

        signal.signal(signal.SIGTERM, terminate)
        try:
            yield
        finally:
            if signal.getsignal(signal.SIGTERM) is terminate:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def cluster(self, admin: GroupAdmin) -> NamedCluster:
        """The cluster that `connect` leads to, asked for its id.

        Raises:
            KgctlError: it cannot be reached.
        """
        label, arguments = cluster_reference(self.flags, self.environment)
        return NamedCluster(label, admin.cluster_id(), arguments)


def session_of(ctx: typer.Context) -> Session:
    session = ctx.obj
    assert isinstance(session, Session)
    return session
