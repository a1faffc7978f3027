"""``kgctl simulate init --from-group`` of groups with real members: what it writes passes the check and runs."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from tests.support.admin_targets import Target
from tests.support.kafka import unique
from tests.support.kafka.consumers import joined
from tests.support.patience import PATIENCE_S

RATE = 200


def kgctl(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kgctl", *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def written_to(bootstrap: str, topic: str) -> Iterator[None]:
    """`RATE` records a second; a thread that had to wait for its turn catches up."""
    is_over = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        begun, written = time.monotonic(), 0
        while not is_over.wait(1 / RATE):
            while written < (time.monotonic() - begun) * RATE:
                producer.produce(topic, b"x")
                written += 1
            producer.poll(0)
        producer.flush(PATIENCE_S)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize(
    ("target", "protocol"),
    [
        pytest.param("kafka", "classic", marks=pytest.mark.kafka),
        pytest.param("serve", "consumer", marks=pytest.mark.interop),
        pytest.param("kafka", "consumer", marks=[pytest.mark.kafka, pytest.mark.deep]),
        pytest.param("serve", "classic", marks=[pytest.mark.interop, pytest.mark.deep]),
    ],
    indirect=["target"],
)
def test_init_of_a_group_that_lives(target: Target, tmp_path: Path, protocol: str) -> None:
    topic, group, path = target.topic(records=3), unique("group"), tmp_path / "group.yaml"
    properties = {"group_protocol": "consumer"} if protocol == "consumer" else {"partition_assignment_strategy": "roundrobin"}
    with (
        joined(target.bootstrap, group, topic, {"pod-0": 2, "pod-1": 1}, **properties) as members,
        written_to(target.bootstrap, topic),
    ):
        for member in members.values():
            for partition in member.assignment():
                partition.offset = 1
                member.commit(offsets=[partition], asynchronous=False)
        kgctl("--bootstrap-server", target.bootstrap, "simulate", "init", "--from-group", group, "--sample", "2s", str(path))

    document = yaml.safe_load(path.read_text())
    assert document["topics"] == {topic: {"partitions": 3}}
    assert document["members"]["pod"]["count"] == 2
    config = document["group"]["config"]
    assert config.get("group.protocol", "classic") == protocol
    assert protocol == "consumer" or config["partition.assignment.strategy"] == ["roundrobin"]
    written = int(document["traffic"][topic].removesuffix("/s"))
    assert RATE / 4 < written < RATE * 2
    assert int(path.read_text().partition("the lag was ")[2].split()[0]) > 0

    kgctl("simulate", "check", str(path))
    result = json.loads(kgctl("simulate", "run", str(path), "--runs", "1", "-o", "json"))
    (variant, *_) = result["data"]["variants"].values()
    assert sum(len(partitions[topic]) for partitions in variant["final_assignment"].values()) == 3
