"""Collecting from a live cluster: from where the last collection ended to the log's end, or on and on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kgctl.errors import AuthError, BrokerError, KgctlError, NotFoundError, RefusedError, UnreachableError
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.collect.collection import Collection, LastTroubles, TopicsSeen
from kgctl.pipeline.sources.batches import damaged_table
from kgctl.pipeline.sources.live import OFFSETS_TOPIC, LivePart, LiveReader, LogOffsetRow, LogState
from kgctl.pipeline.store.tables import LOG_OFFSETS, rows_of
from kgctl.pipeline.store.warehouse import Known, OvertakenError, Staged, Warehouse, commit_records, next_offset, stage_together

_WAIT_MS = 500
_FLUSH_ROWS = 1_000_000
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
OVERTAKEN_AT_MOST = 5
AWAY = (UnreachableError, NotFoundError, BrokerError)
"""What a collection that goes on waits for: the cluster is away, or not ready."""
_FUTILE_ROUNDS = 5


@frozen_in_order
class CollectPlan:
    """How long, and what besides.

    ``once``: up to the log's end as it was at the beginning. ``for_s``: so long; None, with ``once`` false: until `Run.stop`.
    ``all_topics``: sample every topic, not only those that groups have commits on.
    """

    once: bool = False
    for_s: float | None = None
    sample_every_s: float = 10.0
    flush_every_s: float = 10.0
    all_topics: bool = False


@frozen_in_order
class World:
    """Clocks and the rest of the outside. ``now_ms`` is wall-clock time; ``seconds`` only ever grows; ``pause`` sleeps.

    ``flushed`` is called, and waited for, whenever everything up to then is in the warehouse; it must not raise.
    """

    now_ms: Callable[[], int]
    seconds: Callable[[], float]
    pause: Callable[[float], object]
    notice: Callable[[str], object]
    progress: Callable[[str], object]
    flushed: Callable[[], object] = bool


@dataclass(slots=True)
class _Buffer:
    """What came of one partition and is not yet in the warehouse. ``saved`` is the position that the warehouse knows of."""

    position: int
    target: int
    saved: int
    tables: list[Any] = field(default_factory=list)
    rows: int = 0
    futile: int = 0


class LiveCollection:
    """One collection. `run` does it; `stop` ends it, from a signal handler or another thread."""

    def __init__(
        self, warehouse: Warehouse, cluster: str, reader: LiveReader, *, source: str, plan: CollectPlan, world: World
    ) -> None:
        """``source`` is what the records are said to come from: the cluster's address."""
        self._warehouse = warehouse
        self._reader = reader
        self._source = source
        self._plan = plan
        self._world = world
        self._collection = Collection(cluster)
        self._buffers: dict[int, _Buffer] = {}
        self._given_up: set[int] = set()
        self._missing = LastTroubles()
        self._troubles: dict[int, str] = {}
        self._unsampled = LastTroubles()
        self._log_id: str | None = None
        self._stopped = False
        self._topics = TopicsSeen(warehouse.topics(cluster))
        self._samples: list[pa.Table] = []

    def stop(self) -> None:
        """Come to an end: what was read is written, then `run` returns."""
        self._stopped = True

    def run(self, state: LogState) -> Collection:
        """Collect, from ``state`` on as the reader told it.

        Everything read is in the warehouse when this returns or raises. Raises `UnreachableError` and `AuthError` where ``once``
        is asked for; otherwise a cluster that is away is waited for.
        """
        self._begin(state)
        if self._plan.once:
            self._collection.errors += state.errors.values()
        started = self._world.seconds()
        try:
            if self._plan.once:
                while not self._stopped and self._behind():
                    self._round(0)
                if not self._stopped:
                    self._sample()
            else:
                self._follow(started)
        finally:
            self._flush_all()
        self._collection.errors += self._unsampled.now.values()
        return self._collection

    def _begin(self, state: LogState) -> None:
        """Take up the partitions that are not followed yet: all of them at first, later those that were not to be had before."""
        cluster = self._collection.cluster
        require_same_log(self._warehouse, cluster, state, self._log_id)
        self._log_id = state.log_id
        self._warehouse.tell(cluster, self._world.now_ms(), cluster_id=state.cluster_id, log_id=state.log_id)
        for partition, (start, end) in sorted(state.bounds.items()):
            if partition not in self._buffers and partition not in self._given_up:
                self._take_up(partition, start, end)
        for error in self._missing.look(state.errors):
            if not self._plan.once:
                self._world.notice(error.message)

    def _take_up(self, partition: int, start: int, end: int) -> None:
        known = next_offset(self._warehouse, self._collection.cluster, partition)
        position = known if known is not None else start
        if position > end:
            self._give_up(partition, truncated(self._collection.cluster, partition, position, end))
            return
        if 0 <= position < start:
            self._collection.notices.append(deleted(partition, position, start))
        self._buffers[partition] = _Buffer(max(position, start), end, saved=max(position, start))

    def _follow(self, started: float) -> None:
        """On and on, sampling and writing every so often. A cluster that is away, or not ready, is waited for."""
        next_sample: float | None = None
        next_flush = started + self._plan.flush_every_s
        pause_s = _FIRST_PAUSE_S
        while not self._stopped and not self._is_over(started) and (self._buffers or self._missing.now):
            try:
                self._round(_WAIT_MS)
                now = self._world.seconds()
                if next_sample is None and not self._behind():
                    next_sample = now
                if next_sample is not None and now >= min(next_sample, next_flush):  # the last commits get a lag
                    self._begin(self._reader.log_state())
                    self._sample()
                    next_sample = max(next_sample + self._plan.sample_every_s, now)
                pause_s = _FIRST_PAUSE_S
            except AWAY as error:
                self._world.notice(f"{error.message}; trying again in {pause_s:g} s")
                self._world.pause(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            if self._world.seconds() >= next_flush:
                self._flush_all()
                self._world.flushed()
                next_flush = self._world.seconds() + self._plan.flush_every_s
        if not self._stopped or next_sample is not None:
            self._last_sample()

    def _last_sample(self) -> None:
        """What the end looks like, if the cluster is there to ask."""
        try:
            self._sample()
        except (UnreachableError, BrokerError) as error:
            self._collection.away = error
            if self._plan.for_s is not None and not self._stopped:
                self._collection.errors.append(error)
            else:
                self._collection.notices.append(f"no last sample of log offsets: {error.message}")

    def _is_over(self, started: float) -> bool:
        return self._plan.for_s is not None and self._world.seconds() - started >= self._plan.for_s

    def _behind(self) -> list[int]:
        """The partitions that are not yet where their logs ended at the beginning."""
        return [number for number, buffer in self._buffers.items() if buffer.position < buffer.target]

    def _round(self, max_wait_ms: int) -> None:
        wanted = self._behind() or list(self._buffers)
        if not wanted:
            self._world.pause(max_wait_ms / 1000)
            return
        parts, errors = self._reader.fetch({number: self._buffers[number].position for number in wanted}, max_wait_ms)
        for partition, part in parts.items():
            self._troubles.pop(partition, None)
            self._take(partition, part)
        for partition, error in errors.items():
            self._meet(partition, error)
        if errors and not parts and not self._plan.once:
            self._world.pause(max_wait_ms / 1000)
        read = self._collection.records_read
        self._world.progress(f"collected {read} records, {len(self._behind())} partitions to go")
        if sum(buffer.rows for buffer in self._buffers.values()) >= _FLUSH_ROWS:
            self._flush_all()

    def _take(self, partition: int, part: LivePart) -> None:
        buffer = self._buffers[partition]
        if part.damaged:
            place = f"{self._source} __consumer_offsets-{partition} from offset {buffer.position}"
            damaged = damaged_table(place, partition, part.damaged)
            self._warehouse.add_damaged(self._collection.cluster, damaged, self._world.now_ms())
            self._collection.add_damage(partition, place, part.damaged)
        buffer.futile = 0 if part.next_offset > buffer.position else buffer.futile + 1
        buffer.position = part.next_offset
        if part.table.num_rows:
            buffer.tables.append(part.table)
            buffer.rows += part.table.num_rows
            self._collection.of(partition).read += part.table.num_rows
            self._topics.see(part.table.column("key"))
        if buffer.futile >= _FUTILE_ROUNDS and buffer.position < buffer.target:
            buffer.target = buffer.position  # the log ends in records that no client is given

    def _meet(self, partition: int, error: KgctlError) -> None:
        """An error that did not pass while it was asked again. A broker that is away comes back; a log that was cut does not."""
        if self._plan.once or isinstance(error, RefusedError | AuthError):
            self._flush_all()
            self._give_up(partition, error)
        elif self._troubles.get(partition) != error.code:
            self._troubles[partition] = error.code
            self._world.notice(f"{error.message}; trying again")

    def _give_up(self, partition: int, error: KgctlError) -> None:
        self._buffers.pop(partition, None)
        self._given_up.add(partition)
        self._collection.errors.append(error)

    def _flush_all(self) -> None:
        """Commit what came, of all partitions in one step. Raises `RefusedError`, with nothing kept of it."""
        cluster = self._collection.cluster
        moved = {number: buffer for number, buffer in self._buffers.items() if buffer.saved != buffer.position}
        self._warehouse.tell(cluster, self._world.now_ms(), topics=self._topics.topics)
        if moved:
            tables = [pa.concat_tables(buffer.tables) for buffer in moved.values() if buffer.tables]
            positions = {number: buffer.position for number, buffer in moved.items()}
            added = self._add(tables, positions)
            for number, fresh in added.items():
                self._collection.of(number).see(fresh)
            for buffer in moved.values():
                buffer.tables, buffer.rows, buffer.saved = [], 0, buffer.position
        if self._samples:
            self._warehouse.add_samples(cluster, pa.concat_tables(self._samples))
            self._samples = []

    def _add(self, tables: list[Any], positions: Mapping[int, int]) -> Mapping[int, Sequence[Staged]]:
        """Stage and commit; again against what there is then, where another collector was first."""
        for tries_left in reversed(range(OVERTAKEN_AT_MOST)):
            known = Known.of(self._warehouse, self._collection.cluster)
            staged = stage_together(known, tables, self._source)
            try:
                return commit_records(self._warehouse, known, staged, positions=positions)
            except OvertakenError:
                if not tries_left:
                    raise
        return {}

    def _sample(self) -> None:
        own = {OFFSETS_TOPIC} if self._buffers else set()
        topics = None if self._plan.all_topics else sorted(own | self._topics.topics)
        now_ms = self._world.now_ms()
        rows, errors = self._reader.log_offsets(topics)
        self._collection.samples += len(rows)
        if rows:
            self._samples.append(samples_table(rows, now_ms))
        for error in self._unsampled.sampled(errors):
            if not self._plan.once:
                self._world.notice(f"no sample: {error.message}")


def samples_table(rows: list[LogOffsetRow], now_ms: int) -> Any:
    """Return rows of `LOG_OFFSETS` with one time."""
    columns = dict(zip(LogOffsetRow._fields, zip(*rows, strict=True), strict=True))
    return rows_of({**columns, "timestamp_ms": [now_ms] * len(rows)}, LOG_OFFSETS)


def require_same_log(warehouse: Warehouse, cluster: str, state: LogState, log_id: str | None = None) -> None:
    """Raise `RefusedError` where the log is another one than that of the warehouse, or of ``log_id``."""
    known, now = warehouse.cluster_id(cluster), state.cluster_id
    if known is not None and now is not None and known != now:
        raise RefusedError(
            f"the cluster's id is {now}, but what was collected as '{cluster}' is of the one with the id {known}: "
            "--cluster NAME keeps them apart"
        )
    known, now = log_id or warehouse.log_id(cluster), state.log_id
    if known is not None and now is not None and known != now:
        raise RefusedError(
            f"__consumer_offsets was made anew: its id is {now}, the warehouse has records of {known} for cluster '{cluster}'; "
            "--cluster NAME keeps the new ones apart"
        )


def deleted(partition: int, position: int, start: int) -> str:
    """What there is to say of a log that begins behind where collecting was."""
    return f"offsets {position} to {start - 1} of partition {partition} were deleted before they were collected"


def truncated(cluster: str, partition: int, position: int, end: int) -> RefusedError:
    """Return the error of a log that ends before what was collected of it."""
    return RefusedError(
        f"partition {partition} of cluster '{cluster}' ends at offset {end}, but records up to {position - 1} were collected: "
        "it was cut or made anew; --cluster NAME keeps what comes now apart",
        partition=partition,
    )
