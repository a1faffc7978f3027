"""``simulate run --against``: real clients on a real server, measured as the simulation is, and nothing left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kgctl.admin.connect import ConnectionSettings, connect
from tests.support.kafka.install import kafka_class_path
from tests.support.patience import PATIENCE_S
from tests.support.serve import ServeFactory

pytestmark = pytest.mark.interop

FILE = """\
kgctl: 1
name: tiny
topics: {orders: 6}
group: {id: pay, config: {session.timeout.ms: 1s, heartbeat.interval.ms: 300ms, auto.offset.reset: earliest}}
cluster: {config: {group.initial.rebalance.delay.ms: "0", group.min.session.timeout.ms: "500"}}
members: {app: {count: 2, boot: 0s, config: {partition.assignment.strategy: range}}}
traffic: {orders: 60/s}
warmup: 3s
duration: 4s
events:
  - {at: 0s, crash: app/1, for: 100ms}
  - {at: 2s, restart: app/0, for: 0s}
runs: 2
expect:
  - unavailable > 0
  - max_gap < 20s
  - duplicates >= 0
"""


PATTERN = (
    FILE.replace("session.timeout.ms: 1s, heartbeat.interval.ms: 300ms", "group.protocol: consumer")
    .replace("config: {partition.assignment.strategy: range}", "subscribe: {pattern: or.*s, by: broker}")
    .replace("warmup: 3s", "warmup: 15s")
)
"""Brokers answer a pattern with the next heartbeat, 5 s later."""


def kgctl(folder: Path, bootstrap: str, *more: str, file: str = FILE) -> subprocess.Popen[str]:
    (folder / "tiny.yaml").write_text(file)
    words = ["simulate", "run", "tiny.yaml", "--against", bootstrap, "-o", "json", *more]
    return subprocess.Popen(
        [sys.executable, "-m", "kgctl", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )


def left_on(bootstrap: str) -> list[str]:
    """The play's topics and groups that are still there."""
    with connect(ConnectionSettings(bootstrap=bootstrap)) as admin:
        names = [*admin.list_topics(), *admin.list_groups()]
    return [name for name in names if name.startswith("kgctl-rehearsal-")]


def played(folder: Path, bootstrap: str, *more: str, file: str = FILE) -> Any:
    """What was measured, by a play that is longer than ``--timeout``, the limit of a request."""
    running = kgctl(folder, bootstrap, "--timeout", "4s", *more, file=file)
    out, err = running.communicate(timeout=3 * PATIENCE_S)
    assert running.returncode == 0, err
    assert left_on(bootstrap) == []
    return json.loads(out)["data"]["measured"]


def check(measured: Any, client: str) -> None:
    assert (measured["client"], measured["plays"]) == (client, 1)
    metrics = {name: spread["median"] for name, spread in measured["variants"]["default"]["metrics"].items()}
    assert metrics["generations"] >= 2  # without app-1, and with app-0 again
    assert metrics["unavailable"] > 0
    assert metrics["members"] == 2
    assert metrics["double_owned"] < 1
    assert metrics["processed"] > 0
    assert metrics["lag_peak"] > 0
    assert metrics["latency_p99"] > 0
    assert "requests" not in metrics
    assert set(measured["places"]["default"].values()) <= {"inside", "above", "below"}
    assert [each["passed"] for each in measured["expectations"]] == [True] * 3


def test_a_play_with_librdkafka(tmp_path: Path, kgctl_serve: ServeFactory) -> None:
    check(played(tmp_path, kgctl_serve().bootstrap), "librdkafka")


@pytest.mark.deep
@pytest.mark.kafka
@pytest.mark.needs("javac")
def test_a_play_with_java(tmp_path: Path, kgctl_serve: ServeFactory) -> None:
    jars = kafka_class_path()
    check(played(tmp_path, kgctl_serve().bootstrap, "--client", "java", "--kafka-libs", jars), "java")


@pytest.mark.deep
@pytest.mark.kafka
@pytest.mark.needs("javac")
def test_a_pattern_that_brokers_match_is_played_with_java(tmp_path: Path, kgctl_serve: ServeFactory) -> None:
    jars = kafka_class_path()
    words = ["--client", "java", "--kafka-libs", jars, "--check", "moves >= 0", "--plays", "2"]
    measured = played(tmp_path, kgctl_serve().bootstrap, *words, file=PATTERN)
    assert min(measured["variants"]["default"]["metrics"]["processed"]["per_seed"]) > 0


@pytest.mark.deep
def test_a_play_that_is_stopped_leaves_nothing(tmp_path: Path, kgctl_serve: ServeFactory) -> None:
    bootstrap = kgctl_serve().bootstrap
    running = kgctl(tmp_path, bootstrap, "--set", "duration=10m")
    assert running.stderr is not None
    assert running.stderr.readline() == f"playing tiny with 2 pods (librdkafka) on {bootstrap}, for about 10m 3s\n"
    while not left_on(bootstrap):
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=2 * PATIENCE_S)
    assert running.returncode == 130
    assert "stopping: consumers are closed, topics and group removed" in err
    assert json.loads(out)["errors"][0]["code"] == "INTERRUPTED"
    assert left_on(bootstrap) == []


def test_a_cluster_that_does_not_answer_is_told(tmp_path: Path) -> None:
    running = kgctl(tmp_path, "127.0.0.1:1", "--timeout", "1s")
    _, err = running.communicate(timeout=2 * PATIENCE_S)
    assert (running.returncode, "127.0.0.1:1" in err) == (7, True)
