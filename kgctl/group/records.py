"""`Generation.records`: the records of a generation in batches, committed when each batch has been dealt with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kgctl.errors import CommitError, GenerationEnded
from kgctl.group.driver import log
from kgctl.group.fetcher import Fetcher
from kgctl.model.groups import ByPartition, TopicPartition
from kgctl.model.records import TopicRecord
from kgctl.wire.tokens import waited_for

if TYPE_CHECKING:
    from kgctl.group.generation import Generation

OUT = frozenset({"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "STALE_MEMBER_EPOCH", "REBALANCE_IN_PROGRESS"})
"""With these the coordinator says that the partitions are another's by now."""


class Records:
    """An iterator of batches, for ``for`` and ``async for``, until the generation ends.

    ``positions``: partition -> the offset after the last record of a batch that has been dealt with. A batch counts as dealt with
    when the next one is asked for; it is committed then. One that is left by ``break``, ``return`` or an exception is not: it is
    read again, by whoever owns the partition then.
    """

    def __init__(self, generation: Generation, fetcher: Fetcher, max_records: int, *, commit: bool) -> None:
        self.positions: ByPartition[int] = generation._positions
        self._generation = generation
        self._fetcher = fetcher
        self._max_records = max_records
        self._commits = commit

    def __iter__(self) -> Iterator[Sequence[TopicRecord]]:
        generation = self._generation
        generation._hold()
        try:
            self._fetcher.begin(self.positions)
            while not generation.ended.is_set():
                if batch := self._fetcher.fetch(self._max_records):
                    yield batch
                    self._deal(lambda: generation.commit(self.positions), batch)
            self._fetcher.pause()
        finally:
            generation._release()

    async def __aiter__(self) -> AsyncIterator[Sequence[TopicRecord]]:
        generation, loop = self._generation, asyncio.get_running_loop()
        generation._hold()
        thread = ThreadPoolExecutor(1, "kgctl-records")
        try:
            await loop.run_in_executor(thread, waited_for(self._fetcher.begin), self.positions)
            while not generation.ended.is_set():
                if batch := await loop.run_in_executor(thread, self._fetcher.fetch, self._max_records):
                    yield batch
                    await self._deal_async(batch)
            await loop.run_in_executor(thread, self._fetcher.pause)
        finally:
            thread.shutdown(wait=False)
            generation._release()

    def _deal(self, commit: Callable[[], None], batch: Sequence[TopicRecord]) -> None:
        self._note(batch)
        if self._commits:
            try:
                commit()
            except (CommitError, GenerationEnded) as error:
                self._tell_of(error)
                self._generation.wait()

    async def _deal_async(self, batch: Sequence[TopicRecord]) -> None:
        self._note(batch)
        if self._commits:
            try:
                await self._generation.commit_async(self.positions)
            except (CommitError, GenerationEnded) as error:
                self._tell_of(error)
                await self._generation.wait_async()

    def _note(self, batch: Sequence[TopicRecord]) -> None:
        for record in batch:
            self.positions[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def _tell_of(self, error: CommitError | GenerationEnded) -> None:
        """The partitions are another's: what was dealt with is read again there. Raises any other error."""
        if isinstance(error, CommitError) and not {str(code) for code in error.errors.values()} <= OUT:
            raise error
        log.warning("group '%s': a batch was dealt with and not committed, and is read again: %s", error.group, error.message)
