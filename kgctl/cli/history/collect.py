"""``kgctl history collect``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kgctl.cli.history import options
from kgctl.cli.history.collecting import Rest, collect_from_cluster, collect_from_files
from kgctl.cli.history.options import live_options
from kgctl.cli.output.report import Report
from kgctl.cli.session import session_of
from kgctl.errors import UsageError
from kgctl.pipeline.engines import EngineName, EngineOptions


class Reader(StrEnum):
    """What ``--reader`` takes."""

    AUTO = "auto"
    WIRE = "wire"
    CONFLUENT = "confluent"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl history collect --bootstrap-server broker:9092 --once")(history_collect)


def history_collect(
    ctx: typer.Context,
    *,
    segments: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Segments copied from a broker: a folder __consumer_offsets-N, a folder of such, or a .log file; repeatable.",
            show_default=False,
        ),
    ] = None,
    record_log: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The data folder of kgctl serve or simulate run --records-out.", show_default=False),
    ] = None,
    parquet: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Records collected earlier: another warehouse, or Parquet files.", show_default=False),
    ] = None,
    warehouse: options.Warehouse = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="NAME",
            help="Keep it under this name; else the cluster's id, else 'default'.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Live: up to what is there now, then end.")] = False,
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Live: for so long, as 10m.", show_default=False)
    ] = None,
    sample_every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Live: sample the topics' log offsets so often. [default: 10s]", show_default=False),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Live: sample every topic, not only those that groups have commits on.")
    ] = False,
    reader: Annotated[Reader, typer.Option(help="Live: who reads; auto takes confluent where only it can log in.")] = Reader.AUTO,
    engine: Annotated[EngineName, typer.Option(help="Files: read them here or on Spark.")] = EngineName.AUTO,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Files: so many processes. [default: one a processor]", show_default=False),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Files, with --engine spark: its master.", show_default=False)
    ] = None,
) -> Report:
    """Collect the records of __consumer_offsets into a warehouse, from a live cluster or from files.

    A live collection goes on where the last one ended. Without --once or --for it runs until Ctrl-C or SIGTERM and then ends
    with 0, everything written. It also samples the log offsets of the topics: without samples lag is unknown. Collecting the same
    again adds nothing; what is damaged is kept aside and named, and the exit code is 3.
    """
    session = session_of(ctx)
    live = live_options(once=once, for_=for_, sample_every=sample_every, all_topics=all_topics, reader=reader.value)
    how = EngineOptions(name=engine, jobs=jobs, master=master, what="history collect --engine spark")
    rest = Rest(tuple(segments or ()), record_log, parquet, how)
    if cluster == "":
        raise UsageError("--cluster is empty (an unset variable?): leave it out, or give it a name")
    if rest.is_given:
        live.refuse_with(rest.flag)
        return collect_from_files(session, rest, warehouse, cluster)
    return collect_from_cluster(session, live, rest, warehouse, cluster)
