"""Where the builds of a cluster stand: what the table ``state`` has of it, how far that lets the next build go back, and what
came late, from below what was built: which buckets of groups it touches, so that these alone are made anew.

A late record touches its own group. It may also fill a hole in the log of its partition, over which groups were played back, and
end a transaction; and a late sample touches all groups that have commits on its topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import StorageError
from kgctl.pipeline.builds.carry import Sampled, Slice, buckets_of_keys, of_bytes, packed_tables, unpacked_tables
from kgctl.pipeline.decode.arrow import Bools, Int64s, order_by
from kgctl.pipeline.decode.decode import READ_DICTIONARY
from kgctl.pipeline.decode.schemas import COVERAGE, merge_runs, runs_of
from kgctl.pipeline.store.files import DataFile, bucket_of, buckets_of, is_provisional, prefix_of, read_file, write_files
from kgctl.pipeline.store.tables import LOG_OFFSETS, RAW, conform, from_stored, stored_columns, to_stored
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.pipeline.tables.registry import BEGIN_MS, DEFAULT_WINDOW_MS, OutdatedError

_CLUSTER = "cluster-"
"""How the name of the file begins that has what is of no slice."""
STATE_BYTES = 4_000_000
"""So large a state is worth a slice of its own."""
_LONGEST_MS = 86_400_000
"""Rows that wait so long for a sample of a log's end are taken for settled; a sample that comes later makes their slice anew."""


@dataclass(frozen=True)
class Standing:
    """What earlier builds left of a cluster; nothing of it before the first.

    ``newest_ms``: how far the log's clock has come; ``runs``: the last run of each partition of the log (``COVERAGE``);
    ``slices``: into how many the groups are cut, and ``states``: the files of their states.
    """

    sampled: Sampled = field(default_factory=Sampled.nothing)
    newest_ms: int = BEGIN_MS
    newest_sample_ms: int = BEGIN_MS
    runs: pa.Table = field(default_factory=COVERAGE.empty_table)
    slices: int = 0
    is_even: bool = True
    """Whether all slices stand at the same horizon, so that the groups can be cut in another way."""
    states: Sequence[DataFile] = ()
    files: Sequence[DataFile] = ()
    """All files of table ``state`` that have it."""

    @property
    def horizon_ms(self) -> int:
        """Return the time from which rows may still change."""
        return self.sampled.horizon_ms

    @classmethod
    def of(cls, warehouse: Warehouse, cluster: str) -> Standing | None:
        """As the last build left it; None where it left nothing that a build can go on from."""
        table = warehouse.table("state")
        files = table.files(cluster)
        own = [file for file in files if _is_of_cluster(file)]
        if len(own) != 1:
            return None
        head, tables = unpacked_tables(table.rows(own, ["state"]).column("state")[0].as_py())
        states = sorted((file for file in files if file is not own[0]), key=buckets_of)
        sampled = Sampled(tables["cleaned"], tables["raw"], head["horizon_ms"])
        newest = (head["newest_ms"], head["newest_sample_ms"])
        return cls(sampled, *newest, tables["runs"], head["slices"], head["is_even"], states, files)

    def write(self, warehouse: Warehouse, cluster: str) -> list[DataFile]:
        """What is of no slice, as a file of table ``state``."""
        head = {"horizon_ms": self.horizon_ms, "newest_ms": self.newest_ms, "newest_sample_ms": self.newest_sample_ms}
        tables = {"cleaned": self.sampled.cleaned, "raw": self.sampled.raw, "runs": self.runs}
        data = packed_tables({**head, "slices": self.slices, "is_even": self.is_even}, tables)
        rows = pa.table({"bucket": [-1], "state": [data], "time": pa.array([0], pa.int64())})
        return write_files(warehouse.location, "state", to_stored("state", rows, cluster), _CLUSTER)

    def states_of(self, chosen: Slice) -> list[DataFile]:
        """The files with states of some of these buckets."""
        return [file for file in self.states if buckets_of(file)[0] < chosen.end and buckets_of(file)[1] >= chosen.first]

    def slices_for(self, wanted: int) -> int:
        """Into how many slices a build cuts the groups whose new records are worth ``wanted``: few have little to do for each."""
        size = sum(file.size for file in self.states)
        return max(wanted, -(-size // STATE_BYTES)) if self.is_even else self.slices

    def overtaken(self, runs: pa.Table) -> dict[int, int]:
        """By partition of the log, the highest offset that is known, where one of these new runs begins below it."""
        known = dict(zip(*(self.runs.column(name).to_pylist() for name in ("log_partition", "last_offset")), strict=True))
        began = zip(runs.column("log_partition").to_pylist(), runs.column("first_offset").to_pylist(), strict=True)
        return {place: known[place] for place, at in began if at <= known.get(place, -1)}

    def next_horizon(self, newest_ms: int, newest_sample_ms: int) -> int:
        """The start of the window before the one that has the newest record that a sample lies behind."""
        window = DEFAULT_WINDOW_MS
        if newest_ms == BEGIN_MS:
            return self.horizon_ms
        found = newest_ms // window * window - window
        if newest_sample_ms != BEGIN_MS:
            found = max(min(found, newest_sample_ms // window * window - window), found - _LONGEST_MS)
        return max(found, self.horizon_ms)


def _is_of_cluster(file: DataFile) -> bool:
    return file.path.rsplit("/", 1)[-1].startswith(_CLUSTER)


def last_runs(runs: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(the last run of each partition, which may grow, the others) of runs in order."""
    partitions = runs.column("log_partition").to_numpy()
    is_last = np.append(partitions[1:] != partitions[:-1], True)[: len(partitions)]
    return runs.filter(pa.array(is_last)), runs.filter(pa.array(~is_last))


def newest_of(runs: pa.Table) -> int:
    """How far the log's clock has come: of the times of the last records of partitions the lower middle one, since a record
    can claim any time."""
    last, _ = last_runs(runs)
    times = sorted(last.column("last_ms").to_pylist())
    return times[(len(times) - 1) // 2] if times else BEGIN_MS


def covered(warehouse: Warehouse, files: Sequence[DataFile]) -> tuple[pa.Table, Counter[str]]:
    """(the runs of these files' records, what there is to say of them)."""
    there = sorted(files, key=_place)
    found = from_stored("records", warehouse.table("records").rows(there, ["log_partition", "log_offset", "time"]))
    partitions, offsets, times = (found.column(name).to_numpy() for name in ("partition", "offset", "timestamp_ms"))
    order = order_by([partitions.astype(np.int64), offsets])
    partitions, offsets, times = partitions[order], offsets[order], times[order]
    edges = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    places = [(low, high) for low, high in pairwise(edges) if low < high]
    parts = [runs_of(int(partitions[low]), offsets[low:high], times[low:high]) for low, high in places]
    counts = Counter(clock_went_back=sum(int(np.count_nonzero(np.diff(times[low:high]) < 0)) for low, high in places))
    return merge_runs(parts), counts


def stored_coverage(warehouse: Warehouse, cluster: str) -> pa.Table:
    """All runs that were built (``COVERAGE``)."""
    table = warehouse.table("coverage")
    return from_stored("coverage", table.rows(table.files(cluster), COVERAGE.names)).cast(COVERAGE)


def new_files(warehouse: Warehouse, name: str, cluster: str, since: int, until: int) -> list[DataFile]:
    """The files of ``records`` or ``samples`` that a cluster got after one version, up to another one.

    Raises `OutdatedError` where the older version cannot be had any more.
    """
    try:
        return warehouse.new_files(name, since, until, cluster=cluster)
    except StorageError as error:
        if since < 0:
            raise
        raise OutdatedError("the version that was built is gone") from error


def records_in(warehouse: Warehouse, files: Sequence[DataFile]) -> Iterator[pa.Table]:
    """The records (`RAW`, keys as dictionaries) of these files, file by file, in the order of the log as far as files tell it."""
    columns = stored_columns("records", RAW.names)
    for file in sorted(files, key=_place):
        yield from_stored("records", read_file(warehouse.location, "records", file.path, columns, dictionaries=READ_DICTIONARY))


def _place(file: DataFile) -> tuple[int, int]:
    return file.low.get("log_partition", 0), file.low.get("log_offset", 0)


def samples_in(warehouse: Warehouse, files: Sequence[DataFile]) -> pa.Table:
    """The samples of these files, as they were collected."""
    columns = ["topic", "partition", "time", "log_start_offset", "log_end_offset"]
    return conform(from_stored("samples", warehouse.table("samples").rows(files, columns)), LOG_OFFSETS)


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
        """Return the condition as Spark's SQL, of rows of table ``records``."""
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
