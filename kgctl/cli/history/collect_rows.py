"""The result of a collection as rows: one for each partition of ``__consumer_offsets`` that had something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.admin.plan.times import format_instant
from kgctl.cli.output.report import Column, Report, Row

if TYPE_CHECKING:
    from kgctl.pipeline.collect.summary import Collection, PartitionSummary

COLUMNS = (
    Column("cluster"),
    Column("log_partition"),
    Column("records"),
    Column("known"),
    Column("damaged"),
    Column("first_offset", wide=True),
    Column("last_offset", wide=True),
    Column("from"),
    Column("to"),
)


def report_of(collection: Collection) -> Report:
    """Rows and errors, and the totals as a notice."""
    found = [collection.partitions[number] for number in sorted(collection.partitions)]
    rows = [_row(collection.cluster, summary) for summary in found if summary.read or summary.damaged]
    return Report(
        COLUMNS,
        rows,
        collection.errors,
        (*collection.notices, _totals(collection)),
        ("cluster", "log_partition"),
        something_done=bool(rows) or bool(collection.samples),
        summary=_summary(collection),
    )


def _summary(collection: Collection) -> Row:
    return {
        "cluster": collection.cluster,
        "records": collection.added,
        "known": collection.records_read - collection.added,
        "damaged": sum(summary.damaged for summary in collection.partitions.values()),
        "samples": collection.samples,
    }


def _row(cluster: str, summary: PartitionSummary) -> Row:
    return {
        "cluster": cluster,
        "log_partition": summary.partition,
        "records": summary.added,
        "known": summary.read - summary.added,
        "damaged": summary.damaged,
        "first_offset": summary.first_offset,
        "last_offset": summary.last_offset,
        "from": _instant(summary.first_ms),
        "to": _instant(summary.last_ms),
    }


def _instant(time_ms: int | None) -> str | None:
    return None if time_ms is None or time_ms < 0 else format_instant(time_ms)


def _totals(collection: Collection) -> str:
    known = collection.records_read - collection.added
    again = f", {known} were there already" if known else ""
    samples = f", {collection.samples} samples of log offsets" if collection.samples else ""
    return f"Collected {collection.added} records of cluster '{collection.cluster}'{again}{samples}."
