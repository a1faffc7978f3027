"""Tasks of Kafka Streams applications: how long each runs nowhere, what is restored, when the application is whole again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.simulate.metrics.measured import Measured, seconds
from kgctl.simulate.recording.owners import NOBODY, Gap
from kgctl.simulate.scenario.checks import Filters
from kgctl.simulate.scenario.metric import (
    BYTES,
    COUNT,
    RECORDS,
    SECONDS,
    SHARE,
    TASK_SECONDS,
    TASKS,
    TIME,
    metric,
    the_time,
    the_time_of_all,
)
from kgctl.simulate.scenario.vocabulary import GapCause

if TYPE_CHECKING:
    from kgctl.simulate.recording.recording import Counted, Recording, TaskHistory

IN_GAPS = ("selector", *TIME)


def _history(run: Measured) -> TaskHistory:
    assert run.recording.tasks is not None, "metrics of tasks are asked of Kafka Streams applications alone"
    return run.recording.tasks


def _gaps(run: Measured, filters: Filters) -> list[Gap]:
    """The times in which a task ran nowhere: those of the first partition that it reads, as it reads all of them or none."""
    firsts = {numbers[0] for numbers in _history(run).tasks.values() if numbers}
    return [gap for gap in run.gaps(filters) if gap.partition in firsts]


@metric(
    TASK_SECONDS,
    IN_GAPS,
    label="tasks down t*s",
    hint="task-seconds in which a task ran nowhere",
    about=TASKS,
    place=10,
    most=the_time_of_all,
)
def task_downtime(run: Measured, filters: Filters) -> float:
    """Sum over the tasks of a Kafka Streams application of the time in which none of its instances runs them."""
    return seconds(sum(gap.length_us for gap in _gaps(run, filters)))


@metric(SECONDS, IN_GAPS, label="longest task down", hint="one task, nowhere", about=TASKS, most=the_time)
def max_task_downtime(run: Measured, filters: Filters) -> float:
    """The longest time in which a task of a Kafka Streams application ran nowhere."""
    return seconds(max((gap.length_us for gap in _gaps(run, filters)), default=0))


@metric(
    TASK_SECONDS,
    IN_GAPS,
    label="restoring t*s",
    hint="of it, while an instance restores its state",
    about=TASKS,
    place=11,
    most=the_time_of_all,
)
def restore_time(run: Measured, filters: Filters) -> float:
    """Of the time in which tasks run nowhere, that in which an instance had them and restored their states."""
    causes = (cause for gap in _gaps(run, filters) for cause in gap.causes)
    return seconds(sum(length_us for cause, length_us in causes if cause is GapCause.RESTORE))


@metric(SECONDS, TIME, label="whole again", hint="longest time in which not all tasks ran", about=TASKS, place=12, most=the_time)
def time_to_whole(run: Measured, filters: Filters) -> float:
    """How long a Kafka Streams application took to run all its tasks again: the longest time in which not all of them ran."""
    longest_us = first_us = last_us = 0
    for from_us, to_us in sorted((gap.from_us, gap.to_us) for gap in _gaps(run, filters)):
        first_us = from_us if from_us > last_us else first_us
        last_us = max(to_us, last_us)
        longest_us = max(longest_us, last_us - first_us)
    return seconds(longest_us)


@metric(RECORDS, IN_GAPS, label="restored", hint="records read for tasks that waited for them", about=TASKS, place=13)
def restored(run: Measured, filters: Filters) -> float:
    """Records of changelogs that instances read before a task could run."""
    return _amount(run, _history(run).restored, filters)


@metric(BYTES, IN_GAPS, about=TASKS)
def restored_bytes(run: Measured, filters: Filters) -> float:
    """The bytes of the records that were restored before a task could run."""
    return _amount(run, _history(run).restored, filters, in_bytes=True)


@metric(RECORDS, IN_GAPS, about=TASKS)
def copied(run: Measured, filters: Filters) -> float:
    """Records of changelogs that instances read for copies, standbys and warm-ups, while the tasks ran elsewhere."""
    return _amount(run, _history(run).copied, filters)


@metric(COUNT, IN_GAPS, label="warm-ups", hint="copies begun for tasks that are to move", about=TASKS, place=14)
def warmups(run: Measured, filters: Filters) -> float:
    """Copies beyond ``num.standby.replicas`` that an instance began, to take the task over once it has caught up."""
    return len(run.select(_history(run).warmups, filters))


@metric(COUNT, TIME, label="probing rebalances", about=TASKS, place=15)
def probing_rebalances(run: Measured, filters: Filters) -> float:
    """Rebalances after ``probing.rebalance.interval.ms``, to see whether copies have caught up."""
    return len(run.select(_history(run).probes, filters))


@metric(SHARE, ("at",), label="with a copy", is_better_higher=True, about=TASKS)
def standby_coverage(run: Measured, filters: Filters) -> float | None:
    """Stateful tasks of which another instance has a copy within ``acceptable.recovery.lag``: at the end, or at a time."""
    at_us = run.at(filters)
    points = [point for point in _history(run).copies if point[0] <= at_us]
    return points[-1][1] / points[-1][2] if points and points[-1][2] else None


def _amount(run: Measured, told: list[Counted], filters: Filters, *, in_bytes: bool = False) -> float:
    pods = run.history.pods
    found = 0
    for each in run.select(told, filters):
        streams = pods[each.pod].members.streams
        found += each.amount * (streams.record_bytes if in_bytes and streams is not None else 1)
    return found


def restored_for(recording: Recording, gap: Gap, from_us: int, to_us: int) -> str:
    """How much who had the partition after the gap restored of its task between these times of the log; "": that is not known."""
    tasks, pod = recording.tasks, gap.after
    if tasks is None or pod == NOBODY:
        return ""
    streams = recording.history.pods[pod].members.streams
    own = {name for name, numbers in tasks.tasks.items() if gap.partition in numbers}
    own_times = (each for each in tasks.restored if from_us <= each.at_us - recording.start_us <= to_us)
    during = [each for each in own_times if each.pod == pod]
    mine = sum(each.amount for each in during if each.what in own)
    others = sum(each.amount for each in during if each.what not in own)
    beside = f", beside {others:,} of other tasks" if others else ""
    rate = "" if streams is None else f", {streams.restore_uhz / 1_000_000:,.0f} a second in all"
    return f"{recording.history.pods[pod].name} restores {mine:,} records of task {', '.join(sorted(own))}{beside}{rate}"
