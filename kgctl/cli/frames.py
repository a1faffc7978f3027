"""Results that are shown again and again: frames of text, or the rows after the last look."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgctl.admin.connect import parse_timeout_ms
from kgctl.cli.render import RENDERERS, printable
from kgctl.cli.report import OutputFormat, Report, error_line
from kgctl.cli.session import Session
from kgctl.errors import InvariantViolation, KgctlError, UsageError

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def parse_interval_ms(text: str) -> int:
    """The span between two looks. Raises UsageError."""
    try:
        return parse_timeout_ms(text)
    except UsageError as error:
        raise UsageError(error.message.replace("--timeout", "--interval")) from None


def is_shown_in_frames(session: Session, iterations: int | None) -> bool:
    """Whether the output is for people, and so shown at each look; other formats have the rows after the last.

    Raises:
        UsageError: there is no last look.
    """
    output = session.flags.output or OutputFormat.TABLE
    if not output.is_for_people and iterations is None:
        raise UsageError(f"-o {output.value} needs --iterations N: rows are written after the last look")
    return output.is_for_people


@dataclass(frozen=True)
class Frames:
    """Looks ``iterations`` times, or until it is interrupted, and shows each report under its ``title``.

    ``look`` may raise KgctlError: at the first look that is the command's own error, later one line on stderr, once until a look
    works again. ``wait`` returns when the next look is due. ``redraws``: each frame takes the place of the one before.
    """

    session: Session
    look: Callable[[], Report]
    title: Callable[[], str]
    wait: Callable[[], None]
    iterations: int | None
    redraws: bool = False

    def run(self) -> Report | int:
        """The exit code of the last look, or its report where the format is not for people.

        Raises:
            KgctlError: nothing could be learnt at the first look.
        """
        is_table = is_shown_in_frames(self.session, self.iterations)
        gc.enable()  # commands that end soon do without
        report = self._looked()
        if _shows_nothing(report):
            return report
        number, is_lost = 1, False
        while True:
            if is_table and not is_lost and (unwritten := self._show(report, number)) is not None:
                return unwritten
            if number == self.iterations:
                return report.exit_code if is_table else report
            self.wait()
            number += 1
            report, was_lost = self._look_again(), is_lost
            is_lost = _shows_nothing(report)
            if is_lost and not was_lost:
                self._notice([f"kgctl: {error_line(error)}; trying again" for error in report.errors])

    def _looked(self) -> Report:
        try:
            return self.look()
        finally:
            self.session.end_look()

    def _look_again(self) -> Report:
        try:
            return self._looked()
        except InvariantViolation:
            raise
        except KgctlError as error:
            return Report(errors=[error])

    def _show(self, report: Report, number: int) -> Report | None:
        """None, or the report where stdout does not take it."""
        environment = self.session.environment
        between = _CLEAR if self.redraws else "\n" if number > 1 else ""
        show = RENDERERS[self.session.flags.output or OutputFormat.TABLE]
        try:
            environment.stdout.write(f"{between}{self.title()}\n{show(report, self.session.command, environment)}")
            environment.stdout.flush()
        except OSError as error:
            if isinstance(error, BrokenPipeError) and self.iterations is None:
                raise
            environment.leave_stdout()  # the exit code is that of the last look all the same
            if not isinstance(error, BrokenPipeError):
                return report.unwritten(error)
        self._notice([*(f"kgctl: {error_line(error)}" for error in report.errors), *report.notices])
        return None

    def _notice(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.session.notice(printable(line))


def _shows_nothing(report: Report) -> bool:
    return report.status == "error" and bool(report.errors) and not report.rows
