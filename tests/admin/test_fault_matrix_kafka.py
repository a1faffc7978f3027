"""The matrix of faults on Apache Kafka: each fault at each step of each changing command, and the truth read from the broker.

Deep: it runs some five hundred commands.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AclOperation, ResourceType

from kgctl.admin import GroupAdmin
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.errors import KgctlError, UnreachableError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.harness import Cli
from tests.support.fault_lab import (
    AFTER,
    BEFORE,
    CHANGES,
    FOREIGN,
    OLD,
    Change,
    Killed,
    Scene,
    State,
    Steps,
    Told,
    argv,
    lies,
    stepped,
    zookeeper,
)
from tests.support.kafka import SecureKafkaBroker, create_topic, delete_topic, produce, unique
from tests.support.kafka.consumers import joined
from tests.support.kafka.lossy import LossyCluster
from tests.support.patience import PATIENCE_MS, PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.deep, pytest.mark.slow]

EVERYTHING = [AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE]
FROZEN_TIMEOUT_MS = 1500


class Lab:
    """A broker, an operator who may be refused (carol), and one whom nothing stops."""

    def __init__(self, broker: SecureKafkaBroker) -> None:
        self.broker = broker
        self.login = broker.client_properties("SASL_PLAINTEXT", user="carol")
        self.address = self.login.pop("bootstrap.servers")
        self.root = connect(ConnectionSettings(broker.bootstrap, timeout_ms=PATIENCE_MS))
        broker.allow("carol", ResourceType.BROKER, "kafka-cluster", [AclOperation.DESCRIBE])

    def carol(self, timeout_ms: int) -> GroupAdmin:
        """As a command gets it."""
        return connect(ConnectionSettings(self.address, properties=self.login, timeout_ms=timeout_ms))

    def scene(self) -> Scene:
        """Groups of a new topic, all of which carol may change; asked for again where the broker was frozen a moment ago."""
        for _ in range(4):
            with suppress(KafkaException, KgctlError, AssertionError, TimeoutError):
                return self._scene()
        return self._scene()

    def _scene(self) -> Scene:
        topic = create_topic(self.broker.bootstrap, unique("lab"), 2)
        produce(self.broker.bootstrap, topic, {0: 10, 1: 10})
        scene = Scene(topic, tuple(unique("lab") for _ in range(3)), unique("manned"))
        self.allow(scene)
        for group in scene.groups:
            commits = {TopicPartition(topic, number): OffsetAndMetadata(OLD) for number in (0, 1)}
            assert not self.root.alter_offsets(group, commits).errors
        return scene

    def allow(self, scene: Scene) -> None:
        """Give carol all rights there."""
        self.broker.allow("carol", ResourceType.GROUP, [*scene.groups, scene.manned], EVERYTHING)
        self.broker.allow("carol", ResourceType.TOPIC, scene.topic, EVERYTHING)

    def truth(self, change: Change, scene: Scene) -> State:
        """What the broker has, as soon as it answers."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return change.look(self.root, scene)
            except (KgctlError, AssertionError):
                assert time.monotonic() < deadline
                time.sleep(0.2)


class LossyLab(Lab):
    """Three brokers behind proxies, by which the operator comes; there are no rights."""

    def __init__(self, cluster: LossyCluster) -> None:
        self.cluster, self.broker = cluster, cluster.brokers[0]  # type: ignore[assignment]
        self.address, self.login = cluster.lossy_bootstrap, {}
        self.root = connect(ConnectionSettings(cluster.bootstrap, timeout_ms=PATIENCE_MS))

    def allow(self, scene: Scene) -> None:
        """Whoever comes may do everything."""


@pytest.fixture(scope="module")
def lossy_lab(lossy_kafka_brokers: LossyCluster) -> Iterator[LossyLab]:
    made = LossyLab(lossy_kafka_brokers)
    with made.root:
        yield made


@pytest.fixture(scope="module")
def lab(secure_kafka_broker: SecureKafkaBroker) -> Iterator[Lab]:
    made = Lab(secure_kafka_broker)
    with made.root:
        yield made


def fail(error: BaseException) -> None:
    raise error


def commit_elsewhere(lab: Lab, scene: Scene) -> None:
    lab.root.alter_offsets(scene.groups[1], {TopicPartition(scene.topic, 0): OffsetAndMetadata(FOREIGN)})


def delete_topic_of(lab: Lab, scene: Scene) -> None:
    with suppress(Exception):
        delete_topic(lab.broker.bootstrap, scene.topic)


Fault = Callable[[Lab, Scene], object]
FAULTS: dict[str, tuple[str, Fault]] = {
    "ctrl-c": (BEFORE, lambda _, __: os.kill(os.getpid(), signal.SIGINT)),
    "sigterm": (BEFORE, lambda _, __: os.kill(os.getpid(), signal.SIGTERM)),
    "killed": (AFTER, lambda _, __: fail(Killed())),
    "lost-answer": (AFTER, lambda _, __: fail(UnreachableError("the connection was closed"))),
    "frozen": (BEFORE, lambda lab, _: lab.broker.freeze()),
    "right-revoked": (BEFORE, lambda lab, scene: lab.broker.revoke("carol", ResourceType.GROUP, [scene.groups[1], scene.manned])),
    "topic-deleted": (BEFORE, delete_topic_of),
    "other-commits": (BEFORE, commit_elsewhere),
    "other-deletes": (BEFORE, lambda lab, scene: lab.root.delete_groups([scene.groups[1]])),
    "member-joins": (BEFORE, lambda _, __: None),
}
SOMEBODY_ELSE: dict[str, list[object]] = {
    "topic-deleted": [None],
    "other-commits": [FOREIGN, None],
    "other-deletes": [None],
    "member-joins": [None],
}


@contextmanager
def manned(lab: Lab, scene: Scene, change: Change) -> Iterator[None]:
    """A member in the one group, for the change that removes it."""
    if "MANNED" not in change.line:
        yield
        return
    with joined(lab.broker.bootstrap, scene.manned, scene.topic, {"m": 2}):
        yield


def command(lab: Lab, scene: Scene, folder: Path, steps: Steps, timeout_ms: int = PATIENCE_MS) -> Cli:
    """kgctl as carol runs it, each of whose calls is a step."""
    cli = Cli(folder)
    cli.variables["KGCTL_BOOTSTRAP_SERVER"] = lab.address
    cli.connect = lambda settings: stepped(zookeeper(scene) if settings.zookeeper else lab.carol(timeout_ms), steps)
    return cli


def run(cli: Cli, line: str, scene: Scene) -> Told:
    ran = cli.run([*argv(line, scene, cli.folder, cli.variables["KGCTL_BOOTSTRAP_SERVER"]), "-o", "json"])
    return Told(ran.code, ran.out, ran.err)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_what_is_told_is_so(lab: Lab, change: Change, fault: str, tmp_path: Path) -> None:
    when, act = FAULTS[fault]
    at, wrong = 0, {}
    while True:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        scene = lab.scene()
        steps = Steps(at, when)
        with ExitStack() as staying:
            staying.enter_context(manned(lab, scene, change))
            if change.first:
                assert run(command(lab, scene, folder, Steps()), change.first, scene).code == 0
            before = lab.truth(change, scene)
            steps.act = partial(act, lab, scene)
            if fault == "member-joins":
                block = joined(lab.broker.bootstrap, scene.groups[1], scene.topic, {"late": 2})
                steps.act = partial(staying.enter_context, block)
            told = None
            try:
                with suppress(Killed):
                    timeout_ms = FROZEN_TIMEOUT_MS if fault == "frozen" else PATIENCE_MS
                    told = run(command(lab, scene, folder, steps, timeout_ms), change.line, scene)
            finally:
                lab.broker.thaw()
            after = lab.truth(change, scene)
            if told is not None:
                found = lies(told, change, before, after, SOMEBODY_ELSE.get(fault, ()))
                if found:
                    wrong[at, steps.names[-1]] = (found, told.out, told.err)
            if fault == "killed":
                for file in (folder / "backups").glob("*.csv"):
                    undone = run(command(lab, scene, folder, Steps()), f"undo {file} --execute", scene)
                    assert undone.code == 0, undone.err
                    if change.name != "delete-groups":
                        assert lab.truth(change, scene) == before
            if len(steps.names) < at:
                break
    assert wrong == {}


def break_all(cluster: LossyCluster) -> None:
    for proxy in cluster.proxies:
        proxy.break_all()


LOSSES: dict[str, tuple[str, Callable[[LossyCluster], None]]] = {
    "broken-before": (BEFORE, break_all),
    "broken-after": (AFTER, break_all),
    "lossy-from-then-on": (BEFORE, lambda cluster: cluster.lose(0.1)),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_proxy_that_loses_connections_costs_time_and_nothing_else(
    lossy_lab: LossyLab, change: Change, loss: str, tmp_path: Path
) -> None:
    """At each step: what is told is so, and everything was done in the end."""
    when, lose = LOSSES[loss]
    at, wrong, cluster = 0, {}, lossy_lab.cluster
    while True:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        scene, steps = lossy_lab.scene(), Steps(at, when)
        with manned(lossy_lab, scene, change):
            if change.first:
                assert run(command(lossy_lab, scene, folder, Steps()), change.first, scene).code == 0
            before = lossy_lab.truth(change, scene)
            steps.act = partial(lose, cluster)
            try:
                told = run(command(lossy_lab, scene, folder, steps), change.line, scene)
            finally:
                cluster.lose(0.0)
            found = lies(told, change, before, lossy_lab.truth(change, scene), ())
            if found or told.code:
                wrong[at, steps.names[-1]] = (told.code, found, told.out, told.err)
            if len(steps.names) < at:
                break
    assert wrong == {}
