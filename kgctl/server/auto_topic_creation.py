"""Topics of Kafka Streams' own, which heartbeats of a streams group have the broker make beside them.

Kafka: AutoTopicCreationManager#createStreamsInternalTopics, ExpiringErrorCache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.model.streams_topology import CreatableTopic
from kgctl.model.values import hash_map_order, string_hash
from kgctl.server.runtime import Clock, Values

MOST_FAILURES = 1_000
_IN_TIME_MS = 30_000
_MOST_IN_A_SMALL_MAP = 4
_MASK, _DEEPEST = 0xFFFFFFFF, 30


class _Setting(NamedTuple):
    name: str
    value: str


class _Topic(NamedTuple):
    """As an entry of CreateTopics has it."""

    name: str
    num_partitions: int
    replication_factor: int
    configs: Sequence[_Setting]
    assignments: Sequence[None] = ()


class CreateTopicsRequest(NamedTuple):
    """As CreateTopics is read from the wire."""

    topics: Sequence[_Topic]
    timeout_ms: int = _IN_TIME_MS
    validate_only: bool = False


Make = Callable[[CreateTopicsRequest], Awaitable[Values]]
"""Makes topics with the rights of whoever needs them; the answer is that of CreateTopics."""


class _Failure(NamedTuple):
    until_ms: int
    message: str


class AutoTopicCreation:
    """Makes topics for whoever may, and remembers for a while why one could not be made: so long it is not tried again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, _Failure] = {}
        self._under_way: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, topics: Sequence[CreatableTopic], keep_ms: int, make: Make) -> None:
        """Begin to make these, by ``make``; failures are kept for ``keep_ms``. Nobody waits for it."""
        failed = self.failures([topic.name for topic in topics])
        wanted = [topic for topic in topics if topic.name not in failed and topic.name not in self._under_way]
        if wanted:
            self._under_way.update(topic.name for topic in wanted)
            task = asyncio.ensure_future(self._create(wanted, keep_ms, make))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def failures(self, names: Iterable[str]) -> dict[str, str]:
        """Why these could not be made, those of which that is still kept, in the order of Kafka's map."""
        now_ms = self._clock()
        found = {name: failure for name in names if (failure := self._failures.get(name)) is not None}
        kept = [name for name, failure in found.items() if failure.until_ms > now_ms]
        in_order = hash_map_order(kept, capacity=16) if len(kept) <= _MOST_IN_A_SMALL_MAP else _trie_order(kept)
        return {name: found[name].message for name in in_order}

    async def _create(self, topics: Sequence[CreatableTopic], keep_ms: int, make: Make) -> None:
        try:
            answer = await make(CreateTopicsRequest([_as_asked(topic) for topic in topics]))
        finally:
            self._under_way.difference_update(topic.name for topic in topics)
        for topic in answer["topics"]:
            if topic["error_code"] is not ErrorCode.NONE:
                self._keep(topic["name"], _Failure(self._clock() + keep_ms, _words(topic)))

    def _keep(self, name: str, failure: _Failure) -> None:
        now_ms = self._clock()
        kept = {**self._failures, name: failure}
        in_order = sorted(kept.items(), key=lambda each: each[1].until_ms)
        self._failures = {
            each: kept_failure for each, kept_failure in in_order[-MOST_FAILURES:] if kept_failure.until_ms > now_ms
        }

    async def stop(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _as_asked(topic: CreatableTopic) -> _Topic:
    return _Topic(topic.name, topic.num_partitions, topic.replication_factor, [_Setting(*each) for each in topic.configs])


def _trie_order(names: Sequence[str], shift: int = 0) -> list[str]:
    """Names as an immutable HashMap of Scala iterates over them: what stands alone in its slot goes before what shares one."""
    slots: dict[int, list[str]] = {}
    for name in names:
        slots.setdefault(_improved(string_hash(name)) >> shift & 31, []).append(name)
    in_order = [slots[slot] for slot in sorted(slots)]
    shared = [each for each in in_order if len(each) > 1]
    deeper = [name for each in shared for name in (_trie_order(each, shift + 5) if shift < _DEEPEST else each)]
    return [*(each[0] for each in in_order if len(each) == 1), *deeper]


def _improved(key_hash: int) -> int:
    """Scala: Hashing#improve."""
    value = (key_hash + ~(key_hash << 9)) & _MASK
    value ^= value >> 14
    value = (value + (value << 4)) & _MASK
    return value ^ value >> 10


def _words(topic: Values) -> str:
    return str(topic["error_message"] or KAFKAS_WORDS[topic["error_code"]])
