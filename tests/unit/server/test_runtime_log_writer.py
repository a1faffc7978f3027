"""Nothing is released before what it depends on is written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import pytest

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord
from kgctl.errors import StorageError
from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey
from kgctl.server.runtime import LogWriter, Lost
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

    def groups_of_transaction(self, producer_id: int) -> tuple[str, ...]:
        raise AssertionError(producer_id)


@dataclass
class Answer:
    """Tells when it is released, and refuses where its group is concerned."""

    then: Callable[[], object]
    group: str = ""
    refused: list[str] = field(default_factory=list)

    def release(self) -> None:
        self.then()

    def refuse_if_of(self, group_ids: Collection[str]) -> bool:
        if self.group in group_ids:
            self.refused.append(self.group)
        return self.group in group_ids


@pytest.mark.parametrize("in_thread", [False, True])
def test_records_of_one_turn_are_one_batch_and_releases_come_after_it_in_order(in_thread: bool) -> None:
    async def scenario() -> list[object]:
        log = Log()
        seen: list[object] = []
        writer = LogWriter(log, lambda: 1, seen.append, in_thread=in_thread, read=nothing_written)
        writer.written.append(lambda: seen.append("written"))
        writer.append(record("a"))
        writer.after_writes(Answer(lambda: seen.append(("first", len(log.batches)))))
        writer.append(record("b"))
        writer.after_writes(Answer(lambda: seen.append(("second", len(log.batches)))))

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
        writer = LogWriter(log, lambda: 1, seen.append, in_thread=True, read=nothing_written)
        log.may_write.clear()
        writer.append(record("a"))
        await asyncio.sleep(0)
        writer.append(record("b"))
        writer.append(record("c"))
        writer.after_writes(Answer(lambda: seen.append(len(log.batches))))
        await asyncio.sleep(0.01)

        assert seen == []

        log.may_write.set()
        await writer.drain()
        writer.close()

        assert log.batches == [[record("a")], [record("b"), record("c")]]
        assert seen == [2]

    asyncio.run(scenario())


def nothing_written(_: Collection[str]) -> GroupCoordinator:
    return GroupCoordinator(CoordinatorConfig(), str)


@pytest.mark.parametrize("in_thread", [False, True])
def test_what_cannot_be_written_is_given_up_with_what_follows_it_and_the_rest_goes_on(
    in_thread: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        log = Log()
        told: list[Lost] = []
        log.error = StorageError("disk full")
        failed: list[BaseException] = []
        writer = LogWriter(log, lambda: 1, failed.append, in_thread=in_thread, read=nothing_written)

        def mend(lost: Lost) -> None:
            log.error = None
            told.append(lost)

        writer.on_lost = mend
        mine, other, follows = Answer(lambda: None, "a"), Answer(lambda: log.batches.append([]), "b"), Answer(lambda: None, "a")
        writer.append(record("a"))
        writer.after_writes(mine)
        writer.after_writes(other)
        if in_thread:
            log.may_write.clear()
            await asyncio.sleep(0.01)
            writer.append(record("a"))
            writer.append(record("c"))
            writer.after_writes(follows)
            log.may_write.set()
        while not told:
            await asyncio.sleep(0)
        writer.append(record("d"))
        await writer.drain()
        writer.close()

        assert (mine.refused, other.refused, follows.refused) == (["a"], [], ["a"] if in_thread else [])
        assert [lost.groups for lost in told] == [{"a": False}]
        kept = [record("c"), record("d")] if in_thread else [record("d")]
        assert (log.batches[0], [effect for batch in log.batches for effect in batch]) == ([], kept)
        assert not writer.has_failed

    asyncio.run(scenario())
    assert "cannot write to the log" in caplog.text


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_record_that_cannot_be_written_takes_nobody_elses_with_it(in_thread: bool) -> None:
    class Picky(Log):
        def append(self, effects: Sequence[AppendRecord], now_ms: int) -> None:
            if record("bad") in effects:
                raise OverflowError
            super().append(effects, now_ms)

    async def scenario() -> None:
        log, told = Picky(), list[Lost]()
        writer = LogWriter(log, lambda: 1, told.append, in_thread=in_thread, read=nothing_written)  # type: ignore[arg-type]
        writer.on_lost = told.append
        for name in ("a", "bad", "b", "a"):
            writer.append(record(name))
        await writer.drain()
        writer.close()

        assert log.batches == [[record("a"), record("a")], [record("b")]]
        assert [lost.groups for lost in told] == [{"bad": False}]

    asyncio.run(scenario())


@pytest.mark.parametrize("in_thread", [False, True])
def test_where_not_even_the_log_can_be_read_nothing_is_released_and_the_failure_is_told(
    in_thread: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def read(groups: Collection[str]) -> GroupCoordinator:
        raise OSError(f"no disk for {sorted(groups)}")

    async def scenario() -> list[object]:
        log = Log()
        seen: list[object] = []
        log.error = StorageError("disk full")
        writer = LogWriter(log, lambda: 1, lambda error: seen.append(str(error)), in_thread=in_thread, read=read)
        writer.append(record("a"))
        writer.after_writes(Answer(lambda: seen.append("released")))
        await writer.drain()
        writer.append(record("b"))
        await asyncio.sleep(0.01)
        writer.close()

        assert writer.has_failed
        return seen

    assert asyncio.run(scenario()) == ["no disk for ['a']"]
    assert "cannot go on from the log" in caplog.text
