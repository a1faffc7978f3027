"""The decoder and the resolver of transactions as plain Python, one record at a time, on kgctl.serde and the coordinator's own
store: what the vectorised ones must agree with, and what they are timed against."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pyarrow as pa

from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue, RecordKey
from kgctl.model.groups import ZERO_UUID
from kgctl.pipeline.decode.schemas import COMMITS, COVERAGE, GROUP_RECORDS, MARKERS, UNDECODED, Decoded, Reason
from kgctl.serde.coordinator_records import RecordDecodeError, UnknownValueVersionError
from kgctl.serde.epoch_groups import interpreted, interpreted_key

Row = dict[str, Any]


def decode_per_row(raw: pa.Table) -> Decoded:
    """Decode one record after the other."""
    rows: dict[str, list[Row]] = {"commits": [], "group_records": [], "markers": [], "undecoded": []}
    plain = raw.set_column(3, "key", raw.column("key").cast(pa.binary()))
    records = plain.to_pylist()
    for record in records:
        kind, row = _decode(record)
        rows[kind].append(row)
    schemas = {"commits": COMMITS, "group_records": GROUP_RECORDS, "markers": MARKERS, "undecoded": UNDECODED}
    tables = {kind: pa.Table.from_pylist(found, schema=schemas[kind]) for kind, found in rows.items()}
    return Decoded(**tables, coverage=pa.Table.from_pylist(_runs(records), schema=COVERAGE))


def topic_id_text(topic_id: UUID) -> str | None:
    """As Kafka prints it; None for the id of zeros."""
    return None if topic_id == ZERO_UUID else base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _decode(record: Row) -> tuple[str, Row]:
    place = {"log_partition": record["partition"], "log_offset": record["offset"], "time_ms": record["timestamp_ms"]}
    if record["commits"] is not None:
        if record["producer_id"] is None:
            return _undecoded(record, place, Reason.DAMAGED_MARKER, None)
        return "markers", {**place, **{name: record[name] for name in ("producer_id", "producer_epoch", "commits")}}
    if record["key"] is None:
        return _undecoded(record, place, Reason.NO_KEY, None)
    record_type = int.from_bytes(record["key"][:2], "big", signed=True) if len(record["key"]) > 1 else None
    try:
        key: RecordKey = interpreted_key(record["key"])
    except LookupError:
        return _undecoded(record, place, Reason.UNKNOWN_TYPE, record_type)
    except RecordDecodeError:
        return _undecoded(record, place, Reason.DAMAGED_KEY, record_type)
    assert record_type is not None
    try:
        value = interpreted(record_type, record["key"], record["value"]).value
    except UnknownValueVersionError:
        return _undecoded(record, place, Reason.UNKNOWN_VERSION, record_type)
    except RecordDecodeError:
        return _undecoded(record, place, Reason.DAMAGED_VALUE, record_type)
    if isinstance(key, OffsetCommitKey):
        assert value is None or isinstance(value, OffsetCommitValue)
        return "commits", {**place, **_commit(key, value), "producer_id": record["producer_id"]}
    member_id = getattr(key, "member_id", None)
    row = {"group": key.group, "record_type": record_type, "member_id": member_id, "tombstone": value is None}
    return "group_records", {**place, **row, "key": record["key"], "value": record["value"]}


def _commit(key: OffsetCommitKey, value: OffsetCommitValue | None) -> Row:
    row: Row = {"group": key.group, "topic": key.topic, "partition": key.partition, "leader_epoch": -1}
    if value is None:
        return row
    expires = value.expire_timestamp_ms
    return row | {
        "committed_offset": value.offset,
        "leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
        "commit_timestamp_ms": value.commit_timestamp_ms,
        "expire_timestamp_ms": None if expires == -1 else expires,
        "topic_id": topic_id_text(value.topic_id),
    }


def _undecoded(record: Row, place: Row, reason: Reason, record_type: int | None) -> tuple[str, Row]:
    row = {"reason": reason.value, "record_type": record_type, "key": record["key"], "value": record["value"]}
    return "undecoded", {**place, **row}


def _runs(records: Iterable[Row]) -> list[Row]:
    runs: list[Row] = []
    times: dict[tuple[int, int], tuple[int, int]] = {}
    for record in records:
        place, at = (record["partition"], record["offset"]), record["timestamp_ms"]
        first, last = times.get(place, (at, at))
        times[place] = (min(first, at), max(last, at))
    for (partition, offset), (first, last) in sorted(times.items()):
        if runs and (runs[-1]["log_partition"], runs[-1]["last_offset"] + 1) == (partition, offset):
            runs[-1].update(last_offset=offset, last_ms=last)
        else:
            runs.append(
                {"log_partition": partition, "first_offset": offset, "last_offset": offset, "first_ms": first, "last_ms": last}
            )
    return runs
