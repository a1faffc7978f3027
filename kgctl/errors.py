"""The errors kgctl raises, as one tree.

::

    KgctlError
    +-- UsageError             exit 2   a bad flag, file or value; nothing was contacted or changed
    +-- NotFoundError          exit 4   a group, topic, partition or file is not there
    +-- RefusedError           exit 5   the group is active, or the cluster is no longer as the plan says
    +-- ExpectationError       exit 6   a threshold or an expectation did not hold
    +-- UnreachableError       exit 7   the cluster does not answer, or not in time
    |   +-- TimedOutError
    +-- AuthError              exit 8   not authenticated or not authorised
    +-- UnsupportedError       exit 1   the cluster, or this backend, cannot do it
    +-- BrokerError            exit 1   the cluster answered with another error
    |   +-- CommitError
    +-- MisuseError            exit 2   the library is used in a way that cannot work: closed, too late, in the wrong order
    |   +-- ClosedError
    |   +-- GenerationEnded
    +-- StorageError           exit 1   a data folder cannot be read or written
    |   +-- DamagedError                what is in it is not what was written
    +-- InvariantViolation     exit 9   a bug in kgctl or in an assignor under test
        +-- UserCodeError               what was handed in raised, or answered what it may not; its exception is the cause

Failures of one group or one partition among several are data (`kgctl.results`), not exceptions. Each class has a stable
``slug``: the ``code`` of an error in machine-readable output that has no code of Kafka's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar


class KgctlError(Exception):
    """Base of every error that kgctl explains to its user in one line."""

    slug: ClassVar[str] = "ERROR"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        group: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.slug
        self.group = group
        self.topic = topic
        self.partition = partition

    @property
    def each(self) -> Sequence[KgctlError]:
        """Return what is told of it, one error after the other: itself, or each of the things that are wrong."""
        return (self,)


class Interrupted(BaseException):
    """A signal ends the process although a request is under way. Like KeyboardInterrupt: no error, not to be caught as one."""


class UsageError(KgctlError):
    """The command line or a file given by the user is wrong; nothing was contacted or changed."""

    slug = "USAGE"


class NotFoundError(KgctlError):
    """The thing named does not exist."""

    slug = "NOT_FOUND"


class RefusedError(KgctlError):
    """Doing it now would harm: the group is active, or the cluster changed since the plan was made."""

    slug = "REFUSED"


class ExpectationError(KgctlError):
    """A threshold or an expectation did not hold."""

    slug = "EXPECTATION_FAILED"


class UnreachableError(KgctlError):
    """The cluster cannot be reached.

    ``nothing_sent`` is True where a request for a change surely never left; ``is_lost`` where an open connection broke, and
    another may hold; ``is_lasting`` where asking again is of no use. ``may_want_login``: it broke as listeners do that want SASL.
    ``unsent`` are the keys of several requests whose own surely never left.
    """

    slug = "UNREACHABLE"
    nothing_sent = False
    unsent: Collection[object] = ()
    is_lost = False
    is_lasting = False
    may_want_login = False


class TimedOutError(UnreachableError):
    """The cluster did not answer within the time limit."""

    slug = "TIMED_OUT"


class AuthError(KgctlError):
    """The cluster refuses these credentials, or this user may not do it."""

    slug = "NOT_AUTHORISED"


class UnsupportedError(KgctlError):
    """This cluster or this backend has no such operation."""

    slug = "UNSUPPORTED"


class BrokerError(KgctlError):
    """The cluster answered with an error of its own; ``code`` is Kafka's name for it (see `kgctl.ErrorCode`)."""

    slug = "BROKER_ERROR"


class CommitError(BrokerError):
    """A commit was refused, whole or in part. ``errors`` has Kafka's error name for each partition that was not stored."""

    slug = "COMMIT_FAILED"

    def __init__(self, message: str, *, errors: Mapping[object, str], code: str | None = None, group: str | None = None) -> None:
        super().__init__(message, code=code, group=group)
        self.errors = errors


class MisuseError(KgctlError):
    """A caller of the library did something that cannot work; the message says what to do instead."""

    slug = "MISUSE"


class ClosedError(MisuseError):
    """The object was closed before."""

    slug = "CLOSED"


class GenerationEnded(MisuseError):  # noqa: N818 - says what happened; often nobody erred
    """The generation is over, and its partitions may be another member's by now."""

    slug = "GENERATION_ENDED"


class StorageError(KgctlError):
    """The data folder of an embedded coordinator cannot be read or written: damaged, read-only, disk full."""

    slug = "STORAGE_ERROR"


class DamagedError(StorageError):
    """What a data folder holds is not what was written to it: something is lost, exchanged or altered."""

    slug = "DAMAGED"


class InvariantViolation(KgctlError):  # noqa: N818 - says what was broken, not who erred
    """Something that must always hold does not: a bug, never a user's mistake.

    ``story`` holds the recent history of the group concerned, oldest line first.
    """

    slug = "INVARIANT_VIOLATION"

    def __init__(self, message: str, *, group: str | None = None, story: tuple[str, ...] = ()) -> None:
        super().__init__(message, group=group)
        self.story = story

    def __str__(self) -> str:
        """The message and the story below it, for tracebacks."""
        return "\n  ".join((self.message, *self.story))


class UserCodeError(InvariantViolation):
    """What a program handed in (an assignor, a maker of ids) raised, or answered what it may not.

    The message names it, and file and line of what it raised; the exception itself is ``__cause__``.
    """

    slug = "USER_CODE"


@contextmanager
def users_code(
    what: str,
    kind: Callable[[str], KgctlError] = UserCodeError,
    *,
    lets_by: tuple[type[Exception], ...] = (),
    called: object = None,
) -> Iterator[None]:
    """Inside the block code of the user's runs: what it raises is told as ``what``'s, with its place, and is the cause.

    ``lets_by``: what it may raise, and is not told otherwise. An exception of kgctl's own, where no line of the user's stood
    between, is let by as well: that is no fault of the user's. ``called``: the function whose place stands in for the line.
    """
    try:
        yield
    except (Exception, SystemExit) as error:  # in a thread, or a loop, nobody would hear of sys.exit()
        if isinstance(error, (UserCodeError, *lets_by)):
            raise
        place = _users_place(error)
        if place is None and kind is UserCodeError:
            raise
        where = f" ({place})" if place else defined_at(called)
        raise kind(f"{what} failed{where}: {type(error).__name__}: {error}") from error


def _users_place(error: BaseException) -> str | None:
    """File and line of the user's that an exception comes from; None where there is none among its frames."""
    home, found, file = __file__.removesuffix("errors.py"), None, ""
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(home) and (not file or name == file):
            file, found = name, f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def defined_at(function: object) -> str:
    """`` (FILE:LINE)`` of a function or method, for a message about what it answered; "" where it has no Python code."""
    code = getattr(function, "__code__", None)
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"


def did_you_mean(word: str, known: Iterable[str], *, at_most: int = 1, quoted: bool = False) -> str:
    """``; did you mean members?``, for the end of a message about a word that is not known; "" where nothing is near."""
    from difflib import get_close_matches  # only mistakes pay for it

    lowered = {name.lower(): name for name in known}
    near = [lowered[match] for match in get_close_matches(word.lower(), lowered, n=at_most)]
    return f"; did you mean {' or '.join(typed(name) if quoted else name for name in near)}?" if near else ""


def plural(count: int, noun: str) -> str:
    """``1 group``, ``3,200 groups``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_few(names: Sequence[str], most: int) -> str:
    """``a, b and 7 more``."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def typed(name: str) -> str:
    """The name in quotes; where it has characters that no message shows, as bash and zsh take it back: ``$'x\\ttab'``."""
    if name.isprintable():
        return repr(name)
    escapes = {"\\": "\\\\", "'": "\\'"}
    return f"$'{''.join(escapes.get(char) or (char if char.isprintable() else _escape(char)) for char in name)}'"


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x80 else f"\\U{number:08x}"
