"""The options of ``simulate run`` that say what to show and to write beside the result."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgctl.cli.session import Session
from kgctl.simulate.batch.files import OutputFiles

if TYPE_CHECKING:
    from kgctl.simulate.report.outcome import Outcome
    from kgctl.simulate.scenario.load import LoadedFile


Gantt = Annotated[
    bool | None,
    typer.Option("--gantt/--no-gantt", help="Draw who consumed which partition when, of the worst seed.", show_default=False),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML page that needs nothing else.", show_default=False)
]
Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.", show_default=False)]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write a summary for a pull request.", show_default=False)
]
Events = Annotated[
    Path | None,
    typer.Option("--events", metavar="FILE", help="Write the event log of every run as JSON lines.", show_default=False),
]
Metrics = Annotated[Path | None, typer.Option("--metrics", metavar="FILE", help="Write the data of -o json.", show_default=False)]
RecordsOut = Annotated[
    Path | None,
    typer.Option("--records-out", metavar="DIR", help="Write the coordinator's log, of the first seed.", show_default=False),
]
StateOut = Annotated[
    Path | None,
    typer.Option("--state-out", metavar="DIR", help="Write the group as it is left, for --embedded DIR.", show_default=False),
]


_WIDTH = 100
_MOST_LANES, _MOST_LANES_OF_SEVERAL = 24, 12
_JOB_SUMMARY = "GITHUB_STEP_SUMMARY"


class Outputs:
    """Flags, and what the file asks for where they say nothing."""

    def __init__(self, session: Session, in_file: Mapping[str, str], *, gantt: bool | None, **paths: Path | None) -> None:
        """``paths`` by the names of `OutputFiles`; None: not given."""
        from_file: dict[str, Any] = {name: Path(text) for name, text in in_file.items() if name != "gantt"}
        given = {name: path for name, path in paths.items() if path is not None}
        summary = session.environment.variables.get(_JOB_SUMMARY)
        self._session = session
        self._gantt = bool(in_file.get("gantt")) if gantt is None else gantt
        self._files = OutputFiles(**{**from_file, **given}, appended=(Path(summary),) if summary else ())

    @property
    def need_pictures(self) -> bool:
        """Whether something shows who consumed what when."""
        return self._gantt or self._files.wants_pictures

    @property
    def tells_why(self) -> bool:
        """Whether something shows the story of the worst moment."""
        return self._files.tells_why

    @property
    def width(self) -> int:
        """The columns that a person has; 100 where nobody looks."""
        return shutil.get_terminal_size((_WIDTH, 0)).columns if self._session.environment.stdout_is_terminal else _WIDTH

    def check(self, loaded: LoadedFile) -> None:
        """Before minutes of work: say what could not be written after them. Raises `kgctl.errors.UsageError`."""
        self._files.check(loaded)

    def gantt_of(self, outcome: Outcome) -> list[str]:
        """The lines of all variants' pictures, if they are wanted; those first of which an expectation failed."""
        from kgctl.simulate.batch.plan import in_order_of_interest
        from kgctl.simulate.report.gantt import LEGEND, gantt_lines

        if not self._gantt:
            return []
        is_lone = len(outcome.variants) == 1
        most = _MOST_LANES if is_lone else _MOST_LANES_OF_SEVERAL
        names = in_order_of_interest(outcome)
        drawn = [(name, variant.picture) for name in names if (variant := outcome.variants[name]).picture is not None]
        lines = [line for name, each in drawn for line in gantt_lines(each, self.width, most, title="" if is_lone else name)]
        return [*lines, LEGEND] if lines else []

    def write(self, loaded: LoadedFile, outcome: Outcome) -> None:
        """Write all files, and say so. Raises `kgctl.errors.StorageError`."""
        for path in self._files.write(loaded, outcome):
            self._session.notice(f"written: {path}")
        if self._session.environment.variables.get("GITHUB_ACTIONS") == "true":
            for line in github_annotations(outcome, loaded.source):
                self._session.notice(line)


def github_annotations(outcome: Outcome, file: str) -> list[str]:
    """What GitHub shows beside the file in a pull request: a line for each expectation that did not hold."""
    from kgctl.simulate.report.outcome import show
    from kgctl.simulate.report.tables import metric_of

    found = []
    for each in (*outcome.failures, *outcome.warnings):
        level = "error" if each.severity == "fail" else "warning"
        variant = "" if each.variant == "default" else f" in variant {each.variant}"
        text = f"{each.check} does not hold{variant}: observed {show(metric_of(each.check), each.observed)} with seed {each.seed}"
        text += f"\nreplay: {each.replay}" if each.replay else ""
        found.append(f"::{level} file={_property(file)},title=kgctl simulate::{_escaped(text)}")
    return found


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
