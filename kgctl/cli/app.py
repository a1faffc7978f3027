"""argv in, exit code out. The one place where errors become exit codes and a `Report` becomes text."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path

import typer
from typer._completion_classes import completion_init

from kgctl.cli.environment import Environment, leave, write_whole
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.render import RENDERERS, printable
from kgctl.cli.report import OutputFormat, Report, error_line, not_written
from kgctl.cli.session import Session
from kgctl.cli.tree import build_tree, command_name
from kgctl.errors import Interrupted, InvariantViolation, KgctlError, UsageError


def run_process(argv: Sequence[str]) -> int:
    """Run the command line in this process's own environment; a pipe that nobody reads any more is no error."""
    if not _open_streams():
        return ExitCode.FAILED
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no reason to fail
    if "_KGCTL_COMPLETE" in os.environ:
        completion_init()
    try:
        code = run(argv, Environment())
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_has_gone()
    except SystemExit as leaving:
        # Typer leaves by itself after completion, and when a pipe breaks under its help.
        if isinstance(leaving.__context__, BrokenPipeError):
            return _reader_has_gone()
        raise
    except OSError as error:
        return _cannot_write(error)
    except (KeyboardInterrupt, Interrupted):
        return ExitCode.INTERRUPTED
    return code


def _open_streams() -> bool:
    """Whether there is a stdout. A closed stdin has nothing in it and a closed stderr takes all, as the null device does.

    Without them the numbers 0 to 2 would go to the next file or socket that is opened.
    """
    has_stdout = sys.stdout is not None
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - stays open until the process ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if not has_stdout:
        sys.stderr.write("kgctl: stdout is closed: there is nowhere to write the result\n")
    return has_stdout


def _reader_has_gone() -> int:
    """As in ``kgctl ... | head``: no error. Python would complain again when it flushes stdout at exit."""
    leave(sys.stdout)
    return ExitCode.OK


def _cannot_write(error: OSError) -> int:
    """A full disk under the result; Python would complain again when it flushes stdout at exit."""
    leave(sys.stdout)
    with suppress(OSError):
        sys.stderr.write(f"kgctl: {not_written(error)}\n")
    return ExitCode.FAILED


def run(argv: Sequence[str], environment: Environment) -> int:
    """Run one command line and return its exit code. Never raises what a user can cause.

    Raises:
        BrokenPipeError: nobody reads stdout.
        OSError: stdout cannot be written.
    """
    session = Session(environment, argv)
    try:
        return _run(argv, session)
    finally:
        session.close()


def _run(argv: Sequence[str], session: Session) -> int:
    environment = session.environment
    try:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        _check_text(argv)
        with redirect_stdout(environment.stdout), redirect_stderr(environment.stderr):
            result = build_tree().main(args=list(argv), prog_name="kgctl", standalone_mode=False, obj=session)
    except KgctlError as error:
        return _finish(Report(errors=error.each), session, argv)
    except typer.TyperException as error:
        return _finish(_from_typer(error, session, argv), session, argv)
    except (typer.Abort, Interrupted, KeyboardInterrupt):
        result = ExitCode.INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        if environment.variables.get("KGCTL_DEBUG"):
            raise
        result = _unexpected(error)
    if result == ExitCode.INTERRUPTED:
        result = _interrupted(session)
    if isinstance(result, Report):
        return _finish(result, session, argv)
    return result if isinstance(result, int) else ExitCode.OK


def _interrupted(session: Session) -> Report:
    """A signal before there is a result: a whole document all the same, and the word that nothing was changed where that counts.

    A change that has begun tells its rows itself (`Session.stop_signals`): only between two of its parts it can be ended here.
    """
    if session.environment.stderr.isatty():
        session.notice("")
    so = "; whether anything was changed is not known (kgctl undo --log)" if session.has_begun else "; nothing was changed"
    told = KgctlError(f"interrupted{so if session.is_change else ''}", code="INTERRUPTED")
    return Report(errors=[told], fixed_exit_code=ExitCode(128 + session.ended_by))


def _check_text(argv: Sequence[str]) -> None:
    """Bytes that are no UTF-8 reach Python as half surrogates, which no name on a cluster can have."""
    for word in argv:
        if re.search("[\ud800-\udfff]", word):
            shown = os.fsencode(word).decode("utf-8", "backslashreplace")
            raise UsageError(f"the argument '{shown}' is not UTF-8 text")


def _finish(report: Report, session: Session, argv: Sequence[str]) -> int:
    output = session.flags.output or requested_format(argv)
    if not report.errors or report.rows or report.text or output.speaks_of_errors:
        text = RENDERERS[output](report, session.command, session.environment)
        try:
            write_whole(session.environment.stdout, text)
        except OSError as error:
            if report.is_change:
                return _told_on_stderr(report, output, session, error)
            session.environment.leave_stdout()  # no reason to hide what the answer is
            report = replace(report, brief=()) if isinstance(error, BrokenPipeError) else report.unwritten(error)
    _notice_all(report, session, report.brief if output.is_for_people else ())
    return report.exit_code


def _notice_all(report: Report, session: Session, brief: Sequence[str] = ()) -> None:
    """``brief``: the lines in the place of the errors, where stdout has told these."""
    for line in brief:
        session.notice(f"kgctl: {printable(line)}")
    for error in () if brief else report.errors:
        session.notice(f"kgctl: {printable(error_line(error))}")
        for line in error.story if isinstance(error, InvariantViolation) else ():
            session.notice(printable(f"  {line}"))
    for notice in report.notices:
        session.notice(printable(notice))


def _told_on_stderr(report: Report, output: OutputFormat, session: Session, error: OSError) -> int:
    """What was done to a cluster is told even where stdout is closed or its disk full.

    The exit code is the change's; but a result that a full disk has cut short is partial: whoever reads the file lacks rows.
    """
    if report.exit_code is ExitCode.OK and not isinstance(error, BrokenPipeError):
        report = replace(report, fixed_exit_code=ExitCode.PARTIAL)
    session.environment.leave_stdout()
    session.notice(f"kgctl: cannot write to stdout ({error.strerror or error}); this was done:")
    session.environment.tell(RENDERERS[output](report, session.command, session.environment))
    _notice_all(report, session)
    return report.exit_code


def _unexpected(error: Exception) -> Report:
    """What nobody foresaw, in one line all the same: a failing disk is the machine's fault, the rest is kgctl's."""
    if isinstance(error, OSError):
        return Report(errors=[KgctlError(str(error), code="OS_ERROR")])
    message = f"internal error, please report it: {type(error).__name__}: {error} (KGCTL_DEBUG=1 shows where)"
    return Report(errors=[InvariantViolation(" ".join(message.split()))])


def requested_format(argv: Sequence[str]) -> OutputFormat:
    """The output format that a command line asks for, read without parsing it: for errors that keep it from being parsed."""
    wanted = ""
    for word, following in zip(argv, [*argv, ""][1:], strict=True):
        if word == "--":
            break
        if word in ("-o", "--output"):
            wanted = following
        elif word.startswith("--output="):
            wanted = word.removeprefix("--output=")
        elif word.startswith("-o") and len(word) > 2:
            wanted = word[2:]
    with suppress(ValueError):
        return OutputFormat(wanted)
    return OutputFormat.TABLE


def _in_our_words(error: typer.TyperException, session: Session, argv: Sequence[str]) -> str:
    """The message without the parser's own jargon, and with what was meant where that can be told."""
    from typer._click.exceptions import NoSuchOption

    if isinstance(error, NoSuchOption):
        known = [name for parameter in error.ctx.command.params for name in parameter.opts] if error.ctx else []
        from kgctl.cli.habits import option_hint

        return f"no such option {error.option_name}{option_hint(error.option_name, argv, known)}"
    message = " ".join(error.format_message().split()).rstrip(".")
    if session.command == "list groups" and (extra := re.search(r"extra argument\(s\) \((.*)\)$", message)):
        return f"kgctl list groups takes no names; type: kgctl describe group {extra[1]}"
    return re.sub(r"is not a valid int(eger)?( range)?", "is not a whole number", message)


def _from_typer(error: typer.TyperException, session: Session, argv: Sequence[str]) -> Report:
    """An error of the command line itself, with the way to the help."""
    if ctx := getattr(error, "ctx", None):
        session.command = command_name(ctx)
    path = f"kgctl {session.command}".rstrip()
    message = _in_our_words(error, session, argv)
    if type(error).__name__ == "NoArgsIsHelpError":
        if not requested_format(argv).speaks_of_errors:
            session.notice(error.format_message())
            return Report(fixed_exit_code=ExitCode.USAGE)
        message = "Missing command"
    return Report(errors=[UsageError(f"{message} ({path} --help shows how it is used)")])
