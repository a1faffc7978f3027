"""Share groups as the cases write them: steps, answers, states, and what the coordinator has done elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from kgctl.assignors.spec import Target
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.share.partitions import Noted
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, MetadataImage, TopicPartition
from kgctl.model.requests import Request
from kgctl.model.share_requests import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    DeleteShareState,
    DescribeShareGroupOffsets,
    GroupStateDeleted,
    InitializeShareState,
    LatestOffsetsListed,
    ListLatestOffsets,
    ReadShareStateSummary,
    ShareGroupDescribe,
    ShareGroupHeartbeat,
    ShareStateCall,
    ShareStateDeleted,
    ShareStateError,
    ShareStateInitialized,
    ShareStateSummary,
    ShareStateSummaryRead,
)
from kgctl.model.share_results import (
    AlterShareGroupOffsetsResult,
    DeleteShareGroupOffsetsResult,
    DescribeShareGroupOffsetsResult,
    ShareGroupDescribeResult,
    ShareGroupHeartbeatResult,
)

Step = dict[str, Any]
View = dict[str, Any]
Names = Mapping[UUID, str]
FAILURE = "it failed"
"""The text of an exception of the driver's."""


# Steps.


def _heartbeat(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    topics = step.get("topics")
    return ShareGroupHeartbeat(
        **common,
        member_id=step["member"],
        member_epoch=step["epoch"],
        rack_id=step.get("rack"),
        subscribed_topic_names=None if topics is None else tuple(topics),
    )


def _describe(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    del common["group_id"]
    return ShareGroupDescribe(**common, group_ids=tuple(step["groups"]))


def _describe_offsets(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    topics = step.get("topics")
    named = None if topics is None else tuple((name, tuple(numbers)) for name, numbers in topics.items())
    return DescribeShareGroupOffsets(**common, topics=named)


def _alter(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    topics = tuple((name, tuple(map(tuple, pairs))) for name, pairs in step["topics"].items())
    return AlterShareGroupOffsets(**common, topics=topics)


def _delete(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    return DeleteShareGroupOffsets(**common, topics=tuple(step["topics"]))


SHARE_OPERATIONS: dict[str, tuple[int, Callable[[Step, dict[str, Any], MetadataImage], Request]]] = {
    "share_heartbeat": (1, _heartbeat),
    "describe_share_groups": (1, _describe),
    "describe_share_offsets": (1, _describe_offsets),
    "alter_share_offsets": (0, _alter),
    "delete_share_offsets": (0, _delete),
}


# Answers.


def _error(error: ErrorCode, message: str | None) -> View:
    return {"error": error.name, "message": message}


def _topics(topics: Iterable[tuple[UUID, Iterable[int]]], names: Names) -> list[Any]:
    return [[names[topic_id], list(numbers)] for topic_id, numbers in topics]


def _heartbeat_reply(result: ShareGroupHeartbeatResult, _: Step, names: Names) -> View:
    reply = _error(result.error, result.error_message)
    if not result.error:
        reply |= {"member": result.member_id, "epoch": result.member_epoch, "heartbeat_interval_ms": result.heartbeat_interval_ms}
        reply["assignment"] = None if result.assignment is None else _topics(result.assignment, names)
    return reply


def _describe_reply(result: ShareGroupDescribeResult, _: Step, names: Names) -> View:
    groups = []
    for group in result.groups:
        entry = _error(group.error, group.error_message) | {"id": group.group_id}
        if not group.error:
            entry |= {"state": group.state, "epoch": group.group_epoch, "assignment_epoch": group.assignment_epoch}
            entry |= {"assignor": group.assignor_name, "members": []}
        for member in group.members:
            view = {"id": member.member_id, "epoch": member.member_epoch, "rack": member.rack_id}
            view |= {"client": f"{member.client_id}@{member.client_host}", "topics": " ".join(member.subscribed_topic_names)}
            entry["members"].append(view | {"assignment": _topics(member.assignment, names)})
        groups.append(entry)
    return {"groups": groups}


def _describe_offsets_reply(result: DescribeShareGroupOffsetsResult, _: Step, __: Names) -> View:
    topics = [
        [
            topic.name,
            topic.topic_id == ZERO_UUID,
            [[p.partition, p.start_offset, p.leader_epoch, p.lag, _error(p.error, p.error_message)] for p in topic.partitions],
        ]
        for topic in result.topics
    ]
    # A call that fails as a whole is an exception of Kafka's service, which has no answer for it.
    return {"error": result.error.name} if result.error else {**_error(result.error, None), "topics": topics}


def _alter_reply(result: AlterShareGroupOffsetsResult, _: Step, __: Names) -> View:
    topics = [
        [topic.name, topic.topic_id == ZERO_UUID, [[p.partition, _error(p.error, p.error_message)] for p in topic.partitions]]
        for topic in result.topics
    ]
    return {**_error(result.error, result.error_message), "topics": topics}


def _delete_reply(result: DeleteShareGroupOffsetsResult, _: Step, __: Names) -> View:
    topics = [[topic.name, topic.topic_id == ZERO_UUID, _error(topic.error, topic.error_message)] for topic in result.topics]
    return {**_error(result.error, result.error_message), "topics": topics}


SHARE_REPLIES: dict[type, Callable[[Any, Step, Names], View]] = {
    ShareGroupHeartbeatResult: _heartbeat_reply,
    ShareGroupDescribeResult: _describe_reply,
    DescribeShareGroupOffsetsResult: _describe_offsets_reply,
    AlterShareGroupOffsetsResult: _alter_reply,
    DeleteShareGroupOffsetsResult: _delete_reply,
}


# States.


def share_view(shard: Shard, group: ShareGroup, names: Names) -> View:
    """The group as it is now."""
    view: View = {
        "exists": True,
        "type": "share",
        "state": group.group_state.value,
        "epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "details": [_member(group, member_id, names) for member_id in sorted(group.members)],
    }
    known = shard.share_partitions.get(group.group_id)
    if known is not None:
        view["initializing"] = _partitions(_noted(known.initializing), names)
        view["initialized"] = _partitions(_noted(known.initialized), names)
        view["deleting"] = sorted({f"{names[topic_id]}-0" for topic_id in known.deleting})
    return view


def _member(group: ShareGroup, member_id: str, names: Names) -> View:
    member = group.members[member_id]
    return {
        "id": member_id,
        "epoch": member.member_epoch,
        "previous_epoch": member.previous_member_epoch,
        "state": member.state.name,
        "rack": member.rack_id,
        "assigned": _partitions(member.assigned, names),
        "target": _partitions(group.recorded_target(member_id), names),
        "topics": sorted(member.topic_set),
    }


def _noted(topics: Noted) -> Target:
    return {topic_id: topic.partitions for topic_id, topic in topics.items()}


def _partitions(topics: Target, names: Names) -> list[str]:
    return sorted({f"{names[topic_id]}-{number}" for topic_id, numbers in topics.items() for number in numbers})


# What is done elsewhere.


@dataclass
class Elsewhere:
    """The calls that wait for an answer, and all that were made; of a deletion each group's is one."""

    tell: Callable[[Request], None]
    names: Names
    made: list[tuple[int, View]] = field(default_factory=list)
    _pending: list[Callable[[Step], None]] = field(default_factory=list)
    _outcomes: int = 0

    @property
    def is_waited_for(self) -> bool:
        """Whether a call waits."""
        return bool(self._pending)

    def call(self, call: ShareStateCall, at_ms: int) -> None:
        """A call is made."""
        _CALLS[type(call)](self, call, at_ms)

    def answer(self, step: Step) -> None:
        """One of those that wait is answered."""
        if self._pending:
            self._pending.pop(step.get("which", 0) % len(self._pending))(step)

    def _note(self, at_ms: int, view: View, answer: Callable[[Step], None]) -> None:
        self.made.append((at_ms, view))
        self._pending.append(answer)

    def _id(self) -> int:
        self._outcomes += 1
        return 900_000_000 + self._outcomes

    def _told(self, step: Step, topics: Iterable[tuple[UUID, Iterable[int]]]) -> tuple[Any, ...]:
        return tuple(
            (topic, tuple(ShareStateError(n, *self._error(step, topic, n)) for n in numbers)) for topic, numbers in topics
        )

    def _error(self, step: Step, topic: UUID, number: int) -> tuple[ErrorCode, None]:
        return self._error_of(step, f"{self.names[topic]}-{number}"), None

    def _error_of(self, step: Step, name: str) -> ErrorCode:
        return failure_of(step) if name in step.get("some", ()) else ErrorCode.NONE

    def _initialize(self, call: InitializeShareState, at_ms: int) -> None:
        topics = [
            [self.names[topic.topic_id], [[p.partition, p.state_epoch, p.start_offset] for p in topic.partitions]]
            for topic in call.topics
        ]

        def answer(step: Step) -> None:
            outcome: dict[str, Any] = {"error": failure_of(step), "error_message": FAILURE}
            if step.get("outcome") != "fail":
                told = [(topic.topic_id, [start.partition for start in topic.partitions]) for topic in call.topics]
                outcome = {"topics": self._told(step, told)}
            self.tell(ShareStateInitialized(request_id=self._id(), call=call, **outcome))

        self._note(at_ms, {"kind": "initialize", "group": call.group_id, "topics": topics}, answer)

    def _delete(self, call: DeleteShareState, at_ms: int) -> None:
        outcomes: dict[str, GroupStateDeleted] = {}

        def answer(step: Step, group_id: str, topics: Any) -> None:
            failed = step.get("outcome") == "fail"
            told = () if failed else self._told(step, topics)
            outcomes[group_id] = GroupStateDeleted(group_id, told, failure_of(step) if failed else ErrorCode.NONE)
            if len(outcomes) == len(call.groups):
                groups = tuple(outcomes[group.group_id] for group in call.groups)
                self.tell(ShareStateDeleted(request_id=self._id(), call=call, groups=groups))

        for group in call.groups:
            view = {"kind": "delete", "group": group.group_id, "topics": self._numbers(group.topics)}
            self._note(at_ms, view, partial(answer, group_id=group.group_id, topics=group.topics))

    def _numbers(self, topics: Iterable[tuple[UUID, Iterable[int]]]) -> list[Any]:
        return [[self.names[topic], [[number] for number in numbers]] for topic, numbers in topics]

    def _summary(self, call: ReadShareStateSummary, at_ms: int) -> None:
        def answer(step: Step) -> None:
            if step.get("outcome") == "fail":
                self.tell(ShareStateSummaryRead(request_id=self._id(), call=call, error=failure_of(step)))
                return
            kept = 2, step.get("start", 3), 7, step.get("done", 1)
            told = tuple(
                (topic, tuple(ShareStateSummary(number, *kept, *self._error(step, topic, number)) for number in numbers))
                for topic, numbers in call.topics
            )
            self.tell(ShareStateSummaryRead(request_id=self._id(), call=call, topics=told))

        self._note(at_ms, {"kind": "summary", "group": call.group_id, "topics": self._numbers(call.topics)}, answer)

    def _ends(self, call: ListLatestOffsets, at_ms: int) -> None:
        def end_of(partition: TopicPartition, step: Step) -> tuple[TopicPartition, int, ErrorCode]:
            error = failure_of(step) if step.get("outcome") == "fail" else self._error_of(step, str(partition))
            return partition, step.get("end", 40) + partition.partition, error

        def answer(step: Step) -> None:
            offsets = tuple(end_of(partition, step) for partition in call.partitions)
            self.tell(LatestOffsetsListed(request_id=self._id(), call=call, offsets=offsets))

        self._note(at_ms, {"kind": "ends", "partitions": sorted(map(str, call.partitions))}, answer)


_CALLS: dict[type, Callable[[Elsewhere, Any, int], None]] = {
    InitializeShareState: Elsewhere._initialize,
    DeleteShareState: Elsewhere._delete,
    ReadShareStateSummary: Elsewhere._summary,
    ListLatestOffsets: Elsewhere._ends,
}


def failure_of(step: Step) -> ErrorCode:
    """The error that a step says."""
    return ErrorCode[step.get("error", "UNKNOWN_SERVER_ERROR")]
