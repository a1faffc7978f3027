"""Groups in ZooKeeper: kgctl's list and describe of all of them, beside a loop of kazoo's plain gets over the same offsets."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kazoo.client import KazooClient

from kgctl.admin.group_view import view_offsets
from kgctl.admin.zookeeper.admin import ZooKeeperGroupAdmin, open_zookeeper
from tests.benchmarks.measure import BenchmarkError
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.support.machine import Unavailable
from tests.support.zookeeper import ZooKeeperServer

TOPIC = "orders"
TIMEOUT_MS = 120_000


def measure(_: Sequence[str], scale: Scale) -> Iterator[Row]:
    """In turns, in one process, each with a session that is there already; the best of all turns counts."""
    groups, partitions = (5, 4) if scale.small else (200, 100)
    with TemporaryDirectory() as folder, _populated(Path(folder), groups, partitions) as (kazoo, admin):
        paths = [f"/consumers/g{group}/offsets/{TOPIC}/{number}" for group in range(groups) for number in range(partitions)]
        names = [f"g{group}" for group in range(groups)]
        ways: dict[str, Callable[[], object]] = {
            f"kazoo, a loop of {len(paths):,} gets": lambda: [kazoo.get(path) for path in paths],
            f"kgctl, list of {groups:,} groups": admin.list_groups,
            "kgctl, list with all offsets": lambda: (admin.list_groups(), admin.list_committed_offsets(names)),
            f"kgctl, describe of {groups:,} groups": lambda: view_offsets(admin, names),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _turn in range(scale.runs):
            for name, work in ways.items():
                started = time.perf_counter()
                work()
                times[name].append(time.perf_counter() - started)
        loop = min(next(iter(times.values())))
        for name, found in times.items():
            yield Row(name, (f"{min(found):.3f}", f"{min(found) / loop:.2f}"))


@contextlib.contextmanager
def _populated(folder: Path, groups: int, partitions: int) -> Iterator[tuple[KazooClient, ZooKeeperGroupAdmin]]:
    server = ZooKeeperServer(folder)
    try:
        server.start()
    except Unavailable as missing:
        raise BenchmarkError(str(missing)) from None
    kazoo = KazooClient(server.hosts)
    kazoo.start()
    try:
        assigned = ",".join(f'"{number}":[1]' for number in range(partitions))
        kazoo.create(f"/brokers/topics/{TOPIC}", f'{{"version":1,"partitions":{{{assigned}}}}}'.encode(), makepath=True)
        for group in range(groups):
            kazoo.ensure_path(f"/consumers/g{group}/offsets/{TOPIC}")
            changes = kazoo.transaction()
            for number in range(partitions):
                changes.create(f"/consumers/g{group}/offsets/{TOPIC}/{number}", str(number).encode())
            changes.commit()
        with open_zookeeper(server.hosts, {}, TIMEOUT_MS) as admin:
            admin.list_groups()
            yield kazoo, admin
    finally:
        kazoo.stop()
        kazoo.close()
        server.stop()


RATES = Rates("zookeeper", "Groups in ZooKeeper", ("seconds, best", "of the loop"), measure)
