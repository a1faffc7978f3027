"""Where the builds of a cluster stand: what the table ``state`` has of it, and how far that lets the next build go back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kgctl.errors import StorageError
from kgctl.pipeline.builds.carry import Sampled, Slice, packed_tables, unpacked_tables
from kgctl.pipeline.decode.schemas import COVERAGE
from kgctl.pipeline.store.files import DataFile, buckets_of, write_files
from kgctl.pipeline.store.tables import from_stored, to_stored
from kgctl.pipeline.tables.registry import BEGIN_MS, DEFAULT_WINDOW_MS, OutdatedError

if TYPE_CHECKING:
    from kgctl.pipeline.store.warehouse import Warehouse

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
        files = [file for file in table.files() if file.may_hold("cluster", cluster, cluster)]
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


def new_files(warehouse: Warehouse, name: str, cluster: str, since: int, until: int) -> list[DataFile]:
    """The files of ``records`` or ``samples`` that a cluster got after one version, up to another one.

    Raises `OutdatedError` where the older version cannot be had any more.
    """
    try:
        found = warehouse.new_files(name, since, until)
    except StorageError as error:
        if since < 0:
            raise
        raise OutdatedError("the version that was built is gone") from error
    return [file for file in found if file.may_hold("cluster", cluster, cluster)]


def samples_in(warehouse: Warehouse, files: Sequence[DataFile]) -> pa.Table:
    """The samples of these files, as they were collected."""
    columns = ["topic", "partition", "time", "log_start_offset", "log_end_offset"]
    from kgctl.pipeline.store.tables import LOG_OFFSETS, conform

    return conform(from_stored("samples", warehouse.table("samples").rows(files, columns)), LOG_OFFSETS)
