"""Histories of every kind by chance, and their collection in pieces: what incremental builds are held against one build with."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from kgctl.model.coordinator_records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CoordinatorRecord,
    GroupMetadataKey,
)
from kgctl.pipeline.store.tables import LOG_OFFSETS, RAW
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.serde.coordinator_records import encode_record
from tests.support.pipeline.history_of import commit, members
from tests.support.pipeline.warehouses import add, built

TOPICS = "tuv"
IDS = {topic: UUID(int=number + 1) for number, topic in enumerate(TOPICS)}
_NO_ID = UUID(int=0)
END_MS = 10**15


@dataclass(frozen=True)
class AnyHistory:
    """Two partitions of the log, and samples of log ends."""

    parts: list[pa.Table]
    samples: pa.Table


def any_history(seed: int) -> AnyHistory:
    """Classic and consumer groups, transactions, removals, resets, topics that are made anew; clocks that go back, holes in the
    log, samples that are rare, missing, of a replica that was behind."""
    choice = random.Random(seed)
    span_ms = choice.choice([200_000, 900_000, 3_000_000])
    log = _Log(choice, is_skewed=choice.random() < 0.2)
    for time_ms in sorted(choice.randint(0, span_ms) for _ in range(choice.randint(20, 160))):
        log.append(time_ms)
    if choice.random() < 0.2:
        for part in log.parts:
            for _ in range(len(part) // 5):
                part.pop(choice.randrange(len(part)))
    samples = _samples(choice, span_ms) if choice.random() < 0.9 else []
    tables = [pa.Table.from_pylist(part, schema=RAW) for part in log.parts]
    return AnyHistory(tables, pa.Table.from_pylist(samples, schema=LOG_OFFSETS))


class _Log:
    def __init__(self, choice: random.Random, *, is_skewed: bool) -> None:
        self.choice, self.is_skewed = choice, is_skewed
        self.parts: list[list[dict[str, Any]]] = [[], []]
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.epochs: Counter[str] = Counter()

    def append(self, time_ms: int) -> None:
        """Some record."""
        choice, part = self.choice, self.choice.randint(0, 1)
        skew_ms = choice.choice([0] * 20 + [-200_000, 400_000]) if self.is_skewed else 0
        at_ms = max(0, time_ms + choice.randint(-300, 300) + skew_ms)
        row: dict[str, Any] = {"partition": part, "offset": len(self.parts[part]), "timestamp_ms": at_ms}
        group, kind = f"g{part}{choice.randint(0, 2)}", choice.random()
        producer = {"producer_id": choice.randint(1, 3), "producer_epoch": 0}
        if kind < 0.08:
            row.update(producer, commits=choice.random() < 0.7)
        else:
            record = self._commit(group) if kind < 0.7 else self._classic(group) if kind < 0.82 else self._consumer(f"{group}c")
            row.update(zip(("key", "value"), encode_record(record), strict=True))
            if kind < 0.7 and record.value is not None and choice.random() < 0.2:
                row.update(producer)
        self.parts[part].append(row)

    def _commit(self, group: str) -> CoordinatorRecord:
        choice = self.choice
        topic, partition = choice.choice(TOPICS), choice.randint(0, 1)
        if choice.random() < 0.06:
            return commit(None, topic, partition, group)
        key = (group, topic, partition)
        jump = 2_000_000 if choice.random() < 0.05 else 3
        step = choice.choice([0, 1, 5, 50, choice.randint(0, 300), -choice.randint(0, 200), jump])
        self.offsets[key] = max(0, self.offsets.get(key, choice.randint(0, 50)) + step)
        return commit(self.offsets[key], topic, partition, group, IDS[topic] if choice.random() < 0.4 else _NO_ID)

    def _classic(self, group: str) -> CoordinatorRecord:
        if self.choice.random() < 0.1:
            return CoordinatorRecord(GroupMetadataKey(group), None)
        return members(self.choice.randint(0, 3), self.choice.randint(0, 6), group)

    def _consumer(self, group: str) -> CoordinatorRecord:
        choice, member, epoch = self.choice, f"m{self.choice.randint(0, 2)}", self.epochs[group]
        kind, is_removed = choice.random(), choice.random() < 0.12
        if kind < 0.25:
            self.epochs[group] += 1
            value = None if is_removed else ConsumerGroupMetadataValue(epoch + 1, 0)
            return CoordinatorRecord(ConsumerGroupMetadataKey(group), value)
        if kind < 0.45:
            names = tuple(sorted(choice.sample(TOPICS, choice.randint(1, 2))))
            subscription = None if is_removed else ConsumerGroupMemberMetadataValue(subscribed_topic_names=names)
            return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group, member), subscription)
        if kind < 0.55:
            target = ConsumerGroupTargetAssignmentMetadataValue(epoch, 0)
            return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group), target)
        topic_id = IDS[choice.choice(TOPICS)]
        if kind < 0.65:
            own = ConsumerGroupTargetAssignmentMemberValue(((topic_id, (0, 1)),))
            return CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group, member), own)
        held = AssignedTopicPartitions(topic_id, tuple(sorted(choice.sample(range(3), choice.randint(1, 3)))), ())
        now = None if is_removed else ConsumerGroupCurrentMemberAssignmentValue(epoch, max(epoch - 1, 0), 0, (held,))
        return CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group, member), now)


def _samples(choice: random.Random, span_ms: int) -> list[dict[str, Any]]:
    every_ms = choice.choice([7_000, 15_000, 40_000, 100_000])
    logs = [(topic, partition) for topic in TOPICS for partition in range(2) if choice.random() > 0.15]
    found = [row for log in logs for row in _samples_of(choice, *log, span_ms=span_ms, every_ms=every_ms)]
    last_ms = choice.randint(0, span_ms) if choice.random() < 0.2 else END_MS
    return [row for row in found if row["timestamp_ms"] <= last_ms]


def _samples_of(choice: random.Random, topic: str, partition: int, *, span_ms: int, every_ms: int) -> list[dict[str, Any]]:
    begin, rate = choice.randint(0, 100), choice.random() * choice.choice([0.001, 0.01])
    pause_ms = (choice.randint(0, span_ms), choice.choice([50_000, 400_000])) if choice.random() < 0.2 else (0, 0)
    found = []
    for time_ms in range(choice.choice([0, 0, choice.randint(0, span_ms)]), span_ms + every_ms, every_ms):
        if 0 < time_ms - pause_ms[0] < pause_ms[1]:
            continue
        kind = choice.random()
        if kind < 0.02:  # the topic is made anew
            begin = -int(time_ms * rate)
        end: int | None = begin + int(time_ms * rate)
        assert end is not None
        start = 0 if choice.random() < 0.9 else end // 2
        if kind > 0.98:
            end = None
        elif kind > 0.95:  # a replica that was behind
            end = max(0, end - choice.randint(0, 30))
        row = {"topic": topic, "partition": partition, "timestamp_ms": time_ms}
        found.append({**row, "log_start_offset": start, "log_end_offset": end})
    return found


def built_in_pieces(folder: Path, history: AnyHistory, seed: int, **options: Any) -> tuple[Warehouse, Counter[str]]:
    """Collect it up to some moments by chance, and build at each; some pieces come late: (the warehouse, what was told)."""
    choice = random.Random(seed)
    last_ms = max(time_ms for part in history.parts for time_ms in [0, *part.column("timestamp_ms").to_pylist()])
    moments = [*sorted(choice.randint(0, last_ms + 1) for _ in range(choice.randint(1, 7))), END_MS]
    warehouse, late, has_late = Warehouse.create(folder), Counter[str](), choice.random() < 0.15
    pieces = _Pieces(history, choice, has_late=has_late)
    for moment in moments:
        records, samples = pieces.until(moment)
        for number, piece in enumerate(records):
            add(warehouse, "c1", piece, f"{moment} {number}")
        warehouse.add_samples("c1", samples)
        if not warehouse.clusters():
            continue
        result = built(warehouse, **options)
        assert result.failed == [], result.failed
        late.update(result.late.get("c1", []))
    return warehouse, late


class _Pieces:
    def __init__(self, history: AnyHistory, choice: random.Random, *, has_late: bool) -> None:
        self.history, self.choice, self.has_late = history, choice, has_late
        self.taken = [0 for _ in history.parts]
        self.later: list[pa.Table] = []
        self.samples = history.samples.to_pylist()

    def until(self, moment: int) -> tuple[list[pa.Table], pa.Table]:
        """The records and samples that come up to then."""
        is_end, choice = moment == END_MS, self.choice
        records: list[pa.Table] = []
        for number, part in enumerate(self.history.parts):
            times, low = part.column("timestamp_ms").to_pylist(), self.taken[number]
            to_ms = moment + choice.randint(-2_000, 2_000)
            high = part.num_rows if is_end else next((at for at in range(low, len(times)) if times[at] >= to_ms), part.num_rows)
            self.taken[number] = high
            is_late = self.has_late and not is_end and choice.random() < 0.3
            if high > low:
                (self.later if is_late else records).append(part.slice(low, high - low))
        samples_to_ms = moment + choice.choice([0, 0, 5_000, -20_000])
        now = [
            row
            for row in self.samples
            if row["timestamp_ms"] <= samples_to_ms and not (self.has_late and not is_end and choice.random() < 0.02)
        ]
        self.samples = [row for row in self.samples if row not in now]
        if is_end:
            records += self.later
        return records, pa.Table.from_pylist(now, schema=LOG_OFFSETS)
