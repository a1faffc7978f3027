"""The sources as a data source of PySpark, for jobs of people's own::

    from kgctl.pipeline.sources.spark_source import register

    register(spark)
    spark.read.format("kgctl-consumer-offsets").option("segments", "/data/kafka-logs").load()
    spark.readStream.format("kgctl-consumer-offsets").option("kafka.bootstrap.servers", "broker:9092").load()

Rows have the columns of the table ``records``, less ``cluster`` and ``source``, markers of transactions included. One of these
options says where they come from:

``segments``, ``recordLog``, ``parquet``
    a path, as the options of ``kgctl history collect``; batch only
``kafka.bootstrap.servers``
    a live cluster, batch and streaming; further ``kafka.NAME`` are librdkafka's properties, ``reader`` is ``auto``, ``wire`` or
    ``confluent``, ``timeoutMs`` covers each call, ``maxOffsetsPerTrigger`` limits a micro-batch, ``startingOffsets``
    (``{"0": 17, ...}``) says where a stream begins where that is not where the log does, ``everyTrigger`` (``true``) has a
    micro-batch at each trigger, also where nothing is new

``failOnDamage`` (default ``true``): what cannot be read fails the query, with its place; ``false`` leaves it out and logs it.
``reports`` (``true``; of files and streams): two more columns, ``source``, the file or address, and ``report``, JSON in a row of
its own behind the records that it is of: what could not be read is data then, as in ``kgctl history collect``.

The executors need kgctl with its extra ``spark``, and see the same paths. `of_kafka_source` makes the same rows of the JVM's own
source (``spark-sql-kafka``), for those who have its jar.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kgctl.errors import KgctlError, RefusedError, StorageError, TimedOutError, UsageError
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.sources.at_rest import LogPiece, RestSource, parquet, record_log, segments
from kgctl.pipeline.sources.batches import Damage, LogReport
from kgctl.pipeline.sources.live import OFFSETS_TOPIC, CollectOrigin, LiveReader, LogState, ReaderName
from kgctl.pipeline.store.tables import TABLES, to_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

NAME = "kgctl-consumer-offsets"
SCHEMA = (
    "log_partition int, log_offset bigint, time timestamp, key binary, value binary, "
    "producer_id bigint, producer_epoch smallint, commits boolean"
)
COLUMNS = tuple(column.split(" ")[0] for column in SCHEMA.split(", "))
REPORTS = "source string, report string"
_FILES = {"segments": segments, "recordLog": record_log, "parquet": parquet}
_LIVE = "kafka.bootstrap.servers"
_ROWS = 100_000
_WAIT_MS = 500
_FUTILE_ROUNDS = 5
_DEFAULT_TIMEOUT_MS = "15000"


def register(spark: SparkSession) -> None:
    """Make the source known to a session, under `NAME`."""
    spark.dataSource.register(ConsumerOffsetsSource)


def of_kafka_source(frame: DataFrame) -> DataFrame:
    """The rows of ``spark.read.format("kafka")`` on ``__consumer_offsets`` in the columns of this source.

    The JVM's source shows no markers: read with ``kafka.isolation.level=read_committed``; what a transaction committed then
    counts from its record on.
    """
    return frame.selectExpr(
        "partition AS log_partition",
        "offset AS log_offset",
        "timestamp AS time",
        "key",
        "value",
        *("CAST(NULL AS {1}) AS {0}".format(*column.split(" ")) for column in SCHEMA.split(", ")[5:]),
    )


class ConsumerOffsetsSource(DataSource):
    """See the module. Options are checked when a reader is asked for."""

    @classmethod
    def name(cls) -> str:
        """Return the name that ``format()`` takes."""
        return NAME

    def schema(self) -> str:
        """The columns of records, and those of reports where they are asked for."""
        return f"{SCHEMA}, {REPORTS}" if _is_on(self.options, "reports", "false") else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for ``spark.read``."""
        del schema
        options = dict(self.options)
        given = [name for name in (*_FILES, _LIVE) if _option(options, name)]
        if len(given) != 1:
            what = " and ".join(given) or "none"
            raise UsageError(f"{NAME}: one of the options {', '.join((*_FILES, _LIVE))} must be given; {what} was")
        fails, reports = _is_on(options, "failOnDamage", "true"), _is_on(options, "reports", "false")
        if given[0] != _LIVE:
            # executors have another working folder
            return PieceReader(given[0], Path(_option(options, given[0])).absolute(), fails, reports)
        if reports:
            raise UsageError(f"{NAME}: reports are of streams, and of files: {', '.join(_FILES)}")
        return LiveBatchReader(_origin(options), _How(fails))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader for ``spark.readStream``: live clusters only."""
        del schema
        options = dict(self.options)
        if not _option(options, _LIVE):
            raise UsageError(f"{NAME}: a stream needs the option {_LIVE}")
        most = _number(options, "maxOffsetsPerTrigger") if _option(options, "maxOffsetsPerTrigger") else None
        begins, always = _offsets(options, "startingOffsets"), _is_on(options, "everyTrigger", "false")
        how = _How(_is_on(options, "failOnDamage", "true"), _is_on(options, "reports", "false"))
        return LiveStreamReader(_origin(options), how, most, begins, is_always_new=always)


def options_of(origin: CollectOrigin) -> dict[str, str]:
    """What the source is told for a collection."""
    named = {f"kafka.{name}": value for name, value in origin.properties.items()}
    return {**named, "reader": origin.reader, "timeoutMs": str(origin.timeout_ms), "reports": "true", "everyTrigger": "true"}


def _origin(options: Mapping[str, str]) -> CollectOrigin:
    """The cluster that the source's options name, and the client that reads it."""
    properties = {name.lower()[6:]: value for name, value in options.items() if name.lower().startswith("kafka.")}
    reader = _option(options, "reader", "auto")
    if reader not in ("auto", "wire", "confluent"):
        raise UsageError(f"{NAME}: reader {reader!r}: auto, wire or confluent")
    timeout_ms = _number(options, "timeoutMs", _DEFAULT_TIMEOUT_MS)
    return CollectOrigin(properties=properties, reader=cast("ReaderName", reader), timeout_ms=timeout_ms)


def _state(origin: CollectOrigin, *, is_whole: bool = True) -> LogState:
    """The log as it is. Raises the error of a partition where one has any, unless it need not be whole."""
    with origin.opened() as reader:
        state = reader.log_state()
    for error in state.errors.values():
        if is_whole:
            raise error
        logging.getLogger("kgctl.pipeline").warning("%s", error.message)
    return state


class PieceInput(InputPartition):
    """The input partition of one piece of a source at rest."""

    def __init__(self, piece: LogPiece) -> None:
        self.piece = piece


@frozen_in_order
class _How:
    """What to do with damage, and whether to report."""

    fails: bool
    reports: bool = False


@dataclass(frozen=True)
class OffsetRange:
    """Offsets ``start`` to ``end`` (not included) of one partition of a live cluster."""

    partition: int
    start: int
    end: int


class RangesInput(InputPartition):
    """Ranges that one task reads, one after the other."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        self.ranges = ranges


class PieceReader(DataSourceReader):
    """Reads files as a batch: one task for each piece."""

    def __init__(self, kind: str, path: Path, fails: bool, reports: bool) -> None:  # noqa: FBT001 - options' values
        self._kind = kind
        self._path = path
        self._fails = fails
        self._reports = reports

    def partitions(self) -> Sequence[InputPartition]:
        """One a segment file, a partition of a record log, or a Parquet file."""
        source: RestSource = _FILES[self._kind](self._path)
        return [PieceInput(piece) for piece in source.pieces]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield record batches."""
        assert isinstance(partition, PieceInput)
        if self._reports:
            yield from _with_reports(partition.piece)
            return
        for parsed in partition.piece.read():
            _meet(partition.piece.source, parsed.damaged, fails=self._fails)
            for table in parsed.tables:
                yield from _batches(table)


class LiveBatchReader(DataSourceReader):
    """Batch, from a cluster: what is there when the query is planned; one task a partition."""

    def __init__(self, target: CollectOrigin, how: _How) -> None:
        self._target = target
        self._how = how

    def partitions(self) -> Sequence[InputPartition]:
        """One a partition of ``__consumer_offsets`` that has something."""
        bounds = _state(self._target).bounds
        return [RangesInput([OffsetRange(number, start, end)]) for number, (start, end) in bounds.items() if start < end]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield record batches."""
        return _read_ranges(self._target, partition, self._how)


_TRIGGER = "trigger"
"""In a stream's offsets, beside the partitions: when they were asked for, where each trigger is to have its micro-batch."""


class LiveStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streaming, from a cluster. Offsets are those of the log: ``{"0": 17, ...}``. A partition that has no leader has no news."""

    def __init__(
        self, target: CollectOrigin, how: _How, most: int | None, begins: Mapping[str, int], *, is_always_new: bool
    ) -> None:
        self._target = target
        self._how = how
        self._most = most
        self._begins = begins
        self._is_always_new = is_always_new
        self._final: dict[str, int] | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end of the query where the logs end now."""
        self._final = self._ends()

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return where the logs begin, or where the stream is to."""
        begins = {str(number): start for number, (start, _) in _state(self._target).bounds.items()}
        return {number: max(start, self._begins.get(number, start)) for number, start in begins.items()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return ``maxOffsetsPerTrigger`` as a limit, if it is given."""
        return ReadAllAvailable() if self._most is None else ReadMaxRows(self._most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Where the logs end, or so far on the way there that no more than the limit comes."""
        found = {**start, **(self._ends() if self._final is None else self._final)}
        trigger = {_TRIGGER: found.pop(_TRIGGER)} if _TRIGGER in found else {}
        ends = {number: found[number] for number in found}
        for number, end in ends.items():
            if start.get(number, 0) > end:
                raise RefusedError(f"{OFFSETS_TOPIC}-{number} ends at {end}, before offset {start[number]} that was read")
        left = sum(end - start.get(number, 0) for number, end in ends.items())
        if isinstance(limit, ReadMaxRows) and left > limit.max_rows:
            share = limit.max_rows / left
            ends = {number: _part_of_the_way(start.get(number, 0), end, share) for number, end in ends.items()}
        return {**ends, **trigger}

    def _ends(self) -> dict[str, int]:
        state = _state(self._target, is_whole=False)
        ends = {str(number): end for number, (_, end) in state.bounds.items()}
        return {**ends, _TRIGGER: time.time_ns()} if self._is_always_new else ends  # noqa: TID251 - another one each time

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """As few input partitions as what is new is little: one for each `_ROWS` offsets, none of them of more log partitions
        than need be."""
        found = [OffsetRange(int(number), start.get(number, 0), stop) for number, stop in end.items() if number != _TRIGGER]
        new = sorted((each for each in found if each.start < each.end), key=lambda each: each.start - each.end)
        tasks = min(len(new), sum(each.end - each.start for each in new) // _ROWS + 1)
        return [RangesInput(new[first::tasks]) for first in range(tasks)] or [RangesInput([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield record batches."""
        return _read_ranges(self._target, partition, self._how)


def _part_of_the_way(start: int, end: int, share: float) -> int:
    return start + min(end - start, int((end - start) * share) + 1)


def _read_ranges(target: CollectOrigin, partition: InputPartition, how: _How) -> Iterator[Any]:
    """The records of ranges, each with its report behind it where there are reports."""
    assert isinstance(partition, RangesInput)
    source = target.address if how.reports else None
    with target.opened() as reader:
        for wanted in partition.ranges:
            damaged: list[Damage] = []
            for table in _read_range(reader, target.timeout_ms, wanted, damaged, fails=how.fails and not how.reports):
                yield from _batches(table, source)
            if source is not None:
                yield _report(wanted.partition, source, LogReport(damaged=damaged, span=(wanted.start, wanted.end)))


def _read_range(reader: LiveReader, timeout_ms: int, wanted: OffsetRange, damaged: list[Damage], *, fails: bool) -> Iterator[Any]:
    import pyarrow.compute as pc

    position, futile = wanted.start, 0
    while position < wanted.end:
        parts, errors = reader.fetch({wanted.partition: position}, _WAIT_MS)
        for error in errors.values():
            raise error
        part = parts.get(wanted.partition)
        futile = futile + 1 if part is None or part.next_offset <= position else 0
        if part is None and futile * _WAIT_MS >= timeout_ms:  # to end would leave out what is behind, for good
            raise TimedOutError(f"{OFFSETS_TOPIC}-{wanted.partition}: nothing came from offset {position} on")
        if part is None:
            continue
        if futile >= _FUTILE_ROUNDS:  # the log ends in records that no client is given
            return
        _meet(f"{OFFSETS_TOPIC}-{wanted.partition} from offset {position}", part.damaged, fails=fails)
        damaged += part.damaged
        yield part.table.filter(pc.less(part.table.column("offset"), wanted.end))
        position = part.next_offset


def _batches(table: Any, source: str | None = None) -> list[Any]:
    """Records (`RAW`) as Spark takes them, to which every column may be null; with columns of reports where a source is given."""
    import pyarrow as pa

    stored = to_stored("records", table, "").select(COLUMNS)
    columns = stored.columns
    if source is not None:
        columns = [*columns, pa.repeat(source, table.num_rows), pa.nulls(table.num_rows, pa.string())]
    return list(pa.table(columns, schema=_schema(is_reported=source is not None)).to_batches(_ROWS))


def _meet(source: str, damaged: Sequence[Damage], *, fails: bool) -> None:
    for damage in damaged:
        if fails:
            raise StorageError(f"{source} {damage.describe()}; the option failOnDamage=false leaves it out", code="DAMAGED")
        logging.getLogger("kgctl.pipeline").warning("%s %s", source, damage.describe())


def _with_reports(piece: LogPiece) -> Iterator[Any]:
    """The records of a piece, with a report behind those of each part, and one of the error that ended it."""
    partition = getattr(piece, "partition", None)
    try:
        for parsed in piece.read():
            for table in parsed.tables:
                yield from _batches(table, source=piece.source)
            yield _report(partition, piece.source, LogReport(parsed.batches, parsed.torn, parsed.damaged))
    except KgctlError as error:
        yield _report(partition, piece.source, LogReport(error=(error.code, error.message)))


def _report(partition: int | None, source: str, report: LogReport) -> Any:
    import pyarrow as pa

    row = {"log_partition": partition, "source": source, "report": report.text()}
    return pa.RecordBatch.from_pylist([row], schema=_schema(is_reported=True))


def _schema(*, is_reported: bool) -> Any:
    import pyarrow as pa

    records = [TABLES["records"].schema.field(name).with_nullable(True) for name in COLUMNS]  # noqa: FBT003 - pyarrow's signature
    return pa.schema([*records, *(pa.field(name, pa.string()) for name in ("source", "report") if is_reported)])


def _is_on(options: Mapping[str, str], name: str, default: str) -> bool:
    return _option(options, name, default).lower() != "false"


def _number(options: Mapping[str, str], name: str, default: str = "") -> int:
    text = _option(options, name, default)
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"{NAME}: {name} {text!r}: a whole number above 0")
    return int(text)


def _offsets(options: Mapping[str, str], name: str) -> Mapping[str, int]:
    text = _option(options, name, "{}")
    try:
        found = json.loads(text)
        return {str(int(number)): int(offset) for number, offset in found.items()}
    except (ValueError, TypeError, AttributeError):
        raise UsageError(f'{NAME}: {name} {text!r}: wanted is {{"PARTITION": OFFSET, ...}}') from None


def _option(options: Mapping[str, str], name: str, default: str = "") -> str:
    """Return an option; their names have no case in Spark."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), default)
