"""Share partitions for tests: made, fetched from, and shown in short."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kgctl.model.share import PartitionState, SharePartitionKey, StateBatch
from kgctl.share.partition import (
    AcknowledgementBatch,
    Acquired,
    AcquireMode,
    Effect,
    FetchedBatch,
    SharePartition,
    ShareSettings,
    WriteState,
)
from kgctl.share.partition.in_flight import InFlightState

LOCK_MS = 1_000
Ranges = list[tuple[int, int, int]]


def empty(**settings: Any) -> SharePartition:
    """One that nobody has initialised."""
    key = SharePartitionKey("g", UUID(int=1), 0)
    return SharePartition(key, "t", 3, ShareSettings(**{"record_lock_duration_ms": LOCK_MS, **settings}))


def active(start: int = 0, kept: Iterable[tuple[int, int, int, int]] = (), **settings: Any) -> SharePartition:
    """One that begins with what the persister kept: (first offset, last offset, state, delivery count) each."""
    partition = empty(**settings)
    partition.maybe_initialize(0)
    partition.read(PartitionState(1, start, batches=tuple(StateBatch(*each) for each in kept)))
    return partition


def fetch(partition: SharePartition, *batches: tuple[int, int], member: str = "A", now: int = 0, **wish: Any) -> Ranges:
    """What a member acquires of these batches: (first offset, last offset, delivery count) each."""
    found = acquire(partition, *batches, member=member, now=now, **wish)
    assert found.failure is None
    return [(each.first_offset, each.last_offset, each.delivery_count) for each in found.records]


def acquire(
    partition: SharePartition,
    *batches: tuple[int, int],
    member: str = "A",
    now: int = 0,
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    **wish: Any,
) -> Acquired:
    """What comes of a fetch that found these batches."""
    fetched = [FetchedBatch(first, last) for first, last in batches]
    asked = {"batch_size": 500, "max_fetch_records": 500, "fetch_offset": batches[0][0], **wish}
    return partition.acquire(member, mode, batches=fetched, now_ms=now, **asked)


def acknowledge(partition: SharePartition, *batches: tuple[int, ...], member: str = "A", now: int = 0) -> list[Effect]:
    """Say of records what became of them: (first offset, last offset, types...) each; the ticket is 7."""
    said = [AcknowledgementBatch(each[0], each[1], each[2:]) for each in batches]
    return partition.acknowledge(7, member, said, now)


def token(effects: list[Effect]) -> int:
    """The token of the one write."""
    (write,) = (effect for effect in effects if isinstance(effect, WriteState))
    return write.token


def settle(partition: SharePartition, effects: list[Effect]) -> list[Effect]:
    """Let the persister keep what it was asked to, and return what follows."""
    return partition.written(token(effects))


def cache(partition: SharePartition) -> list[str]:
    """Each batch in short: bounds, state, delivery count, member; split ones with a state an offset. "*" is a transition."""
    return [
        f"{batch.first_offset}-{batch.last_offset} "
        + (_shown(batch.whole) if batch.whole is not None else "/ ".join(map(_shown, batch.offsets or ())))
        for batch in partition.records.batches
    ]


def _shown(state: InFlightState) -> str:
    return f"{state.state.name} {state.delivery_count}{state.member_id}{'*' if state.in_transition else ''}"
