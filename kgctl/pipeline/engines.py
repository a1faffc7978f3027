"""The engines by name, opened for as long as they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from kgctl.errors import UsageError
from kgctl.pipeline.extras import require
from kgctl.pipeline.spread import Engine, LocalEngine


class EngineName(StrEnum):
    """What ``--engine`` takes."""

    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Which engine, and how. ``jobs``: processes or, with Spark's local master, its threads; None is one for each processor.

    ``what``: who asks, for the error when a package is missing. ``shows_log``: Spark's log goes to stderr.
    """

    name: EngineName = EngineName.LOCAL
    jobs: int | None = None
    master: str | None = None
    shows_log: bool = False
    what: str = "--engine spark"

    def __post_init__(self) -> None:
        """Raises `UsageError` for options that do not go together."""
        if self.master is not None and self.name is EngineName.LOCAL:
            raise UsageError("--master is Spark's: add --engine spark")
        if self.master is not None and self.jobs is not None:
            raise UsageError("--jobs and --master both say how much is done at a time: give one of them")


@contextmanager
def open_engine(options: EngineOptions) -> Iterator[Engine]:
    """The engine; a Spark that was started for it ends with it.

    Raises:
        UsageError: pyspark or Java is missing. KgctlError: Spark does not start.
    """
    if options.name is EngineName.LOCAL:
        yield LocalEngine(options.jobs or processors())
        return
    require(options.what, "pyspark")
    from kgctl.pipeline.session import SparkOptions, spark_context
    from kgctl.pipeline.spark_engine import SparkEngine

    master = options.master or (f"local[{options.jobs}]" if options.jobs else None)
    with spark_context(SparkOptions(master=master, is_light=True, shows_log=options.shows_log)) as context:
        yield SparkEngine(context)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
