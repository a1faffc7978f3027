"""Spark as kgctl starts it, beside pyspark as it comes: until the session is there, until the first result, to the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kgctl.pipeline.java import ClassArchive, find_java, write
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.benchmarks.tree import watch

_FIRST = "session.sparkContext.parallelize(range(4), 4).map(lambda number: number + 1).collect()"
_TIMED = """\
import time
started = time.perf_counter()
{make}
ready = time.perf_counter()
{first}
done = time.perf_counter()
print(ready - started, done - started)
{end}
"""
_OURS = """\
from contextlib import ExitStack
from kgctl.pipeline.session import SparkOptions, spark_session
stack = ExitStack()
session = stack.enter_context(spark_session(SparkOptions(master="local[2]", is_light={is_light})))
"""
_THEIRS = """\
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[2]").getOrCreate()
"""

_NO_ARCHIVE = {"KGCTL_SPARK_ARCHIVE": "off"}
WAYS = {
    "pyspark as it comes": (_THEIRS, "session.stop()", {}),
    "for rows in the JVM, no archive of classes": (_OURS.format(is_light=False), "stack.close()", _NO_ARCHIVE),
    "for rows in the JVM": (_OURS.format(is_light=False), "stack.close()", {}),
    "for work in Python, no archive of classes": (_OURS.format(is_light=True), "stack.close()", _NO_ARCHIVE),
    "for work in Python": (_OURS.format(is_light=True), "stack.close()", {}),
}


def measure(_clusters: Sequence[str], scale: Scale) -> Sequence[Row]:
    """Each way in turn; the best of all turns. The archive of classes is made first, which takes some time once."""
    if not scale.small:
        _make_archive()
    found: dict[str, list[tuple[float, float, float, float, int]]] = {name: [] for name in WAYS}
    for _ in range(1 if scale.small else min(scale.runs, 3)):
        for name in list(WAYS)[-1:] if scale.small else WAYS:
            found[name].append(_once(*WAYS[name]))
    rows = []
    for name, turns in found.items():
        if turns:
            ready, first, wall, cpu, peak = (min(one[place] for one in turns) for place in range(5))
            rows.append(Row(name, (f"{ready:.1f}", f"{first:.1f}", f"{wall:.1f}", f"{cpu:.1f}", f"{peak / 1e6:,.0f}")))
    return rows


def _make_archive() -> None:
    archive = ClassArchive.of(find_java(os.environ))
    if archive.path is not None and not archive.java_options():
        write(archive.path)


def _once(make: str, end: str, variables: dict[str, str]) -> tuple[float, float, float, float, int]:
    used = watch([sys.executable, "-c", _TIMED.format(make=make, first=_FIRST, end=end)], variables=variables)
    ready, first = map(float, used.printed.split())
    return ready, first, used.wall_s, used.cpu_s, used.peak_bytes


RATES = Rates(
    "spark-start", "Spark's start, whole process", ("session s", "first result s", "whole s", "CPU s", "peak MB"), measure
)
