"""The tables of a warehouse: what their columns are and mean, and how rows of the pure functions become rows of them and back.

The functions count time in int64 milliseconds (``*_ms``) and keep texts as dictionaries; tables have ``timestamp`` columns in UTC
and plain strings, which every tool reads. ``date`` (of ``time``, in UTC) is the only folder key and no column of the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

TIME = pa.timestamp("us", "UTC")
EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: what a record claims beyond them is put at their ends, so that every tool can show it."""

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "short": pa.int16(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": TIME,
    "array": pa.list_(pa.string()),
}


@dataclass(frozen=True)
class StoredTable:
    """One table. ``time`` is the column that ``date`` comes from, ``ranges`` those whose smallest and greatest values a commit
    has; ``renamed`` maps columns of the functions to columns of the table; ``meanings`` has a sentence for each column."""

    name: str
    about: str
    schema: pa.Schema
    meanings: Mapping[str, str]
    time: str
    ranges: Sequence[str]
    renamed: Mapping[str, str]

    def dated(self, *, has_comments: bool = False) -> pa.Schema:
        """Its schema with ``date`` as the last column, as readers of the table see it. ``has_comments``: with the meanings as
        Delta Lake keeps them."""
        fields = [*self.schema, pa.field("date", pa.date32())]
        if not has_comments:
            return pa.schema(fields)
        meanings = {**self.meanings, "date": f"the day of {self.time}, in UTC"}
        return pa.schema([each.with_metadata({"comment": meanings[each.name]}) for each in fields])


def _table(name: str, about: str, time: str, columns: str, renamed: Mapping[str, str] | None = None) -> StoredTable:
    """``columns``: a line each: name, type (with ``!`` where it is never null), meaning."""
    fields, meanings = [], {}
    for line in ("cluster string! the cluster's name in this warehouse\n" + columns.strip()).splitlines():
        column, kind, meaning = line.strip().split(" ", 2)
        fields.append(pa.field(column, _TYPES[kind.rstrip("!")], nullable=not kind.endswith("!")))
        meanings[column] = meaning
    ranges = [each for each in _RANGES if each in meanings]
    return StoredTable(name, about, pa.schema(fields), meanings, time, ranges, renamed or {})


_RANGES = ("cluster", "group", "topic", "time", "started", "window_start", "log_partition", "log_offset")

_SERIES = """group string! the consumer group
topic string! the topic
partition int! its partition
"""

_ALL = (
    _table(
        "records",
        "records of __consumer_offsets as they were collected, each once",
        "time",
        """log_partition int! the partition of __consumer_offsets
        log_offset long! the record's offset in it
        time timestamp! the record's timestamp
        key binary the record's key
        value binary the record's value; null removes
        producer_id long of transactional records and markers
        producer_epoch short of transactional records and markers
        commits boolean null for a record; of a transaction's marker: whether it commits
        source string! where it was collected from""",
        {"partition": "log_partition", "offset": "log_offset", "timestamp_ms": "time"},
    ),
    _table(
        "samples",
        "log start and log end of topics' partitions at moments",
        "time",
        """topic string! the topic
        partition int! its partition
        time timestamp! when it was asked
        log_start_offset long null: unknown
        log_end_offset long the high watermark; null: unknown""",
        {"timestamp_ms": "time"},
    ),
    _table(
        "damaged",
        "stretches of files that could not be read",
        "time",
        """source string! the file
        partition int! the partition of __consumer_offsets
        position long! the first byte
        size long! how many bytes
        base_offset long the first offset, where a header that can be read says so
        records long how many records, where a header that can be read says so
        reason string! what is wrong with it
        data binary its first 1,024 bytes
        time timestamp! when it was collected""",
    ),
    _table(
        "clusters",
        "what was collected under a cluster's name; of several rows the last one counts",
        "time",
        """cluster_id string the cluster's own id, where a live cluster has told it
        log_id string the id of its topic __consumer_offsets
        topic string a topic that groups have commits on
        time timestamp! when it was first seen""",
    ),
    _table(
        "offset_commits",
        "every offset commit that took effect, and every removal of one",
        "time",
        _SERIES
        + """time timestamp! when it took effect; a transaction's: its end
        committed_offset long null: removed
        effect_offset long! the log offset at which it took effect
        log_partition int! the partition of __consumer_offsets
        log_offset long! the offset of its record
        commit_time timestamp the client's time in the commit
        expire_time timestamp when it expires, in commits of old brokers
        leader_epoch int! -1: unknown
        metadata string the client's text
        topic_id string the topic's id in Kafka's base64 form, where the commit has it
        transactional boolean! whether a transaction made it""",
        {"time_ms": "time", "commit_timestamp_ms": "commit_time", "expire_timestamp_ms": "expire_time"},
    ),
    _table(
        "generations",
        "one row for each generation (classic) or group epoch (all other types) of a group, and for its end",
        "time",
        """group string! the consumer group
        time timestamp! of the record that began it
        type string! classic, consumer, share or streams
        protocol_type string! consumer, share, streams, or that of Kafka Connect and others
        generation_id int! generation or epoch
        started timestamp when the rebalance began, as far as the log tells
        stable timestamp when all members had it; null: overtaken before
        duration_ms long from started to stable
        started_by string what started is the time of; join_phase_ended: it began before that
        assignor string the assignor, where the log tells
        leader string the leading member of a classic group
        members int! how many members
        members_joined array who was not there in the row before
        members_left array who was there in the row before and is not now
        cause string! why
        log_partition int! the partition of __consumer_offsets
        log_offset long! the offset of the record""",
        {"time_ms": "time", "started_ms": "started", "stable_ms": "stable"},
    ),
    _table(
        "member_changes",
        "members that came, went, or came back with other properties",
        "time",
        """group string! the consumer group
        member_id string! the member
        time timestamp! when the log shows it
        change string! joined, left, updated; closed: a static member that says so, and may be back
        generation_id int! the first generation or epoch of a member that joined, the last of one that left
        group_instance_id string of static members
        client_id string! the client's id
        client_host string! its address
        session_timeout_ms int of classic members
        rebalance_timeout_ms int the longest time for a rebalance
        log_partition int! the partition of __consumer_offsets
        log_offset long! the offset of the record""",
        {"time_ms": "time"},
    ),
    _table(
        "assignment_changes",
        "partitions that members got or gave up",
        "time",
        _SERIES
        + """member_id string! the member
        time timestamp! when the log shows it
        change string! assigned or revoked
        generation_id int! the generation or epoch at which it was assigned
        log_partition int! the partition of __consumer_offsets
        log_offset long! the offset of the record""",
        {"time_ms": "time"},
    ),
    _table(
        "lag",
        "how far behind a group was, at each commit and at samples in between",
        "time",
        _SERIES
        + """time timestamp! the moment
        committed_offset long! the offset that was committed then
        log_end_offset long the log's end then; null: unknown
        lag long log_end_offset - committed_offset; null too where the commit is past the log's end, or before its start
        lag_ms long how long ago the log's end left the committed offset behind
        kind string! commit or sample""",
        {"time_ms": "time"},
    ),
    _table(
        "resets",
        "jumps of a committed offset that reading does not explain",
        "time",
        _SERIES
        + """time timestamp! when it took effect
        offset_before long! the offset before
        offset_after long! the offset after
        records long! offset_after - offset_before
        evidence array! what speaks for it
        log_offset long! the offset of the commit's record""",
        {"time_ms": "time"},
    ),
    _table(
        "commit_rate",
        "how often a group commits and how much it reads, by windows; windows without a commit have no row",
        "window_start",
        _SERIES
        + """window_start timestamp! where the window begins
        window_ms long! how wide it is
        commits long! commits in it
        records_consumed long what they moved on; null: unknown
        records_per_s double the same for each second""",
        {"window_start_ms": "window_start"},
    ),
    _table(
        "status_changes",
        "what a group is with a partition by Burrow's rules, from each moment on",
        "time",
        _SERIES
        + """time timestamp! from when on
        status string! OK, WARN, STALL, STOP, REWIND; PAST_END, BELOW_START: the commit is out of the log""",
        {"time_ms": "time"},
    ),
    _table(
        "group_health",
        "how a group was, by windows; one without a row is as the last",
        "window_start",
        """group string! the consumer group
        window_start timestamp! where the window begins
        window_ms long! how wide it is
        status string the worst of its partitions; null: none is known to be in trouble, and not all were measured
        members int at the window's end
        rebalances int! rebalances in it
        rebalance_ms long how long they took together
        commits long! commits in it
        total_lag long what is unread of all partitions at the window's end; null: the end of one is not known
        max_lag long of one partition at the window's end
        max_lag_ms long of one partition at the window's end
        resets int! resets in it
        stalled_partitions int partitions in STALL or STOP at the window's end; null: none is known, and not all were measured
        past_end int partitions with a commit past the log's end, at the window's end; no part of the lags; null as above
        below_start int partitions with a commit before the log's start, likewise""",
        {"window_start_ms": "window_start"},
    ),
    _table(
        "undecoded",
        "records that kgctl does not understand, as they are",
        "time",
        """log_partition int! the partition of __consumer_offsets
        log_offset long! the offset of the record
        time timestamp! the record's timestamp
        reason string! why
        record_type short the type that its key says
        key binary the record's key
        value binary the record's value""",
        {"time_ms": "time"},
    ),
    _table(
        "coverage",
        "which offsets of the log were collected: runs without a hole, ends included",
        "time",
        """log_partition int! the partition of __consumer_offsets
        first_offset long! the first offset
        last_offset long! the last offset
        first_ms long! the time of the first record, in milliseconds since 1970
        last_ms long! the time of the last record
        time timestamp! of the first record""",
    ),
    _table(
        "state",
        "what builds go on from; not for people",
        "time",
        """bucket int! the first partition of the log that it is of; -1: of the cluster
        state binary Arrow and JSON, zstd
        time timestamp! the horizon: what is later may still change""",
    ),
    _table(
        "builds",
        "one row for each build",
        "started",
        """id long! its number
        bronze_from long! the version of records that was built before; -1: none
        bronze_to long! the version of records that it builds up to
        samples_from long! the version of samples that was built before; -1: none
        samples_to long! the version of samples that it builds up to
        is_rebuild boolean! whether everything is made anew
        started timestamp! when it began
        kgctl_version string! who built it
        engine string! local or spark""",
    ),
)
TABLES: Mapping[str, StoredTable] = {table.name: table for table in _ALL}
GOLD = (
    *("offset_commits", "generations", "member_changes", "assignment_changes", "lag", "resets", "commit_rate"),
    *("status_changes", "group_health", "undecoded"),
)
"""What a build makes of the records and samples of groups."""
BUILT = (*GOLD, "coverage")
"""What a build makes."""
OF_BUILDS = ("state", "builds")
"""What builds write for themselves."""
OF_GROUPS = tuple(name for name in TABLES if name not in OF_BUILDS)
"""What is known of clusters and their groups: all other tables."""


def to_stored(name: str, rows: pa.Table, cluster: str, *, keeps_dictionaries: bool = False) -> pa.Table:
    """Rows of a function as rows of table ``name``; columns that the table has not are left out.

    ``keeps_dictionaries``: texts may stay dictionaries, in which they are written sooner, and are plain in the file all the same.
    """
    table = TABLES[name]
    source = {table.renamed.get(column, column): rows.column(column) for column in rows.column_names}
    columns = [_column(each, source, rows, cluster, keeps_dictionaries=keeps_dictionaries) for each in table.schema]
    kinds = [each.with_type(column.type) for each, column in zip(table.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(kinds))


def to_dated(name: str, rows: pa.Table, cluster: str) -> pa.Table:
    """Rows of a function as readers of table ``name`` see them, with ``date``."""
    found = to_stored(name, rows, cluster)
    return found.append_column("date", found.column(TABLES[name].time).cast(pa.date32()))


def _column(
    field: pa.Field, source: Mapping[str, pa.ChunkedArray], rows: pa.Table, cluster: str, *, keeps_dictionaries: bool
) -> pa.Array:
    if field.name == "cluster":
        found = pa.repeat(pa.scalar(cluster, pa.string()), rows.num_rows)
        return found.dictionary_encode() if keeps_dictionaries else found
    found = source.get(field.name)
    if found is None:
        return pa.nulls(rows.num_rows, field.type)
    if types.is_timestamp(field.type) and not types.is_timestamp(found.type):
        clipped = pc.min_element_wise(pc.max_element_wise(found, EARLIEST_MS, skip_nulls=False), LATEST_MS, skip_nulls=False)
        return clipped.cast(pa.timestamp("ms", "UTC")).cast(TIME)
    if types.is_list(field.type) and not types.is_list(found.type):
        return pc.split_pattern(found.cast(pa.string()), ",")
    if keeps_dictionaries and types.is_dictionary(found.type):
        return found
    return found.cast(field.type)


def from_stored(name: str, rows: pa.Table) -> pa.Table:
    """Rows of table ``name``, some or all of its columns, with times in milliseconds under the functions' names."""
    table = TABLES[name]
    names = {stored: own for own, stored in table.renamed.items()}
    columns = {}
    for stored in rows.column_names:
        column = rows.column(stored)
        if types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        columns[names.get(stored, stored)] = column
    return pa.table(columns)


def stored_columns(name: str, columns: Sequence[str]) -> list[str]:
    """The columns of table ``name`` that hold these columns of the functions."""
    renamed = TABLES[name].renamed
    return [renamed.get(column, column) for column in columns]


def columns_of(name: str, *without: str, text: pa.DataType = _TYPES["string"]) -> pa.Schema:
    """The columns that a function has of table ``name``: all but the cluster and those ``without``, under its own names, times in
    milliseconds and texts as ``text``."""
    table = TABLES[name]
    own = {stored: column for column, stored in table.renamed.items()}
    kinds = {TIME: pa.int64(), _TYPES["string"]: text}
    kept = [each for each in table.schema if each.name not in ("cluster", *without)]
    return pa.schema([pa.field(own.get(each.name, each.name), kinds.get(each.type, each.type), each.nullable) for each in kept])


RAW: Any = columns_of("records", "source")
"""Records of ``__consumer_offsets``. ``producer_id`` and ``producer_epoch`` are those of transactional records and of markers,
else null; ``commits`` is null for a record, true or false for a transaction's marker, which has neither key nor value."""

LOG_OFFSETS: Any = columns_of("samples")
"""Samples: log start and log end (the high watermark) of a topic's partition at a moment; null is unknown."""

DAMAGED: Any = columns_of("damaged", "time")
"""What could not be read: ``size`` bytes at byte ``position`` of ``source``; ``data`` has the first 1,024 of them.
``base_offset`` and ``records`` are what a header that could be read says, else null."""

DAMAGED_DATA_BYTES = 1_024


def conform(table: Any, schema: Any) -> Any:
    """``table`` with exactly the columns of ``schema``, in its order and its types; missing nullable columns become null.

    Raises pyarrow.ArrowInvalid or KeyError where the table does not fit.
    """
    if table.schema.equals(schema):
        return table
    columns = []
    for field in schema:
        if field.name in table.column_names:
            columns.append(table.column(field.name).cast(field.type))
        elif field.nullable:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            raise KeyError(field.name)
    return pa.table(columns, schema=schema)


def rows_of(columns: Mapping[str, Sequence[Any]], schema: Any) -> Any:
    """A table of this schema from columns; those left out are null."""
    size = len(next(iter(columns.values()), ()))
    return pa.table({field.name: columns.get(field.name, [None] * size) for field in schema}, schema=schema)
