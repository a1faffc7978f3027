"""The core does the steps of a sequence, and tells what happened in the words of Kafka's oracle (tests/java/share_partition)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share import PartitionState, SharePartitionKey, StateBatch
from kgctl.share.partition.effects import Effect, FetchesMayComplete, ReadState, ShareDone
from kgctl.share.partition.in_flight import InFlightBatch, InFlightState
from kgctl.share.partition.partition import SharePartition
from kgctl.share.partition.results import (
    AcknowledgementBatch,
    AcquireMode,
    FetchedBatch,
    ShareFailure,
    sliced,
)
from kgctl.share.partition.settings import ShareSettings

Step = dict[str, Any]
Entry = dict[str, Any]
_OFFSET_RESET = "auto_offset_reset"


def share_settings(values: dict[str, Any]) -> ShareSettings:
    """The settings of a step; the core is told the offset to begin with, not the way to find it."""
    return ShareSettings(**{name: value for name, value in values.items() if name != _OFFSET_RESET})


def fetched(batch: list[Any]) -> FetchedBatch:
    """A batch as a step has it: first offset, last offset, producer id, kind."""
    first, last, producer_id, kind = batch
    return FetchedBatch(first, last, producer_id, kind != "data", kind == "abort")


class Transaction(NamedTuple):
    """One that was aborted."""

    producer_id: int
    first_offset: int


class ShareWorld:
    """One share partition and what it was told so far."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.reset = given["settings"][_OFFSET_RESET]
        key = SharePartitionKey("g", UUID(int=1), 0)
        self.partition = SharePartition(key, "t", given["leader_epoch"], share_settings(given["settings"]))
        self.writes: list[int] = []
        """Tokens of what the persister has not answered yet."""
        self.acquired: list[tuple[str, int, int]] = []
        """What members were given: member, first offset, last offset."""

    def take(self, step: Step) -> Entry:
        """Do a step, and tell what came of it."""
        result, effects = _STEPS[step["op"]](self, step)
        told: Entry = {} if result is None else {"result": result}
        return {**told, "events": [self._event(effect) for effect in effects], "state": self._state()}

    def _event(self, effect: Effect) -> list[Any]:
        if isinstance(effect, ReadState):
            return ["read", effect.leader_epoch]
        if isinstance(effect, FetchesMayComplete):
            return ["fetches"]
        if isinstance(effect, ShareDone):
            failure = effect.failure
            told = [] if failure is None else [failure.error.name, failure.message, failure.whole_request]
            return ["done", effect.ticket, *told]
        self.writes.append(effect.token)
        batches = [[b.first_offset, b.last_offset, int(b.delivery_state), b.delivery_count] for b in effect.batches]
        epochs = [effect.token, effect.state_epoch, effect.leader_epoch]
        return ["write", *epochs, effect.start_offset, effect.delivery_complete_count, batches]

    def _state(self) -> dict[str, Any]:
        partition, records = self.partition, self.partition.records
        gap = {} if records.gap is None else {"gap": [records.gap.start_offset, records.gap.end_offset]}
        return {
            "status": partition.status.name,
            "start": partition.start_offset,
            "end": partition.end_offset,
            "epoch": partition.state_epoch,
            "complete": partition.delivery_complete_count,
            "find": records.free_before_end,
            "locked": partition.fetch_lock is not None,
            **gap,
            "timers": records.locks.deadlines(),
            "cache": [_batch(batch) for batch in records.batches],
        }

    def _read(self, step: Step) -> list[Effect]:
        if "error" in step:
            return self.partition.read(ErrorCode[step["error"]], step.get("message"))
        batches = tuple(StateBatch(*each) for each in step["batches"])
        reset: int | ShareFailure
        if isinstance(step["reset"], str):
            reset = ShareFailure(ErrorCode.NOT_LEADER_OR_FOLLOWER, step["reset"])
        else:
            reset = step["reset"][self.reset.partition(":")[0]]
        state = PartitionState(step["state_epoch"], step["start_offset"], batches=batches)
        return self.partition.read(state, reset_offset=reset)

    def _written(self, step: Step) -> list[Effect]:
        self.writes.remove(step["token"])
        return self.partition.written(step["token"], ErrorCode[step.get("error", "NONE")], step.get("message"))

    def _acknowledge(self, step: Step) -> list[Effect]:
        batches = [AcknowledgementBatch(first, last, tuple(types)) for first, last, types in step["batches"]]
        return self.partition.acknowledge(step["ticket"], step["member"], batches, step["at"])

    def _release(self, step: Step) -> list[Effect]:
        return self.partition.release_acquired_records(step["ticket"], step["member"], step["at"])

    def _acquire(self, step: Step) -> Any:
        batches = [fetched(batch) for batch in step["batches"]]
        found = self.partition.acquire(
            step["member"],
            AcquireMode(step["mode"]),
            batch_size=step["batch_size"],
            max_fetch_records=step["max"],
            fetch_offset=step["offset"],
            batches=batches,
            now_ms=step["at"],
            aborted=[Transaction(*each) for each in step.get("aborted", ())],
        )
        if found.failure is not None:
            return {"thrown": found.failure.message}
        ranges = [[each.first_offset, each.last_offset, each.delivery_count] for each in found.records]
        self.acquired += [(step["member"], first, last) for first, last, _ in ranges]
        sent = {"sent": [each.base_offset for each in batches[sliced(batches, found)]]} if ranges else {}
        return {"count": found.count, "records": ranges, **sent}

    def _unlock(self, step: Step) -> None:
        self.partition.release_fetch_lock(step["fetch"])

    def _set(self, step: Step) -> None:
        self.partition.settings = share_settings(step["settings"])


def _batch(batch: InFlightBatch) -> list[Any]:
    shown = _shown(batch.whole) if batch.whole is not None else [_shown(state) for state in batch.offsets or ()]
    return [batch.first_offset, batch.last_offset, shown]


def _shown(state: InFlightState) -> str:
    lock = "-" if state.lock is None else f"{state.lock.deadline_ms} {str(state.lock.expired).lower()}"
    transition = str(state.in_transition).lower()
    return f"{state.state.name} {state.delivery_count} {state.member_id} {transition} {lock}"


Outcome = tuple[Any, list[Effect]]


def _quiet(call: Callable[[ShareWorld, Step], None]) -> Callable[[ShareWorld, Step], Outcome]:
    """A step of which nothing is told but the state."""

    def take(world: ShareWorld, step: Step) -> Outcome:
        call(world, step)
        return None, []

    return take


_STEPS: dict[str, Callable[[ShareWorld, Step], Outcome]] = {
    "initialize": lambda world, step: (None, world.partition.maybe_initialize(step["ticket"])),
    "read": lambda world, step: (None, world._read(step)),
    "lock": lambda world, step: (world.partition.maybe_acquire_fetch_lock(step["fetch"]), []),
    "unlock": _quiet(lambda world, step: world._unlock(step)),
    "acquire": lambda world, step: (world._acquire(step), []),
    "acknowledge": lambda world, step: (None, world._acknowledge(step)),
    "release": lambda world, step: (None, world._release(step)),
    "written": lambda world, step: (None, world._written(step)),
    "expire": lambda world, step: (None, world.partition.expire(step["at"])),
    "log_start": _quiet(lambda world, step: world.partition.update_cache_and_offsets(step["offset"])),
    "fence": _quiet(lambda world, _: world.partition.mark_fenced()),
    "settings": _quiet(lambda world, step: world._set(step)),
    "look": lambda world, _: ([world.partition.can_acquire_records(), world.partition.next_fetch_offset()], []),
}
