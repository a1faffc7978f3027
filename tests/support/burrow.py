"""Burrow (https://github.com/linkedin/Burrow), a lag monitor, with the ZooKeeper that it insists on; Debian has both."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.kafka.ports import free_ports
from tests.support.kafka.processes import start_process, stop_process
from tests.support.patience import PATIENCE_S
from tests.support.zookeeper.server import ZooKeeperServer

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
    (http_port,) = free_ports(1)
    zookeeper = ZooKeeperServer(folder / "zookeeper")
    zookeeper.start()
    values = {"folder": folder, "bootstrap": bootstrap, "zookeeper": zookeeper.port, "http": http_port}
    (folder / "burrow.toml").write_text(BURROW_CONFIG.format(**values))
    monitor = start_process(["Burrow", "--config-dir", str(folder)], folder / "burrow.log")
    try:
        yield Burrow(f"http://127.0.0.1:{http_port}/v3/kafka/local", folder / "burrow.log")
    finally:
        stop_process(monitor)
        zookeeper.stop()


def wait_for(what: str, monitor: Burrow, is_there: Callable[[], bool]) -> None:
    """Poll until ``is_there()``; fails with Burrow's log."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < deadline, f"{what} is not there after {PATIENCE_S} s:\n{monitor.log()}"
        time.sleep(0.1)
