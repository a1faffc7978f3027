"""A build that dies, at whatever moment: what was there is there, and the next build ends as if nothing had been."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kgctl.errors import RefusedError
from kgctl.pipeline.build.outputs import Outputs
from kgctl.pipeline.build.partition import build_partition
from kgctl.pipeline.build.run import build, tasks_of
from kgctl.pipeline.spread import LocalEngine
from kgctl.pipeline.tables.registry import PARTITION_TABLES
from kgctl.pipeline.warehouse.files import read_table
from kgctl.pipeline.warehouse.warehouse import Warehouse
from tests.unit.pipeline.build.test_run import LOG, built, built_whole, collected, gold_of

EVERY = 7
ROOT = Path(__file__).resolve().parents[4]
BUILD = """
import sys
from pathlib import Path
from kgctl.errors import RefusedError
from kgctl.pipeline.build.outputs import Outputs
from kgctl.pipeline.build.partition import build_partition
from kgctl.pipeline.build.run import build, tasks_of
from kgctl.pipeline.spread import LocalEngine
from kgctl.pipeline.warehouse.warehouse import Warehouse
partitions = int(sys.argv[2])
def wait_to_be_killed(_):
    global partitions
    partitions -= 1
    if partitions < 0:
        print("here", flush=True)
        sys.stdin.read()
build(Warehouse.open(Path(sys.argv[1])), ["c1"], lambda: LocalEngine(2), is_rebuild=True, on_progress=wait_to_be_killed)
"""


class Death(BaseException):
    """Ends everything; nobody catches it."""


class Deadly:
    """Lets so many steps to the disk happen and dies in the next one, half done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps = 0
        self.last = sys.maxsize
        for owner, name in ((Path, "replace"), (Path, "write_bytes"), (os, "fsync"), (Path, "unlink")):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(subject: Any, *arguments: Any, **named: Any) -> Any:
            self.steps += 1
            if self.steps <= self.last:
                return original(subject, *arguments, **named)
            if original.__name__ == "write_bytes":
                original(subject, memoryview(arguments[0])[: len(memoryview(arguments[0])) // 2])
            raise Death

        return step


@pytest.fixture
def deadly(monkeypatch: pytest.MonkeyPatch) -> Deadly:
    return Deadly(monkeypatch)


def state_of(warehouse: Warehouse) -> dict[int, dict[str, tuple[str, ...]]]:
    """Which files count, by partition; all of them are there and whole."""
    found = {}
    for partition in warehouse.built_partitions("c1"):
        tables = dict(warehouse.built("c1", partition).tables)
        for paths in tables.values():
            for path in paths:
                read_table(warehouse.path / path)
        found[partition] = tables
    return found


def test_death_at_every_step(tmp_path: Path, deadly: Deadly) -> None:
    base = collected(tmp_path / "base", [part.slice(0, 30) for part in LOG[:2]])
    built(base)
    for part in LOG[:2]:
        base.add_records("c1", part.column("partition")[0].as_py(), part.slice(30), "the rest")
    before = state_of(base)
    expected = gold_of(built_again(base, tmp_path / "expected", deadly))
    after = state_of(Warehouse.open(tmp_path / "expected"))
    superseded = {path for tables in before.values() for paths in tables.values() for path in paths}
    superseded |= {path for paths in base.built("c1", None).tables.values() for path in paths}
    steps = deadly.steps
    assert steps > 5 * EVERY

    for last in range(0, steps, EVERY):
        warehouse = Warehouse.open(shutil.copytree(base.path, tmp_path / f"{last}"))
        deadly.steps, deadly.last = 0, last
        with pytest.raises(Death):
            built(warehouse)
        deadly.last = sys.maxsize
        for partition, tables in state_of(warehouse).items():
            assert tables in (before[partition], after[partition]), f"half a state after {last} steps"
        built(warehouse)
        assert gold_of(warehouse) == expected, f"after {last} steps"
        assert left_overs(warehouse) <= superseded, "readers may still have the state before"


def test_a_task_that_outlived_its_build_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = collected(tmp_path / "w", [LOG[0].slice(0, 30)])
    warehouse.add_records("c1", 0, LOG[0].slice(30, 10), "more")
    write = Outputs.write

    def meanwhile(outputs: Outputs, *arguments: Any) -> list[Path]:
        monkeypatch.setattr(Outputs, "write", write)
        warehouse.add_records("c1", 0, LOG[0].slice(40), "the rest")
        with monkeypatch.context() as unlocked:
            unlocked.setattr(Warehouse, "locked", lambda *_: nullcontext())
            built(warehouse)
        return write(outputs, *arguments)

    built(warehouse)
    warehouse.add_records("c1", 0, LOG[0].slice(40, 5), "some")
    (task,) = tasks_of(warehouse, "c1", is_rebuild=False)
    monkeypatch.setattr(Outputs, "write", meanwhile)

    with pytest.raises(RefusedError, match="another build has published it meanwhile"):
        build_partition(task)

    assert built(warehouse).unchanged == 1


def built_again(base: Warehouse, folder: Path, deadly: Deadly) -> Warehouse:
    """A build of a copy, its steps counted."""
    warehouse = Warehouse.open(shutil.copytree(base.path, folder))
    deadly.steps = 0
    built(warehouse)
    return warehouse


def left_overs(warehouse: Warehouse) -> set[str]:
    """Files that no manifest names."""
    return {warehouse.relative(path) for path in warehouse.left_overs("built")}


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [0, 1])
def test_kill_minus_nine(tmp_path: Path, partitions: int) -> None:
    """Killed when so many partitions are published and others are worked on."""
    warehouse = built_whole(tmp_path / "w")
    expected = gold_of(warehouse)
    command = [sys.executable, "-c", BUILD, str(warehouse.path), str(partitions)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        process.send_signal(signal.SIGKILL)
        assert process.stdout.read() == b"", "its workers have ended too: they had inherited the pipe"

    assert gold_of(warehouse) == expected
    assert build(warehouse, ["c1"], LocalEngine, is_rebuild=True).failed == [], "the lock went with the process"
    assert gold_of(warehouse) == expected
    assert not left_overs(warehouse)
    assert {name for name in PARTITION_TABLES if not warehouse.gold(name, "c1")} == set()
