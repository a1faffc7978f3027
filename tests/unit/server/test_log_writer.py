"""Nothing is released before what it depends on is written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.groups import CoordinatorRecord, GroupMetadataKey
from kgctl.server.runtime import LogWriter
from tests.support.patience import PATIENCE_S


def record(name: str) -> AppendRecord:
    return AppendRecord(CoordinatorRecord(GroupMetadataKey(name), None))


class Log:
    """Remembers what was written; can be held up, and can fail."""

    def __init__(self) -> None:
        self.batches: list[list[AppendRecord]] = []
        self.may_write = threading.Event()
        self.may_write.set()
        self.error: Exception | None = None

    def append(self, effects: Sequence[AppendRecord], now_ms: int) -> None:
        self.may_write.wait(PATIENCE_S)
        if self.error is not None:
            raise self.error
        self.batches.append(list(effects))


@pytest.mark.parametrize("in_thread", [False, True])
def test_records_of_one_turn_are_one_batch_and_releases_come_after_it_in_order(in_thread: bool) -> None:
    async def scenario() -> list[object]:
        log = Log()
        seen: list[object] = []
        writer = LogWriter(log, lambda: 1, seen.append, in_thread=in_thread)
        writer.written.append(lambda: seen.append("written"))
        writer.append(record("a"))
        writer.after_writes(lambda: seen.append(("first", len(log.batches))))
        writer.append(record("b"))
        writer.after_writes(lambda: seen.append(("second", len(log.batches))))

        assert not writer.is_idle

        await writer.drain()
        writer.close()

        assert log.batches == [[record("a"), record("b")]]
        assert writer.is_idle
        return seen

    assert asyncio.run(scenario()) == ["written", ("first", 1), ("second", 1)]


def test_what_comes_while_a_write_goes_on_waits_for_the_next() -> None:
    async def scenario() -> None:
        log = Log()
        seen: list[object] = []
        writer = LogWriter(log, lambda: 1, seen.append, in_thread=True)
        log.may_write.clear()
        writer.append(record("a"))
        await asyncio.sleep(0)
        writer.append(record("b"))
        writer.append(record("c"))
        writer.after_writes(lambda: seen.append(len(log.batches)))
        await asyncio.sleep(0.01)

        assert seen == []

        log.may_write.set()
        await writer.drain()
        writer.close()

        assert log.batches == [[record("a")], [record("b"), record("c")]]
        assert seen == [2]

    asyncio.run(scenario())


@pytest.mark.parametrize("in_thread", [False, True])
def test_after_a_failed_write_nothing_is_released_and_the_failure_is_told(
    in_thread: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> list[object]:
        log = Log()
        seen: list[object] = []
        log.error = OSError("disk full")
        writer = LogWriter(log, lambda: 1, lambda error: seen.append(str(error)), in_thread=in_thread)
        writer.append(record("a"))
        writer.after_writes(lambda: seen.append("released"))
        await writer.drain()
        writer.append(record("b"))
        await asyncio.sleep(0.01)
        writer.close()

        assert writer.has_failed
        return seen

    assert asyncio.run(scenario()) == ["disk full"]
    assert "cannot write to the log" in caplog.text
