"""Decode raw records: one call for any batch of them, the same rows for any cut of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgctl.pipeline.decode.cells import Int64s
from kgctl.pipeline.decode.columns import nulls
from kgctl.pipeline.decode.commit_rows import commit_rows
from kgctl.pipeline.decode.coverage import merge_runs, runs_of
from kgctl.pipeline.decode.group_rows import group_rows
from kgctl.pipeline.decode.keys import NO_TYPE, Keys, decode_keys
from kgctl.pipeline.decode.result import Decoded, Reason
from kgctl.pipeline.decode.schemas import COMMITS, COVERAGE, GROUP_RECORDS, MARKERS, UNDECODED
from kgctl.pipeline.decode.values import NEWEST_VERSION, decode_values
from kgctl.pipeline.store.raw import RAW

BLOCK_ROWS = 1 << 18
"""Rows that are worked on at a time: bounds the memory, and the numbers stay in the processor's caches."""

READ_DICTIONARY = ("key",)
"""Read these columns of raw Parquet as dictionaries (``pyarrow.parquet.read_table(.., read_dictionary=..)``): twice as fast."""

Fields = dict[str, Any]


def decode(raw: pa.Table) -> Decoded:
    """Decode records with the columns of ``RAW``, ``key`` plain or dictionary-encoded. Rows keep their order.

    Nothing that a record holds is an error: what is not understood is a row of ``undecoded``.
    """
    blocks = [_decode_block(block) for block in raw.select(RAW.names).to_batches(max_chunksize=BLOCK_ROWS) if block.num_rows]
    return Decoded(
        _together(COMMITS, [block.commits for block in blocks]),
        _together(GROUP_RECORDS, [block.group_records for block in blocks]),
        _together(MARKERS, [block.markers for block in blocks]),
        _together(UNDECODED, [block.undecoded for block in blocks]),
        merge_runs([block.coverage for block in blocks]),
    )


def _together(schema: pa.Schema, tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()


class _Block:
    """One block's columns, and what became of each row so far."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.offsets: Int64s = batch.column("offset").to_numpy()
        self.times: Int64s = batch.column("timestamp_ms").to_numpy()
        self.reasons: dict[Reason, list[Int64s]] = {}

    def refuse(self, rows: Int64s, reason: Reason) -> None:
        """These rows are not decoded."""
        if len(rows):
            self.reasons.setdefault(reason, []).append(rows)

    def places(self, rows: Int64s) -> Fields:
        """The columns that each table has."""
        return {
            "log_partition": self.batch.column("partition").take(pa.array(rows)),
            "log_offset": self.offsets[rows],
            "time_ms": self.times[rows],
        }


def _decode_block(batch: pa.RecordBatch) -> Decoded:
    block = _Block(batch)
    records, markers = _split_markers(block)
    keys = decode_keys(batch.column("key"))
    codes = keys.codes[records]
    is_commit = keys.commits[codes]
    commits = _commits(block, keys, records[is_commit])
    groups = _group_records(block, keys, records[~is_commit])
    return Decoded(commits, groups, markers, _undecoded(block, keys), _coverage(block))


def _split_markers(block: _Block) -> tuple[Int64s, pa.Table]:
    """The rows that are records; and a table of those that end a transaction."""
    commits, producers = block.batch.column("commits"), block.batch.column("producer_id")
    rows = np.arange(block.batch.num_rows)
    if commits.null_count == len(commits):
        return rows, MARKERS.empty_table()
    is_record = nulls(commits)
    fine = ~is_record & ~nulls(producers)
    block.refuse(rows[~is_record & ~fine], Reason.DAMAGED_MARKER)
    at = pa.array(rows[fine])
    found = {name: block.batch.column(name).take(at) for name in ("producer_id", "producer_epoch", "commits")}
    return rows[is_record], _table(MARKERS, {**block.places(rows[fine]), **found})


def _commits(block: _Block, keys: Keys, rows: Int64s) -> pa.Table:
    column = block.batch.column("value")
    is_tombstone = nulls(column)[rows]
    values = decode_values(column, rows)
    newer = (values.version > NEWEST_VERSION) | (values.version < -1) | ((values.version == -1) & ~values.damaged)
    block.refuse(rows[newer & ~is_tombstone], Reason.UNKNOWN_VERSION)
    block.refuse(rows[values.damaged & ~newer & ~is_tombstone], Reason.DAMAGED_VALUE)
    fine = is_tombstone | ~(values.damaged | newer)
    columns = commit_rows(keys, keys.codes[rows], values, is_tombstone, fine)
    places = block.places(rows[fine])
    producers = block.batch.column("producer_id").take(pa.array(rows[fine]))
    return _table(COMMITS, {**columns, **places, "producer_id": producers})


def _group_records(block: _Block, keys: Keys, rows: Int64s) -> pa.Table:
    column = block.batch.column("value")
    found = group_rows(keys, column, rows)
    for reason, refused in found.refused.items():
        block.refuse(refused, reason)
    at = pa.array(found.rows)
    values = column.take(at)
    texts = {"tombstone": values.is_null(), "key": block.batch.column("key").take(at).cast(pa.binary()), "value": values}
    return _table(GROUP_RECORDS, {**block.places(found.rows), **found.columns, **texts})


def _undecoded(block: _Block, keys: Keys) -> pa.Table:
    parts = [(rows, reason) for reason, found in block.reasons.items() for rows in found]
    if not parts:
        return UNDECODED.empty_table()
    rows = np.concatenate([rows for rows, _ in parts])
    reasons = np.concatenate([np.full(len(rows), list(Reason).index(reason)) for rows, reason in parts])
    order = np.argsort(rows, kind="stable")
    rows, reasons = rows[order], reasons[order]
    types = keys.types[keys.codes[rows]]
    at = pa.array(rows)
    is_marker = ~nulls(block.batch.column("commits"))[rows]
    fields = {
        "reason": pa.array([reason.value for reason in Reason]).take(pa.array(reasons)),
        "record_type": pa.array(types, mask=(types == NO_TYPE) | is_marker),
        "key": block.batch.column("key").take(at).cast(pa.binary()),
        "value": block.batch.column("value").take(at),
    }
    return _table(UNDECODED, {**block.places(rows), **fields})


def _coverage(block: _Block) -> pa.Table:
    partitions: npt.NDArray[np.int32] = block.batch.column("partition").to_numpy()
    if (partitions == partitions[0]).all():
        return runs_of(int(partitions[0]), block.offsets, block.times)
    runs = [runs_of(int(one), block.offsets[partitions == one], block.times[partitions == one]) for one in np.unique(partitions)]
    return pa.concat_tables([COVERAGE.empty_table(), *runs])


def _table(schema: pa.Schema, fields: Fields) -> pa.Table:
    return pa.Table.from_arrays([pa.array(fields[name], schema.field(name).type) for name in schema.names], schema=schema)
