"""Collecting from a live cluster on Spark: a stream of kgctl's data source, of which each micro-batch is one commit.

Executors read and write records; the driver commits their files together with the offsets from which the next collection goes on.
That is all there is to go on from: a stream begins where the warehouse says, whatever became of the one before.
"""

from __future__ import annotations

import json
import logging
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kgctl.errors import KgctlError, RefusedError
from kgctl.pipeline.collect.collection import Collection, LastTroubles, TopicsSeen
from kgctl.pipeline.collect.live import AWAY, OVERTAKEN_AT_MOST, deleted, require_same_log, samples_table, truncated
from kgctl.pipeline.engines import SparkEndedError, SparkError, shipped, spark_errors
from kgctl.pipeline.sources.batches import Damage, LogReport, damaged_table
from kgctl.pipeline.sources.live import OFFSETS_TOPIC, CollectOrigin, LiveReader, LogState
from kgctl.pipeline.store.tables import RAW, conform, from_stored
from kgctl.pipeline.store.warehouse import (
    Known,
    OvertakenError,
    Staged,
    Warehouse,
    commit_records,
    next_number,
    stage_together,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOGGER = logging.getLogger("kgctl.pipeline")


MOST = 1_000_000
"""So many offsets are a micro-batch at most."""
_LOOK_S = 0.1


def run(session: SparkSession, batches: BatchWriter, halt: threading.Event, *, every: str | None) -> None:
    """Collect as `start` does, until all is there (``every`` is None) or ``halt`` is set: the micro-batch under way is ended.

    Raises what ended it: `RefusedError` and others of a micro-batch, else `KgctlError` in Spark's words.
    """
    batches.watch()
    with spark_errors():
        query = start(session, batches, every=every, most=MOST)
        try:
            while query.isActive and batches.failed is None and not halt.wait(_LOOK_S):
                pass
            batches.is_over = True
            while query.isActive and batches.is_busy:
                time.sleep(_LOOK_S)
            if not query.isActive and batches.failed is None:
                query.awaitTermination()
        finally:
            query.stop()
    if batches.failed is not None:
        raise batches.failed


def passes(error: KgctlError) -> bool:
    """Whether a collection that goes on waits for the end of this: the cluster is away, or Spark could not, and is there."""
    return isinstance(error, (*AWAY, SparkError)) and not isinstance(error, SparkEndedError)


def start(session: SparkSession, batches: BatchWriter, *, every: str | None, most: int) -> StreamingQuery:
    """Begin where the last collection ended. ``every``: a trigger each so long, as ``10 seconds``; None: up to what is there now.

    Raises `KgctlError` where the cluster cannot be reached or is another one than that of the warehouse.
    """
    from kgctl.pipeline.sources.spark_source import NAME, options_of, register

    origin = batches.origin
    with origin.opened() as reader:
        begins = batches.begin(reader.log_state())
    register(session)
    options = {**options_of(origin), "startingOffsets": json.dumps(begins), "maxOffsetsPerTrigger": str(most)}
    stream = session.readStream.format(NAME).options(**options).load().writeStream.foreachBatch(batches)
    return (stream.trigger(availableNow=True) if every is None else stream.trigger(processingTime=every)).start()


@dataclass
class BatchWriter:
    """What is done with each micro-batch, where Spark's driver runs. ``collection`` says for which cluster, and takes what comes;
    ``notice`` is told what partitions and samples cannot be had, once; ``is_over``: no batch is taken any more; ``is_watched``:
    somebody looks what a batch ``failed`` of and what the collection has, and neither Spark nor the log is told."""

    warehouse: Warehouse
    collection: Collection
    origin: CollectOrigin
    notice: Callable[[str], object] = _LOGGER.warning
    is_over: bool = False
    is_busy: bool = False
    is_watched: bool = False
    failed: KgctlError | None = None
    missing: LastTroubles = field(default_factory=LastTroubles)
    unsampled: LastTroubles = field(default_factory=LastTroubles)

    def watch(self) -> None:
        """Begin to keep what a batch fails of."""
        self.is_over, self.is_watched, self.failed = False, True, None

    def __call__(self, frame: DataFrame, _number: int) -> None:
        """Commit the records, then sample the log ends. Raises `RefusedError`, with nothing kept of the batch."""
        self.is_busy = True
        try:
            if self.failed is None and not self.is_over:
                with spark_errors():
                    self._commit(frame)
        except KgctlError as error:
            self.failed = error
            if not self.is_watched:
                raise
        finally:
            self.is_busy = False

    def _commit(self, frame: DataFrame) -> None:
        before = len(self.collection.errors)
        with self.origin.opened() as reader:
            state = reader.log_state()
            for error in self.missing.look(state.errors):
                self.notice(error.message)
            for tries_left in reversed(range(OVERTAKEN_AT_MOST)):
                try:
                    self._take(frame, state)
                    break
                except OvertakenError:
                    if not tries_left:
                        raise
            self._sample(reader)
        self._log(error.message for error in self.collection.errors[before:])

    def begin(self, state: LogState) -> dict[int, int]:
        """Where to go on, by partition. The warehouse knows of the cluster then.

        Raises `RefusedError` where it is another one.
        """
        cluster, table, begins = self.collection.cluster, self.warehouse.table("records"), {}
        require_same_log(self.warehouse, cluster, state)
        self.warehouse.tell(cluster, _now_ms(), cluster_id=state.cluster_id, log_id=state.log_id)
        for number, (first, end) in state.bounds.items():
            known = table.number(next_number(cluster, number))
            if known is not None and known > end:
                raise truncated(cluster, number, known, end)
            if known is not None and 0 <= known < first:
                self._tell(deleted(number, known, first))
            begins[number] = max(known or 0, first)
        return begins

    def _tell(self, notice: str) -> None:
        if notice not in self.collection.notices:
            self.collection.notices.append(notice)
            self._log([notice])

    def _log(self, lines: Iterable[str]) -> None:
        for line in () if self.is_watched else lines:
            _LOGGER.warning("%s", line)

    def _take(self, frame: DataFrame, state: LogState) -> None:
        begins = self.begin(state)
        known = self._known(begins)
        staged = frame.mapInArrow(shipped(_Staging(known, begins, self.origin.address)), "read binary").collect()
        reads: list[TaskRead] = [pickle.loads(row.read) for row in staged]  # noqa: S301 - what kgctl's tasks have made
        spans = {number: span for read in reads for number, span in read.spans.items()}
        self._require_no_gap(spans, begins)
        ends = {number: max(end, begins.get(number, end)) for number, (_, end) in spans.items()}
        added = commit_records(self.warehouse, known, [each for read in reads for each in read.staged], positions=ends)
        self.warehouse.tell(known.cluster, _now_ms(), topics={topic for read in reads for topic in read.topics})
        for read in reads:
            self._note(read)
        for number, fresh in added.items():
            self.collection.of(number).see(fresh)

    def _known(self, begins: Mapping[int, int]) -> Known:
        """The files only where new records may be in them: those of files that were collected ahead of this."""
        known = Known.of(self.warehouse, self.collection.cluster)
        is_ahead = any(high > begins.get(number, high) for number, high in known.highs.items())
        return known if is_ahead else replace(known, files=())

    def _require_no_gap(self, spans: Mapping[int, tuple[int, int]], begins: Mapping[int, int]) -> None:
        for number, (first, _) in spans.items():
            if first > begins.get(number, first):
                raise RefusedError(
                    f"partition {number} of cluster '{self.collection.cluster}': this stream is at offset {first}, the warehouse "
                    f"at {begins[number]}: its records were forgotten meanwhile; start the stream again",
                    partition=number,
                )

    def _note(self, read: TaskRead) -> None:
        """Keep what could not be read, and count."""
        for number, count in read.read.items():
            self.collection.of(number).read += count
        for number, damaged in read.damaged.items():
            place = f"{self.origin.address} __consumer_offsets-{number}"
            self.warehouse.add_damaged(self.collection.cluster, damaged_table(place, number, damaged), _now_ms())
            self.collection.add_damage(number, place, damaged)

    def _sample(self, reader: LiveReader) -> None:
        cluster, now_ms = self.collection.cluster, _now_ms()
        topics = None if self.origin.all_topics else sorted({OFFSETS_TOPIC, *self.warehouse.topics(cluster)})
        rows, errors = reader.log_offsets(topics)
        self.collection.samples += self.warehouse.add_samples(cluster, samples_table(rows, now_ms)) if rows else 0
        for error in self.unsampled.sampled(errors):
            self.notice(f"no sample: {error.message}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000  # noqa: TID251 - Spark calls this, and gives no clock


@dataclass(slots=True)
class TaskRead:
    """What a task read: records that are written and not yet named, and of each partition what was asked for."""

    staged: list[Staged] = field(default_factory=list)
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    damaged: dict[int, Sequence[Damage]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Staging:
    """What a task does with the records and reports of its ranges: they share a file."""

    known: Known
    begins: Mapping[int, int]
    source: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        found, seen = TaskRead(), TopicsSeen()
        tables: dict[int, list[pa.Table]] = {}
        for batch in batches:
            rows = pa.table(batch)
            is_record = pc.is_null(rows.column("report"))
            for report in rows.filter(pc.invert(is_record)).to_pylist():
                self._report(found, report["log_partition"], LogReport.parse(report["report"]))
            records = conform(from_stored("records", rows.filter(is_record).drop_columns(["source", "report"])), RAW)
            for number in pc.unique(records.column("partition")).to_pylist():
                here = records.filter(pc.equal(records.column("partition"), number))
                found.read[number] = found.read.get(number, 0) + here.num_rows
                seen.see(here.column("key"))
                new = here.filter(pc.greater_equal(here.column("offset"), self.begins.get(number, 0)))
                tables.setdefault(number, []).append(new)
        found.staged = stage_together(self.known, [pa.concat_tables(each) for each in tables.values()], self.source)
        found.topics = seen.topics
        yield pa.record_batch({"read": pa.array([pickle.dumps(found)], pa.binary())})

    @staticmethod
    def _report(found: TaskRead, number: int, report: LogReport) -> None:
        assert report.span is not None
        found.spans[number] = report.span
        if report.damaged:
            found.damaged[number] = report.damaged
