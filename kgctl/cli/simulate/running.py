"""What several simulate commands have alike: arguments, reading scenario files, running them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated, Any

from kgctl.cli.environment import Environment, Waiting
from kgctl.cli.parameters import argument, option
from kgctl.cli.report import Column
from kgctl.cli.session import Session
from kgctl.errors import UsageError
from kgctl.model.values import frozen_in_order
from kgctl.simulate.scenario.vocabulary import Identity

if TYPE_CHECKING:
    from kgctl.simulate.batch.judge import RunValues
    from kgctl.simulate.report.outcome import Outcome
    from kgctl.simulate.scenario.load import LoadedFile
    from kgctl.simulate.scenario.observed import Observed
    from kgctl.yaml_files import Tree

VARIANT = Column("variant", "the variant")
METRIC = Column("metric", "the metric (`kgctl manual metrics`)")
DIGEST = Column("digest", "of all that happened: the same digest, the same run")


Scenario = Annotated[str, argument("FILE", "A scenario file, a built-in's name, or - for stdin.", show_default=False)]
Settings = Annotated[
    list[str] | None, option("PATH=VALUE", "Change the file: group.config.session.timeout.ms=60s; repeatable.", "--set")
]
Variants = Annotated[list[str] | None, option("NAME", "Only this variant; repeatable.", "--variant")]
Seed = Annotated[int | None, option("N", "The seed, or the first with --runs; the file's otherwise.", min=0)]
Runs = Annotated[int | None, option("N", "How many seeds.", min=1)]
Jobs = Annotated[int | None, option("N", "Processes; one for each processor if there are many runs.", min=1)]
TimeLimit = Annotated[str | None, option("TIME", "Stop after this long, with what is known by then.")]
Checks = Annotated[list[str] | None, option("EXPR", "Expect this instead of what the file expects; repeatable.", "--check")]
FailIfWorse = Annotated[
    list[str] | None,
    option("METRIC", "Exit with 6 where this metric is worse; repeatable; any: one that the verdict goes by.", "--fail-if-worse"),
]
Who = Annotated[
    Identity, option("", "Who moves are counted by: a pod that comes back is the same, or a new member id another.", "--identity")
]


def read_scenario(session: Session, name: str) -> Tree:
    """A scenario as its file has it, with what it takes from others. Raises as `kgctl.simulate.scenario.sources.read_source`."""
    from kgctl.simulate.scenario.sources import read_source

    def live(group_id: str) -> Observed:
        from kgctl.cli.simulate.live_group import SAMPLE_S, observed

        return observed(session, group_id, SAMPLE_S)

    return read_source(name, session.environment.stdin, live)


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
        FileError: it has mistakes. UsageError, NotFoundError: it cannot be read, or has no such variant.
    """
    from kgctl.simulate.scenario.load import load

    return load(read_scenario(session, name), settings=settings or (), variants=variants or (), checks=checks)


@contextmanager
def progress(environment: Environment, title: str, total: int) -> Iterator[Callable[[Any], None]]:
    """Gives what is to be called when a run is done. On a terminal there is a bar, elsewhere a line every 30 seconds."""
    if not environment.stderr.isatty():
        with _told_in_lines(environment, title, total) as on_done:
            yield on_done
        return
    if total < 2:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(file=environment.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda _: bar.advance(task)


@contextmanager
def _told_in_lines(environment: Environment, title: str, total: int) -> Iterator[Callable[[Any], None]]:
    so_far, waiting = 0, Waiting(environment)

    def on_done(_: Any) -> None:
        nonlocal so_far
        so_far += 1

    waiting.begin(title, lambda: f"{so_far:,} of {total:,} runs")
    try:
        yield on_done
    finally:
        waiting.end()


def how_to_allow(kinds: Collection[str]) -> str:
    """What a file says in which these kinds of what goes wrong unasked are meant."""
    from kgctl.simulate.scenario.vocabulary import TROUBLES

    return f"where that is meant, the file says allow: [{', '.join(name for name in TROUBLES if name in kinds)}]"


def option_value(option: str, read: Callable[..., int], text: str | int, **how: str) -> int:
    """What an option says. Raises `UsageError`, which names it."""
    try:
        return read(text, **how)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def seconds(option: str, text: str) -> float:
    """A time that an option says; a plain number is of seconds. Raises `UsageError`."""
    from kgctl.simulate.scenario.quantities import parse_duration

    return option_value(option, parse_duration, text, bare_unit="s") / 1_000_000


_WORTH_PROCESSES = 8


@frozen_in_order
class RunOptions:
    """The options that commands which run scenarios have, as they were given. ``words``: how a replay's command begins."""

    seed: int | None = None
    runs: int | None = None
    jobs: int | None = None
    time_limit: str | None = None
    _: KW_ONLY
    twice: bool = False
    pictures: bool = False
    stories: bool = False
    ablations: bool = False
    identity: Identity = Identity.POD
    words: tuple[str, ...] = ()

    def seeds(self, loaded: LoadedFile) -> list[int]:
        """Which seeds: one that is named is run alone, unless ``--runs`` says how many from it on."""
        first = loaded.seed if self.seed is None else self.seed
        count = self.runs if self.runs is not None else 1 if self.seed is not None else loaded.runs
        return list(range(first, first + count))

    def time_limit_s(self) -> float | None:
        """The limit in seconds. Raises `UsageError` for what is no time."""
        if self.time_limit is None:
            return None
        if not (limit_s := seconds("--time-limit", self.time_limit)):
            raise UsageError("--time-limit must be above 0")
        return limit_s


def run_scenario(session: Session, loaded: LoadedFile, options: RunOptions, seeds: Sequence[int]) -> list[RunValues]:
    """Do all runs that the time limit allows."""
    from kgctl.simulate.batch.plan import BatchOptions, run_all, tasks_of

    limit_s = options.time_limit_s()
    deadline_s = None if limit_s is None else time.monotonic() + limit_s
    plan = BatchOptions(twice=options.twice, pictures=options.pictures, identity=options.identity)
    tasks = tasks_of(loaded, seeds, plan, deadline_s)
    jobs = options.jobs or (_processors() if len(tasks) >= _WORTH_PROCESSES else 1)
    with progress(session.environment, loaded.name, len(tasks)) as on_done:
        return run_all(tasks, jobs, on_done)


def look_closer(session: Session, loaded: LoadedFile, options: RunOptions, outcome: Outcome) -> Outcome:
    """The outcome with pictures and stories of the worst seeds, where they are wanted."""
    from kgctl.simulate.batch.plan import with_worst

    if not (options.pictures or options.stories):
        return outcome
    jobs = options.jobs or min(_processors(), len(loaded.variants))
    with progress(session.environment, "the worst seeds", len(loaded.variants)) as on_done:
        return with_worst(
            outcome,
            loaded,
            pictures=options.pictures,
            stories=options.stories,
            ablations=options.ablations,
            identity=options.identity,
            jobs=jobs if len(outcome.seeds) >= _WORTH_PROCESSES else 1,
            on_done=on_done,
        )


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
