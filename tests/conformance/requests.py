"""A step of a case becomes a request: one function for each operation, in `OPERATIONS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgctl.model.groups import ZERO_UUID, MetadataImage
from kgctl.model.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    DeleteGroups,
    DescribeGroups,
    EndTransaction,
    Heartbeat,
    JoinGroup,
    JoinProtocol,
    LeaveGroup,
    ListGroups,
    MemberIdentity,
    OffsetCommit,
    OffsetCommitPartition,
    OffsetDelete,
    OffsetFetch,
    Request,
    SyncGroup,
    TxnOffsetCommit,
    UpdateGroupConfig,
)
from tests.conformance.notation import (
    assignment_bytes,
    by_topic_id,
    partition,
    partitions,
    subscription_bytes,
    text,
)
from tests.conformance.share import SHARE_OPERATIONS
from tests.conformance.streams import STREAMS_OPERATIONS

Step = dict[str, Any]


def join_protocols(step: Step) -> tuple[JoinProtocol, ...]:
    """All with the same metadata."""
    metadata = (
        bytes.fromhex(step["metadata_hex"])
        if "metadata_hex" in step
        else subscription_bytes(step.get("topics", ["t"]), step.get("owned", []))
    )
    return tuple(JoinProtocol(name=name, metadata=metadata) for name in step.get("protocols", ["range"]))


def _join(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    return JoinGroup(
        **common,
        member_id=step["member"],
        group_instance_id=step.get("instance"),
        protocol_type=step.get("protocol_type", "consumer"),
        protocols=join_protocols(step),
        session_timeout_ms=step.get("session", 10_000),
        rebalance_timeout_ms=step.get("rebalance", 30_000),
    )


def _sync(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    return SyncGroup(
        **common,
        member_id=step["member"],
        group_instance_id=step.get("instance"),
        generation_id=step["generation"],
        protocol_type=step.get("protocol_type"),
        protocol_name=step.get("protocol"),
        assignments=tuple(
            (member, bytes.fromhex(owned) if isinstance(owned, str) else assignment_bytes(owned))
            for member, owned in step.get("assignments", {}).items()
        ),
    )


def _heartbeat(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    return Heartbeat(**common, member_id=step["member"], group_instance_id=step.get("instance"), generation_id=step["generation"])


def _leave(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    members = step.get("members", [{"member": step.get("member", "")}])
    return LeaveGroup(
        **common,
        members=tuple(MemberIdentity(member_id=m.get("member", ""), group_instance_id=m.get("instance")) for m in members),
    )


def _cg_heartbeat(step: Step, common: dict[str, Any], image: MetadataImage) -> Request:
    topics, owned = step.get("topics"), step.get("owned")
    return ConsumerGroupHeartbeat(
        **common,
        member_id=step["member"],
        member_epoch=step["epoch"],
        instance_id=step.get("instance"),
        rack_id=step.get("rack"),
        rebalance_timeout_ms=step.get("rebalance", -1),
        subscribed_topic_names=None if topics is None else tuple(topics),
        subscribed_topic_regex=step.get("regex"),
        server_assignor=step.get("assignor"),
        topic_partitions=None if owned is None else by_topic_id(owned, image),
    )


def _offset_commit(step: Step, common: dict[str, Any], image: MetadataImage) -> Request:
    return OffsetCommit(
        **common,
        member_id=step.get("member", ""),
        group_instance_id=step.get("instance"),
        generation_id=step["generation"],
        retention_ms=step.get("retention_ms"),
        partitions=_committed(step, image),
    )


def _txn_offset_commit(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    return TxnOffsetCommit(
        **common,
        producer_id=step["producer_id"],
        member_id=step.get("member", ""),
        group_instance_id=step.get("instance"),
        generation_id=step.get("generation", -1),
        partitions=_committed(step, MetadataImage()),
    )


def _committed(step: Step, image: MetadataImage) -> tuple[OffsetCommitPartition, ...]:
    """The topic ids are those of the image; a transactional commit has none."""
    metadata = step.get("metadata", {})
    result = []
    for name, offset in step["offsets"].items():
        topic, number = partition(name)
        known = image.topics.get(topic)
        result.append(
            OffsetCommitPartition(
                topic=topic,
                partition=number,
                offset=offset,
                metadata=text(metadata.get(name, "")),
                topic_id=known.topic_id if known else ZERO_UUID,
            )
        )
    return tuple(result)


def _end_txn(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    del common["group_id"]
    return EndTransaction(**common, producer_id=step["producer_id"], committed=step["result"] == "commit")


def _offset_fetch(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    topics = step.get("topics")
    return OffsetFetch(
        **common,
        partitions=None if topics is None else partitions(topics),
        member_id=step.get("member"),
        member_epoch=step.get("epoch", -1),
        require_stable=step.get("require_stable", False),
    )


def _offset_delete(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    return OffsetDelete(**common, partitions=partitions(step["topics"]))


def _delete_groups(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    del common["group_id"]
    return DeleteGroups(**common, group_ids=tuple(step["groups"]))


def _describe_groups(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    del common["group_id"]
    return DescribeGroups(**common, group_ids=tuple(step["groups"]))


def _describe_consumer_groups(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    del common["group_id"]
    return ConsumerGroupDescribe(**common, group_ids=tuple(step["groups"]))


def _list_groups(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    del common["group_id"]
    return ListGroups(**common, states_filter=tuple(step.get("states", [])), types_filter=tuple(step.get("types", [])))


def _group_config(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    return UpdateGroupConfig(**common, config={name: str(value) for name, value in step["config"].items()})


OPERATIONS: dict[str, tuple[int, Callable[[Step, dict[str, Any], MetadataImage], Request]]] = {
    "join": (9, _join),
    "sync": (5, _sync),
    "heartbeat": (4, _heartbeat),
    "leave": (5, _leave),
    "cg_heartbeat": (1, _cg_heartbeat),
    "offset_commit": (9, _offset_commit),
    "txn_offset_commit": (3, _txn_offset_commit),
    "end_txn": (0, _end_txn),
    "offset_fetch": (9, _offset_fetch),
    "offset_delete": (0, _offset_delete),
    "delete_groups": (2, _delete_groups),
    "describe_groups": (5, _describe_groups),
    "describe_consumer_groups": (1, _describe_consumer_groups),
    "list_groups": (5, _list_groups),
    "group_config": (0, _group_config),
    **SHARE_OPERATIONS,
    **STREAMS_OPERATIONS,
}
"""Operation -> (the version it has unless the step says another, how its request is made)."""


def request_of(step: Step, image: MetadataImage) -> Request:
    """The request of a step; its id is the step's number."""
    default_version, make = OPERATIONS[step["op"]]
    common = {
        "request_id": step["step"],
        "api_version": step.get("v", default_version),
        "client_id": "c",
        "group_id": step.get("group", "g"),
    }
    return make(step, common, image)
