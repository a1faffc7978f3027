"""Burrow reads ``kgctl serve``'s ``__consumer_offsets`` and tells a group's lag as kgctl does.

Burrow 1.2 reads commits up to version 3; Apache Kafka 4.3 writes version 4, so it needs kgctl.offsets.topic.older.values.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.burrow import burrow, wait_for
from tests.support.gates import ZOOKEEPER
from tests.support.kafka import commit, produce
from tests.support.kafka.kgctl import run_kgctl
from tests.support.serve import ServeFactory

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.needs("burrow", *ZOOKEEPER)]

RECORDS, GROUP = 10, "payments"
COMMITTED = {0: 4, 1: 10, 2: 0}
LAG = {0: 6, 1: 0, 2: 10}


def test_burrow_tells_the_lag_that_kgctl_tells(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    server = kgctl_serve(topics={"orders": 3}, config={"kgctl.offsets.topic.older.values": "true"})
    produce(server.bootstrap, "orders", dict.fromkeys(range(3), RECORDS))
    with burrow(server.bootstrap, tmp_path) as monitor:
        wait_for("the topic", monitor, lambda: "orders" in monitor.topics())

        def is_told() -> bool:
            commit(server.bootstrap, GROUP, {("orders", number): offset for number, offset in COMMITTED.items()})
            return monitor.lag(GROUP).get("totallag") == sum(LAG.values())

        wait_for("the group's lag", monitor, is_told)
        told = monitor.lag(GROUP)
    rows = run_kgctl(server.bootstrap, "describe", "group", GROUP).data

    assert told["partition_count"] == len(COMMITTED)
    assert told["maxlag"]["current_lag"] == max(LAG.values())
    assert {row["partition"]: row["lag"] for row in rows} == LAG
