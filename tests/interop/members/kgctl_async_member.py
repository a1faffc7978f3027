"""A group member on kgctl.AsyncConsumerGroup, whose records kgctl reads too: one event loop, no client beside it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import kgctl
from kgctl.errors import KgctlError
from tests.interop.members.confluent import produce
from tests.interop.members.wire_talk import Commands, Owned, Settings, emit, settings


class Worker:
    """Reads one generation after the other, and does meanwhile what the test says."""

    def __init__(self, given: Settings) -> None:
        self._given = given
        self._commands, self._owned = Commands(), Owned()
        self._has_left = asyncio.Event()

    async def run(self) -> None:
        given = self._given
        async with kgctl.AsyncConsumerGroup(
            given.bootstrap,
            given.group,
            [given.topic],
            session_timeout_ms=given.session_timeout_ms,
            heartbeat_interval_ms=300,
            assignors=[given.assignor],
            group_instance_id=given.instance_id,
            client_id=given.client_id,
            auto_offset_reset="earliest",
            partition_watch_interval_ms=1_000,
        ) as group:
            async for generation in group:
                self._owned.tell(generation.assignments)
                records = generation.records(commit=False)
                obeying = asyncio.create_task(self._obey(generation, records))
                reading = asyncio.create_task(self._read(records))
                leaving = asyncio.create_task(self._has_left.wait())
                await asyncio.wait((reading, leaving), return_when=asyncio.FIRST_COMPLETED)
                for task in (obeying, reading, leaving):
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
                if generation.ended.is_set() and given.commit_on_revoke:
                    await self._commit(generation, records)
                if self._has_left.is_set():
                    break
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("kgctl-group")]
        emit("left")

    async def _read(self, records: kgctl.results.Records) -> None:
        async for batch in records:
            for record in batch:
                emit("record", partition=record.partition, offset=record.offset)

    async def _commit(self, generation: kgctl.Generation, records: kgctl.results.Records) -> None:
        try:
            await generation.commit_async(dict(records.positions))
            emit("committed")
        except KgctlError as refusal:
            emit("refused", text=refusal.message)

    async def _obey(self, generation: kgctl.Generation, records: kgctl.results.Records) -> None:
        while not self._has_left.is_set():
            match self._commands.next():
                case {"do": "produce", "count": count, "partitions": partitions}:
                    produce(self._given.bootstrap, self._given.topic, count, partitions)
                case {"do": "commit"}:
                    await self._commit(generation, records)
                case {"do": "leave"}:
                    self._has_left.set()
                case _:
                    await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(Worker(settings()).run())
