"""Where the builds of a cluster stand: what earlier ones left, and how far one has come that was begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import StorageError
from kgctl.pipeline.builds.carry import Slice
from kgctl.pipeline.decode.arrow import Int64s
from kgctl.pipeline.decode.schemas import COVERAGE
from kgctl.pipeline.sources.live import OFFSETS_TOPIC
from kgctl.pipeline.store.files import DataFile, is_provisional, partitions_of, prefix_of, read_file, write_files
from kgctl.pipeline.store.states import CLUSTER, SLICE, named, packed, read_state, unpacked, write_state
from kgctl.pipeline.store.tables import from_stored
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.pipeline.tables.registry import BEGIN_MS, OutdatedError
from kgctl.pipeline.tables.rounds import SKEW_MS, EndSeen, rounds_of

SEEN = pa.schema([(name, pa.int64()) for name in ("partition", "end", "first_ms", "last_ms")])
"""That a log ended there when all of it was collected: when it was first and last looked at."""


@dataclass(frozen=True)
class Standing:
    """What earlier builds left of a cluster; nothing of it before the first.

    ``runs``: the last run of each partition of the log (``COVERAGE``); ``rounds``: the windows in which anything was sampled;
    ``ends``: of each partition of the log that live collections looked at the end (`SEEN`); ``homes``: the partition that each
    group lives on; ``states``: the files of the slices' states.
    """

    runs: pa.Table = field(default_factory=COVERAGE.empty_table)
    rounds: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    ends: pa.Table = field(default_factory=SEEN.empty_table)
    homes: Mapping[str, int] = field(default_factory=dict)
    states: Sequence[DataFile] = ()

    @classmethod
    def of(cls, warehouse: Warehouse, cluster: str) -> Standing | None:
        """As the last build left it; None where it left nothing that a build can go on from."""
        files = warehouse.table("state").files(cluster)
        own = named(files, CLUSTER)
        if len(own) != 1:
            return None
        _, tables = unpacked(read_state(warehouse.location, own[0].path))
        homes = dict(zip(*(column.to_pylist() for column in tables["homes"].columns), strict=True))
        rounds = tables["rounds"].column(0).to_numpy()
        ends = tables.get("ends", SEEN.empty_table())
        return cls(tables["runs"].cast(COVERAGE), rounds, ends, homes, sorted(named(files, SLICE), key=partitions_of))

    def write(self, warehouse: Warehouse, cluster: str) -> DataFile:
        """What is of no slice, as a file of table ``state``."""
        tables = {
            "runs": self.runs,
            "rounds": pa.table({"window": pa.array(self.rounds, pa.int64())}),
            "ends": self.ends,
            "homes": pa.table(
                {"key": pa.array(list(self.homes), pa.string()), "value": pa.array(list(self.homes.values()), pa.int64())}
            ),
        }
        return write_state(warehouse.location, cluster, CLUSTER, packed({}, tables))

    def states_of(self, chosen: Slice) -> list[DataFile]:
        """The files with states of some of these partitions."""
        return [file for file in self.states if overlaps(file, chosen)]

    @property
    def partitions(self) -> int:
        """Return how many partitions of the log there are at least."""
        return max((partitions_of(file)[1] + 1 for file in self.states), default=0)

    def watermarks(self) -> dict[int, EndSeen]:
        """When no record was missing, by partition of the log: as live collections have told; where none has, up to a while
        before the lower middle of the times of the partitions' last records, since a record can claim any time."""
        last_ms = sorted(self.runs.column("last_ms").to_pylist())
        middle = last_ms[(len(last_ms) - 1) // 2] if last_ms else BEGIN_MS
        others = dict.fromkeys(range(self.partitions), EndSeen(BEGIN_MS, max(middle - SKEW_MS, BEGIN_MS)))
        told = {row["partition"]: EndSeen(row["first_ms"], row["last_ms"], row["end"]) for row in self.ends.to_pylist()}
        return others | told

    def sampled(self, warehouse: Warehouse, files: Iterable[DataFile], collected: Callable[[int], int | None]) -> Standing:
        """With what these new files of samples tell of rounds and of the log itself; ``collected``: up to which offset all of a
        partition was collected live."""
        rounds, own = [self.rounds], [_ENDS.empty_table()]
        for file in files:
            columns = ["topic", "partition", "time", "log_end_offset"]
            rows = from_stored("samples", read_file(warehouse.location, "samples", file.path, columns))
            rounds.append(rounds_of(rows.column("timestamp_ms").to_numpy()))
            own.append(rows.filter(pc.equal(rows.column("topic"), OFFSETS_TOPIC)).select(_ENDS.names).cast(_ENDS))
        ends = _seen(self.ends, pa.concat_tables(own), collected)
        return replace(self, rounds=np.unique(np.concatenate(rounds)), ends=ends)


_ENDS = pa.schema([(name, pa.int64()) for name in ("partition", "timestamp_ms", "log_end_offset")])


def _seen(known: pa.Table, samples: pa.Table, collected: Callable[[int], int | None]) -> pa.Table:
    """`SEEN` after these samples (`_ENDS`). An end that is not known, or past what was collected, tells nothing."""
    found = {row["partition"]: row for row in known.to_pylist()}
    up_to = {partition: collected(partition) for partition in pc.unique(samples.column("partition")).to_pylist()}
    for row in samples.sort_by("timestamp_ms").to_pylist():
        partition, end, time_ms = row["partition"], row["log_end_offset"], row["timestamp_ms"]
        if end is None or end > (up_to[partition] or 0):
            continue
        before = found.get(partition)
        first_ms = before["first_ms"] if before is not None and before["end"] == end else time_ms
        found[partition] = {"partition": partition, "end": end, "first_ms": first_ms, "last_ms": time_ms}
    return pa.Table.from_pylist([found[each] for each in sorted(found)], schema=SEEN)


def last_runs(runs: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(the last run of each partition, which may grow, the others) of runs in order."""
    partitions = runs.column("log_partition").to_numpy()
    is_last = np.append(partitions[1:] != partitions[:-1], True)[: len(partitions)]
    return runs.filter(pa.array(is_last)), runs.filter(pa.array(~is_last))


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


def overlaps(file: DataFile, chosen: Slice) -> bool:
    """Whether a file may have rows of some of these partitions of the log."""
    first, last = partitions_of(file)
    return first < chosen.end and last >= chosen.first


def replaced(files: Sequence[DataFile], made: Sequence[Slice], anew: Sequence[Slice]) -> list[DataFile]:
    """Of a table's files those that a build of slices takes away: what was provisional of those ``made``, and all with rows of
    those ``anew``. Of the latter `beside` keeps the rows of others."""
    return [
        file
        for file in files
        if any(overlaps(file, each) for each in anew) or (is_provisional(file) and any(overlaps(file, each) for each in made))
    ]


def beside(
    warehouse: Warehouse, name: str, files: Sequence[DataFile], anew: Sequence[Slice], homes: Mapping[str, int]
) -> Iterator[DataFile]:
    """Files with the rows of other partitions, for the files that have rows of both; those of provisional rows are made again."""
    for file in files:
        first, last = partitions_of(file)
        others = set(range(first, min(last, 1 << 16) + 1)) - {number for each in anew for number in range(*each)}
        if is_provisional(file) or not others or not any(overlaps(file, each) for each in anew):
            continue
        rows = warehouse.table(name).rows([file])
        partition = rows.column("log_partition").to_numpy() if "group" not in rows.column_names else _homes(rows, homes)
        kept = rows.filter(pa.array(np.isin(partition, list(others))))
        yield from write_files(warehouse.location, name, kept, prefix_of(first, last, is_provisional=False))


def _homes(rows: pa.Table, homes: Mapping[str, int]) -> Int64s:
    groups = rows.column("group").combine_chunks().dictionary_encode()
    found = np.array([homes.get(group, -1) for group in groups.dictionary.to_pylist()], np.int64)
    of_rows: Int64s = found[groups.indices.to_numpy()]
    return of_rows
