"""The examples of the manual's page on ZooKeeper give what is shown; ``python -m tests.docs.update`` leaves them to this test."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kgctl.admin.librdkafka import produce
from kgctl.server.background import BackgroundServer
from tests.docs.pages import MANUAL, blocks, comparable, with_output
from tests.docs.session import Session
from tests.docs.shell import Shell
from tests.support.zookeeper import ZooKeeperServer
from tests.zookeeper.conftest import commits, topic

pytestmark = pytest.mark.zookeeper

PAGE = MANUAL / "zookeeper.md"
WORKER = "worker-1:0f8fad5b-d9cb-469f-a165-70867728950e"
REGISTRATION = b'{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":1500000000}'


class ZooKeeperSession(Session):
    """Both addresses in the environment."""

    def __init__(self, folder: Path, zookeeper: str, bootstrap: str) -> None:
        super().__init__(folder)
        self._addresses = {"KGCTL_ZOOKEEPER": zookeeper, "KGCTL_BOOTSTRAP_SERVER": bootstrap}

    def variables(self, argv: Sequence[str]) -> Mapping[str, str]:
        """As for other pages, with the addresses."""
        return {**super().variables(["kgctl", "manual"]), **self._addresses}


def examples(server: ZooKeeperServer, folder: Path) -> str:
    """The page with its examples run: ``payments`` has left, ``audit`` has one instance that runs."""
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(BackgroundServer(topics={"orders": 3}))
        produce(broker.bootstrap, "orders", 150, 3)
        root = KazooClient(server.hosts)
        root.start()
        stack.callback(root.close)
        stack.callback(root.stop)
        root.create("/kafka")
        stack.callback(root.delete, "/kafka", recursive=True)
        kazoo = KazooClient(f"{server.hosts}/kafka")
        kazoo.start()
        stack.callback(kazoo.close)
        stack.callback(kazoo.stop)
        topic(kazoo, "orders", 3)
        commits(kazoo, "payments", {("orders", 0): 40, ("orders", 1): 50, ("orders", 2): 30})
        commits(kazoo, "audit", {("orders", 0): 50})
        kazoo.create(f"/consumers/audit/ids/{WORKER}", REGISTRATION, ephemeral=True, makepath=True)
        kazoo.create("/consumers/audit/owners/orders/0", WORKER.encode(), ephemeral=True, makepath=True)
        session = stack.enter_context(ZooKeeperSession(folder, f"{server.hosts}/kafka", broker.bootstrap))
        shell = stack.enter_context(Shell(folder, session))
        return with_output(PAGE.read_text(encoding="utf-8"), shell, lambda mark: mark == "zookeeper")


def test_examples_give_the_output_that_is_shown(zookeeper_server: ZooKeeperServer, tmp_path: Path) -> None:
    shown = blocks(PAGE.read_text(encoding="utf-8"))
    ran = blocks(examples(zookeeper_server, tmp_path))
    assert [comparable(block) for block in shown] == [comparable(block) for block in ran]
