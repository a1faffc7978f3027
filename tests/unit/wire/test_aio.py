"""Connections of coroutines."""

from __future__ import annotations

import asyncio

import pytest

from kgctl.errors import UnreachableError
from kgctl.wire import Deadline, aio
from kgctl.wire.settings import Address, WireSettings
from tests.support.patience import PATIENCE_MS

BROKER = Address("127.0.0.1", 9092)


class Opened:
    """A connection of which is only seen whether it is closed."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_a_connection_that_is_being_opened_when_all_are_closed_is_closed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened()

    async def close_meanwhile() -> None:
        is_opening, may_end = asyncio.Event(), asyncio.Event()

        async def open_slowly(*_: object) -> Opened:
            is_opening.set()
            await may_end.wait()
            return opened

        monkeypatch.setattr(aio, "open_async", open_slowly)
        cluster = aio.AsyncCluster(WireSettings((BROKER,)))
        asked = asyncio.create_task(cluster.connection_to(BROKER, Deadline(PATIENCE_MS)))
        await is_opening.wait()
        cluster.close()
        may_end.set()
        await asked

    with pytest.raises(UnreachableError, match="was given up"):
        asyncio.run(close_meanwhile())
    assert opened.is_closed
