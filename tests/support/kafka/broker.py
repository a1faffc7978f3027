"""One node of Apache Kafka on loopback, started and stopped by a test."""

from __future__ import annotations

import contextlib
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.support import maven
from tests.support.kafka import processes
from tests.support.kafka.config import CLUSTER_ID, NodePorts, combined_node
from tests.support.kafka.install import JVM, RELEASE, cache_key, formatted_checkpoint, kafka_command
from tests.support.kafka.ports import free_ports
from tests.support.patience import PATIENCE_S

START_TRIES = 3
API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)

# What a node's configuration is made of, given its log folder and ports.
NodeConfig = Callable[[Path, NodePorts], Mapping[str, str]]


class KafkaBroker:
    """A node of Apache Kafka with its own folder, of 4.3.1 or another ``release``; ``bootstrap`` is its PLAINTEXT address.

    `start` and `stop` may be called again and again: ports and data stay. Every call is made from the thread of the tests.
    """

    cluster_id = CLUSTER_ID

    def __init__(
        self,
        folder: Path,
        *,
        config: NodeConfig = combined_node,
        overrides: Mapping[str, str] | None = None,
        listeners: Sequence[str] = ("PLAINTEXT",),
        controller_port: int | None = None,
        scram: Sequence[str] = (),
        node_id: int = 1,
        jvm: Sequence[str] = JVM,
        release: str = RELEASE,
    ) -> None:
        self.release = release
        self.folder = folder
        self.node_id = node_id
        self._config = config
        self.overrides = dict(overrides or {})
        self._listeners = tuple(listeners)
        self._controller_port = controller_port
        self._scram = tuple(scram)
        self._jvm = tuple(jvm)
        self._process: subprocess.Popen[bytes] | None = None
        self.ports = self._new_ports()

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the first listener."""
        return self.address(self._listeners[0])

    def address(self, listener: str) -> str:
        """``host:port`` of one listener, by its security protocol's name."""
        return f"127.0.0.1:{self.ports.listeners[listener]}"

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether the process is there (it may be frozen)."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, archive: Path | None = None, wait: bool = True) -> None:
        """Starts the node and waits until it answers; a port taken in between is replaced on a first start.

        Raises:
            Unavailable: Apache Kafka cannot be had on this machine.
            RuntimeError: the node ended, or did not answer in time; the message holds its output.
        """
        first = not (self.folder / "log").exists()
        self.folder.mkdir(parents=True, exist_ok=True)
        for remaining in reversed(range(START_TRIES)):
            self.launch(archive or (class_data_archive() if self.release == RELEASE else None))
            try:
                if wait:
                    self.wait_for_port()
            except RuntimeError:
                self.stop(kill=True)
                if not first or not remaining or self._controller_port is not None:
                    raise
                self.ports = self._new_ports()
                shutil.rmtree(self.folder / "log")
            else:
                return

    def launch(self, archive: Path | None, *, jvm: Sequence[str] = ()) -> None:
        """Starts the process without waiting for it."""
        log_dir = self.folder / "log"
        if not log_dir.exists():
            log_dir.mkdir(parents=True)
            if checkpoint := formatted_checkpoint(self._scram, self.release):
                (log_dir / "bootstrap.checkpoint").write_bytes(checkpoint)
            meta = {"version": "1", "cluster.id": self.cluster_id, "node.id": str(self.node_id)}
            maven.write_properties(log_dir / "meta.properties", meta)
        config = {**self._config(log_dir, self.ports), **self.overrides}
        properties = maven.write_properties(self.folder / "server.properties", config)
        flags = (*self._jvm, *jvm)
        command = kafka_command("kafka.Kafka", str(properties), jvm=flags, archive=archive, release=self.release)
        self._process = processes.start_process(command, self.folder / "output.log")

    def wait_for_port(self) -> None:
        """Returns once the first listener answers an ApiVersions request."""
        deadline = time.monotonic() + PATIENCE_S
        port = self.ports.listeners[self._listeners[0]]
        while not answers(port):
            if not self.running or time.monotonic() > deadline:
                raise RuntimeError(f"Apache Kafka did not start:\n{self.output()}")
            time.sleep(0.02)

    def stop(self, *, kill: bool = False) -> None:
        """Ends the node; ``kill`` by SIGKILL, as a crash does."""
        if self._process is not None:
            processes.stop_process(self._process, kill=kill)
            self._process = None

    def freeze(self) -> None:
        """Stops the node in its tracks: connections stay open, nothing is answered."""
        processes.freeze(self._running())

    def thaw(self) -> None:
        """Lets a frozen node go on."""
        processes.thaw(self._running())

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Frozen for the length of a ``with`` block."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def output(self) -> str:
        """The end of what the node printed."""
        log = self.folder / "output.log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the node is not running"
        return self._process

    def _new_ports(self) -> NodePorts:
        *listeners, controller = free_ports(len(self._listeners) + 1)
        return NodePorts(dict(zip(self._listeners, listeners, strict=True)), self._controller_port or controller)


def answers(port: int) -> bool:
    """Whether a Kafka server answers on this loopback port (a plain listener)."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.settimeout(5)
            connection.sendall(API_VERSIONS_V0)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


def class_data_archive() -> Path | None:
    """The kept archive of the classes that a node loads: it halves the time to start. Made once, by a node that runs for that.

    That costs as much as six starts with it spare, so other releases, of which a run starts one or two nodes, have none.
    """
    key = f"archive-{cache_key()}"
    archive = maven.cache_folder() / f"{key}.jsa"
    with maven.cache_lock(key):
        if not archive.exists():
            _make_archive(archive)
    return archive if archive.stat().st_size else None


def _make_archive(archive: Path) -> None:
    made = archive.with_suffix(".new")
    folder = archive.with_suffix(".work")
    trainer = KafkaBroker(folder)
    try:
        trainer.launch(None, jvm=[f"-XX:ArchiveClassesAtExit={made}"])
        trainer.wait_for_port()
        trainer.stop()
    finally:
        trainer.stop(kill=True)
        shutil.rmtree(folder, ignore_errors=True)
    if made.exists():
        made.rename(archive)
    else:
        archive.touch()  # this Java makes none; start without
