"""A warehouse, opened: what is in it, and the few ways to add to it. Any number of processes may read while one collects and
one builds; each of the two takes its lock (`Warehouse.locked`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kgctl.errors import NotFoundError, StorageError, UsageError
from kgctl.pipeline.warehouse import layout
from kgctl.pipeline.warehouse.files import TEMPORARY, read_json, storage_errors, write_json
from kgctl.pipeline.warehouse.layout import Layer
from kgctl.pipeline.warehouse.manifests import BronzeFile, Built, ClusterFiles, Collected, read_manifest

if TYPE_CHECKING:
    import pyarrow as pa

REBUILD = "kgctl history build --rebuild makes it anew"
"""What helps against damage to what was built."""


class Warehouse:
    """Made by `open` or `create`; picklable, holds no open files. ``path`` is absolute."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @classmethod
    def open(cls, path: Path) -> Self:
        """One that is there.

        Raises `NotFoundError` (no such folder), `UsageError` (no warehouse, or one of a newer kgctl), `StorageError`.
        """
        with storage_errors(path):
            is_there, is_folder = path.exists(), path.is_dir()
        if not is_there:
            raise NotFoundError(f"no warehouse at {path}: kgctl history collect makes one")
        found = read_json(path / layout.MARKER) if is_folder else None
        if found is None:
            raise UsageError(f"{path} is not a warehouse ({layout.MARKER} is not there)")
        version = found.get(layout.VERSION_KEY)
        if not isinstance(version, int):
            raise UsageError(f"{path / layout.MARKER}: no {layout.VERSION_KEY} in it")
        if version > layout.VERSION:
            raise UsageError(f"{path}: made by a newer kgctl (format {version}, this kgctl reads up to {layout.VERSION})")
        return cls(path)

    @classmethod
    def create(cls, path: Path) -> Self:
        """The one that is there, or a new one in a folder that is empty or not there. Raises as `open`."""
        with storage_errors(path):
            is_new = not path.exists() or (path.is_dir() and not any(path.iterdir()))
        if is_new:
            write_json(path / layout.MARKER, {layout.VERSION_KEY: layout.VERSION})
        return cls.open(path)

    def clusters(self) -> list[str]:
        """The clusters that were collected, sorted."""
        return layout.clusters_in(self.path / "state" / "collected")

    def partitions(self, cluster: str) -> list[int]:
        """The partitions of ``__consumer_offsets`` that were collected of a cluster, ascending."""
        return layout.partitions_in((self.path / layout.manifest_file("collected", cluster, None)).parent)

    def collected(self, cluster: str, partition: int) -> Collected:
        """The bronze files of a partition, and where a live collection goes on."""
        return read_manifest(self.path / layout.manifest_file("collected", cluster, partition), Collected)

    def bronze_files(self, cluster: str, partition: int) -> tuple[BronzeFile, ...]:
        """The files of `schemas.RAW` that count. No offset is in two of them; small ones may later be one that holds them all."""
        return self.collected(cluster, partition).files

    def log_offset_files(self, cluster: str) -> tuple[str, ...]:
        """The files of `schemas.LOG_OFFSETS` that count."""
        return self._cluster_files(cluster).log_offsets

    def damaged_files(self, cluster: str) -> tuple[str, ...]:
        """The files of `schemas.DAMAGED` that count."""
        return self._cluster_files(cluster).damaged

    def cluster_id(self, cluster: str) -> str | None:
        """The id that the live cluster has which was collected under this name; None where only files were."""
        return self._cluster_files(cluster).cluster_id

    def require_cluster_id(self, cluster: str, cluster_id: str | None) -> None:
        """Keep the id of a live cluster that is collected under this name. Raises `RefusedError` where it has another one."""
        from kgctl.pipeline.warehouse.records import require_cluster_id

        require_cluster_id(self, cluster, cluster_id)

    def add_records(
        self,
        cluster: str,
        partition: int,
        table: pa.Table,
        source: str,
        *,
        next_offset: int | None = None,
        log_id: str | None = None,
    ) -> int:
        """Keep records of one partition (`schemas.RAW`); how many of them were new.

        Records whose offset is there already are left out, so that the same again adds nothing. ``source`` tells people where
        they came from. ``next_offset`` and ``log_id`` are kept in the same step (`Collected`). Raises `RefusedError` where an
        offset is there with another record: then this is another cluster, or the topic was made anew.
        """
        from kgctl.pipeline.warehouse.records import add_records

        return add_records(self, cluster, partition, table, source, next_offset=next_offset, log_id=log_id)

    def add_log_offsets(self, cluster: str, table: pa.Table) -> None:
        """Keep samples (`schemas.LOG_OFFSETS`); the same table again adds nothing."""
        from kgctl.pipeline.warehouse.records import add_log_offsets

        add_log_offsets(self, cluster, table)

    def add_damaged(self, cluster: str, table: pa.Table) -> None:
        """Keep what could not be read (`schemas.DAMAGED`); the same table again adds nothing."""
        from kgctl.pipeline.warehouse.records import add_damaged

        add_damaged(self, cluster, table)

    def table_file(self, layer: Layer, table: str, cluster: str, partition: int | None, name: str) -> Path:
        """Where to put a file of a table (``NAME.parquet``); it counts once `publish` names it."""
        return self.path / layout.table_folder(layer, table, cluster, partition) / f"{name}.parquet"

    def built(self, cluster: str, partition: int | None) -> Built:
        """What was last published for a partition, or for the cluster as a whole (None). Raises `StorageError`."""
        try:
            return read_manifest(self.path / layout.manifest_file("built", cluster, partition), Built)
        except StorageError as error:
            raise StorageError(f"{error.message}; {REBUILD}") from error

    def forget_damaged(self, cluster: str) -> None:
        """Take what cannot be read of what was published as never published, to build it anew. Only under the lock."""
        for partition in (*self.built_partitions(cluster), None):
            try:
                self.built(cluster, partition)
            except StorageError:
                path = self.path / layout.manifest_file("built", cluster, partition)
                with storage_errors(path):
                    path.unlink()

    def built_partitions(self, cluster: str) -> list[int]:
        """The partitions that something was published for, ascending."""
        return layout.partitions_in((self.path / layout.manifest_file("built", cluster, None)).parent)

    def publish(
        self,
        cluster: str,
        partition: int | None,
        tables: Mapping[str, Sequence[Path]],
        inputs: Sequence[str],
        summary: Mapping[str, Any] | None = None,
    ) -> Built:
        """From now on these files are the tables of this partition (None: of the cluster), in one step, in place of those before.

        ``tables`` maps ``silver/NAME`` or ``gold/NAME`` to files in this warehouse that are written whole; ``inputs`` are the
        bronze files (`BronzeFile.path`) that they were built from.
        """
        named = {name: tuple(self.relative(file) for file in files) for name, files in tables.items()}
        built = Built(tuple(inputs), named, summary or {})
        write_json(self.path / layout.manifest_file("built", cluster, partition), built.to_json())
        return built

    def gold(self, table: str, cluster: str) -> list[Path]:
        """The files of a gold table, partition by partition, that of the whole cluster last. Absolute."""
        parts: list[int | None] = [*self.built_partitions(cluster), None]
        return [self.path / file for part in parts for file in self.built(cluster, part).files("gold", table)]

    def relative(self, path: Path) -> str:
        """A path in the warehouse as the manifests have it."""
        return path.absolute().relative_to(self.path).as_posix()

    @contextmanager
    def locked(self, what: layout.Manifests) -> Iterator[None]:
        """Alone in collecting, or in building, until the block ends or the process does.

        Raises `RefusedError`, with the process that has it.
        """
        from kgctl.storage.lock import FolderLock

        folder = self.path / "state" / what
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(folder)
        try:
            yield
        finally:
            lock.release()

    def left_overs(self, what: layout.Manifests) -> list[Path]:
        """The files of collecting, or of building, that no manifest names."""
        layers: Sequence[Layer] = ("bronze",) if what == "collected" else ("silver", "gold")
        named = self._collected_names() if what == "collected" else self._built_names()
        left = [path for layer in layers for path in self._data_files(layer) if self.relative(path) not in named]
        return [*left, *(self.path / "state" / what).rglob(f"*.json.*{TEMPORARY}")]

    def remove_left_overs(self, what: layout.Manifests, *, before_ms: int | None = None) -> int:
        """Remove the files of collecting, or of building, that no manifest names, and answer how many. Only under its lock.

        ``before_ms`` spares what was written since then (milliseconds since the epoch): somebody may be reading it.
        """
        left = self.left_overs(what)
        if before_ms is not None:
            left = [path for path in left if path.stat().st_mtime_ns < before_ms * 1_000_000]
        for path in left:
            with storage_errors(path):
                path.unlink(missing_ok=True)
        return len(left)

    def _data_files(self, layer: Layer) -> Iterator[Path]:
        for path in (self.path / layer).rglob("*.parquet*"):
            if path.name.endswith((".parquet", TEMPORARY)):
                yield path

    def _collected_names(self) -> set[str]:
        named: set[str] = set()
        for cluster in self.clusters():
            of_cluster = self._cluster_files(cluster)
            named.update(of_cluster.log_offsets, of_cluster.damaged)
            for partition in self.partitions(cluster):
                named.update(file.path for file in self.bronze_files(cluster, partition))
        return named

    def _built_names(self) -> set[str]:
        named: set[str] = set()
        for cluster in layout.clusters_in(self.path / "state" / "built"):
            for partition in [*self.built_partitions(cluster), None]:
                for files in self.built(cluster, partition).tables.values():
                    named.update(files)
        return named

    def _cluster_files(self, cluster: str) -> ClusterFiles:
        return read_manifest(self.path / layout.manifest_file("collected", cluster, None), ClusterFiles)

    def require_cluster(self, name: str | None) -> str:
        """``name``, or the only cluster there is. Raises `NotFoundError` (not there, none there), `UsageError` (several)."""
        found = self.clusters()
        if name is not None and name not in found:
            there = ", ".join(found) or "nothing was collected yet"
            raise NotFoundError(f"{self.path}: no cluster '{name}' (there: {there})")
        if name is not None:
            return name
        if not found:
            raise NotFoundError(f"{self.path}: nothing was collected yet")
        if len(found) > 1:
            raise UsageError(f"{self.path} holds several clusters: choose one with --cluster ({', '.join(found)})")
        return found[0]
