"""What the server does besides answering."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

import pytest

from kgctl.server.upkeep import ROUNDS_ALONE, Collector, Upkeep
from kgctl.testing import EmbeddedServer

if TYPE_CHECKING:
    from kgctl.server.request_context import Services
    from kgctl.server.traffic import ServedConnection


class Looking(Collector):
    """Counts how often it looks through everything."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = 0

    def look_through(self) -> None:
        self.looked += 1


@pytest.mark.parametrize(("interval_ms", "left"), [("1", []), ("300000", ["old"])])
def test_records_go_when_their_time_is_over(interval_ms: str, left: list[str]) -> None:
    with EmbeddedServer(config={"log.retention.check.interval.ms": interval_ms}) as cluster:
        cluster.produce("orders", "old")
        cluster.create_topic("kept", config={"cleanup.policy": "compact"})
        cluster.produce("kept", "old", key="a")
        cluster.advance(8 * 86_400_000)
        server = cluster._server.server
        assert server._upkeep is not None
        cluster._server.run(server._upkeep.expire_records())
        assert [each.text for each in cluster.records("orders")] == left
        assert [each.text for each in cluster.records("kept")] == ["old"]


def test_what_goes_is_told_the_first_time_and_commits_stay(caplog: pytest.LogCaptureFixture) -> None:
    config = {"log.retention.check.interval.ms": "1", "offsets.retention.minutes": "100000"}
    with EmbeddedServer({"orders": 1}, config=config) as cluster:
        server = cluster._server.server
        assert server._upkeep is not None
        cluster.commit("billing", {("orders", 0): 1})
        with caplog.at_level(logging.INFO, "kgctl.server.cleaner"):
            for _ in range(2):
                cluster.produce("orders", "old", "older")
                cluster.produce("timeless", "old", timestamp_ms=-1)
                cluster.advance(8 * 86_400_000)
                cluster._server.run(server._upkeep.expire_records())
        assert cluster.committed("billing") == {("orders", 0): 1}
        assert len(cluster.records("timeless")) == 2
    words = "topic orders: 2 offsets are gone, as retention.ms=604800000 and retention.bytes=-1; -1 is no bound"
    assert [(line.levelname, line.getMessage()) for line in caplog.records if "gone" in line.getMessage()] == [
        ("WARNING", words),
        ("INFO", words),
    ]


def test_what_the_collector_left_out_is_looked_through_once_nobody_came_for_a_minute() -> None:
    connections: list[ServedConnection] = []
    collector = Looking()
    upkeep = Upkeep(cast("Services", None), connections, 0, collector)

    async def rounds(count: int) -> int:
        for _ in range(count):
            await upkeep.collect_when_alone()
        return collector.looked

    assert asyncio.run(rounds(ROUNDS_ALONE - 1)) == 0
    connections.append(cast("ServedConnection", None))
    assert asyncio.run(rounds(2)) == 0
    connections.clear()
    assert asyncio.run(rounds(ROUNDS_ALONE - 1)) == 0
    assert asyncio.run(rounds(5)) == 1
