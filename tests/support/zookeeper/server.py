"""One ZooKeeper, started and stopped by a test; it answers some 0.3 s after its start."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import maven
from tests.support.gates import uses
from tests.support.kafka.ports import free_ports
from tests.support.kafka.processes import freeze, start_process, stop_process, thaw
from tests.support.machine import DEBIANS_JARS
from tests.support.patience import PATIENCE_S

JARS = tuple(DEBIANS_JARS / name for name in ("zookeeper.jar", "slf4j-nop.jar"))
MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
JVM = ("-Xmx192m", *maven.FAST_JVM, "-Dzookeeper.jmx.log4j.disable=true")
TICK_MS = 500


def zookeeper_class_path() -> str:
    """Debian's jars."""
    uses("zookeeper")
    return ":".join(map(str, JARS))


class ZooKeeperServer:
    """A server of its own folder and port; `start` and `stop` may be called again and again: port and data stay."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] | None = None,
        class_path: str | None = None,
        jvm: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.port = free_ports(1)[0]
        self._settings = dict(settings or {})
        self._class_path = class_path
        self._jvm = tuple(jvm)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def hosts(self) -> str:
        """``host:port``, as every client takes it."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            Unavailable: there is none on this machine.
        """
        class_path = self._class_path or zookeeper_class_path()
        self.folder.mkdir(parents=True, exist_ok=True)
        config = maven.write_properties(self.folder / "zoo.cfg", self._config())
        command = ["java", *JVM, *self._jvm, "-cp", class_path, MAIN, str(config)]
        self._process = start_process(command, self.folder / "output.log")
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_serving():
            assert self._process.poll() is None, f"ZooKeeper ended:\n{self.output()}"
            assert time.monotonic() < deadline, f"ZooKeeper did not start:\n{self.output()}"
            time.sleep(0.02)

    def stop(self, *, kill: bool = False) -> None:
        """End it; ``kill`` by SIGKILL, as a crash does."""
        if self._process is not None:
            stop_process(self._process, kill=kill)
            self._process = None

    def freeze(self) -> None:
        """Stop it in its tracks: connections stay open, nothing is answered."""
        assert self._process is not None
        freeze(self._process)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        thaw(self._process)

    def output(self) -> str:
        """The end of what it printed."""
        log = self.folder / "output.log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""

    def _config(self) -> dict[str, str]:
        return {
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            "dataDir": str(self.folder / "data"),
            "tickTime": str(TICK_MS),
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "ruok,srvr",
            **self._settings,
        }

    def _is_serving(self) -> bool:
        """By ZooKeeper's own question; one that has just begun to listen does not serve yet."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                return b"Mode: " in connection.recv(4096)
        except OSError:
            return False
