"""kill -9 at random moments of collecting, building and pruning: what is done again comes to what was never disturbed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.gates import SPARK
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.generated_log import START_MS, Size, generated_log
from tests.support.pipeline.tables import copy_samples
from tests.support.pipeline.warehouses import rows_of, tables_of
from tests.support.serve import ServeFactory
from tests.support.wire.raw_client import RawClient

pytestmark = [pytest.mark.deep, pytest.mark.slow]

STEPS = (
    "collect --parquet {logs}/1 --cluster c1 --engine local",
    "build --engine local",
    "collect --parquet {logs}/2 --cluster c1 --engine local",
    "build --engine local",
    "prune --older-than {old} --yes",
    "build --engine local",
)
KILLED = 4
"""So often each step is killed before it may come to its end."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two halves of four days of a log."""
    folder = tmp_path_factory.mktemp("logs")
    log = generated_log(0, Size(8_000, groups=6, topics=2, partitions=4, interval_ms=43_200))
    for number in (1, 2):
        (folder / str(number)).mkdir()
        pq.write_table(log.slice((number - 1) * 4_000, 4_000), folder / str(number) / "log.parquet")
    return folder


def line(step: str, logs: Path, warehouse: Path) -> list[str]:
    old = f"{int((time.time() * 1000 - START_MS) / 86_400_000) - 2}d"
    words = step.format(logs=logs, old=old).split()
    return [sys.executable, "-m", "kgctl", "history", *words, "--warehouse", str(warehouse)]


def ran(command: list[str]) -> float:
    """Run a command to its end; how long it took."""
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, (command, done.stderr)
    return time.monotonic() - began


@pytest.mark.parametrize("seed", range(3))
def test_steps_that_are_killed_come_to_the_same(tmp_path: Path, logs: Path, seed: int) -> None:
    choice = random.Random(seed)
    expected = tmp_path / "expected"
    took = [ran(line(step, logs, expected)) for step in STEPS]
    kills = 0

    for step, seconds in zip(STEPS, took, strict=True):
        for _ in range(KILLED):
            process = subprocess.Popen(
                line(step, logs, tmp_path / "w"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                process.wait(choice.uniform(0.2, 0.9) * seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            process.wait()
        ran(line(step, logs, tmp_path / "w"))

    assert kills > 0
    found, whole = Warehouse.open(tmp_path / "w"), Warehouse.open(expected)
    assert rows_of(found, "records") == rows_of(whole, "records")
    assert tables_of(found) == tables_of(whole)
    assert 0 < len(rows_of(whole, "records")) < 8_000, "some were pruned"


WATCHES = 3
OFFSET_COMMIT = 8


def commit(raw: RawClient, offset: int) -> None:
    """Commit for a group without members."""
    entry = {"partition_index": 1, "committed_offset": offset, "committed_metadata": "m", "committed_leader_epoch": 0}
    body = raw.call(OFFSET_COMMIT, 8, {"group_id": "payments", "topics": [{"name": "orders", "partitions": [entry]}]})
    assert int(body.topics[0].partitions[0].error_code) == 0


@pytest.mark.interop
@pytest.mark.needs(*SPARK)
@pytest.mark.parametrize("seed", [1])
def test_a_watch_on_spark_that_is_killed_comes_to_the_same(kgctl_serve: ServeFactory, tmp_path: Path, seed: int) -> None:
    choice, server = random.Random(seed), kgctl_serve(topics={"orders": 2})
    words = ["--warehouse", str(tmp_path / "w"), "--cluster", "c1", "--every", "1s", "--sample-every", "1s"]
    watch = [sys.executable, "-m", "kgctl", "--bootstrap-server", server.bootstrap, "history", "watch", *words]
    watch += ["--engine", "spark", "--master", "local[1]"]
    offset = 0

    with RawClient(server.bootstrap) as raw:
        for _ in range(WATCHES):
            process = subprocess.Popen(watch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            ends = time.monotonic() + choice.uniform(5, 40)
            while time.monotonic() < ends:
                offset += 1
                commit(raw, offset)
                time.sleep(0.05)
            assert process.poll() is None, "it watches until it is killed"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    ran([*watch, "--once"])

    again = [sys.executable, "-m", "kgctl", "history", "collect", "--parquet", str(tmp_path / "w"), "--cluster", "c1"]
    ran([*again, "--warehouse", str(tmp_path / "expected")])
    copy_samples(tmp_path / "w", tmp_path / "expected", "c1")
    ran(line("build --engine local", tmp_path, tmp_path / "expected"))
    found, whole = (Warehouse.open(tmp_path / name) for name in ("w", "expected"))
    assert max(row["committed_offset"] for row in rows_of(found, "offset_commits")) == offset
    assert tables_of(found) == tables_of(whole)
