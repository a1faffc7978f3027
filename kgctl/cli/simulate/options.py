"""Arguments and options that several simulate commands have alike."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.simulate.recording.history import Identity

Scenario = Annotated[
    str, typer.Argument(metavar="FILE", help="A scenario file, a built-in's name, or - for stdin.", show_default=False)
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change the file: group.config.session.timeout.ms=60s; repeatable.",
        show_default=False,
    ),
]
Variants = Annotated[
    list[str] | None, typer.Option("--variant", metavar="NAME", help="Only this variant; repeatable.", show_default=False)
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="The seed, or the first with --runs; the file's otherwise.", show_default=False),
]
Runs = Annotated[int | None, typer.Option(min=1, metavar="N", help="How many seeds.", show_default=False)]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Processes; one for each processor if there are many runs.", show_default=False),
]
TimeLimit = Annotated[
    str | None, typer.Option(metavar="TIME", help="Stop after this long, with what is known by then.", show_default=False)
]
Who = Annotated[
    Identity,
    typer.Option("--identity", help="Who moves are counted by: a pod that comes back is the same, or a new member id another."),
]
