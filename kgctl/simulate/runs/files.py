"""The files that a run leaves behind when it is asked to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from kgctl.charts.library import require_library
from kgctl.errors import StorageError, UsageError
from kgctl.simulate.outputs import require_new_folder, write_records, write_state
from kgctl.simulate.report.view import Outcome
from kgctl.simulate.runs.recording import final_state, write_events
from kgctl.simulate.runs.result_json import result_of
from kgctl.simulate.scenario.load import LoadedFile


@dataclass(frozen=True, slots=True, kw_only=True)
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
        """Whether the runs have to draw."""
        return self.html is not None

    def check(self, loaded: LoadedFile) -> None:
        """Before anything is run: raise `kgctl.errors.UsageError` for what could not be written afterwards."""
        if self.html is not None:
            require_library()
        paths = [path for path in (self.html, self.junit, self.markdown, self.events, self.metrics) if path is not None]
        for path in paths:
            if paths.count(path) > 1:
                raise UsageError(f"{path}: each output needs a file of its own")
            if path.is_dir():
                raise UsageError(f"{path} is a folder; name a file")
            if not path.absolute().parent.is_dir():
                raise UsageError(f"{path}: there is no folder {path.absolute().parent}")
        for option, folder in self._folders().items():
            require_new_folder(folder)
            if len(loaded.variants) > 1:
                raise UsageError(f"{option} is for one run: add --variant, one of {', '.join(loaded.variant_names)}")
        if self.records is not None and self.records == self.state:
            raise UsageError("--records-out and --state-out need a folder each")

    def write(self, loaded: LoadedFile, outcome: Outcome) -> list[str]:
        """Write them all; the paths that were written, in order. Raises `kgctl.errors.StorageError`."""
        makers: Mapping[str, Callable[[Outcome], str]] = {
            "html": _html,
            "junit": _junit,
            "markdown": _markdown,
            "metrics": _metrics,
        }
        written = []
        for name, make in makers.items():
            path = getattr(self, name)
            if path is not None:
                self._write_text(path, make(outcome))
                written.append(str(path))
        if outcome.seeds:
            written += self._write_runs(loaded, outcome.seeds)
        return written

    def _write_runs(self, loaded: LoadedFile, seeds: Sequence[int]) -> list[str]:
        written = []
        if self.events is not None:
            _write_events(self.events, loaded, seeds)
            written.append(str(self.events))
        if self._folders():
            state = final_state(loaded.variants[0], seeds[0], with_all_commits=self.records is not None)
            written += [str(folder) for folder in self._folders().values()]
            if self.records is not None:
                write_records(self.records, state)
            if self.state is not None:
                write_state(self.state, state)
        return written

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
    from kgctl.simulate.report.html import html_page

    return html_page(outcome)


def _junit(outcome: Outcome) -> str:
    from kgctl.simulate.report.junit import junit_xml

    return junit_xml(outcome)


def _markdown(outcome: Outcome) -> str:
    from kgctl.simulate.report.markdown import markdown_text

    return markdown_text(outcome)


def _metrics(outcome: Outcome) -> str:
    return json.dumps(result_of(outcome), indent=2) + "\n"
