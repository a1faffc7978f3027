"""A member of a streams group, and the tasks that it has and should have.

Tasks stand in the order of Java's maps and sets: it shows in answers about endpoints, and decides who gets a task.
Kafka: StreamsGroupMember, TasksTuple, TasksTupleWithEpochs, streams' MemberState.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from enum import IntEnum
from typing import Any, NamedTuple

from kgctl.coordinator.modern.member import Refusal
from kgctl.model.error_codes import ErrorCode
from kgctl.model.streams_records import (
    AssignedTaskIds,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    TaskIds,
    UserEndpoint,
)
from kgctl.model.streams_requests import StreamsGroupHeartbeat
from kgctl.model.values import copied_set_order, frozen_in_order, hash_map_order, integer_hash, quick_enum

Epochs = Mapping[str, Mapping[int, int]]
"""Subtopology -> partition -> since which epoch the member has this task; of standby and warm-up tasks 0, as nobody asks."""
Numbers = Mapping[str, tuple[int, ...]]
"""Subtopology -> partitions: a task each."""


class HeldTasks(NamedTuple):
    """What a member has: tasks that process, tasks that keep a copy of a state, tasks that catch up with one."""

    active: Epochs = {}  # noqa: RUF012 - nobody changes it
    standby: Epochs = {}  # noqa: RUF012
    warmup: Epochs = {}  # noqa: RUF012


class StreamsTarget(NamedTuple):
    """What a member should have, or says that it has."""

    active: Numbers = {}  # noqa: RUF012 - nobody changes it
    standby: Numbers = {}  # noqa: RUF012
    warmup: Numbers = {}  # noqa: RUF012

    def as_sets(self) -> tuple[dict[str, set[int]], ...]:
        """Return it as values that are equal where the order alone differs."""
        return tuple({key: set(numbers) for key, numbers in kind.items()} for kind in self)

    def contains_any(self, tasks: HeldTasks) -> bool:
        """Whether one of these is among the tasks, as one of the same kind."""
        return any(
            not theirs.get(key, {}).keys().isdisjoint(numbers)
            for own, theirs in zip(self, tasks, strict=True)
            for key, numbers in own.items()
        )


NO_TASKS = HeldTasks()
NO_STREAMS_TARGET = StreamsTarget()


@quick_enum
class StreamsMemberState(IntEnum):
    """A member's state, with the number that its record has."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


_STATES = {int(state): state for state in StreamsMemberState}


def _no_tasks() -> HeldTasks:
    return NO_TASKS


def _no_tags() -> dict[str, str]:
    return {}


@frozen_in_order
class StreamsMember:
    """What is known of one member. A new one is at epoch 0 and has nothing.

    ``has_metadata`` and ``has_assignment``: there is the record of either kind. Kafka cannot go on with a member that lacks one,
    which only an odd log has. ``client_tags`` stand in the order of their HashMap.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=_no_tags)
    assigned: HeldTasks = field(default_factory=_no_tasks)
    pending_revocation: HeldTasks = field(default_factory=_no_tasks)
    has_metadata: bool = True
    has_assignment: bool = True

    @property
    def uses_classic_protocol(self) -> bool:
        """Return False: there is no other protocol in such a group."""
        return False

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has what the target of this epoch gives it."""
        return self.has_assignment and self.state is StreamsMemberState.STABLE and self.member_epoch == assignment_epoch

    def check_metadata(self) -> None:
        """Raise `Refusal` where it is not known what the member is: a failure of Kafka's own."""
        if not self.has_metadata:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)

    def check_assignment(self) -> None:
        """Raise `Refusal` where it is not known what the member has: a failure of Kafka's own."""
        if not self.has_assignment:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)

    def with_request(self, request: StreamsGroupHeartbeat) -> StreamsMember:
        """Return the member with what the request says anew. Raises `Refusal` for a tag that is there twice."""
        said: dict[str, Any] = {
            "rack_id": request.rack_id,
            "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
            "topology_epoch": None if request.topology is None else request.topology.epoch,
            "client_id": request.client_id,
            "client_host": request.client_host,
            "process_id": request.process_id,
            "client_tags": None if request.client_tags is None else _tags(request.client_tags),
            "user_endpoint": request.user_endpoint,
        }
        return replace(self, **{name: value for name, value in said.items() if value is not None})


def _tags(pairs: Collection[tuple[str, str]]) -> dict[str, str]:
    tags = distinct(pairs)
    return {key: tags[key] for key in hash_map_order(tags)}


def distinct(pairs: Collection[tuple[str, Any]]) -> dict[str, Any]:
    """Return these as a map. Raises `Refusal` for a key that is there twice, a failure of Kafka's own."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    return found


# What the records say.


def with_metadata(member: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
    """The member with what a record of type 19 says."""
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=value.user_endpoint,
        client_tags=_tags(dict(value.client_tags).items()),
        has_metadata=True,
    )


def with_assignment(member: StreamsMember, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
    """The member with what a record of type 22 says."""
    epoch = value.member_epoch
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=_STATES.get(value.state, StreamsMemberState.UNKNOWN),
        assigned=_held(value.active_tasks, value.standby_tasks, value.warmup_tasks, epoch),
        pending_revocation=_held(
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
            epoch,
        ),
        has_assignment=True,
    )


def _held(
    active: Iterable[AssignedTaskIds], standby: Iterable[AssignedTaskIds], warmup: Iterable[AssignedTaskIds], epoch: int
) -> HeldTasks:
    copies = [{ids.subtopology_id: dict.fromkeys(_as_set(ids.partitions), 0) for ids in kind} for kind in (standby, warmup)]
    return HeldTasks(*({key: kind[key] for key in hash_map_order(kind)} for kind in (_since(active, epoch), *copies)))


def _since(tasks: Iterable[AssignedTaskIds], epoch: int) -> dict[str, dict[int, int]]:
    """Of an older record, or an odd one, since the epoch that the member is at."""
    found = {}
    for key, numbers, epochs in tasks:
        since = dict(zip(numbers, epochs, strict=True)) if len(epochs) == len(numbers) else dict.fromkeys(numbers, epoch)
        found[key] = {number: since[number] for number in hash_map_order(since, hash_of=integer_hash)}
    return found


def _as_set(numbers: Collection[int]) -> list[int]:
    return copied_set_order(numbers, hash_of=integer_hash)


def recorded_target(value: StreamsGroupTargetAssignmentMemberValue) -> StreamsTarget:
    """The target that a record of type 21 says."""
    return StreamsTarget(*(_numbers(dict(kind)) for kind in (value.active_tasks, value.standby_tasks, value.warmup_tasks)))


def _numbers(tasks: Mapping[str, Collection[int]]) -> dict[str, tuple[int, ...]]:
    return {key: tuple(_as_set(tasks[key])) for key in hash_map_order(tasks)}


def owned_tasks(request: StreamsGroupHeartbeat) -> StreamsTarget | None:
    """What the member says that it has; None: nothing new. Raises `Refusal` for a subtopology that is there twice."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return StreamsTarget(*(_numbers(distinct(kind)) for kind in (active, standby, warmup)))


def task_ids(tasks: Mapping[str, Iterable[int]]) -> tuple[TaskIds, ...]:
    """Tasks as an answer has them: subtopologies in the order of the map, partitions ascending."""
    return tuple(TaskIds(key, tuple(sorted(numbers))) for key, numbers in tasks.items())
