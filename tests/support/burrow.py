"""Burrow (https://github.com/linkedin/Burrow), a lag monitor, with the ZooKeeper that it insists on; Debian has both as packages.

Where one is missing the test is skipped with that reason; under ``CI=true`` it fails.
"""

from __future__ import annotations

import json
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.kafka.fixtures import unavailable
from tests.support.kafka.ports import free_ports
from tests.support.kafka.processes import start_process, stop_process
from tests.support.patience import PATIENCE_S

ZOOKEEPER_JARS = (Path("/usr/share/java/zookeeper.jar"), Path("/usr/share/java/slf4j-nop.jar"))
ZOOKEEPER_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
ZOOKEEPER_CONFIG = """\
clientPort={zookeeper}
clientPortAddress=127.0.0.1
dataDir={folder}/zookeeper
tickTime=500
admin.enableServer=false
4lw.commands.whitelist=srvr
"""
BURROW_CONFIG = """\
[general]
pidfile="{folder}/burrow.pid"

[zookeeper]
servers=["127.0.0.1:{zookeeper}"]

[client-profile.kgctl]
client-id="burrow"
kafka-version="2.0.0"

[cluster.local]
class-name="kafka"
servers=["{bootstrap}"]
client-profile="kgctl"
topic-refresh=1
offset-refresh=1

[consumer.local]
class-name="kafka"
cluster="local"
servers=["{bootstrap}"]
client-profile="kgctl"

[httpserver.default]
address="127.0.0.1:{http}"
"""


class Burrow:
    """A running Burrow that watches one cluster."""

    def __init__(self, url: str, log: Path) -> None:
        self._url = url
        self._log = log

    def topics(self) -> list[str]:
        """The topics whose end offsets it knows."""
        found: list[str] = self._get("topic").get("topics", [])
        return found

    def lag(self, group: str) -> dict[str, Any]:
        """What it says about a group; empty as long as it does not know it."""
        status: dict[str, Any] = self._get(f"consumer/{group}/lag").get("status", {})
        return status

    def log(self) -> str:
        """The end of what it printed."""
        return self._log.read_text(errors="replace")[-4000:]

    def _get(self, what: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"{self._url}/{what}", timeout=PATIENCE_S) as answer:
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()
            return {}
        except OSError:
            return {}
        return found


@contextmanager
def burrow(bootstrap: str, folder: Path) -> Iterator[Burrow]:
    """Burrow and its ZooKeeper, both in ``folder``, for the length of a ``with`` block."""
    program, java = shutil.which("Burrow"), shutil.which("java")
    missing = [str(jar) for jar in ZOOKEEPER_JARS if not jar.exists()]
    if program is None or java is None or missing:
        unavailable("Debian's packages burrow and zookeeper, and Java, are not all installed")
    zookeeper_port, http_port = free_ports(2)
    values = {"folder": folder, "bootstrap": bootstrap, "zookeeper": zookeeper_port, "http": http_port}
    (folder / "zoo.cfg").write_text(ZOOKEEPER_CONFIG.format(**values))
    (folder / "burrow.toml").write_text(BURROW_CONFIG.format(**values))
    class_path = ":".join(map(str, ZOOKEEPER_JARS))
    flags = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jmx.log4j.disable=true")
    zookeeper = start_process(
        [java, *flags, "-cp", class_path, ZOOKEEPER_MAIN, str(folder / "zoo.cfg")], folder / "zookeeper.log"
    )
    wait_until_serving(zookeeper_port)
    monitor = start_process([program, "--config-dir", str(folder)], folder / "burrow.log")
    try:
        yield Burrow(f"http://127.0.0.1:{http_port}/v3/kafka/local", folder / "burrow.log")
    finally:
        stop_process(monitor)
        stop_process(zookeeper)


def wait_until_serving(port: int) -> None:
    """Burrow gives up at once where no ZooKeeper answers; one that has just begun to listen does not."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_serving(port):
        assert time.monotonic() < deadline, f"no ZooKeeper serves on {port}"
        time.sleep(0.05)


def is_serving(port: int) -> bool:
    """By ZooKeeper's own question."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"srvr")
            return b"Mode: " in connection.recv(4096)
    except OSError:
        return False


def wait_for(what: str, monitor: Burrow, is_there: Callable[[], bool]) -> None:
    """Poll until ``is_there()``; fails with Burrow's log."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < deadline, f"{what} is not there after {PATIENCE_S} s:\n{monitor.log()}"
        time.sleep(0.1)
