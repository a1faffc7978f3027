"""The command line in process, on the ZooKeeper of the test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from kgctl.admin.connect import connect
from tests.cli.harness import Cli, Ran

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.admin.connect import ConnectionSettings


class ZooKeeperCli(Cli):
    """kgctl with KGCTL_ZOOKEEPER set, and nothing faked behind it."""

    def __init__(self, folder: Path, zookeeper: str) -> None:
        super().__init__(folder)
        del self.variables["KGCTL_BOOTSTRAP_SERVER"]
        self.variables["KGCTL_ZOOKEEPER"] = zookeeper

    def _connect(self, settings: ConnectionSettings) -> GroupAdmin:
        self.settings.append(settings)
        return connect(settings)


@pytest.fixture
def cli(tmp_path: Path, zookeeper: str) -> ZooKeeperCli:
    return ZooKeeperCli(tmp_path, zookeeper)


def topic(kazoo: KazooClient, name: str, partitions: int) -> None:
    """A topic as Kafka registers it."""
    assigned = ",".join(f'"{number}":[1]' for number in range(partitions))
    kazoo.create(f"/brokers/topics/{name}", f'{{"version":1,"partitions":{{{assigned}}}}}'.encode(), makepath=True)


def commits(kazoo: KazooClient, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Offsets as other clients write them."""
    for (name, partition), offset in offsets.items():
        kazoo.create(f"/consumers/{group}/offsets/{name}/{partition}", str(offset).encode(), makepath=True)


def offsets_of(kazoo: KazooClient, group: str) -> dict[tuple[str, int], int]:
    """What ZooKeeper has, read with plain kazoo."""
    path = f"/consumers/{group}/offsets"
    names = kazoo.get_children(path) if kazoo.exists(path) else []
    return {
        (name, int(partition)): int(kazoo.get(f"{path}/{name}/{partition}")[0])
        for name in sorted(names)
        for partition in sorted(kazoo.get_children(f"{path}/{name}"), key=int)
    }


def rows(ran: Ran, *keys: str) -> list[tuple[object, ...]]:
    """These columns of the result."""
    return [tuple(row[key] for key in keys) for row in ran.data]
