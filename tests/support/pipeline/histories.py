"""Whole histories, made by the coordinator core itself: runs of the simulator, with what its coordinator held at each moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.effects import AppendRecord
from kgctl.model.coordinator_records import TransactionMarker
from kgctl.model.groups import GroupState
from kgctl.model.values import partition_for
from kgctl.pipeline.decode.arrow import each_once
from kgctl.pipeline.decode.decode import decode, resolve
from kgctl.pipeline.store.tables import LOG_OFFSETS, RAW
from kgctl.pipeline.tables.registry import ClusterInputs, PartitionInputs, table_named
from kgctl.serde.consumer_protocol import decode_assignment_by_topic
from kgctl.serde.coordinator_records import encode_record
from kgctl.simulate.batch.files import ClusterState, cluster_state
from kgctl.simulate.engine.run import complete
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.metrics.result import MetricView
from kgctl.simulate.scenario.model import Scenario
from tests.support.coordinator_harness import CoordinatorHarness

Partitions = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Moment:
    """The group at the end of a millisecond, as the coordinator held it. Empty ``type``: there was none."""

    time_ms: int
    type: str = ""
    generation: int = 0
    state: str = ""
    assignments: Mapping[str, Partitions] = field(default_factory=dict)
    """Member to what it owns; of a classic group, as of its last completed generation."""
    target_epoch: int = 0


@dataclass(frozen=True)
class Told:
    """A history: its records as they were appended, and the truth about them."""

    raw: pa.Table
    moments: list[Moment]
    state: ClusterState


def told_by_simulation(scenario: Scenario, seed: int) -> Told:
    """Run it, and keep everything."""
    watcher = _Watcher()
    watcher.simulation = Simulation(scenario, seed, (watcher,), keeps_records=True, read=MetricView)
    state = cluster_state(complete([watcher.simulation]))
    return Told(raw_of(state.records), watcher.moments(), state)


def raw_of(records: Iterable[tuple[int, AppendRecord]], *, partitions: int = 1) -> pa.Table:
    """Records as a log holds them, numbered without a gap within each partition."""
    rows: list[dict[str, Any]] = []
    next_offset: dict[int, int] = {}
    for time_ms, effect in records:
        for partition in _partitions_of(effect, partitions):
            offset = next_offset[partition] = next_offset.get(partition, -1) + 1
            rows.append({"partition": partition, "offset": offset, "timestamp_ms": time_ms} | _content(effect))
    return pa.Table.from_pylist(rows, schema=RAW)


def _partitions_of(effect: AppendRecord, partitions: int) -> Iterable[int]:
    if isinstance(effect.record, TransactionMarker):
        return range(partitions)
    return (partition_for(effect.record.key.group or "", partitions),)


def _content(effect: AppendRecord) -> dict[str, Any]:
    record = effect.record
    if isinstance(record, TransactionMarker):
        return {
            "producer_id": record.producer_id,
            "producer_epoch": record.producer_epoch,
            "commits": record.committed,
        }
    key, value = encode_record(record)
    producer = {} if effect.producer_id is None else {"producer_id": effect.producer_id, "producer_epoch": effect.producer_epoch}
    return {"key": key, "value": value, **producer}


class _Watcher:
    """Looks at the simulated coordinator after each step."""

    def __init__(self) -> None:
        self._by_ms: dict[int, Moment] = {}
        self.simulation: Simulation | None = None

    def on_trace(self, event: object) -> None:
        """Not needed."""

    def on_step(self, at_us: int, metrics: object) -> None:
        """The last step of a millisecond counts."""
        world = self.simulation
        assert world is not None
        now_ms = world.broker.clock_ms(world.loop.now_us)
        names = {topic.topic_id: topic.name for topic in world.image.topics.values()}
        self._by_ms[now_ms] = _moment(now_ms, world.broker.core.shard.groups.get(world.scenario.group_id), names)

    def moments(self) -> list[Moment]:
        """In order."""
        return [self._by_ms[now_ms] for now_ms in sorted(self._by_ms)]


def _moment(now_ms: int, group: object, names: Mapping[Any, str]) -> Moment:
    if isinstance(group, ClassicGroup):
        recorded = group.recorded
        if recorded is None:
            return Moment(now_ms)
        owned = {member.member_id: _decoded(member.assignment) for member in recorded.members}
        return Moment(now_ms, "classic", recorded.generation, group.state.value, owned)
    if isinstance(group, ConsumerGroup):
        owned = {member.member_id: _owned(member, names) for member in group.members.values()}
        return Moment(now_ms, "consumer", group.group_epoch, group.group_state.value, owned, group.assignment_epoch)
    return Moment(now_ms)


def _decoded(assignment: bytes) -> Partitions:
    topics = decode_assignment_by_topic(assignment) if assignment else {}
    return frozenset((topic, partition) for topic, numbers in topics.items() for partition in numbers)


def _owned(member: Any, names: Mapping[Any, str]) -> Partitions:
    return frozenset(
        (names.get(topic_id, str(topic_id)), partition)
        for held in (member.assigned, member.pending_revocation)
        for topic_id, partitions in held.items()
        for partition in partitions
    )


STABLE = GroupState.STABLE.value


class TimedLog(list[AppendRecord]):
    """A log that remembers when each record came: put in the place of a `CoordinatorDriver`'s."""

    def __init__(self, harness: CoordinatorHarness) -> None:
        super().__init__(harness.log)
        self.harness = harness
        self.times_ms: list[int] = []
        harness.driver.log = self

    def extend(self, records: Iterable[AppendRecord]) -> None:
        """More records, now."""
        for record in records:
            self.append(record)
            self.times_ms.append(self.harness.now_ms)

    def raw(self) -> pa.Table:
        """The log as it would be collected."""
        return raw_of(zip(self.times_ms, self, strict=True))


def inputs_of(raw: pa.Table, log_offsets: pa.Table | None = None) -> PartitionInputs:
    """What the tables of one partition are built from."""
    decoded = decode(raw)
    resolved = resolve(decoded.commits, decoded.markers)
    samples = LOG_OFFSETS.empty_table() if log_offsets is None else log_offsets
    ends = table_named("log_end_offsets").build(ClusterInputs(samples))
    return PartitionInputs(resolved.offset_commits, each_once(decoded.group_records, "log_offset"), ends, decoded.coverage)
