"""Runs the coordinator through one case and writes down all that is to be seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.effects import AppendRecord
from kgctl.model.coordinator_records import (
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kgctl.model.groups import MetadataImage, TopicMetadata
from kgctl.model.requests import TopicsChanged
from kgctl.serde.coordinator_records import decode_record
from tests.conformance.groups import View, group_view
from tests.conformance.notation import START_MS, assignment_bytes, image, partition, subscription_bytes
from tests.conformance.records import Record, record_of
from tests.conformance.replies import Reply, reply_of
from tests.conformance.requests import Step, join_protocols, request_of
from tests.conformance.share import Elsewhere
from tests.support.coordinator_driver import CoordinatorDriver

Case = dict[str, Any]
GIVEN = -1
"""When what a case starts with is noted: before time 0, at which things may change already."""
_TOPICS_CHANGED = 500_000_000
"""Ids of requests that stand for changes of topics start here."""


T = TypeVar("T")


class World:
    """What was seen, in virtual time: replies by step, records by time and step, and each change of a group or its offsets.

    Records without a step were appended by a timer.
    """

    def __init__(self, case: Case, *, checked: bool = True) -> None:
        self.case = case
        self.replies: dict[int, tuple[int, Reply]] = {}
        self.records: dict[tuple[int, int | None], list[Record]] = {}
        self.appended: dict[tuple[int, int | None], list[AppendRecord]] = {}
        self.groups: dict[str, list[tuple[int, View]]] = {}
        self.offsets: dict[str, list[tuple[int, dict[str, int]]]] = {}
        given = case["given"]
        self._topics: dict[str, Any] = dict(given.get("topics", {}))
        self._ids = list(given.get("ids", []))
        self._step: int | None = None
        self._steps = {step["step"]: step for step in case["steps"]}
        self._image = image(self._topics, version=1)
        self._names: dict[UUID, str] = {}
        self._ever: dict[str, TopicMetadata] = {}
        self._remember_names()
        self.driver = CoordinatorDriver(
            CoordinatorConfig.from_properties({name: str(value) for name, value in given.get("config", {}).items()}),
            self._new_member_id,
            self._image,
            START_MS,
            checked,
        )
        self.driver.on_records = self._see_records
        self.elsewhere = Elsewhere(self.driver.request, self._names)
        self.driver.on_call = lambda call: self.elsewhere.call(call, self.driver.now_ms - START_MS)
        self._load_given(given)
        self._look(GIVEN)

    def run(self) -> None:
        """All steps, then the time until the end."""
        for step in self.case["steps"]:
            self.take(step)
        self.finish()

    def take(self, step: Step) -> None:
        """Let time run to the step and do it."""
        self._steps[step["step"]] = step
        self.driver.run_to(START_MS + step["at"], self._look_now)
        self._step = step["step"]
        self._do(step)
        self._step = None

    def finish(self, end: int | None = None) -> None:
        """Let time run to the end, and note what was answered."""
        self.driver.run_to(START_MS + (self._end() if end is None else end), self._look_now)
        self._look_now()
        self._see_replies()

    def _end(self) -> int:
        times = [step["at"] for step in self.case["steps"]]
        times += [entry.get("at", entry.get("pending_at", 0)) for entry in self.case["expect"]]
        return int(self.case.get("end", max(times, default=0)))

    def _new_member_id(self, _: str) -> str:
        """The id that the step says was drawn, else the next of the case."""
        step = self._steps.get(self._step or 0, {})
        return str(step["new_id"] if "new_id" in step else self._ids.pop(0))

    def _do(self, step: Step) -> None:
        if step["op"] == "reload":
            self.driver.reload()
            self.replies[step["step"]] = (step["at"], {"error": "NONE"})
        elif step["op"] == "persister":
            self.elsewhere.answer(step)
            self.replies[step["step"]] = (step["at"], {"error": "NONE", "message": None})
        elif step["op"] in ("set_topic", "delete_topic"):
            self._change_topic(step)
            self.replies[step["step"]] = (step["at"], {"error": "NONE"})
        else:
            # A member may still name partitions of topics that are gone.
            known = MetadataImage({**self._ever, **self._image.topics}) if step["op"] == "cg_heartbeat" else self._image
            self.driver.request(request_of(step, known))

    def _change_topic(self, step: Step) -> None:
        if step["op"] == "delete_topic":
            self._topics.pop(step["topic"], None)
        else:
            known = self._topics.get(step["topic"], {})
            self._topics[step["topic"]] = {**known, **{key: step[key] for key in ("partitions", "id") if key in step}}
        self._image = image(self._topics, self._image.version + 1)
        self._remember_names()
        self.driver.request(TopicsChanged(request_id=_TOPICS_CHANGED + step["step"], image=self._image))

    def _remember_names(self) -> None:
        self._names.update({topic.topic_id: name for name, topic in self._image.topics.items()})
        self._ever.update(self._image.topics)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that exist."""
        return frozenset(self._image.topics)

    @property
    def topic_names(self) -> Mapping[UUID, str]:
        """The names of all topics there ever were."""
        return self._names

    # What is seen.

    def _look_now(self) -> None:
        self._look(self.driver.now_ms - START_MS)

    def _look(self, now_ms: int) -> None:
        """Note each group and its offsets where they differ from the last time."""
        shard = self.driver.coordinator.shard
        for group_id in sorted({*shard.groups, *self.groups}):
            _note(
                self.groups.setdefault(group_id, []),
                now_ms,
                group_view(self.driver.coordinator, group_id, self._names),
            )
            offsets = self._offsets(group_id)
            if offsets or group_id in self.offsets:
                _note(self.offsets.setdefault(group_id, []), now_ms, offsets)

    def _offsets(self, group_id: str) -> dict[str, int]:
        """As a fetch that requires stable offsets gives them: -1 where a transaction holds a newer one back."""
        if group_id not in self.driver.coordinator.shard.groups:
            return {}
        offsets = self.driver.coordinator.shard.offsets
        return {str(at): -1 if offsets.is_pending(group_id, *at) else value.offset for at, value in offsets.of_group(group_id)}

    def _see_records(self, appended: list[AppendRecord]) -> None:
        """Background work counts to the step that started it: it runs right after it."""
        for entry in appended:
            place = (self.driver.now_ms - START_MS, self._step)
            self.records.setdefault(place, []).append(record_of(entry, self._names))
            self.appended.setdefault(place, []).append(entry)

    def _see_replies(self) -> None:
        for number, (at, result) in self.driver.replies.items():
            if number in self._steps:
                self.replies[number] = (at - START_MS, reply_of(result, self._steps[number], self._names))

    # The world before the first step.

    def _load_given(self, given: Mapping[str, Any]) -> None:
        records = [decode_record(bytes.fromhex(key), bytes.fromhex(value)) for _, key, value in given.get("records", {}).values()]
        group = given.get("group")
        if group is not None:
            records += self._records_of(group)
        if records:
            self.driver.load([AppendRecord(record) for record in records])
        if group is not None:
            loaded = self.driver.coordinator.shard.groups["g"]
            assert isinstance(loaded, ClassicGroup)
            for member in group["members"]:
                loaded.set_protocols(loaded.members[member["id"]], join_protocols(member))

    def _records_of(self, group: Mapping[str, Any]) -> list[CoordinatorRecord]:
        records = [CoordinatorRecord(GroupMetadataKey("g"), _given_value(group))]
        for name, offset in group.get("offsets", {}).items():
            topic, number = partition(name)
            value = OffsetCommitValue(offset, commit_timestamp_ms=START_MS, topic_id=self._image.topics[topic].topic_id)
            records.append(CoordinatorRecord(OffsetCommitKey("g", topic, number), value))
        return records


def _given_value(group: Mapping[str, Any]) -> GroupMetadataValue:
    members = tuple(
        MemberMetadata(
            member_id=member["id"],
            group_instance_id=member.get("instance"),
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout_ms=member.get("rebalance", 30_000),
            session_timeout_ms=member.get("session", 10_000),
            subscription=subscription_bytes(member.get("topics", ["t"])),
            assignment=assignment_bytes(member.get("assignment")),
        )
        for member in group["members"]
    )
    return GroupMetadataValue(
        protocol_type=group.get("protocol_type", "consumer"),
        generation=group["generation"],
        protocol=group.get("protocol"),
        leader=group["leader"],
        current_state_timestamp_ms=START_MS + group.get("since", 0),
        members=members,
    )


def _note(changes: list[tuple[int, T]], now_ms: int, value: T) -> None:
    """Add the value unless it is the last one; of several at one instant the last one counts."""
    if changes and changes[-1][0] == now_ms:
        changes.pop()
    if not changes or changes[-1][1] != value:
        changes.append((now_ms, value))
