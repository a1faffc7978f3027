"""Where the builds of a cluster stand: what earlier ones left, and how far one has come that was begun."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import StorageError
from kgctl.pipeline.builds.carry import Slice
from kgctl.pipeline.builds.step import Horizons
from kgctl.pipeline.decode.arrow import Int64s
from kgctl.pipeline.decode.schemas import COVERAGE
from kgctl.pipeline.sources.live import OFFSETS_TOPIC
from kgctl.pipeline.store.files import DataFile, is_provisional, partitions_of, prefix_of, read_file, write_files
from kgctl.pipeline.store.states import CLUSTER, SLICE, named, packed, read_state, unpacked, write_state
from kgctl.pipeline.store.tables import GOLD, from_stored
from kgctl.pipeline.store.warehouse import PRUNED, PRUNED_TABLES, Warehouse, is_compacted, version_number
from kgctl.pipeline.tables.registry import BEGIN_MS, OutdatedError
from kgctl.pipeline.tables.rounds import SKEW_MS, EndSeen, rounds_of

SEEN = pa.schema([(name, pa.int64()) for name in ("partition", "end", "first_ms", "last_ms")])
"""That a log ended there when all of it was collected: when it was first and last looked at."""
BACK = pa.schema([(name, pa.int64()) for name in ("partition", "horizon_ms", "version", "sure_ms")])
"""`Stand`, by partition of the log; version -1: the one that has this row."""


class Stand(NamedTuple):
    """The version of table ``state`` in which a partition of the log has this horizon; ``sure_ms``: before which nothing may come
    then."""

    horizon_ms: int
    version: int
    sure_ms: int


@dataclass(frozen=True)
class Standing:
    """What earlier builds left of a cluster; nothing of it before the first.

    ``runs``: the last run of each partition of the log (``COVERAGE``); ``rounds``: the windows in which anything was sampled;
    ``ends``: of each partition of the log that live collections looked at the end (`SEEN`); ``homes``: the partition that each
    group lives on; ``states``: the files of the slices' states; ``back``: by partition of the log how it stood,
    ascending: what to go back to where something comes late.
    """

    runs: pa.Table = field(default_factory=COVERAGE.empty_table)
    rounds: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    ends: pa.Table = field(default_factory=SEEN.empty_table)
    homes: Mapping[str, int] = field(default_factory=dict)
    states: Sequence[DataFile] = ()
    back: Mapping[int, Sequence[Stand]] = field(default_factory=dict)

    @classmethod
    def of(cls, warehouse: Warehouse, cluster: str) -> Standing | None:
        """As the last build left it; None where it left nothing that a build can go on from."""
        state = warehouse.table("state")
        files = state.files(cluster)
        own = named(files, CLUSTER)
        if len(own) != 1:
            return None
        _, tables = unpacked(read_state(warehouse.location, own[0].path))
        homes = dict(zip(*(column.to_pylist() for column in tables["homes"].columns), strict=True))
        rounds = tables["rounds"].column(0).to_numpy()
        ends = tables.get("ends", SEEN.empty_table())
        back: dict[int, list[Stand]] = {}
        for row in tables.get("back", BACK.empty_table()).to_pylist():
            version = state.version if row["version"] < 0 else row["version"]
            back.setdefault(row["partition"], []).append(Stand(row["horizon_ms"], version, row["sure_ms"]))
        states = sorted(named(files, SLICE), key=partitions_of)
        return cls(tables["runs"].cast(COVERAGE), rounds, ends, homes, states, back)

    def write(self, warehouse: Warehouse, cluster: str) -> DataFile:
        """What is of no slice, as a file of table ``state``."""
        tables = {
            "runs": self.runs,
            "rounds": pa.table({"window": pa.array(self.rounds, pa.int64())}),
            "ends": self.ends,
            "back": pa.Table.from_pylist(
                [{"partition": each, **stand._asdict()} for each, found in self.back.items() for stand in found], schema=BACK
            ),
            "homes": pa.table(
                {"key": pa.array(list(self.homes), pa.string()), "value": pa.array(list(self.homes.values()), pa.int64())}
            ),
        }
        return write_state(warehouse.location, cluster, CLUSTER, packed({}, tables))

    def version_before(self, chosen: Slice, time_ms: int) -> int | None:
        """The version of table ``state`` to go back to for rows of a slice from a time on; None: there is none."""
        own = [self.back[partition] for partition in range(*chosen) if partition in self.back]
        before = [max((stand for stand in found if stand.horizon_ms <= time_ms), default=found[0]) for found in own]
        return min((stand.version for stand in before), default=None)

    def sure_ms(self, chosen: Slice) -> int:
        """Before which no sample counts that a slice has not got yet."""
        return min((self.back[each][-1].sure_ms for each in range(*chosen) if each in self.back), default=BEGIN_MS)

    def stood(self, horizons: Horizons, since: int | None) -> Standing:
        """With the horizons that a slice was left with; ``since``: the version that it went back to, if it did."""
        back = dict(self.back)
        for partition, horizon_ms, sure_ms in horizons:
            kept = [each for each in back.get(partition, ()) if each.horizon_ms < horizon_ms]
            found = [*(each for each in kept if since is None or each.version <= since), Stand(horizon_ms, -1, sure_ms)]
            oldest = max((at for at, each in enumerate(found) if each.horizon_ms <= sure_ms), default=0)
            back[partition] = found[oldest:]
        return replace(self, back=back)

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


@dataclass(frozen=True)
class Earlier:
    """What a slice goes back to: the states that it had, what came since of records and samples, and, by table, the files that
    it had and keeps."""

    states: Sequence[DataFile]
    records: Sequence[DataFile]
    samples: Sequence[DataFile]
    files: Mapping[str, set[str]]

    @classmethod
    def of(cls, warehouse: Warehouse, cluster: str, version: int, chosen: Slice, until: Mapping[str, int]) -> Earlier | None:
        """As of a version of table ``state``; ``until``: up to which versions a build reads. None where it cannot be had any
        more, or what is there now is not that and more."""
        with suppress(StorageError):
            now, state = warehouse.table("state"), warehouse.table("state", version)
            if any(now.number(f"{name}/{cluster}") != state.number(f"{name}/{cluster}") for name in (PRUNED, PRUNED_TABLES)):
                return None
            fresh = {
                name: _since(warehouse, name, cluster, state.number(f"{name}/{cluster}"), end) for name, end in until.items()
            }
            states = [file for file in named(state.files(cluster), SLICE) if overlaps(file, chosen)]
            filesystem, root = warehouse.location.filesystem()
            there = filesystem.get_file_info([f"{root}/state/{file.path}" for file in states])
            files = {name: _kept(warehouse, name, cluster, state.number(version_number(name)), chosen) for name in GOLD}
            if all(info.is_file for info in there) and None not in [*fresh.values(), *files.values()]:
                return cls(
                    states, fresh["records"] or (), fresh["samples"] or (), {name: kept or set() for name, kept in files.items()}
                )
        return None


def _since(warehouse: Warehouse, name: str, cluster: str, since: int | None, until: int) -> list[DataFile] | None:
    """The files that came after a version; None where some of them were compacted since."""
    then, now = warehouse.table(name, -1 if since is None else since), warehouse.table(name, until)
    found = now.files(cluster, beside=then)
    return None if any(map(is_compacted, found)) else found


def _kept(warehouse: Warehouse, name: str, cluster: str, version: int | None, chosen: Slice) -> set[str] | None:
    """The files with rows for good that a slice had as of a version; None where one of them is there no more."""
    then = warehouse.table(name, -1 if version is None else version).files(cluster)
    kept = {file.path for file in then if overlaps(file, chosen) and not is_provisional(file)}
    return kept if kept <= {file.path for file in warehouse.table(name).files(cluster)} else None


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


Anew = Mapping[Slice, Collection[str]]
"""Slices that are made anew, all of it or from an earlier state on, with the files that stay."""


def is_anew(file: DataFile, anew: Anew) -> bool:
    """Whether a file has rows that are made anew."""
    return any(overlaps(file, each) and file.path not in kept for each, kept in anew.items())


def replaced(files: Sequence[DataFile], made: Sequence[Slice], anew: Anew) -> list[DataFile]:
    """Of a table's files those that a build of slices takes away: what was provisional of those ``made``, and all with rows that
    are made anew. Of the latter `beside` keeps the rows of others."""
    return [
        file for file in files if is_anew(file, anew) or (is_provisional(file) and any(overlaps(file, each) for each in made))
    ]


def beside(
    warehouse: Warehouse, name: str, files: Sequence[DataFile], anew: Anew, homes: Mapping[str, int]
) -> Iterator[DataFile]:
    """Files with the rows of other partitions, for the files that have rows of both; those of provisional rows are made again."""
    for file in files:
        first, last = partitions_of(file)
        made = {number for each, kept in anew.items() if file.path not in kept for number in range(*each)}
        others = set(range(first, min(last, 1 << 16) + 1)) - made
        if is_provisional(file) or not others or not is_anew(file, anew):
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
