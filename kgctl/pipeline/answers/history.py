"""The built tables of one cluster, opened for questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kgctl.coordinator.partitioning import partition_for
from kgctl.errors import NotFoundError, StorageError
from kgctl.pipeline.answers.coverage import Run
from kgctl.pipeline.answers.parquet import read_rows
from kgctl.pipeline.extras import require
from kgctl.pipeline.tables.registry import module
from kgctl.pipeline.warehouse.manifests import Built
from kgctl.pipeline.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

_USUAL_PARTITIONS = 50
"""``offsets.topic.num.partitions`` as nearly every cluster has it: where a group is looked for first."""
_TABLES_OF_GROUPS = ("offset_commits", "group_generations", "members")


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one table and one partition of ``__consumer_offsets``, from all its files."""

    log_partition: int
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Reach:
    """The times of the first and of the last record that were collected."""

    first_ms: int
    last_ms: int


@dataclass
class History:
    """Made by `open`. What a build publishes afterwards is read only where it has removed what was there."""

    warehouse: Warehouse
    cluster: str
    _homes: dict[str, int] = field(default_factory=dict)
    _coverage: dict[int, tuple[Run, ...]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, cluster: str | None = None) -> Self:
        """The history of a cluster; of the only one there is, if none is named.

        Raises:
            NotFoundError: no warehouse, no such cluster, or nothing was built yet.
            UsageError: no warehouse but something else, several clusters and none named, or pyarrow is missing.
            StorageError: it cannot be read.
        """
        require("kgctl history", "pyarrow")
        warehouse = Warehouse.open(path)
        history = cls(warehouse, warehouse.require_cluster(cluster))
        if not history.built and not history.records_behind():
            raise NotFoundError(f"{path}: no record of a group of cluster {history.cluster!r} was collected yet")
        if not history.built:
            raise NotFoundError(
                f"{path}: cluster {history.cluster!r} was collected but not built yet: kgctl history build does it"
            )
        return history

    @cached_property
    def built(self) -> dict[int, Built]:
        """What was built, by partition of ``__consumer_offsets``."""
        partitions = self.warehouse.built_partitions(self.cluster)
        return {partition: self.warehouse.built(self.cluster, partition) for partition in partitions}

    @cached_property
    def cluster_id(self) -> str | None:
        """The cluster's own id; None where it was collected from files only."""
        return self.warehouse.cluster_id(self.cluster)

    def records_behind(self) -> int:
        """How many records were collected and not built yet."""
        behind = 0
        for partition in self.warehouse.partitions(self.cluster):
            inputs = set(self.built[partition].inputs) if partition in self.built else set()
            files = self.warehouse.bronze_files(self.cluster, partition)
            behind += sum(file.rows for file in files if file.path not in inputs)
        return behind

    def parts(self, table: str, columns: Sequence[str], groups: Sequence[str] | None = None) -> Iterator[Part]:
        """The rows of these groups, or of all, if the table has a column ``group``. Parts without a row are left out.

        Of each group only the partition that it is in is opened, once that is known.
        """
        if groups is None:
            for partition in self.built:
                yield from self._part(table, columns, partition, None)
            return
        for partition, here in self._by_home(groups).items():
            yield from self._part(table, columns, partition, here)

    def groups(self) -> list[str]:
        """The groups of which something is known, sorted."""
        parts = self.parts("group_health", ("group",))
        return sorted({name for part in parts for name in part.rows.column("group").unique().to_pylist()})

    def unknown(self, groups: Iterable[str]) -> list[str]:
        """Those of the groups that no table has heard of."""
        wanted = list(groups)
        self._by_home(wanted)
        return [group for group in wanted if group not in self._homes]

    def partitions(self, groups: Sequence[str] | None = None) -> list[int]:
        """The partitions of ``__consumer_offsets`` that these groups, or all, are in."""
        return list(self.built) if groups is None else sorted(self._by_home(groups))

    def reach(self, groups: Sequence[str] | None = None) -> Reach | None:
        """From when to when records of the groups' partitions, or of all, were collected; None where there are none."""
        runs = [run for partition in self.partitions(groups) for run in self.coverage(partition)]
        return Reach(min(run.first_ms for run in runs), max(run.last_ms for run in runs)) if runs else None

    def coverage(self, log_partition: int) -> tuple[Run, ...]:
        """Which stretches of a partition's log were collected, ascending.

        Read once. To be asked before the rows that it is about: then a build in between can only have added to them.
        """
        if log_partition not in self._coverage:
            names = ("first_offset", "last_offset", "first_ms", "last_ms")
            parts = self._part("coverage", names, log_partition, None)
            self._coverage[log_partition] = tuple(sorted(Run(**row) for part in parts for row in part.rows.to_pylist()))
        return self._coverage[log_partition]

    def _by_home(self, groups: Sequence[str]) -> dict[int, list[str]]:
        usual: dict[int, list[str]] = {}
        for group in self._homeless(groups):
            usual.setdefault(partition_for(group, _USUAL_PARTITIONS), []).append(group)
        for partition in usual.keys() & self.built.keys():
            self._look_in(partition, usual[partition])
        for partition in self.built:
            self._look_in(partition, self._homeless(groups))
        found: dict[int, list[str]] = {}
        for group in groups:
            if group in self._homes:
                found.setdefault(self._homes[group], []).append(group)
        return found

    def _homeless(self, groups: Sequence[str]) -> list[str]:
        return [group for group in groups if group not in self._homes]

    def _look_in(self, partition: int, groups: Sequence[str]) -> None:
        wanted = set(groups)
        for table in _TABLES_OF_GROUPS if wanted else ():
            for part in self._part(table, ("group",), partition, sorted(wanted)):
                found = set(part.rows.column("group").unique().to_pylist())
                self._homes.update(dict.fromkeys(found, partition))
                wanted -= found

    def _part(self, table: str, columns: Sequence[str], partition: int, groups: Sequence[str] | None) -> Iterator[Part]:
        import pyarrow as pa

        try:
            tables = self._read(table, columns, partition, groups)
        except StorageError:
            now = self.warehouse.built(self.cluster, partition)
            if now == self.built[partition]:
                raise
            self.built[partition] = now  # a build has published others meanwhile and removed the files
            tables = self._read(table, columns, partition, groups)
        if any(each.num_rows for each in tables):
            yield Part(partition, pa.concat_tables(tables))

    def _read(self, table: str, columns: Sequence[str], partition: int, groups: Sequence[str] | None) -> list[pa.Table]:
        self._require_version(table, partition)
        files = self.built[partition].files("gold", table)
        return [read_rows(self.warehouse.path / file, columns, groups) for file in files]

    def _require_version(self, table: str, partition: int) -> None:
        versions = self.built[partition].summary.get("versions")
        if versions is None or versions.get(table) == module(table).VERSION:
            return
        is_newer = versions.get(table, 0) > module(table).VERSION
        raise StorageError(
            f"{self.warehouse.path}: {table} of cluster {self.cluster!r} was built by "
            + ("a newer kgctl: use that one" if is_newer else "an older kgctl: kgctl history build builds it anew")
        )
