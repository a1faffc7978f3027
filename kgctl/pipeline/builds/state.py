"""Where the builds of a cluster stand: what earlier ones left, and how far one has come that was begun."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import StorageError
from kgctl.pipeline.builds.carry import Slice
from kgctl.pipeline.decode.arrow import Int64s
from kgctl.pipeline.decode.schemas import COVERAGE
from kgctl.pipeline.store.files import DataFile, is_provisional, partitions_of, prefix_of, read_file, write_files
from kgctl.pipeline.store.states import CLUSTER, SLICE, named, packed, read_state, unpacked, write_state
from kgctl.pipeline.store.tables import from_stored
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.pipeline.tables.registry import BEGIN_MS, OutdatedError
from kgctl.pipeline.tables.rounds import rounds_of

OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True)
class Standing:
    """What earlier builds left of a cluster; nothing of it before the first.

    ``runs``: the last run of each partition of the log (``COVERAGE``); ``rounds``: the windows in which anything was sampled;
    ``seen``: by partition of the log up to when all of its records were collected, as live collections tell; ``homes``: the
    partition that each group lives on; ``states``: the files of the slices' states.
    """

    runs: pa.Table = field(default_factory=COVERAGE.empty_table)
    rounds: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    seen: Mapping[int, int] = field(default_factory=dict)
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
        seen, homes = (
            dict(zip(*(column.to_pylist() for column in tables[name].columns), strict=True)) for name in ("seen", "homes")
        )
        rounds = tables["rounds"].column(0).to_numpy()
        return cls(tables["runs"].cast(COVERAGE), rounds, seen, homes, sorted(named(files, SLICE), key=partitions_of))

    def write(self, warehouse: Warehouse, cluster: str) -> DataFile:
        """What is of no slice, as a file of table ``state``."""
        tables = {
            "runs": self.runs,
            "rounds": pa.table({"window": pa.array(self.rounds, pa.int64())}),
            "seen": _pairs(self.seen, pa.int64()),
            "homes": _pairs(self.homes, pa.string()),
        }
        return write_state(warehouse.location, cluster, CLUSTER, packed({}, tables))

    def states_of(self, chosen: Slice) -> list[DataFile]:
        """The files with states of some of these partitions."""
        return [file for file in self.states if overlaps(file, chosen)]

    @property
    def partitions(self) -> int:
        """Return how many partitions of the log there are at least."""
        return max((partitions_of(file)[1] + 1 for file in self.states), default=0)

    def watermarks(self) -> dict[int, int]:
        """Up to when all records are known, by partition of the log: as live collections have told; where there was none, the
        lower middle of the times of the partitions' last records, since a record can claim any time."""
        if self.seen:
            return dict(self.seen)
        last_ms = sorted(self.runs.column("last_ms").to_pylist())
        middle = last_ms[(len(last_ms) - 1) // 2] if last_ms else BEGIN_MS
        return dict.fromkeys(range(self.partitions), middle)

    def sampled(self, warehouse: Warehouse, files: Iterable[DataFile]) -> Standing:
        """With what these new files of samples tell of rounds and of the log itself."""
        rounds, seen = [self.rounds], dict(self.seen)
        for file in files:
            rows = from_stored("samples", read_file(warehouse.location, "samples", file.path, ["topic", "partition", "time"]))
            rounds.append(rounds_of(rows.column("timestamp_ms").to_numpy()))
            own = rows.filter(pc.equal(rows.column("topic"), OFFSETS_TOPIC))
            for partition, time_ms in zip(*(own.column(name).to_pylist() for name in own.column_names[1:]), strict=True):
                seen[partition] = max(seen.get(partition, BEGIN_MS), time_ms)
        return replace(self, rounds=np.unique(np.concatenate(rounds)), seen=seen)


def _pairs(found: Mapping[Any, int], kind: pa.DataType) -> pa.Table:
    return pa.table({"key": pa.array(list(found), kind), "value": pa.array(list(found.values()), pa.int64())})


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
        file for file in files if any(overlaps(file, each) for each in anew) or (is_provisional(file) and _within(file, made))
    ]


def _within(file: DataFile, made: Sequence[Slice]) -> bool:
    return any(overlaps(file, each) for each in made)


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
