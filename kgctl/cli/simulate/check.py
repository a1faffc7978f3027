"""``kgctl simulate check``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.parameters import argument, flag
from kgctl.cli.report import WHOLE, Column, Report, error_line, shows
from kgctl.cli.session import Session
from kgctl.cli.simulate import running
from kgctl.errors import KgctlError, UsageError, plural

if TYPE_CHECKING:
    from kgctl.yaml_files import Problem

COLUMNS = (
    Column("severity", "error or warning"),
    Column("file", "the scenario's file", wide=True, read="location.file"),
    Column("line", "its line; null where that is not known", WHOLE, read=lambda problem: problem.location.line or None),
    Column("column", "the place in the line, from 1", WHOLE, wide=True, read=lambda problem: problem.location.column or None),
    Column("path", "the place in the scenario", read="where"),
    Column("rule", "the rule that finds it doubtful; null for a mistake", read=lambda problem: problem.rule or None),
    Column("message", "what is wrong with it"),
)


@shows(COLUMNS, examples="kgctl simulate check deploy.yaml")
def simulate_check(
    session: Session,
    files: Annotated[list[str], argument("FILE", "Scenario files, or - for stdin.", show_default=False)],
    *,
    settings: running.Settings = None,
    strict: Annotated[bool, flag("--strict", "Warnings are errors, too.")] = False,
) -> Report:
    """Check scenarios without running them: mistakes, and what is legal but most likely not meant."""
    from kgctl.simulate.lint.rules import lint
    from kgctl.yaml_files import FileError

    problems: list[Problem] = []
    errors: list[KgctlError] = []
    for name in files:
        try:
            problems += lint(running.load_scenario(session, name, settings=settings))
        except FileError as error:
            problems += error.problems
        except KgctlError as error:
            errors.append(error)
    wrong = [problem for problem in problems if strict or problem.severity == "error"]
    brief = [*map(error_line, errors), *_counted(wrong)] if wrong else []
    errors += [UsageError(str(problem)) for problem in wrong]
    notices = [] if problems or errors else [f"{name}: ok" for name in files]
    code = ExitCode.USAGE if wrong else None
    return Report(COLUMNS, problems, errors, notices, ("file", "line"), code, brief=brief)


def _counted(wrong: list[Problem]) -> list[str]:
    """A line a file: the table has said what is wrong with it."""
    found = Counter(problem.location.file for problem in wrong)
    return [f"{name}: {plural(count, 'mistake')}" for name, count in found.items()]
