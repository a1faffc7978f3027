"""The world a command runs in: streams, variables, folders, clock, and the way to a cluster (tests replace it whole);
what is told to those who wait, and the signals that end a change."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TextIO

from kgctl.errors import Interrupted, UsageError
from kgctl.files import at_home, own_folder

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.admin.connect import ConnectionSettings


def _connect(settings: ConnectionSettings) -> GroupAdmin:
    from kgctl.admin.connect import connect

    return connect(settings)


def write_whole(stream: TextIO, text: str) -> None:
    """Write all of it, through to the operating system, and let handlers of signals run meanwhile.

    With PYTHONUNBUFFERED, as in many container images, CPython drops the rest of a large write to a pipe that a signal has
    interrupted, and raises nothing: rows of a change would be missing for a Ctrl-C that was meant to end nothing.
    """
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    stream.flush()
    if raw is None or os.linesep != "\n":
        stream.write(text)
        stream.flush()
        return
    left = memoryview(text.encode(stream.encoding, stream.errors or "strict"))
    while left:
        written = raw.write(left)
        if written is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        left = left[written:]


def leave(stream: TextIO) -> None:
    """Let what is still written to a stream go nowhere; Python flushes it once more at exit, and complains."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _program() -> str:
    called = sys.argv[0]
    if Path(called).name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m kgctl"
    found = shutil.which("kgctl")
    return "kgctl" if found and Path(found).absolute() == Path(called).absolute() else shlex.quote(called)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _sleep_ms(milliseconds: int) -> None:
    time.sleep(milliseconds / 1000)


VARIABLES = (
    *("KGCTL_BOOTSTRAP_SERVER", "KGCTL_ZOOKEEPER", "KGCTL_CONTEXT", "KGCTL_CONFIG", "KGCTL_BACKUP_DIR", "KGCTL_WAREHOUSE"),
    *("KGCTL_WEBHOOK", "KGCTL_WEBHOOK_HEADER", "KGCTL_CACHE_DIR", "KGCTL_SPARK_ARCHIVE", "KGCTL_KAFKA_LIBS", "KGCTL_DEBUG"),
)


def nearest_variable(name: str) -> str | None:
    """Return the one of `VARIABLES` that another name was probably meant to be."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, VARIABLES, n=1, cutoff=0.8)), None)


@dataclass(frozen=True)
class Environment:
    """Everything that a command may touch outside of itself.

    ``connect`` is called at most once a command; what it returns is closed by the command. ``now_ms`` is wall-clock time in
    milliseconds since the epoch.
    """

    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    stderr: TextIO = field(default_factory=lambda: sys.stderr)
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    connect: Callable[[ConnectionSettings], GroupAdmin] = _connect
    now_ms: Callable[[], int] = _now_ms
    sleep_ms: Callable[[int], None] = _sleep_ms

    @property
    def program(self) -> str:
        """Return the command by which the user calls kgctl from where they are."""
        return _program()

    @property
    def is_own_process(self) -> bool:
        """Whether the process is kgctl's, and no test's or program's that runs a command inside of itself."""
        return self.variables is os.environ

    @property
    def stdout_is_terminal(self) -> bool:
        return self.stdout.isatty()

    @property
    def columns(self) -> int | None:
        """How wide the terminal is; None where stdout is none, or none that tells."""
        told = self.variables.get("COLUMNS", "")
        if told.isdigit() or not self.stdout_is_terminal:
            return int(told) if self.stdout_is_terminal else None
        with suppress(OSError, ValueError):
            return os.get_terminal_size(self.stdout.fileno()).columns or None
        return None

    def leave_stdout(self) -> None:
        """Let what is still written to stdout, whose reader has gone, go nowhere."""
        leave(self.stdout)

    def variable(self, name: str) -> str | None:
        """What one of `VARIABLES` says; None where it is not set, or empty.

        Raises:
            UsageError: another one is nearly called so, which would be passed over in silence.
        """
        for other in self.variables:
            if other.startswith("KGCTL_") and other not in VARIABLES and nearest_variable(other) == name:
                raise UsageError(f"{other} is no variable of kgctl; did you mean {name}?")
        return self.variables.get(name) or None

    @property
    def config_file(self) -> Path:
        """Where contexts are kept; see `kgctl.admin.connect.config_path`. Raises as `variable`."""
        from kgctl.admin.connect import config_path

        self.variable("KGCTL_CONFIG")
        return config_path(self.variables)

    @property
    def undo_folder(self) -> Path:
        """Where changes save what they take away: KGCTL_BACKUP_DIR, else ``backups`` in the user's state folder for kgctl."""
        if path := self.variable("KGCTL_BACKUP_DIR"):
            return at_home(path)
        return own_folder("state") / "backups"

    @property
    def warehouse(self) -> str:
        """Where the history of groups is kept: KGCTL_WAREHOUSE, a folder or a URL, else a folder of the user's state."""
        if found := self.variable("KGCTL_WAREHOUSE"):
            return found
        return str(own_folder("state") / "warehouse")

    def notice(self, line: str) -> None:
        self.tell(f"{line}\n")

    def tell(self, text: str) -> None:
        """Write to stderr; where nobody reads it any more, or its disk is full, the text is lost, and nothing else."""
        try:
            write_whole(self.stderr, text)
        except OSError:
            leave(self.stderr)


TOLD_ON_TERMINAL_S, TOLD_S = 1.0, 30.0
"""How often it is told."""


class Waiting:
    """Tells between `begin` and `end`: on a terminal each second in a line that is gone afterwards, elsewhere in a line every 30
    seconds."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._is_terminal = environment.stderr.isatty()
        self._turn = threading.Lock()
        self._has_line = False
        self._running = ExitStack()

    def begin(self, command: str, how_far: Callable[[], str]) -> None:
        """Count from now on. ``how_far`` says how far ``command`` is, "" where nobody can tell."""
        self.end()
        is_over = threading.Event()
        thread = threading.Thread(target=self._tell, args=(is_over, command, how_far), daemon=True)
        thread.start()
        self._running.callback(thread.join)
        self._running.callback(is_over.set)

    def end(self) -> None:
        """Tell nothing any more."""
        self._running.close()
        self.clear()

    def clear(self) -> None:
        """Take the line away from the terminal, where another is to stand."""
        with self._turn:
            if self._has_line:
                self._write("")
                self._has_line = False

    def _tell(self, is_over: threading.Event, command: str, how_far: Callable[[], str]) -> None:
        begun_s, tell = time.monotonic(), self._write if self._is_terminal else self._environment.notice
        while not is_over.wait(TOLD_ON_TERMINAL_S if self._is_terminal else TOLD_S):
            line = f"{command}: {time.monotonic() - begun_s:.0f} s" + "".join(f", {text}" for text in (how_far(),) if text)
            with self._turn:
                self._has_line = self._is_terminal
                tell(line)

    def _write(self, line: str) -> None:
        self._environment.tell(f"\r\x1b[K{line}")


@contextmanager
def handling(handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], object]]) -> Iterator[None]:
    """Signals have these handlers inside of the block."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - what a handler is given
    """Handle another signal as Ctrl-C."""
    raise KeyboardInterrupt


AGAIN_S = 0.5
"""How soon the end is told again: an exception that falls into a callback of the garbage collector or of C code is lost."""
GRACE_S = 2.0
"""How long the request under way may take after the first signal; a second signal ends it at once."""
AT_ONCE_S = 0.001
MOST_LATE = 2
"""So many signals that come after the change do not keep its rows from being told; the next one does."""


class StopSignals:
    """A `kgctl.admin.changes.StopRequest` that is in force inside of its ``with`` block, where it has the two signals to itself.

    The block lasts until the rows of the change are told (`kgctl.cli.session.Session.stop_signals`): a signal that comes when the
    change is over ends nothing.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.through: set[Any] = set()
        self._is_over = False
        self._late = 0
        self._before: dict[int, Any] = {}

    def allow(self, seconds: float) -> None:
        """Raise `Interrupted` after this time; 0: from here on never, as the change is over."""
        self._is_over = not seconds
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S if seconds else 0)

    def went_through(self, items: Sequence[Any]) -> None:
        """Keep the items, or of pairs the first of each, to be counted."""
        self.through.update(item[0] if isinstance(item, tuple) else item for item in items)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handlers = {signal.SIGINT: self._asked, signal.SIGTERM: self._asked, signal.SIGALRM: self._time_is_up}
            self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        if self._is_over:
            self._late += 1
            if self._late > MOST_LATE:
                raise Interrupted
            return
        is_first = self.signal is None
        self.signal = self.signal or number
        self.allow(GRACE_S if is_first else AT_ONCE_S)

    def _time_is_up(self, _number: int, _frame: FrameType | None) -> None:
        if not self._is_over:
            raise Interrupted
