"""Reading scenario files for a command; every mistake in one is an error of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.cli.output.report import Report
from kgctl.cli.session import Session
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.simulate.scenario.load import LoadedFile


class WrongFile(Exception):  # noqa: N818 - carries the report of what is wrong
    """A scenario file has mistakes; ``report`` has them all."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


def load_scenario(
    session: Session,
    name: str,
    *,
    settings: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    checks: Sequence[str] | None = None,
) -> LoadedFile:
    """A scenario, checked.

    Raises:
        WrongFile: it has mistakes. UsageError, NotFoundError: it cannot be read, or has no such variant.
    """
    from kgctl.simulate.scenario.load import load
    from kgctl.simulate.scenario.sources import read_source
    from kgctl.yaml_files import FileError

    try:
        tree = read_source(name, session.environment.stdin)
        return load(tree, settings=settings or (), variants=variants or (), checks=checks)
    except FileError as error:
        raise WrongFile(Report(errors=[UsageError(str(problem)) for problem in error.problems])) from None
