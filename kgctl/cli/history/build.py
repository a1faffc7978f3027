"""``kgctl history build``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

from kgctl.cli.environment import Environment
from kgctl.cli.history.asking import AskedSpark, Cluster, Warehouse, require_tables, warehouse_path
from kgctl.cli.history.columns import CLUSTER, TABLE
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import BOOL, WHOLE, Column, Report, shows
from kgctl.cli.session import Session
from kgctl.errors import UsageError
from kgctl.pipeline.engines import EngineName, EngineOptions

if TYPE_CHECKING:
    from kgctl.pipeline.builds.run import BuildResult, Progress
    from kgctl.pipeline.engines import Engine
    from kgctl.pipeline.store.files import StoreLocation


def building(
    environment: Environment,
    path: StoreLocation,
    cluster: str | None,
    options: EngineOptions,
    *,
    is_rebuild: bool,
    skips_damaged: bool = False,
    step_records: int | None = None,
) -> BuildResult:
    """Build what was collected of ``cluster``, or of all clusters; ``options`` name the engine that is opened if one is needed.

    Raises `KgctlError` (a package or Java is missing, there is no warehouse or no such cluster, somebody else is building).
    """
    from kgctl.pipeline.engines import choose, open_engine
    from kgctl.pipeline.no_pandas import leave_pandas_out

    require_tables(options)
    if environment.is_own_process and choose(options)[0] is EngineName.LOCAL:
        leave_pandas_out()
    from kgctl.pipeline.builds.run import STEP_RECORDS, build
    from kgctl.pipeline.store.warehouse import Warehouse

    warehouse = Warehouse.open(path)
    clusters = warehouse.clusters() if cluster is None else [warehouse.require_cluster(cluster)]
    if not clusters:
        warehouse.require_cluster(None)
    with ExitStack() as stack, _bar(environment) as on_progress:

        def opened(records: int) -> Engine:
            name, why = choose(options, records)
            engine = stack.enter_context(open_engine(options, records))
            if options.name is EngineName.AUTO:
                environment.notice(f"Built by {_ENGINES[name]}: {why}.")
            return engine

        now_ms = environment.now_ms()
        return build(
            warehouse,
            clusters,
            opened,
            now_ms=now_ms,
            is_rebuild=is_rebuild,
            skips_damaged=skips_damaged,
            on_progress=on_progress,
            step_records=step_records or STEP_RECORDS,
        )


_ENGINES = {"local": "this machine's processes", "spark": "Spark"}


@contextmanager
def _bar(environment: Environment) -> Iterator[Callable[[Progress], object]]:
    """Shows records as they are built; nothing where nobody looks at a terminal."""
    if not environment.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("Building"), BarColumn(), MofNCompleteColumn(), TextColumn("records"), TimeElapsedColumn())
    with Bar(*columns, console=Console(file=environment.stderr), transient=True) as bar:
        task = bar.add_task("Building", total=None)
        yield lambda progress: bar.update(task, completed=progress.records, total=progress.of_records)


COLUMNS = (
    CLUSTER,
    TABLE,
    Column("rows", "rows that it has now", WHOLE),
    Column("written", "rows that were written", WHOLE),
    Column("changed", "whether anything in it is another than before", BOOL),
)
SUMMARY = (Column("version", "what `--as-of-version` calls the tables as they are now", WHOLE),)


@shows(COLUMNS, summary=SUMMARY, examples="kgctl history build --warehouse /srv/history")
def history_build(
    session: Session,
    *,
    warehouse: Warehouse = None,
    cluster: Cluster = None,
    engine: Annotated[
        EngineName,
        option("", "Who does the work: processes of kgctl, or Spark; auto takes Spark for much, or where a master is given."),
    ] = EngineName.AUTO,
    spark: AskedSpark,
    jobs: Annotated[int | None, option("N", "Use N processors of this machine.", "-j", "--jobs", min=1)] = None,
    step: Annotated[
        int | None,
        option("N", "Keep what is made every N records (default: 1000000): a build that is killed goes on from there.", min=1),
    ] = None,
    rebuild: Annotated[bool, flag("--rebuild", "Build everything anew, also what has not changed.")] = False,
    skip_damaged: Annotated[
        bool, flag("--skip-damaged", "Leave out files of the warehouse that cannot be read; they are named.")
    ] = False,
) -> Report:
    """Make the tables of the history from what was collected. Only what is new is worked on: the same again changes nothing.

    A partition that cannot be built keeps the tables it had, is named, and the others are built: exit code 3.
    """
    options = EngineOptions(name=engine, jobs=jobs, what="kgctl history build", **vars(spark))
    if cluster == "":
        raise UsageError("--cluster is empty (an unset variable?): leave it out, or give it a name")
    require_tables(options)
    path = warehouse_path(warehouse, session.environment)
    result = building(
        session.environment, path, cluster, options, is_rebuild=rebuild, skips_damaged=skip_damaged, step_records=step
    )
    rows = [{key: getattr(table, key) for key in (column.key for column in COLUMNS)} for table in result.tables]
    return Report(
        COLUMNS,
        rows,
        result.failed,
        list(_notices(result)),
        ("cluster", "table"),
        something_done=result.built + result.unchanged > 0,
        summary={"version": _version(path)},
    )


def _version(path: StoreLocation) -> int:
    """What --as-of-version calls the tables as they are now."""
    from kgctl.pipeline.store.warehouse import Warehouse

    return Warehouse.open(path).table("state").version


def _notices(result: BuildResult) -> Iterator[str]:
    if not result.built and not result.failed and not any(table.written for table in result.tables):
        yield "Nothing is new: all tables are as they were."
    yield from (f"{path} cannot be read and was left out." for path in result.skipped)
    for cluster in result.rebuilt:
        yield f"cluster '{cluster}': an older kgctl had built its tables; they are built anew."
    for cluster, reasons in result.late.items():
        yield from (f"cluster '{cluster}': {reason}." for reason in reasons)
    for cluster, counts in result.counts.items():
        yield from (f"cluster '{cluster}': {line}" for line in _remarks(counts))


UNDECODED = (
    ("unknown_type", "of a type that this kgctl does not know"),
    ("unknown_version", "in a version that this kgctl does not know"),
    ("no_key", "without a key"),
    ("damaged_key", "with a damaged key"),
    ("damaged_value", "with a damaged value"),
    ("damaged_marker", "that end a transaction and are damaged"),
)
REMARKS = (
    ("clock_went_back", "records are older than the one before them: the broker's clock went back"),
    ("damaged", "stretches of segment files could not be read; they are in the table damaged"),
    ("assignments_undecoded", "assignments are of another protocol type than consumers' or damaged, and are left out"),
    ("partitions_without_samples", "partitions have commits, and no log end was ever sampled: their lag is unknown"),
)


def _remarks(counts: Mapping[str, int]) -> Iterator[str]:
    undecoded = [f"{counts[reason]} {what}" for reason, what in UNDECODED if counts.get(reason)]
    if undecoded:
        yield f"records kept aside, in the table undecoded: {', '.join(undecoded)}."
    yield from (f"{counts[name]} {what}." for name, what in REMARKS if counts.get(name))
