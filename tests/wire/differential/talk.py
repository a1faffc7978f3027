"""Keys of APIs, and what several conversations say."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from google_crc32c import value as crc32c

from kgctl.model.groups import ConsumerAssignment, ConsumerSubscription
from kgctl.serde.consumer_protocol import encode_assignment, encode_subscription
from kgctl.serde.record_batch import Record, build_batch
from tests.support.patience import SESSION_MS
from tests.wire.differential.probe import Probe

Conversation = Callable[[Probe, int, str], None]
"""(probe, version, a name for topics and groups of this conversation's own)."""

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 0, 1, 2, 3, 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 11, 12, 13, 14, 15, 16
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID, OFFSET_FOR_LEADER_EPOCH = 18, 19, 20, 21, 22, 23
CREATE_PARTITIONS, DELETE_GROUPS, OFFSET_DELETE, DESCRIBE_CLUSTER = 37, 42, 47, 60
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES = 32, 33, 44, 74
ALTER_LOG_DIRS, DESCRIBE_LOG_DIRS, ELECT_LEADERS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 34, 35, 43, 45, 46
DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS, DESCRIBE_QUORUM, DESCRIBE_TOPIC_PARTITIONS = 48, 49, 55, 75
DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS, DESCRIBE_SCRAM, ALTER_SCRAM = 29, 30, 31, 50, 51
ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 24, 25, 26, 28
DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 65, 66
SHARE_GROUP_HEARTBEAT, SHARE_GROUP_DESCRIBE, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 77, 78, 79
DESCRIBE_SHARE_GROUP_OFFSETS, ALTER_SHARE_GROUP_OFFSETS, DELETE_SHARE_GROUP_OFFSETS = 90, 91, 92
STREAMS_GROUP_HEARTBEAT, STREAMS_GROUP_DESCRIBE = 88, 89

SUBSCRIPTION = encode_subscription(ConsumerSubscription(("nosuch",)))
ASSIGNMENT = encode_assignment(ConsumerAssignment())
NO_TOPIC_ID = "11111111-2222-3333-4444-555555555555"


def create_topic(probe: Probe, name: str, partitions: int = 2, **settings: str) -> Any:
    """A topic of the conversation's own; its id. It keeps its records, however old their timestamps say that they are."""
    configs = [{"name": key, "value": value} for key, value in {"retention.ms": "-1", **settings}.items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": configs}
    probe.call(CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 10_000}, note=False)
    body = probe.until(METADATA, 12, {"topics": [{"name": name}]}, lambda body: body.topics[0].error_code == 0)
    every = [{"name": name, "partitions": [{"partition_index": index, "timestamp": -1} for index in range(partitions)]}]
    values = {"replica_id": -1, "isolation_level": 0, "topics": every}
    probe.until(LIST_OFFSETS, 7, values, lambda body: all(entry.error_code == 0 for entry in body.topics[0].partitions))
    return body.topics[0].topic_id


def joined(probe: Probe, group: str, version: int = 7, **settings: Any) -> tuple[str, int]:
    """A member that is alone in its group and stable; (member id, generation)."""
    body = probe.call(JOIN_GROUP, version, join_values(group, **settings), note=False)
    if int(body.error_code) == 79:
        body = probe.call(JOIN_GROUP, version, join_values(group, member_id=body.member_id, **settings), note=False)
    probe.call(SYNC_GROUP, 3, sync_values(group, body.member_id, body.generation_id), note=False)
    return body.member_id, body.generation_id


def join_values(group: str, **settings: Any) -> dict[str, Any]:
    protocols = settings.pop("protocols", ("range",))
    return {
        "group_id": group,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": 60_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": protocol, "metadata": SUBSCRIPTION} for protocol in protocols],
        **settings,
    }


def sync_values(group: str, member_id: str, generation_id: int, **settings: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "member_id": member_id,
        "generation_id": generation_id,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": member_id, "assignment": ASSIGNMENT}],
        **settings,
    }


def commit_values(
    name: str, topic_id: Any, *, partition: int = 0, offset: int = 5, metadata: str | None = "m", **settings: Any
) -> dict[str, Any]:
    entry = {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_metadata": metadata,
        "committed_leader_epoch": 2,
    }
    topics = [{"name": name, "topic_id": topic_id, "partitions": [entry]}]
    return {"group_id": name, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics, **settings}


def fetch_all(probe: Probe, version: int, group: str) -> None:
    values = {"group_id": group, "topics": None, "groups": [{"group_id": group, "topics": None}]}
    probe.call(OFFSET_FETCH, version, values)


def batch(count: int = 2, *, timestamp_ms: int = 1_700_000_000_000, **settings: Any) -> bytes:
    """A record batch; every timestamp is one above the one before."""
    return build_batch([Record(number, timestamp_ms + number, b"k", b"v" * 10) for number in range(count)], **settings)


def produce(probe: Probe, version: int, topic: str, topic_id: Any, records: bytes | None, **settings: Any) -> Any:
    entry = {"index": settings.pop("partition", 0), "records": records}
    values = {
        "acks": -1,
        "timeout_ms": 10_000,
        **settings,
        "topic_data": [{"name": topic, "topic_id": topic_id, "partition_data": [entry]}],
    }
    return probe.call(PRODUCE, version, values)


def resealed(data: bytes, position: int, replacement: bytes) -> bytes:
    """A batch with other bytes at a position, its checksum made right again."""
    changed = data[:position] + replacement + data[position + len(replacement) :]
    return changed[:17] + struct.pack(">I", crc32c(changed[21:])) + changed[21:]
