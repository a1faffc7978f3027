"""A change that is cut short tells what was done, and the cluster agrees with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.support.admin_targets import Target
from tests.support.kafka import unique
from tests.support.patience import PATIENCE_S
from tests.support.serve import ServeProcess

GROUPS = 150
OLD, NEW = 7, 3


def start_reset(
    target: Target, topic: str, groups: list[str], folder: Path, *more: str, stdout: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    """A reset of all groups to offset 3, whose undo file has been written when this returns."""
    line = ["reset-offsets", *groups, "--topic", topic, "--to-offset", str(NEW), "--execute", "-o", "json", *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "kgctl", "--bootstrap-server", target.bootstrap, *line],
        env={**os.environ, "KGCTL_BACKUP_DIR": str(folder)},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("Previous offsets saved")
    return process


def committed(target: Target, groups: list[str], partition: TopicPartition) -> dict[str, int]:
    with target.admin() as admin:
        found = admin.list_committed_offsets(groups).values
    return {group: commits[partition].offset for group, commits in found.items()}


@pytest.fixture
def groups(target: Target) -> tuple[str, list[str]]:
    """A topic, and groups with a commit on its one partition."""
    topic = target.topic(partitions=1)
    names = [unique("cut") for _ in range(GROUPS)]
    offsets: Mapping[TopicPartition, OffsetAndMetadata] = {TopicPartition(topic, 0): OffsetAndMetadata(OLD)}
    with target.admin() as admin:
        for name in names:
            assert not admin.alter_offsets(name, offsets).errors
    return topic, names


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_an_account_that_the_cluster_agrees_with(
    target: Target, groups: tuple[str, list[str]], tmp_path: Path, number: signal.Signals
) -> None:
    topic, names = groups
    process = start_reset(target, topic, names, tmp_path)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)

    document = json.loads(out)
    results = {row["group"]: row["result"] for row in document["data"]}
    found = committed(target, names, TopicPartition(topic, 0))
    assert set(results.values()) <= {"reset", "not-tried"}, err
    assert {name for name, result in results.items() if result == "reset"} == {name for name in names if found[name] == NEW}
    assert (process.returncode, document["exit_code"]) == (128 + number, 128 + number)
    assert len(results) == GROUPS
    assert "not-tried" in results.values()
    assert sum(document["summary"].values()) == GROUPS
    kept = [row for path in tmp_path.glob("*.csv") for row in path.read_text().splitlines() if f",{topic},0," in row]
    assert sorted(row.split(",")[0] for row in kept) == sorted(name for name in names if found[name] == NEW)


def test_rows_go_to_stderr_where_nobody_reads_stdout(target: Target, groups: tuple[str, list[str]], tmp_path: Path) -> None:
    topic, names = groups
    nobody, written = os.pipe()
    os.close(nobody)
    process = start_reset(target, topic, names[:3], tmp_path, stdout=written)
    os.close(written)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err.count('"result": "reset"')) == (0, 3)


@pytest.mark.interop
def test_a_broker_that_hangs_leaves_an_account_that_it_agrees_with_later(tmp_path: Path) -> None:
    with ServeProcess() as server:
        target = Target("serve", server.bootstrap)
        topic, names = target.topic(partitions=1), [f"hung-{number:03}" for number in range(GROUPS)]
        partition = TopicPartition(topic, 0)
        with target.admin() as admin:
            for name in names:
                assert not admin.alter_offsets(name, {partition: OffsetAndMetadata(OLD)}).errors
        process = start_reset(target, topic, names, tmp_path, "--timeout", "2")
        server.process.send_signal(signal.SIGSTOP)
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        finally:
            server.process.send_signal(signal.SIGCONT)
        document = json.loads(out)
        results = {row["group"]: row["result"] for row in document["data"]}
        found = committed(target, names, partition)
    changed = {name for name in names if found[name] == NEW}
    done = {name for name, result in results.items() if result == "reset"}
    assert done <= changed <= done | {name for name, result in results.items() if result == "unknown"}
    assert (process.returncode, document["status"]) in ((3, "partial"), (7, "error")), err
    assert (process.returncode == 3) == any(result in ("reset", "unknown") for result in results.values())
    assert len(results) == GROUPS
