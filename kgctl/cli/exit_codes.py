"""What each exit code means, and which error leads to it: the only place that knows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import unique

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
from kgctl.model.meanings import MeantNumber


@unique
class ExitCode(MeantNumber):
    """The exit codes of every command. Scripts rely on them: a change of one is a breaking change."""

    OK = 0, "done; all expectations hold"
    FAILED = 1, "failed, or the question was answered with no"
    USAGE = 2, "usage: bad flag, bad file, bad value; nothing was contacted or changed"
    PARTIAL = 3, "partial: some groups or partitions done, some failed or unknown (each named)"
    NOT_FOUND = 4, "not found"
    REFUSED = 5, "refused: the group is active, the file is another cluster's, or the cluster is no longer as the plan says"
    EXPECTATION = 6, "a threshold or an `expect:` did not hold"
    UNREACHABLE = 7, "cluster unreachable, or timed out, with nothing changed"
    AUTH = 8, "not authenticated or not authorised"
    BUG = 9, "an invariant broke: a bug in kgctl or in an assignor under test"
    INTERRUPTED = 130, "interrupted (Ctrl-C); the rows of a change say what was done"
    TERMINATED = 143, "terminated (SIGTERM); the rows of a change say what was done"


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
