"""The records of commits that nobody looked at: those of times in which a process only had chores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.records import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue
from kgctl.simulate.scenario.model import SECOND_US, CommitMode

if TYPE_CHECKING:
    from kgctl.simulate.engine.pods.process import Process

BATCHES_US = SECOND_US
"""An application that commits after each batch has a record a partition at most this often."""


def record_quiet_commits(process: Process, since_us: int, last_us: int, late_us: int) -> None:
    """Keep a record for each commit of a quiet time, the last one included, with what the process had read by then.

    ``late_us``: by how much an automatic commit comes after its interval.
    """
    world, member = process.world, process.member
    if world.records is None or member is None or not process.consuming:
        return
    interval_us = _interval_us(process, late_us)
    first_us = last_us - (last_us - since_us - 1) // interval_us * interval_us
    for sent_us in range(first_us, last_us + 1, interval_us):
        process.flow.advance(sent_us)
        at_us = sent_us + process.pod.link.mean_us
        for number in process.consuming:
            topic, partition = world.partitions.names[number]
            value = OffsetCommitValue(offset=_offset(process, number, sent_us), commit_timestamp_ms=world.broker.clock_ms(at_us))
            record = CoordinatorRecord(OffsetCommitKey(world.scenario.group_id, topic, partition), value)
            world.records.append((at_us, AppendRecord(record, member_id=member.member_id)))


def _offset(process: Process, number: int, at_us: int) -> int:
    ledger = process.world.ledger
    return ledger.position(number, at_us) if process.world.has_traffic else max(ledger.stored[number], 0)


def _interval_us(process: Process, late_us: int) -> int:
    mode = process.commit.mode
    if mode is CommitMode.AUTO:
        return process.config.auto_commit_interval_us + late_us
    return max(process.commit.interval_us, 1) if mode is CommitMode.EVERY else BATCHES_US
