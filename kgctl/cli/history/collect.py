"""``kgctl history collect``: where from, who does it, what is said meanwhile and in the end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from kgctl.cli.environment import Environment
from kgctl.cli.history import asking
from kgctl.cli.history.asking import LiveOptions, live_options, require_tables, warehouse_path
from kgctl.cli.history.columns import CLUSTER, DAMAGED, KNOWN, RECORDS
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import TIME, WHOLE, Column, Report, Row, shows
from kgctl.cli.session import Session
from kgctl.cli.settings import connection_settings
from kgctl.errors import KgctlError, RefusedError, UsageError
from kgctl.files import at_home
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.engines import EngineName, EngineOptions, choose

if TYPE_CHECKING:
    from kgctl.admin.connect import ConnectionSettings
    from kgctl.pipeline.collect.collection import Collection, PartitionSummary
    from kgctl.pipeline.collect.live import CollectPlan, LiveCollection
    from kgctl.pipeline.sources.at_rest import RestSource
    from kgctl.pipeline.sources.live import LiveReader, ReaderName
    from kgctl.pipeline.store.files import StoreLocation
    from kgctl.pipeline.store.warehouse import Warehouse


COLUMNS = (
    CLUSTER,
    Column("log_partition", "the partition of `__consumer_offsets`", WHOLE),
    RECORDS,
    KNOWN,
    DAMAGED,
    Column("first_offset", "the offset of the first record that was read", WHOLE, wide=True),
    Column("last_offset", "that of the last one", WHOLE, wide=True),
    Column("from", "the time of the first record", TIME),
    Column("to", "that of the last one", TIME),
)
SUMMARY = (CLUSTER, RECORDS, KNOWN, DAMAGED, Column("samples", "samples of log starts and ends", WHOLE))


def report_of(collection: Collection) -> Report:
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
        "from": _known(summary.first_ms),
        "to": _known(summary.last_ms),
    }


def _known(time_ms: int | None) -> int | None:
    return None if time_ms is None or time_ms < 0 else time_ms


def _totals(collection: Collection) -> str:
    known = collection.records_read - collection.added
    again = f", {known} were there already" if known else ""
    samples = f", {collection.samples} samples of log offsets" if collection.samples else ""
    return f"Collected {collection.added} records of cluster '{collection.cluster}'{again}{samples}."


_PAUSE_S = 0.2
AFTER_TROUBLE_S = 10.0
"""So long a cluster that was there is left alone."""
_CLEAR = "\r\x1b[K"


@contextmanager
def progress_line(environment: Environment) -> Iterator[Callable[[str], None]]:
    """Gives what takes the line; it is gone at the end."""
    if not environment.stderr.isatty():
        yield lambda _: None
        return
    last_s = 0.0

    def show(line: str) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= _PAUSE_S:
            last_s = time.monotonic()
            environment.tell(f"{_CLEAR}{line}")

    try:
        yield show
    finally:
        environment.tell(_CLEAR)


DEFAULT_CLUSTER = "default"
_LARGE_BYTES = 100_000_000
"""So much is worth the time that a JVM takes to compile what rows pass through."""
_SAMPLE_EVERY_MS = 1_000


@frozen_in_order
class Rest:
    """The options of a collection from files, as they were given."""

    segments: tuple[str, ...]
    record_log: str | None
    parquet: tuple[str, ...]
    engine: EngineOptions

    @property
    def flags(self) -> tuple[str, ...]:
        given = {"--segments": self.segments, "--record-log": self.record_log, "--parquet": self.parquet}
        return tuple(flag for flag, value in given.items() if value not in ((), None))

    @property
    def engine_flags(self) -> tuple[str, ...]:
        """The options that say who reads files, as far as they ask for more than there is without them."""
        engine = self.engine
        given = {
            "--engine": engine.name.value == "spark",
            "--jobs": engine.jobs is not None,
            "--master": engine.master is not None,
            "--remote": engine.remote is not None,
        }
        return tuple(flag for flag, is_given in given.items() if is_given)

    @property
    def is_given(self) -> bool:
        return bool(self.flags)

    @property
    def flag(self) -> str:
        """The one source. Raises `UsageError` for several, and for an empty path."""
        if len(self.flags) > 1:
            raise UsageError(f"{self.flags[0]} and {self.flags[1]} exclude each other")
        if "" in (*self.segments, self.record_log, *self.parquet):
            raise UsageError(f"{self.flags[0]} is empty (an unset variable?)")
        return self.flags[0]

    def paths(self, given: Sequence[str]) -> list[Path]:
        """The files and folders that an option names. Raises `UsageError` for a store that is elsewhere."""
        from kgctl.pipeline.store.files import StoreLocation

        found = []
        for each in given:
            location = StoreLocation.parse(each) if "://" in each else None
            if location is not None and not location.is_local:
                raise UsageError(f"{self.flag} {each}: files of this machine are read; bring them here first")
            found.append(at_home(each if location is None else location.uri))
        return found


def collect_from_files(session: Session, rest: Rest, warehouse: str | None, cluster: str | None) -> Report:
    """Collect segments, a record log or Parquet files."""
    require_tables(rest.engine)
    from kgctl.pipeline.collect.at_rest import collect_at_rest
    from kgctl.pipeline.engines import open_engine

    sources, samples, found = _source(session, rest)
    opened = _open(warehouse_path(warehouse, session.environment))
    name = cluster or found or DEFAULT_CLUSTER
    now_ms = session.environment.now_ms()
    size = sum(piece.size for source in sources for piece in source.pieces)
    with open_engine(rest.engine, is_light=size < _LARGE_BYTES) as engine, progress_line(session.environment) as progress:
        collection = collect_at_rest(opened, name, sources, engine, progress, now_ms=now_ms)
    if not any(isinstance(error, RefusedError) for error in collection.errors):
        collection.samples = opened.add_samples(name, samples, is_again=True)
    return report_of(collection)


def _source(session: Session, rest: Rest) -> tuple[list[RestSource], Any, str | None]:
    """Sources, samples, and the name that their cluster has there."""
    from kgctl.pipeline.sources import at_rest
    from kgctl.pipeline.store.tables import LOG_OFFSETS

    if rest.record_log is not None:
        (folder,) = rest.paths([rest.record_log])
        samples = at_rest.record_log_samples(folder, every_ms=_SAMPLE_EVERY_MS, now_ms=session.environment.now_ms())
        return [at_rest.record_log(folder)], samples, None
    if rest.parquet:
        paths = rest.paths(rest.parquet)
        found = [at_rest.parquet(path) for path in paths]
        return found, at_rest.parquet_samples(*paths), _one_cluster(found)
    return [at_rest.segments(path) for path in rest.paths(rest.segments)], LOG_OFFSETS.empty_table(), None


def _one_cluster(sources: Sequence[RestSource]) -> str | None:
    """The cluster that all of the sources are of which tell. Raises `UsageError` where they are of several."""
    names = sorted({source.cluster for source in sources if source.cluster is not None})
    if len(names) > 1:
        raise UsageError(f"--parquet: these are of several clusters ({', '.join(names)}): collect them one by one")
    return names[0] if names else None


def collect_from_cluster(session: Session, live: LiveOptions, rest: Rest, warehouse: str | None, cluster: str | None) -> Report:
    """A live cluster; an embedded coordinator's folder is read as the file that it is."""
    settings = connection_settings(session.flags, session.environment)
    if settings.embedded is not None:
        live.refuse_with("--embedded")
        rest = Rest((), str(settings.embedded), (), rest.engine)
        return collect_from_files(session, rest, warehouse, cluster)
    if settings.zookeeper is not None:
        raise UsageError("groups in ZooKeeper leave no history: collect that of the Kafka cluster, with --bootstrap-server")
    if rest.engine.remote is not None:
        raise UsageError("--remote is for files: a live cluster is collected with --master, or by a job with kgctl.spark.collect")
    if choose(rest.engine)[0] is EngineName.SPARK:
        require_tables(rest.engine)
        place = warehouse_path(warehouse, session.environment)
        return report_of(_collect_on_spark(session, settings, live, rest.engine, (place, cluster)))
    if rest.engine_flags:
        raise UsageError(f"{rest.engine_flags[0]} is for files: --segments, --record-log or --parquet; or add --engine spark")
    require_tables()
    collection = _collect_live(session, settings, live, warehouse, cluster)
    return report_of(collection)


def _collect_on_spark(
    session: Session,
    settings: ConnectionSettings,
    live: LiveOptions,
    how: EngineOptions,
    into: tuple[StoreLocation, str | None],
) -> Collection:
    """A live cluster by Spark's executors: each trigger is a commit, and samples the log ends. A cluster that was there once is
    waited for."""
    from kgctl.pipeline.collect.collection import Collection
    from kgctl.pipeline.collect.stream import BatchWriter, passes, run
    from kgctl.pipeline.engines import open_engine
    from kgctl.pipeline.sources.live import CollectOrigin

    properties, halt = _properties(settings), threading.Event()
    with _opened_reader(session, live, settings, properties) as reader:
        state = reader.log_state()
    origin = CollectOrigin(
        properties=properties,
        reader=cast("ReaderName", live.reader),
        timeout_ms=settings.timeout_ms,
        all_topics=live.all_topics,
    )
    collection = Collection(into[1] or state.cluster_id or DEFAULT_CLUSTER)
    collection.errors += state.errors.values() if live.once else ()
    batches = BatchWriter(_open(into[0]), collection, origin, bool if live.once else session.notice)
    every = None if live.once else f"{live.sample_every_ms} milliseconds"
    ending = ending_on_signals(halt.set, enabled=not live.once)
    with open_engine(how, is_light=False) as engine, ending, _ending_after(live.for_ms, halt):
        while not halt.is_set():
            try:
                run(engine.session, batches, halt, every=every)
            except KgctlError as error:
                if live.once or not collection.samples or not passes(error):
                    raise
                session.notice(f"kgctl: {error.message}; trying again in {AFTER_TROUBLE_S:g} s")
                halt.wait(AFTER_TROUBLE_S)
            if live.once:
                break
    collection.errors += batches.unsampled.now.values()
    return collection


@contextmanager
def _ending_after(for_ms: int | None, halt: threading.Event) -> Iterator[None]:
    timer = threading.Timer((for_ms or 0) / 1000, halt.set)
    if for_ms is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _collect_live(
    session: Session, settings: ConnectionSettings, live: LiveOptions, warehouse: str | None, cluster: str | None
) -> Collection:
    with LiveSource.open(session, live, warehouse_path(warehouse, session.environment), cluster, settings) as source:
        halt = threading.Event()

        def stop() -> None:
            source.stop()
            halt.set()

        with ending_on_signals(stop, enabled=not live.once):
            return source.collect(live.plan(), halt)


class LiveSource:
    """A cluster that is collected into a warehouse, by one connection, as often as it is asked to be."""

    def __init__(self, session: Session, live: LiveOptions, reader: LiveReader, warehouse: Warehouse) -> None:
        """Made by `open`, which says which cluster it is and where."""
        self.cluster = self._address = ""
        self._session = session
        self._live = live
        self._reader = reader
        self._warehouse = warehouse
        self._collection: LiveCollection | None = None
        self._stopped = False

    @classmethod
    @contextmanager
    def open(
        cls,
        session: Session,
        live: LiveOptions,
        warehouse: StoreLocation,
        cluster: str | None,
        settings: ConnectionSettings | None = None,
    ) -> Iterator[LiveSource]:
        """Connect; a warehouse that is not there is made.

        Raises `KgctlError` (no cluster is named, it is none that can be followed, or it cannot be reached).
        """
        require_tables()
        chosen = settings or followed_settings(session)
        properties = _properties(chosen)
        with _opened_reader(session, live, chosen, properties) as reader:
            name = cluster or reader.log_state().cluster_id or DEFAULT_CLUSTER
            source = cls(session, live, reader, _open(warehouse))
            source.cluster, source._address = name, properties["bootstrap.servers"]
            yield source

    def stop(self) -> None:
        """End the collection that is running, in good order, and begin none any more."""
        self._stopped = True
        if self._collection is not None:
            self._collection.stop()

    def collect(self, plan: CollectPlan, halt: threading.Event, flushed: Callable[[], object] = bool) -> Collection:
        """Collect once, as ``plan`` says; pauses end when ``halt`` is set. Raises as `LiveCollection.run`."""
        from kgctl.pipeline.collect.live import LiveCollection, World

        environment = self._session.environment
        with progress_line(environment) as progress:
            world = World(environment.now_ms, time.monotonic, halt.wait, environment.notice, progress, flushed)
            self._collection = LiveCollection(
                self._warehouse, self.cluster, self._reader, source=self._address, plan=plan, world=world
            )
            if self._stopped:
                self._collection.stop()
            return self._collection.run(self._reader.log_state())

    def follow(
        self, every_s: float, for_s: float | None, flushed: Callable[[], object], halt: threading.Event
    ) -> KgctlError | None:
        """Collect what is there, then what comes; ``flushed`` is called after the first, and then every so often.

        Return why the cluster was not there at the end; None: it was, as far as was asked.
        """
        plan = self._live.plan()
        self.collect(replace(plan, once=True, for_s=None), halt)
        if not self._stopped:
            flushed()
        if self._stopped:
            return None
        return self.collect(replace(plan, once=False, for_s=for_s, flush_every_s=every_s), halt, flushed).away


@contextmanager
def _opened_reader(
    session: Session, live: LiveOptions, settings: ConnectionSettings, properties: dict[str, str]
) -> Iterator[LiveReader]:
    from kgctl.pipeline.sources.live import open_reader

    reader, why = open_reader(properties, settings.timeout_ms, cast("ReaderName", live.reader))
    if why is not None:
        session.notice(
            f"kgctl's own connection does not cover {why}, so confluent-kafka reads: what a transaction commits counts "
            "from its record on, not from the transaction's end"
        )
    try:
        yield reader
    finally:
        reader.close()


def followed_settings(session: Session) -> ConnectionSettings:
    """The cluster that the options name. Raises `UsageError` where there is nothing to follow: files, ZooKeeper."""
    settings = connection_settings(session.flags, session.environment)
    if settings.embedded is not None or settings.zookeeper is not None:
        raise UsageError(
            "a live cluster is followed, with --bootstrap-server; for others collect with kgctl history collect, "
            "and watch with --no-collect"
        )
    return settings


def _properties(settings: ConnectionSettings) -> dict[str, str]:
    properties = dict(settings.properties)
    servers = settings.bootstrap or properties.get("bootstrap.servers") or properties.pop("metadata.broker.list", None)
    if not servers:
        raise UsageError("no cluster given: use --bootstrap-server HOST:PORT")
    return {**properties, "bootstrap.servers": servers}


def _open(warehouse: StoreLocation) -> Warehouse:
    from kgctl.pipeline.store.warehouse import Warehouse

    return Warehouse.create(warehouse)


@contextmanager
def ending_on_signals(stop: Callable[[], object], *, enabled: bool = True) -> Iterator[None]:
    """SIGINT and SIGTERM call ``stop``, which ends the work in good order; a second one ends the process."""
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_signal(_number: int, _frame: object) -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop()

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@shows(COLUMNS, summary=SUMMARY, examples="kgctl history collect --bootstrap-server broker:9092 --once")
def history_collect(
    session: Session,
    *,
    segments: Annotated[
        list[str] | None,
        option(
            "PATH", "Segments copied from a broker: a folder __consumer_offsets-N, a folder of such, or a .log file; repeatable."
        ),
    ] = None,
    record_log: Annotated[str | None, option("DIR", "The data folder of kgctl serve or simulate run --records-out.")] = None,
    parquet: Annotated[
        list[str] | None, option("PATH", "Records collected earlier: another warehouse, or Parquet files; repeatable.")
    ] = None,
    warehouse: asking.Warehouse = None,
    cluster: Annotated[
        str | None, option("NAME", "Keep it under this name; else the cluster's id, else 'default'.", "--cluster")
    ] = None,
    once: Annotated[bool, flag("--once", "Live: up to what is there now, then end.")] = False,
    for_: Annotated[str | None, option("TIME", "Live: for so long, as 10m.", "--for")] = None,
    how_live: asking.AskedLive,
    engine: Annotated[EngineName, option("", "Read here or on Spark; auto reads a live cluster here.")] = EngineName.AUTO,
    jobs: Annotated[int | None, option("N", "Files: so many processes. [default: one a processor]", min=1)] = None,
    spark: asking.AskedSpark,
) -> Report:
    """Collect the records of __consumer_offsets into a warehouse, from a live cluster or from files.

    A live collection goes on where the last one ended. Without --once or --for it runs until Ctrl-C or SIGTERM and then ends
    with 0, everything written. It also samples the log offsets of the topics: without samples lag is unknown. Collecting the same
    again adds nothing; what is damaged is kept aside and named, and the exit code is 3.
    """
    live = live_options(how_live, once=once, for_=for_)
    how = EngineOptions(name=engine, jobs=jobs, what="history collect --engine spark", **vars(spark))
    rest = Rest(tuple(segments or ()), record_log, tuple(parquet or ()), how)
    if cluster == "":
        raise UsageError("--cluster is empty (an unset variable?): leave it out, or give it a name")
    if rest.is_given:
        live.refuse_with(rest.flag)
        return collect_from_files(session, rest, warehouse, cluster)
    return collect_from_cluster(session, live, rest, warehouse, cluster)
