"""Faults in the middle of a change: what kgctl says of every row is what the cluster has afterwards."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.errors import KgctlError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.support.admin_targets import Target
from tests.support.kafka import KafkaBroker, KafkaCluster, SecureKafkaBroker, create_topic, produce, unique
from tests.support.kafka.data import wait_until_coordinating
from tests.support.patience import PATIENCE_MS, PATIENCE_S

pytestmark = pytest.mark.kafka

OLD, NEW = 7, 3
RESULTS = {"reset", "failed", "unknown", "not-tried"}


@dataclass(frozen=True, slots=True)
class Told:
    """What a run of kgctl said: its exit code, its envelope, and stderr."""

    code: int
    document: Any
    err: str

    def results(self) -> dict[tuple[str, int], str]:
        return {(row["group"], row["partition"]): row["result"] for row in self.document["data"]}


def begin_reset(bootstrap: str, groups: Sequence[str], topic: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    """A reset of all groups to offset 3, whose undo file has been written when this returns."""
    line = ["reset-offsets", *groups, "--topic", topic, "--to-offset", str(NEW), "--execute", "-o", "json", *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "kgctl", "--bootstrap-server", bootstrap, *line],
        env={**os.environ, "KGCTL_BACKUP_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    assert first.startswith("Previous offsets saved"), first + process.stderr.read()
    return process


def end(process: subprocess.Popen[str]) -> Told:
    out, err = process.communicate(timeout=PATIENCE_S)
    return Told(process.returncode, json.loads(out), err)


def prepare(bootstrap: str, groups: int, partitions: int, replication: int = 1) -> tuple[str, list[str]]:
    """A topic, and groups with a commit on each of its partitions."""
    topic = create_topic(bootstrap, unique("topic"), partitions, replication=replication)
    produce(bootstrap, topic, dict.fromkeys(range(partitions), 10))
    names = [unique("fault") for _ in range(groups)]
    commits = {TopicPartition(topic, number): OffsetAndMetadata(OLD) for number in range(partitions)}
    with connect(ConnectionSettings(bootstrap, timeout_ms=PATIENCE_MS)) as admin:
        for name in names:
            assert not admin.alter_offsets(name, commits).errors
    return topic, names


def committed(bootstrap: str, groups: Sequence[str]) -> dict[tuple[str, int], int]:
    """What the cluster has, as soon as it answers for every group: each has commits, but a coordinator that has just taken groups
    over shows those alone that it knows to be replicated."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with connect(ConnectionSettings(bootstrap, timeout_ms=PATIENCE_MS)) as admin:
                found = admin.list_committed_offsets(groups)
            if not found.errors and all(found.values.values()):
                return {
                    (g, each.partition): commit.offset for g, commits in found.values.items() for each, commit in commits.items()
                }
        except KgctlError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.2)


def assert_told_the_truth(told: Told, found: Mapping[tuple[str, int], int]) -> None:
    """A row that is reset is; one that failed or was not tried is not; one that is unknown may be either."""
    results = told.results()
    assert set(results) == set(found)
    assert set(results.values()) <= RESULTS
    wrong = {
        key: (result, found[key])
        for key, result in results.items()
        if (result == "reset" and found[key] != NEW) or (result in ("failed", "not-tried") and found[key] != OLD)
    }
    assert not wrong, told.err
    may_have_changed = any(result in ("reset", "unknown") for result in results.values())
    is_whole = set(results.values()) == {"reset"}
    assert told.code == (0 if is_whole else 3 if may_have_changed else told.code), told.err
    assert told.document["status"] == ("ok" if is_whole else "partial" if may_have_changed else "error")


@pytest.mark.slow
@pytest.mark.deep
def test_a_coordinator_that_is_killed_in_the_middle(three_kafka_brokers: KafkaCluster, tmp_path: Path) -> None:
    """Its groups move to the other two, which know every commit that was acknowledged."""
    cluster = three_kafka_brokers
    topic, names = prepare(cluster.bootstrap, 300, 10, replication=3)
    process = begin_reset(cluster.bootstrap, names, topic, tmp_path, "--timeout", "10")
    victim = cluster.brokers[1]
    victim.stop(kill=True)
    try:
        told = end(process)
        found = committed(",".join(each.bootstrap for each in cluster.brokers if each is not victim), names)
    finally:
        victim.start()
        cluster.recover()
    assert_told_the_truth(told, found)


@pytest.mark.slow
@pytest.mark.deep
def test_a_reset_with_one_of_three_brokers_stopped_is_whole(three_kafka_brokers: KafkaCluster, tmp_path: Path) -> None:
    cluster = three_kafka_brokers
    topic, names = prepare(cluster.bootstrap, 40, 3, replication=3)
    stopped = cluster.brokers[2]
    stopped.stop()
    try:
        wait_until_coordinating(cluster.brokers[0].bootstrap, partitions=3)
        told = end(begin_reset(cluster.bootstrap, names, topic, tmp_path))
        found = committed(cluster.brokers[0].bootstrap, names)
    finally:
        stopped.start()
        cluster.recover()
    assert (told.code, set(found.values())) == (0, {NEW}), told.err
    assert_told_the_truth(told, found)


def test_a_right_that_is_revoked_in_the_middle(secure_kafka_broker: SecureKafkaBroker, tmp_path: Path) -> None:
    broker = secure_kafka_broker
    topic, names = prepare(broker.bootstrap, 150, 2)
    broker.allow("carol", ResourceType.GROUP, names, [AclOperation.READ])
    broker.allow("carol", ResourceType.TOPIC, topic, [AclOperation.READ])
    login = broker.client_properties("SASL_PLAINTEXT", user="carol")
    address = login.pop("bootstrap.servers")
    (tmp_path / "password").write_text(login["sasl.password"])
    login["sasl.password"] = f"file:{tmp_path / 'password'}"
    options = [word for key, value in login.items() for word in ("-X", f"{key}={value}")]
    process = begin_reset(address, names, topic, tmp_path, *options)
    broker.revoke("carol", ResourceType.GROUP, names[len(names) // 2 :])
    told = end(process)
    assert_told_the_truth(told, committed(broker.bootstrap, names))
    refused = [error for error in told.document["errors"] if error["code"] == "GROUP_AUTHORIZATION_FAILED"]
    assert all(re.search("user 'carol' lacks the right (READ|DESCRIBE) on the group", error["message"]) for error in refused)


@pytest.mark.interop
def test_undo_is_refused_on_another_cluster(kafka_broker: Any, serve_target: Target, tmp_path: Path) -> None:
    topic, (group,) = prepare(kafka_broker.bootstrap, 1, 1)
    assert end(begin_reset(kafka_broker.bootstrap, [group], topic, tmp_path)).code == 0
    create_topic(serve_target.bootstrap, topic, 1)
    with serve_target.admin() as admin:
        assert not admin.alter_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(1)}).errors
    (file,) = tmp_path.glob("*.csv")
    undo = [sys.executable, "-m", "kgctl", "undo", str(file), "--execute", "--bootstrap-server", serve_target.bootstrap]
    done = subprocess.run(undo, capture_output=True, text=True, check=False)
    assert (done.returncode, "offsets of one cluster mean nothing on another" in done.stderr) == (5, True)
    assert committed(serve_target.bootstrap, [group]) == {(group, 0): 1}
    assert committed(kafka_broker.bootstrap, [group]) == {(group, 0): NEW}


def kgctl(variables: Mapping[str, str], *words: str) -> Told:
    """A line as it is typed, which names no cluster: the current context does."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("KGCTL_")}
    environment = {**inherited, **variables}
    done = subprocess.run(
        [sys.executable, "-m", "kgctl", *words, "-o", "json"], env=environment, capture_output=True, text=True, check=False
    )
    return Told(done.returncode, json.loads(done.stdout), done.stderr)


@pytest.mark.deep
@pytest.mark.parametrize(
    "change",
    [
        "reset-offsets GROUP --topic TOPIC --to-offset 3 --execute",
        "delete-offsets GROUP --topic TOPIC --yes",
        "delete-groups GROUP --yes",
    ],
)
def test_a_context_is_switched_between_change_and_undo(
    kafka_broker: KafkaBroker, secure_kafka_broker: SecureKafkaBroker, tmp_path: Path, change: str
) -> None:
    """Two clusters of Apache Kafka with the same group and topic: the undo is refused on the other one, and works on its own."""
    topic, (group,) = prepare(kafka_broker.bootstrap, 1, 1)
    create_topic(secure_kafka_broker.bootstrap, topic, 1)
    produce(secure_kafka_broker.bootstrap, topic, {0: 10})
    with connect(ConnectionSettings(secure_kafka_broker.bootstrap, timeout_ms=PATIENCE_MS)) as other:
        assert not other.alter_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(1)}).errors
    variables = {"KGCTL_CONFIG": str(tmp_path / "config.yaml"), "KGCTL_BACKUP_DIR": str(tmp_path / "backups")}
    for name, broker in (("staging", kafka_broker), ("prod", secure_kafka_broker)):
        assert kgctl(variables, "context", "add", name, "--bootstrap-server", broker.bootstrap).code == 0
    assert kgctl(variables, "context", "use", "staging").code == 0
    changed = kgctl(variables, *(change.replace("GROUP", group).replace("TOPIC", topic).split()))
    assert changed.code == 0, changed.err
    printed = changed.err.splitlines()[0].partition("to undo: kgctl ")[2].split()
    (file,) = (tmp_path / "backups").glob("*.csv")

    assert kgctl(variables, "context", "use", "prod").code == 0
    assert kgctl(variables, "undo").document["data"] == []
    for named in (file.stem, str(file)):
        refused = kgctl(variables, "undo", named, "--execute")
        assert (refused.code, [error["code"] for error in refused.document["errors"]]) == (5, ["OTHER_CLUSTER"]), refused.err
    assert committed(secure_kafka_broker.bootstrap, [group]) == {(group, 0): 1}

    undone = kgctl(variables, *printed)  # it names the cluster, whatever the current context is
    assert (undone.code, committed(kafka_broker.bootstrap, [group])) == (0, {(group, 0): OLD}), undone.err
    assert committed(secure_kafka_broker.bootstrap, [group]) == {(group, 0): 1}
