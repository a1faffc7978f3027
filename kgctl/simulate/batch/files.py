"""What a run writes to files: reports, its log of events, the coordinator's records as a data folder.

A run of one seed is the same each time, so nothing of this needs to be kept while many seeds are run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.coordinator.effects import AppendRecord
from kgctl.errors import StorageError, UsageError
from kgctl.model.groups import TopicMetadata, TopicPartition
from kgctl.model.values import frozen, frozen_in_order
from kgctl.simulate.batch.outcome import result_of
from kgctl.simulate.metrics.result import run
from kgctl.simulate.recording.recording import EPOCH_MS, Recording
from kgctl.simulate.recording.trace import TraceEvent
from kgctl.simulate.report.outcome import Outcome
from kgctl.simulate.scenario.load import LoadedFile, Variant
from kgctl.simulate.scenario.quantities import UNIT_PR

if TYPE_CHECKING:
    from kgctl.storage.folder import DataFolder


@frozen_in_order
class ClusterState:
    """The cluster at ``now_ms`` on the coordinator's clock, the end of a run.

    ``records`` are all that the coordinator wrote, with their times on that clock, in order. ``end_offsets`` has each partition
    of ``topics``. ``properties``: the broker configs of the scenario.
    """

    now_ms: int
    records: tuple[tuple[int, AppendRecord], ...]
    topics: Mapping[str, TopicMetadata]
    end_offsets: Mapping[TopicPartition, int]
    properties: Mapping[str, str]


def cluster_state(recording: Recording) -> ClusterState:
    """Return the cluster as the run left it. The run must have kept its records."""
    assert recording.records is not None, "the run was not asked to keep its records"
    now_us = recording.now_us
    existing = (number for number, deleted_us in enumerate(recording.partitions.deleted_us) if deleted_us is None)
    return ClusterState(
        now_ms=_clock_ms(now_us),
        records=tuple((_clock_ms(at_us), effect) for at_us, effect in recording.log()),
        topics=dict(recording.image.topics),
        end_offsets={
            recording.partitions.names[number]: recording.ledger.arrivals.total_pr(number, now_us) // UNIT_PR
            for number in existing
        },
        properties=dict(recording.scenario.cluster.config),
    )


def _clock_ms(at_us: int) -> int:
    return EPOCH_MS + at_us // 1000


class EventLines:
    """An observer of runs: hands each line, with its newline, to ``write``. UTF-8 and ``\\n`` are the caller's to keep."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def begin_run(self, scenario: str, variant: str, seed: int) -> None:
        names = {"kind": "run", "scenario": scenario, "variant": variant, "seed": seed}
        self._write(json.dumps(names, separators=(",", ":")) + "\n")

    def on_trace(self, event: TraceEvent) -> None:
        self._write(f"{event.line()}\n")

    def on_step(self, at_us: int, metrics: object) -> None:
        """Nothing: the log has what happened, not how things stand."""


def write_events(scenario: str, variant: Variant, seed: int, write: Callable[[str], object]) -> None:
    """Run it, and hand its events as lines to ``write``, the line that names the run first."""
    lines = EventLines(write)
    lines.begin_run(scenario, variant.name, seed)
    run(variant.scenario, seed, observers=(lines,))


def final_state(variant: Variant, seed: int, *, with_all_commits: bool) -> ClusterState:
    """Run it, and answer what it leaves in its cluster."""
    return cluster_state(run(variant.scenario, seed, keeps_records=True, keeps_all_commits=with_all_commits).recording)


def write_records(path: Path, state: ClusterState) -> None:
    """The coordinator's whole log, each record with its time, and the commit log beside it.

    ``path`` is made; what is there must be an empty folder. Raises `kgctl.errors.UsageError` and `StorageError`.
    """
    from kgctl.storage.folder import open_folder

    require_new_folder(path)
    with open_folder(path, create=True) as folder:
        with folder.bulk():
            _write_topics(folder, state)
            for now_ms, group in groupby(state.records, key=itemgetter(0)):
                folder.record_log.append([effect for _, effect in group], now_ms)
        folder.settings.set_broker_properties(state.properties)


def write_state(path: Path, state: ClusterState) -> None:
    """The group as the scenario left it, its log compacted. As `write_records`, otherwise.

    Time stands still in the folder, so that members are still there when it is looked at later; `kgctl serve` lets it go on.
    """
    from kgctl.storage.folder import open_folder

    write_records(path, state)
    with open_folder(path, create=False) as folder:
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


def _write_topics(folder: DataFolder, state: ClusterState) -> None:
    """Topics whose logs end where the run's do. Nobody made their records up: there is the last one, as after compaction."""
    from kgctl.serde.record_batch import Record, build_batch

    folder.topics.create_topics(list(state.topics.values()))
    last = build_batch([Record(0, state.now_ms, None, None)])
    for partition, end in state.end_offsets.items():
        if end > 0:
            folder.topics.append_batch(partition, last, state.now_ms, at=end - 1)


@frozen
class OutputFiles:
    """Where to write what; None: nowhere.

    ``events``: of every run. ``metrics``: the data of ``-o json``. ``records`` and ``state`` are folders, of the first seed of
    the one variant that is run. ``appended``: files that are added to, not replaced (a CI system's summary of a whole job).
    """

    html: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    events: Path | None = None
    metrics: Path | None = None
    records: Path | None = None
    state: Path | None = None
    appended: tuple[Path, ...] = ()

    @property
    def wants_pictures(self) -> bool:
        return self.html is not None

    @property
    def tells_why(self) -> bool:
        """Whether a report is written that has the story of the worst moment."""
        return self.html is not None or self.markdown is not None

    def check(self, loaded: LoadedFile) -> None:
        """Before anything is run: raise `kgctl.errors.UsageError` for what could not be written afterwards."""
        if self.html is not None:
            from kgctl.charts.page import require_library

            require_library()
        paths = [path for path in (self.html, self.junit, self.markdown, self.events, self.metrics) if path is not None]
        folders = self._folders()
        if not paths and not folders:
            return
        from kgctl.files import check_named, check_place

        for path in paths:
            check_place(path)
            if paths.count(path) > 1:
                raise UsageError(f"{path}: each output needs a file of its own")
        for option, folder in folders.items():
            check_named(folder)
            require_new_folder(folder)
            if len(loaded.variants) > 1:
                raise UsageError(f"{option} is for one run: add --variant, one of {', '.join(loaded.variant_names)}")
        if self.records is not None and self.records == self.state:
            raise UsageError("--records-out and --state-out need a folder each")

    def write(self, loaded: LoadedFile, outcome: Outcome) -> Iterator[str]:
        """Write them all, and yield each path when it is written. Raises `kgctl.errors.StorageError`."""
        from kgctl.simulate.report.text import junit_xml, markdown_text

        makers = {"html": _html, "junit": junit_xml, "markdown": markdown_text, "metrics": _metrics}
        for name, make in makers.items():
            path = getattr(self, name)
            if path is not None:
                self._write_text(path, make(outcome))
                yield str(path)
        if outcome.seeds:
            yield from self._write_runs(loaded, outcome.seeds)

    def _write_runs(self, loaded: LoadedFile, seeds: Sequence[int]) -> Iterator[str]:
        if self.events is not None:
            _write_events(self.events, loaded, seeds)
            yield str(self.events)
        if self._folders():
            state = final_state(loaded.variants[0], seeds[0], with_all_commits=self.records is not None)
            for folder, write in ((self.records, write_records), (self.state, write_state)):
                if folder is not None:
                    write(folder, state)
                    yield str(folder)

    def _folders(self) -> dict[str, Path]:
        folders = {"--records-out": self.records, "--state-out": self.state}
        return {option: folder for option, folder in folders.items() if folder is not None}

    def _write_text(self, path: Path, text: str) -> None:
        try:
            with path.open("a" if path in self.appended else "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from error


def _write_events(path: Path, loaded: LoadedFile, seeds: Sequence[int]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for seed, variant in product(seeds, loaded.variants):
                write_events(loaded.name, variant, seed, file.write)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error


def _html(outcome: Outcome) -> str:
    from kgctl.simulate.report.html import html_page  # few runs have a page

    return html_page(outcome)


def _metrics(outcome: Outcome) -> str:
    return json.dumps(result_of(outcome), indent=2) + "\n"
