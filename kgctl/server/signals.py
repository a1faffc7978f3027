"""Tells fetches that wait for data when some has come."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from kgctl.model.partitions import TopicPartition


class DataSignal:
    """One waiting list a partition."""

    def __init__(self) -> None:
        self._waiting: defaultdict[TopicPartition, set[asyncio.Future[None]]] = defaultdict(set)

    @property
    def is_watched(self) -> bool:
        """Whether anyone waits."""
        return bool(self._waiting)

    def notify(self, partition: TopicPartition) -> None:
        """Something was appended to this partition, or it is gone."""
        for future in self._waiting.pop(partition, ()):
            if not future.done():
                future.set_result(None)

    def notify_all(self) -> None:
        """Wake everyone."""
        for partition in list(self._waiting):
            self.notify(partition)

    async def wait(self, partitions: Iterable[TopicPartition], timeout_s: float) -> None:
        """Return when one of the partitions is notified, or after the time."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watched = list(partitions)
        for partition in watched:
            self._waiting[partition].add(future)
        try:
            await asyncio.wait_for(future, timeout_s)
        except TimeoutError:
            pass
        finally:
            for partition in watched:
                self._forget(partition, future)

    def _forget(self, partition: TopicPartition, future: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(partition)
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._waiting[partition]
