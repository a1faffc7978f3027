"""What an assignor of tasks is given and what it answers: streams groups (KIP-1071) as their coordinator sees them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import NamedTuple

from kgctl.assignors.partition_space import java_text_key
from kgctl.model.values import frozen_in_order, string_hash

TaskNumbers = Mapping[str, Collection[int]]
"""Subtopology -> partitions: a task each."""
_NONE: TaskNumbers = MappingProxyType({})


def _no_tasks() -> TaskNumbers:
    return _NONE


class TaskId(NamedTuple):
    """A task: the subtopology that it runs, and the partition of its sources."""

    subtopology_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology_id}_{self.partition}"


def task_hash(task: TaskId) -> int:
    """``hashCode`` of the record ``TaskId``."""
    return 31 * string_hash(task.subtopology_id) + task.partition


def by_subtopology(task: TaskId) -> tuple[bytes, int]:
    """A key that sorts tasks by subtopology, then by partition, as Java does."""
    return java_text_key(task.subtopology_id), task.partition


def by_partition(task: TaskId) -> tuple[int, bytes]:
    """A key that sorts tasks by partition, then by subtopology, as Java does."""
    return task.partition, java_text_key(task.subtopology_id)


@frozen_in_order
class SubtopologySize:
    """A subtopology with ``partitions`` tasks; a stateful one has stores, which standby tasks keep copies of."""

    subtopology_id: str
    partitions: int
    is_stateful: bool


@frozen_in_order
class TaskMember:
    """A member of the group and its present target. Members of one process share what is installed there."""

    member_id: str
    process_id: str
    active: TaskNumbers = field(default_factory=_no_tasks)
    standby: TaskNumbers = field(default_factory=_no_tasks)


@frozen_in_order
class TaskSpec:
    """The group. ``members`` stand in the order of the ``HashMap`` of member specs; ``subtopologies`` as Java sorts their ids."""

    members: Sequence[TaskMember]
    subtopologies: Sequence[SubtopologySize]
    num_standby_replicas: int = 0


@frozen_in_order
class TaskTarget:
    """What a member is to run: subtopologies and partitions stand in the order in which Java iterates over them."""

    active: dict[str, tuple[int, ...]]
    standby: dict[str, tuple[int, ...]]
