"""The options of ``simulate run`` that say what to show and to write beside the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Gantt = Annotated[
    bool | None,
    typer.Option("--gantt/--no-gantt", help="Draw who consumed which partition when, of the first seed.", show_default=False),
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
