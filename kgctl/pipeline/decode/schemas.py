"""Arrow schemas of what decoding makes of raw records. Times are int64 milliseconds, named ``*_ms``.

Strings that repeat in nearly every row (`TEXT`) are dictionary-encoded: Parquet stores them so, and working with them costs an
integer's time. Readers that do not know Arrow's dictionaries (Spark, DuckDB) see plain strings in the files.
"""

from __future__ import annotations

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())
"""A string that repeats."""

COMMITS = pa.schema(
    [
        pa.field("group", TEXT, nullable=False),
        pa.field("topic", TEXT, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        ("committed_offset", pa.int64()),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        ("metadata", TEXT),
        ("commit_timestamp_ms", pa.int64()),
        ("expire_timestamp_ms", pa.int64()),
        ("topic_id", TEXT),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        ("producer_id", pa.int64()),
    ]
)
"""OffsetCommit records of types 0 and 1, one row each, in the order of the raw records, transactions still open.

A tombstone has null ``committed_offset``, ``metadata``, ``commit_timestamp_ms``. ``leader_epoch`` is -1 where unknown,
``topic_id`` Kafka's base64 form or null, ``time_ms`` the record's timestamp, ``producer_id`` null for plain commits."""

OFFSET_COMMITS = pa.schema(
    [
        *(field for field in COMMITS if field.name != "producer_id"),
        pa.field("effect_offset", pa.int64(), nullable=False),
        pa.field("transactional", pa.bool_(), nullable=False),
    ]
)
"""What took effect: one row a commit or tombstone, each log offset once, sorted by group, topic, partition, effect_offset.

A transactional commit has the time and, as ``effect_offset``, the log offset of the marker that committed it; ``log_offset`` is
its record's own. Of the rows of a key with ``time_ms`` up to T, the one with the highest ``effect_offset`` counts."""

MARKERS = pa.schema(
    [
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("producer_id", pa.int64(), nullable=False),
        ("producer_epoch", pa.int16()),
        pa.field("commits", pa.bool_(), nullable=False),
    ]
)
"""Ends of transactions."""

GROUP_RECORDS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("record_type", pa.int16(), nullable=False),
        ("member_id", pa.string()),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("tombstone", pa.bool_(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        ("value", pa.binary()),
    ]
)
"""Records of types 2-8 and 16 that are whole: ``kgctl.serde.coordinator_records.decode_record(key, value)`` reads each."""

UNDECODED = pa.schema(
    [
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        ("record_type", pa.int16()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
"""Records that kgctl does not understand, as they are; ``reason`` is a value of `kgctl.pipeline.decode.result.Reason`."""

COVERAGE = pa.schema(
    [
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("first_offset", pa.int64(), nullable=False),
        pa.field("last_offset", pa.int64(), nullable=False),
        pa.field("first_ms", pa.int64(), nullable=False),
        pa.field("last_ms", pa.int64(), nullable=False),
    ]
)
"""Runs of log offsets without a hole, both ends inclusive, with the times of their first and last record."""
