"""What comes late, from below what was built: which buckets of groups it touches, so that these alone are made anew.

A late record touches its own group. It may also fill a hole in the log of its partition, over which groups were played back, and
end a transaction; and a late sample touches all groups that have commits on its topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.builds.carry import Slice, buckets_of_keys, of_bytes
from kgctl.pipeline.decode.arrow import Bools, Int64s
from kgctl.pipeline.store.files import DataFile, bucket_of, buckets_of, is_provisional, prefix_of, write_files
from kgctl.pipeline.store.warehouse import Warehouse

SLICES = 16
"""Into so many slices the groups are cut at least where some are made anew."""
_COMMIT_KEYS = pa.array([b"\x00\x00", b"\x00\x01"])
"""How keys of offset commits begin."""
_COLUMNS = ["log_partition", "log_offset", "key", "producer_id"]


@dataclass(frozen=True)
class Late:
    """What came late. ``known``: by partition of the log, the highest offset that was built; ``touched``: which buckets."""

    known: Mapping[int, int]
    touched: frozenset[int]
    why: str

    def touches(self, chosen: Slice) -> bool:
        """Whether a slice has a bucket that is touched."""
        return not self.touched.isdisjoint(range(chosen.first, chosen.end))

    def in_time(self, raw: pa.Table) -> pa.Table:
        """The records (`RAW`) that did not come late."""
        return raw.filter(pa.array(~_is_late(raw.column("partition"), raw.column("offset"), self.known)))

    def condition(self) -> str:
        """The same for Spark, of rows of table ``records``."""
        late = [f"(log_partition = {number} AND log_offset <= {last})" for number, last in self.known.items()]
        return f"NOT ({' OR '.join(late)})" if late else "true"


def late_records(
    warehouse: Warehouse, known: Mapping[int, int], new: Sequence[DataFile], files: Sequence[DataFile]
) -> frozenset[int]:
    """The buckets that records of ``new`` touch whose offsets are at or below those ``known``; ``files``: all there are."""
    found = _read(warehouse, new, known)
    late = found.filter(pa.array(_is_late(found.column("log_partition"), found.column("log_offset"), known)))
    ended = late.filter(pc.is_null(late.column("key"))).column("producer_id")
    every = _read(warehouse, files, known)
    is_group = pc.invert(pc.is_in(pc.binary_slice(every.column("key"), 0, 2), _COMMIT_KEYS))
    is_ended = pc.is_in(every.column("producer_id"), pc.unique(ended).drop_null())
    touched = every.filter(pc.and_(pc.is_valid(every.column("key")), pc.or_(is_group, is_ended)))
    keys = pa.chunked_array([*late.column("key").chunks, *touched.column("key").chunks], pa.binary())
    buckets: list[int] = np.unique(buckets_of_keys(keys, warehouse.buckets)).tolist() if len(keys) else []
    return frozenset(bucket for bucket in buckets if bucket >= 0)


def _read(warehouse: Warehouse, files: Sequence[DataFile], known: Mapping[int, int]) -> pa.Table:
    chosen = [file for file in files if any(file.may_hold("log_partition", number, number) for number in known)]
    found = warehouse.table("records").rows(chosen, _COLUMNS)
    return found.filter(pc.is_in(found.column("log_partition"), pa.array(list(known), pa.int32())))


def _is_late(partitions: pa.ChunkedArray, offsets: pa.ChunkedArray, known: Mapping[int, int]) -> Bools:
    numbers, found = partitions.to_numpy(), np.zeros(len(partitions), np.bool_)
    for number, last in known.items():
        found |= (numbers == number) & (offsets.to_numpy() <= last)
    return found


def late_samples(warehouse: Warehouse, states: Iterable[DataFile], topics: Iterable[str]) -> frozenset[int]:
    """The buckets of groups that have commits on these topics, as the states have them."""
    wanted = pa.array(list(topics), pa.string())
    found: set[int] = set()
    for state in warehouse.table("state").rows(states, ["state"]).column("state").to_pylist():
        commits = of_bytes(state).table("commits")
        groups = commits.filter(pc.is_in(commits.column("topic").cast(pa.string()), wanted)).column("group")
        found |= {bucket_of(group, warehouse.buckets) for group in pc.unique(groups.cast(pa.string())).to_pylist()}
    return frozenset(found)


def replaced(files: Sequence[DataFile], slices: Sequence[Slice], anew: Sequence[Slice]) -> list[DataFile]:
    """Of a table's files those that a build of ``slices`` takes away: what was provisional, and all with rows of those ``anew``.
    Of the latter `beside` keeps the rows of others."""
    made = {bucket for each in slices for bucket in range(each.first, each.end)}
    return [
        file for file in files if (is_provisional(file) and _has_all(made, file)) or any(_has_some(file, each) for each in anew)
    ]


def beside(warehouse: Warehouse, name: str, files: Sequence[DataFile], anew: Sequence[Slice]) -> Iterator[DataFile]:
    """Files with the rows of other slices, for the files that have rows of both; those of provisional rows are made again."""
    buckets = {bucket for each in anew for bucket in range(each.first, each.end)}
    for file in files:
        if is_provisional(file) or _has_all(buckets, file) or not any(_has_some(file, each) for each in anew):
            continue
        rows = warehouse.table(name).rows([file])
        is_kept = ~np.isin(_buckets(name, rows, warehouse.buckets), list(buckets))
        prefix = prefix_of(*buckets_of(file), is_provisional=False)
        yield from write_files(warehouse.location, name, rows.filter(pa.array(is_kept)), prefix)


def _buckets(name: str, rows: pa.Table, buckets: int) -> Int64s:
    if name == "undecoded":
        return np.maximum(buckets_of_keys(rows.column("key"), buckets), 0).astype(
            np.int64
        )  # what has no key is the first slice's
    groups = rows.column("group").combine_chunks().dictionary_encode()
    of_group = np.array([bucket_of(group, buckets) for group in groups.dictionary.to_pylist()], np.int64)
    found: Int64s = of_group[groups.indices.to_numpy()]
    return found


def _has_all(buckets: set[int], file: DataFile) -> bool:
    first, last = buckets_of(file)
    return buckets.issuperset(range(first, min(last, 1 << 20) + 1))


def _has_some(file: DataFile, chosen: Slice) -> bool:
    first, last = buckets_of(file)
    return first < chosen.end and last >= chosen.first
