"""What the server does besides answering."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from kgctl.server.upkeep import ROUNDS_ALONE, Collector, Upkeep

if TYPE_CHECKING:
    from kgctl.server.request_context import Services
    from kgctl.server.traffic import Connection


class Looking(Collector):
    """Counts how often it looks through everything."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = 0

    def look_through(self) -> None:
        self.looked += 1


def test_what_the_collector_left_out_is_looked_through_once_nobody_came_for_a_minute() -> None:
    connections: list[Connection] = []
    collector = Looking()
    upkeep = Upkeep(cast("Services", None), connections, 0, collector)

    async def rounds(count: int) -> int:
        for _ in range(count):
            await upkeep.collect_when_alone()
        return collector.looked

    assert asyncio.run(rounds(ROUNDS_ALONE - 1)) == 0
    connections.append(cast("Connection", None))
    assert asyncio.run(rounds(2)) == 0
    connections.clear()
    assert asyncio.run(rounds(ROUNDS_ALONE - 1)) == 0
    assert asyncio.run(rounds(5)) == 1
