"""What each exit code means, and which error leads to it: the only place that knows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, unique

from kgctl.errors import (
    AuthError,
    ExpectationError,
    InvariantViolation,
    KgctlError,
    MisuseError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    UsageError,
)


@unique
class ExitCode(IntEnum):
    """The exit codes of every command. Scripts rely on them: a change of one is a breaking change."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    NOT_FOUND = 4
    REFUSED = 5
    EXPECTATION = 6
    UNREACHABLE = 7
    AUTH = 8
    BUG = 9
    INTERRUPTED = 130
    TERMINATED = 143

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done; all expectations hold",
    ExitCode.FAILED: "failed, or the question was answered with no",
    ExitCode.USAGE: "usage: bad flag, bad file, bad value; nothing was contacted or changed",
    ExitCode.PARTIAL: "partial: some groups or partitions done, some failed or unknown (each named)",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.REFUSED: "refused: the group is active, the file is another cluster's, or the cluster is no longer as the plan says",
    ExitCode.EXPECTATION: "a threshold or an `expect:` did not hold",
    ExitCode.UNREACHABLE: "cluster unreachable, or timed out, with nothing changed",
    ExitCode.AUTH: "not authenticated or not authorised",
    ExitCode.BUG: "an invariant broke: a bug in kgctl or in an assignor under test",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C); the rows of a change say what was done",
    ExitCode.TERMINATED: "terminated (SIGTERM); the rows of a change say what was done",
}

EXIT_CODES: tuple[tuple[type[KgctlError], ExitCode], ...] = (
    (UsageError, ExitCode.USAGE),
    (MisuseError, ExitCode.USAGE),
    (NotFoundError, ExitCode.NOT_FOUND),
    (RefusedError, ExitCode.REFUSED),
    (ExpectationError, ExitCode.EXPECTATION),
    (UnreachableError, ExitCode.UNREACHABLE),
    (AuthError, ExitCode.AUTH),
    (InvariantViolation, ExitCode.BUG),
)


def exit_code_of(error: KgctlError) -> ExitCode:
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), ExitCode.FAILED)


def exit_code_of_all(errors: Sequence[KgctlError], *, something_done: bool) -> ExitCode:
    """The exit code of a command that met ``errors`` and, or not, did or learnt something besides.

    An expectation that does not hold wins: it is what the caller asked about. With nothing done, errors that agree give their own
    code, errors that do not give FAILED.
    """
    codes = {exit_code_of(error) for error in errors}
    if not codes:
        return ExitCode.OK
    if ExitCode.EXPECTATION in codes:
        return ExitCode.EXPECTATION
    if something_done:
        return ExitCode.PARTIAL
    return codes.pop() if len(codes) == 1 else ExitCode.FAILED
