"""Share groups in a run, written as a user writes them."""

from __future__ import annotations

from collections.abc import Collection

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.recording.recording import ShareHistory
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import Scenario
from kgctl.yaml_files import read_yaml

HEAD = "kgctl: 1\nname: shared\nwarmup: 20s\ntopics: {orders: 4}\n"
SHARE = "group: {type: share}\n"
APP = "members: {app: {count: 3, process_time: 10ms}}\n"


def scenario_of(text: str) -> Scenario:
    """The one variant of a file that leaves its beginning out, and what it may say of its group."""
    group = "" if "\ngroup:" in f"\n{text}" or "\ngroups:" in f"\n{text}" else SHARE
    (variant,) = load(read_yaml(HEAD + group + text, "file.yaml")).variants
    return variant.scenario


class SharedRun(RunResult):
    """A run whose metrics are asked for as numbers."""

    def metric(self, name: str, filters: Collection[str] = ()) -> float:
        """Return the value, which is there."""
        value = super().metric(name, filters)
        assert isinstance(value, int | float), (name, value)
        return value

    @property
    def share(self) -> ShareHistory:
        """Return what became of its records."""
        assert self.recording.share is not None
        return self.recording.share


def run_text(text: str, seed: int = 1) -> SharedRun:
    """A run of it."""
    return SharedRun(run(scenario_of(text), seed).recording)
