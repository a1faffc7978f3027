"""One run of kgctl: its environment, what was given on the command line, and the connection made from both."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import typer

from kgctl.cli.environment import Environment, StopSignals, Waiting
from kgctl.cli.settings import Flags, cluster_reference, connection_settings, secret_warnings, without_properties
from kgctl.errors import Interrupted
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin, LimitsTime
    from kgctl.admin.connect import ConnectionSettings

DESTRUCTIVE = ("delete", "remove", "reset", "migrate", "undo")
"""How the names of commands begin that take something away."""


@frozen_in_order
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
        self.has_begun = False
        """Whether the look before a change is over, and the change itself has begun."""
        self.is_telling = True
        """Whether looks are told while they last."""
        self._held = ExitStack()
        self._admins: Sequence[GroupAdmin] = ()
        self._waiting = Waiting(environment)

    def stop_signals(self) -> StopSignals:
        """What signals say to a change, in force from here on until `close`. The look before it is over."""
        self.end_look()
        self.has_begun = True
        return self._held.enter_context(StopSignals())

    def begin_look(self) -> None:
        """All that is asked of the cluster from here on, until the next time, has one time limit, and what is looked at is told
        (`kgctl.cli.environment`) until `end_look`."""
        from kgctl.wire import CALLS_SHARE, LOOKS_SHARE, Deadline

        share = LOOKS_SHARE if self.is_change else CALLS_SHARE
        for admin in self._limited():
            admin.limit = Deadline(admin.timeout_ms, share)
        if self._admins and self.is_telling:
            self._waiting.begin(self.command, self._progress)

    def end_look(self) -> None:
        """What is done from here on is not told as a look; the time limit is still that of the look."""
        self._waiting.end()

    def end_limit(self) -> None:
        """Each request has a time limit of its own from here on, and nothing is told."""
        self.end_look()
        for admin in self._limited():
            admin.limit = None

    def _limited(self) -> Iterator[LimitsTime]:
        from kgctl.admin import LimitsTime

        return (admin for admin in self._admins if isinstance(admin, LimitsTime))

    @contextmanager
    def telling(self, how_far: Callable[[], str]) -> Iterator[None]:
        """Tell ``how_far`` a change is."""
        self._waiting.begin(self.command, how_far)
        try:
            yield
        finally:
            self._waiting.end()

    def _progress(self) -> str:
        return next(filter(None, (getattr(admin, "progress", "") for admin in self._admins)), "")

    def close(self) -> None:
        """Give the signals back: everything has been told."""
        self._held.close()

    @property
    def is_change(self) -> bool:
        """Whether the command is one that takes something away."""
        return self.command.startswith(DESTRUCTIVE)

    @property
    def command_line(self) -> str:
        """What was typed, for a person to recognise; properties may be secrets, and are left out."""
        return shlex.join(["kgctl", *without_properties(self.argv)])

    def notice(self, line: str) -> None:
        self._waiting.clear()
        self.environment.notice(line)

    @contextmanager
    def connect(self) -> Iterator[GroupAdmin]:
        """The cluster that flags, environment or context name.

        Raises:
            KgctlError: no cluster is named, or it cannot be reached.
        """
        settings = connection_settings(self.flags, self.environment)
        with self.connected(settings, settings) as (admin,):
            yield admin

    @contextmanager
    def connected(self, named: ConnectionSettings, *clusters: ConnectionSettings) -> Iterator[Sequence[GroupAdmin]]:
        """Several clusters at once, of the settings that the user ``named``. A look begins.

        Raises:
            KgctlError: one cannot be reached.
        """
        for line in secret_warnings(self.flags, self.environment, named):
            self.notice(line)
        with self.terminating(), ExitStack() as held:
            self._admins = [held.enter_context(self.environment.connect(each)) for each in clusters]
            self.begin_look()
            try:
                yield self._admins
            finally:
                self.end_look()
                self._admins = ()

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
