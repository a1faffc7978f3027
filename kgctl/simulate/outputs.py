"""A run's cluster as a data folder of kgctl: what ``--records-out`` and ``--state-out`` write, and every other command reads."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from pathlib import Path

from kgctl.errors import StorageError, UsageError
from kgctl.serde.record_batch import Record, build_batch
from kgctl.simulate.engine.cluster_state import ClusterState
from kgctl.storage.folder import DataFolder


def write_records(path: Path, state: ClusterState) -> None:
    """The coordinator's whole log, each record with its time, and the commit log beside it.

    ``path`` is made; what is there must be an empty folder. Raises `kgctl.errors.UsageError` and `StorageError`.
    """
    _write(path, state)


def write_state(path: Path, state: ClusterState) -> None:
    """The group as the scenario left it, its log compacted. As `write_records`, otherwise.

    Time stands still in the folder, so that members are still there when it is looked at later; `kgctl serve` lets it go on.
    """
    _write(path, state)
    with DataFolder.open(path, create=False) as folder:
        folder.record_log.compact(state.now_ms)
        folder.settings.freeze(state.now_ms)


def require_new_folder(path: Path) -> None:
    """Raise `kgctl.errors.UsageError` where something is at ``path`` already: a run's records are no sequel to others."""
    try:
        taken = path.exists() and (not path.is_dir() or any(path.iterdir()))
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    if taken:
        raise UsageError(f"{path} is not empty: name a new folder")


def _write(path: Path, state: ClusterState) -> None:
    require_new_folder(path)
    with DataFolder.open(path, create=True) as folder:
        with folder.bulk():
            _write_topics(folder, state)
            for now_ms, group in groupby(state.records, key=itemgetter(0)):
                folder.record_log.append([effect for _, effect in group], now_ms)
        folder.settings.set_broker_properties(state.properties)


def _write_topics(folder: DataFolder, state: ClusterState) -> None:
    """Topics whose logs end where the run's do. Nobody made their records up: there is the last one, as after compaction."""
    folder.topics.create_topics(list(state.topics.values()))
    last = build_batch([Record(0, state.now_ms, None, None)])
    for partition, end in state.end_offsets.items():
        if end > 0:
            folder.topics.append_batch(partition, last, state.now_ms, at=end - 1)
