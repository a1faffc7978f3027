"""The engines by name, opened for as long as they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from kgctl.errors import UsageError
from kgctl.pipeline.extras import is_there, require
from kgctl.pipeline.java import find_java
from kgctl.pipeline.spread import Engine, LocalEngine

NO_CONNECT = "kgctl's tasks do not run through Spark Connect"


class EngineName(StrEnum):
    """What ``--engine`` takes."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Which engine, and how. ``jobs``: processes or, with Spark's local master, its threads; None is one for each processor.

    ``what``: who asks, for the error when a package is missing. ``shows_log``: Spark's log goes to stderr.
    """

    name: EngineName = EngineName.AUTO
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
        if self.master is not None and self.master.startswith("sc:"):
            raise UsageError(f"--master {self.master}: {NO_CONNECT}; give the master itself (spark://HOST:PORT, yarn, k8s://...)")


MANY_RECORDS = 1_000_000
"""So many are worth a start of Spark."""


def choose(options: EngineOptions, records: int = 0) -> tuple[EngineName, str]:
    """Which engine does so many records, and why, for people to read."""
    if options.name is not EngineName.AUTO:
        return options.name, f"--engine {options.name.value}"
    if options.master is not None:
        return EngineName.SPARK, "a master was given"
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return EngineName.SPARK, "spark-submit runs this"
    if records < MANY_RECORDS:
        return EngineName.LOCAL, f"{records:,} records are fewer than {MANY_RECORDS:,}"
    missing = _missing_for_spark()
    return (EngineName.LOCAL, missing) if missing else (EngineName.SPARK, f"{records:,} records are {MANY_RECORDS:,} or more")


def _missing_for_spark() -> str | None:
    if not is_there("pyspark"):
        return "pyspark is not installed"
    try:
        find_java(os.environ)
    except UsageError:
        return "there is no Java for Spark"
    return None


@contextmanager
def open_engine(options: EngineOptions, records: int = 0) -> Iterator[Engine]:
    """The engine for so many records; a Spark that was started for it ends with it.

    Raises:
        UsageError: pyspark or Java is missing. KgctlError: Spark does not start.
    """
    if choose(options, records)[0] is EngineName.LOCAL:
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
