"""What a run in real time comes to, in the words and units of the simulation's metrics."""

from __future__ import annotations

import itertools
from collections import defaultdict

from confluent_kafka import Consumer, TopicPartition

from kgctl.model.records import ConsumerGroupMetadataValue, GroupMetadataValue
from kgctl.serde.coordinator_records import decode_record
from tests.calibration.fleet import Line
from tests.calibration.reality import Log

NAMES = ("generations", "unavailable", "max_gap", "moves", "duplicates")
Changes = list[tuple[int, str, bool]]
"""(when, member, whether it begins to consume)."""
Figures = dict[str, float]
Epochs = list[tuple[int, int]]
"""(when in microseconds, generation or group epoch)."""


def figures(log: Log, epochs: Epochs) -> Figures:
    """The metrics of `NAMES`, over the window."""
    changes = _changes(log)
    gaps = [gap for partition, one in changes.items() for gap in _gaps(one, log.created_us.get(partition, 0), log)]
    lengths = [length for length in gaps if length > 0]
    return {
        "generations": _epoch_at(epochs, log.end_us) - _epoch_at(epochs, log.begin_us),
        "unavailable": sum(lengths) / 1e6,
        "max_gap": max(lengths, default=0) / 1e6,
        "moves": sum(_moves(one, log) for one in changes.values()),
        "duplicates": _repeated(log),
    }


def epochs_of(bootstrap: str, group: str) -> Epochs:
    """As the coordinator has written them to the only partition of its log."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    partition = TopicPartition("__consumer_offsets", 0, 0)
    end = consumer.get_watermark_offsets(partition)[1]
    consumer.assign([partition])
    found: Epochs = []
    position = 0
    while position < end:
        for message in consumer.consume(5000, 5):
            position = (message.offset() or 0) + 1
            record = decode_record(message.key() or b"", message.value())
            at_us = message.timestamp()[1] * 1000
            if getattr(record.key, "group", None) != group:
                continue
            if isinstance(record.value, GroupMetadataValue):
                found.append((at_us, record.value.generation))
            elif isinstance(record.value, ConsumerGroupMetadataValue):
                found.append((at_us, record.value.epoch))
    consumer.close()
    return found


def _epoch_at(epochs: Epochs, at_us: int) -> int:
    return max((epoch for when_us, epoch in epochs if when_us <= at_us), default=0)


def _changes(log: Log) -> dict[str, Changes]:
    """For each partition, in the order of time. A member holds nothing any more when it closes, dies, or is past its limit."""
    found: dict[str, Changes] = defaultdict(list)
    held: dict[str, set[str]] = defaultdict(set)
    frozen: set[str] = set()
    others = [Line(at_us, member, "gone") for at_us, member in [*log.crashed, *log.past_limit]]
    others += [Line(at_us, member, "frozen") for at_us, member in log.frozen]
    others += [Line(at_us, member, "thawed") for at_us, member in log.thawed]
    for line in sorted([*log.lines, *others], key=lambda line: line.at_us):
        if line.what == "assigned":
            for partition in line.partitions:
                held[line.member].add(partition)
                found[partition].append((line.at_us, line.member, True))
        elif line.what == "frozen":
            frozen.add(line.member)
            for partition in held[line.member]:
                found[partition].append((line.at_us, line.member, False))
        elif line.what == "thawed":
            frozen.discard(line.member)
            awake = [those for member, those in held.items() if member not in (line.member, *frozen)]
            for partition in held[line.member].difference(*awake):
                found[partition].append((line.at_us, line.member, True))
        elif line.what in ("revoked", "lost", "closing", "gone"):
            given_up = line.partitions if line.what in ("revoked", "lost") else tuple(sorted(held[line.member]))
            for partition in given_up:
                if partition in held[line.member]:
                    held[line.member].discard(partition)
                    found[partition].append((line.at_us, line.member, False))
    return found


def _gaps(changes: Changes, created_us: int, log: Log) -> list[int]:
    """The lengths of the times within the window in which nobody holds it."""
    holders: set[str] = set()
    since_us = created_us
    gaps = []
    for at_us, member, begins in [*changes, (log.end_us, "", True)]:
        if begins:
            if not holders:
                gaps.append(min(at_us, log.end_us) - max(since_us, log.begin_us))
            holders.add(member)
        else:
            holders.discard(member)
            since_us = at_us if not holders else since_us
    return gaps


def _moves(changes: Changes, log: Log) -> int:
    owners = [(at_us, member) for at_us, member, begins in changes if begins]
    return sum(
        1 for (_, before), (at_us, after) in itertools.pairwise(owners) if before != after and log.begin_us <= at_us <= log.end_us
    )


def _repeated(log: Log) -> int:
    """Records that were read again, within the window."""
    highest: dict[str, int] = {}
    repeated = 0
    for line in log.lines:
        for text in line.rest if line.what == "read" else ():
            partition, _, offsets = text.rpartition(":")
            first, last = (int(offset) for offset in offsets.split("-"))
            known = highest.get(partition, first - 1)
            if log.begin_us <= line.at_us <= log.end_us:
                repeated += max(min(last, known) - first + 1, 0)
            highest[partition] = max(known, last)
    return repeated
