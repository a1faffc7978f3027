"""Random but lawful traffic for a coordinator with a log: what it appends is what a real one would."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord, Reply
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import (
    DeleteGroups,
    EndTransaction,
    JoinGroup,
    JoinGroupResult,
    JoinProtocol,
    LeaveGroup,
    MemberIdentity,
    OffsetCommit,
    OffsetCommitPartition,
    OffsetDelete,
    Request,
    SyncGroup,
    TxnOffsetCommit,
)
from kgctl.storage.record_log import RecordLog

CONFIG = CoordinatorConfig.from_properties({"group.initial.rebalance.delay.ms": "0", "offsets.retention.minutes": "1"})
SUBSCRIPTION = bytes.fromhex("000000000001000174ffffffff")
ASSIGNMENT = bytes.fromhex("0000000000010001740000000100000000ffffffff")
"""t-0."""

groups = st.sampled_from(["g-0", "g-1", "g-2"])
partitions = st.integers(0, 2)
offsets = st.integers(0, 99)
producers = st.integers(1, 2)
Step = tuple[Any, ...]
steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("commit"), groups, partitions, offsets),
    st.tuples(st.just("commit"), groups, partitions, offsets),
    st.tuples(st.just("txn commit"), groups, partitions, offsets, producers),
    st.tuples(st.just("end"), producers, st.booleans()),
    st.tuples(st.just("delete offsets"), groups, partitions),
    st.tuples(st.just("delete group"), groups),
    st.tuples(st.just("join"), groups, st.sampled_from([None, "instance"])),
    st.tuples(st.just("leave"), groups),
    st.tuples(st.just("pass"), st.sampled_from([1, 5_000, 50_000, 700_000, 90_000_000])),
)


class Traffic:
    """A coordinator whose records go to ``log``."""

    def __init__(self, log: RecordLog, now_ms: int = 1_000_000) -> None:
        self.log = log
        self.now_ms = now_ms
        self._ids = 0
        self._requests = 0
        self.members: dict[str, str] = {}
        self.coordinator = GroupCoordinator(CONFIG, self._new_id, start_ms=self.now_ms)

    def run(self, step: Step) -> None:
        """One step."""
        kind, *rest = step
        getattr(self, "_" + kind.replace(" ", "_"))(*rest)

    def _commit(self, group: str, partition: int, offset: int) -> None:
        self._ask(OffsetCommit, group_id=group, partitions=(_partition(partition, offset),))

    def _txn_commit(self, group: str, partition: int, offset: int, producer: int) -> None:
        self._ask(TxnOffsetCommit, group_id=group, producer_id=producer, partitions=(_partition(partition, offset),))

    def _end(self, producer: int, committed: bool) -> None:
        self._ask(EndTransaction, producer_id=producer, committed=committed)

    def _delete_offsets(self, group: str, partition: int) -> None:
        self._ask(OffsetDelete, group_id=group, partitions=(TopicPartition("t", partition),))

    def _delete_group(self, group: str) -> None:
        self._ask(DeleteGroups, group_ids=(group,))

    def _join(self, group: str, instance: str | None) -> None:
        joined = self._ask(
            JoinGroup,
            api_version=3,
            group_id=group,
            group_instance_id=instance,
            protocols=(JoinProtocol(name="range", metadata=SUBSCRIPTION),),
            session_timeout_ms=10_000,
        )
        if isinstance(joined, JoinGroupResult) and joined.error is ErrorCode.NONE:
            self.members[group] = joined.member_id
            self._ask(
                SyncGroup,
                group_id=group,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=((joined.member_id, ASSIGNMENT),),
            )

    def _leave(self, group: str) -> None:
        self._ask(LeaveGroup, group_id=group, members=(MemberIdentity(member_id=self.members.pop(group, "nobody")),))

    def _pass(self, ms: int) -> None:
        until = self.now_ms + ms
        while (deadline := self.coordinator.next_deadline_ms()) is not None and deadline <= until:
            self.now_ms = max(self.now_ms, deadline)
            self._perform([])
        self.now_ms = until

    def _ask(self, kind: type[Request], **fields: Any) -> object:
        self._requests += 1
        return self._perform(self.coordinator.handle(kind(request_id=self._requests, **fields), self.now_ms))

    def _perform(self, effects: list[Any]) -> object:
        """The answer to the last request, if it is among the effects of now."""
        while (deadline := self.coordinator.next_deadline_ms()) is not None and deadline <= self.now_ms:
            effects = effects + self.coordinator.expire(self.now_ms)
        self.log.append([effect for effect in effects if isinstance(effect, AppendRecord)], self.now_ms)
        return next((e.result for e in effects if isinstance(e, Reply) and e.request_id == self._requests), None)

    def _new_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"


def _partition(partition: int, offset: int) -> OffsetCommitPartition:
    return OffsetCommitPartition(topic="t", partition=partition, offset=offset)
