"""What users ask for who may do some of it: every API, about topics, groups, ids of transactions and the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from kgctl.server.acls import ANY, Acl, parse_acl
from tests.support.wire.raw_client import RawClient
from tests.wire.differential.about_streams_groups import App, of_streams_groups, reading
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    ALTER_CLIENT_QUOTAS,
    ALTER_CONFIGS,
    ALTER_LOG_DIRS,
    ALTER_REASSIGNMENTS,
    ALTER_SCRAM,
    ALTER_SHARE_GROUP_OFFSETS,
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DELETE_SHARE_GROUP_OFFSETS,
    DELETE_TOPICS,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_QUORUM,
    DESCRIBE_SCRAM,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    DESCRIBE_TOPIC_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    ELECT_LEADERS,
    END_TXN,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_CONFIG_RESOURCES,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    NO_TOPIC_ID,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    SHARE_GROUP_DESCRIBE,
    SHARE_GROUP_HEARTBEAT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
    batch,
    commit_values,
    join_values,
    resealed,
    sync_values,
)

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
PRODUCER = {"producer_id": 4_000, "producer_epoch": 3}

Values = dict[str, Any]
_OF_X = ("User:x", "*")


class UserProbe(Probe):
    """A probe that logs in first, with SASL PLAIN."""

    def __init__(self, bootstrap: str, user: str, password: str) -> None:
        super().__init__(bootstrap)
        self._token = f"\0{user}\0{password}".encode()

    def _connection(self) -> RawClient:
        if self._raw is None:
            raw = super()._connection()
            raw.call(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
            answer = raw.call(SASL_AUTHENTICATE, 2, {"auth_bytes": self._token})
            assert answer.error_code == 0, answer
        return super()._connection()


def put(probe: Probe, rules: Sequence[str]) -> None:
    """Make these the only rules, and wait until the broker knows them."""
    probe.call(DELETE_ACLS, 3, {"filters": [_filter()]}, note=False)
    acls = [acl for text in rules for acl in parse_acl(text)]
    body = probe.call(CREATE_ACLS, 3, {"creations": [_creation(acl) for acl in acls]}, note=False)
    assert all(each.error_code == 0 for each in body.results), body
    probe.until(DESCRIBE_ACLS, 3, _filter(), lambda body: sum(len(each.acls) for each in body.resources) == len(set(acls)))


def _creation(acl: Acl) -> Values:
    values = acl._asdict()
    return {
        **values,
        "resource_type": values["resource"],
        "resource_name": values["name"],
        "resource_pattern_type": values["pattern"],
        "permission_type": values["permission"],
    }


def _filter(**settings: Any) -> Values:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **settings,
    }


def everything(name: str, topic_id: UUID, version: Callable[[int], int]) -> Iterator[tuple[int, Values]]:
    """Each API with what is asked of it: first what changes nothing."""
    for about in (
        of_topics,
        of_groups,
        of_share_groups,
        of_streams_groups,
        of_transactions,
        of_the_cluster,
        that_change,
        that_comes_when_asked_for,
    ):
        yield from about(name, topic_id, version)


def of_topics(name: str, topic_id: UUID, version: Callable[[int], int]) -> Iterator[tuple[int, Values]]:
    known, unknown = (name, topic_id), (f"{name}-no", UUID(NO_TOPIC_ID))
    operations = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
    if version(METADATA) >= 4:
        names = [{"name": each, "topic_id": None} for each, _ in (known, unknown)]
        yield METADATA, {"topics": names, **operations, "allow_auto_topic_creation": False}
    if version(METADATA) >= 12:
        for _, id_ in (known, unknown):
            yield METADATA, {"topics": [{"name": None, "topic_id": id_}], **operations}
    for named in ([name], [name, f"{name}-no"], []):
        yield (
            DESCRIBE_TOPIC_PARTITIONS,
            {"topics": [{"name": each} for each in named], "response_partition_limit": 2_000, "cursor": None},
        )
    for topic, id_ in (known, unknown):
        entry = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}
        where = {"topic": topic, "topic_id": id_, "partitions": [entry]}
        yield FETCH, {"max_wait_ms": 0, "min_bytes": 0, "topics": [where], "forgotten_topics_data": []}
        for acks in (-1, 7):
            data = [{"name": topic, "topic_id": id_, "partition_data": [{"index": 0, "records": batch()}]}]
            yield PRODUCE, {"acks": acks, "timeout_ms": 10_000, "transactional_id": None, "topic_data": data}
        times = [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1, "max_num_offsets": 1}]
        yield LIST_OFFSETS, {"replica_id": -1, "isolation_level": 0, "topics": [{"name": topic, "partitions": times}]}
        epochs = [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]
        yield OFFSET_FOR_LEADER_EPOCH, {"replica_id": -1, "topics": [{"topic": topic, "partitions": epochs}]}


def of_groups(name: str, topic_id: UUID, version: Callable[[int], int]) -> Iterator[tuple[int, Values]]:
    kinds = (0, 1) if version(FIND_COORDINATOR) else (0,)
    for kind in kinds:
        yield FIND_COORDINATOR, {"key": name, "key_type": kind, "coordinator_keys": [name, f"{name}-no"]}
    yield JOIN_GROUP, {**join_values(name), "session_timeout_ms": 1}
    yield SYNC_GROUP, sync_values(name, "nobody", 1)
    yield HEARTBEAT, {"group_id": name, "generation_id": 1, "member_id": "nobody", "group_instance_id": None}
    member = {"member_id": "nobody", "group_instance_id": None}
    yield LEAVE_GROUP, {"group_id": name, "member_id": "nobody", "members": [member]}
    beat = {"member_id": "m" * 22, "member_epoch": 9, "rebalance_timeout_ms": 60_000, "topic_partitions": []}
    for subscribed in (None, [name], [name, f"{name}-no"]):
        yield CONSUMER_GROUP_HEARTBEAT, {"group_id": f"{name}-c", **beat, "subscribed_topic_names": subscribed}
    for group in (name, f"{name}-c", f"{name}-no"):
        yield DESCRIBE_GROUPS, {"groups": [group], "include_authorized_operations": True}
        yield CONSUMER_GROUP_DESCRIBE, {"group_ids": [group], "include_authorized_operations": True}
    yield LIST_GROUPS, {"states_filter": [], "types_filter": []}
    asked = [
        {"name": f"{name}-no", "topic_id": UUID(NO_TOPIC_ID), "partition_indexes": [0]},
        {"name": name, "topic_id": topic_id, "partition_indexes": [0, 1]},
    ]
    for topics in (asked, None) if version(OFFSET_FETCH) >= 2 else (asked,):
        yield OFFSET_FETCH, {"group_id": name, "topics": topics, "groups": [{"group_id": name, "topics": topics}]}
    for topic, id_ in ((name, topic_id), (f"{name}-no", UUID(NO_TOPIC_ID))):
        yield OFFSET_COMMIT, {**commit_values(topic, id_), "group_id": name}
    yield OFFSET_DELETE, {"group_id": name, "topics": [{"name": name, "partitions": [{"partition_index": 1}]}]}


def of_share_groups(name: str, topic_id: UUID, _version: Callable[[int], int]) -> Iterator[tuple[int, Values]]:
    """What a member that never joined asks, and partitions that do not exist: nothing depends on how far a broker is."""
    member = str(uuid5(NAMESPACE_URL, name))
    for group in (f"{name}-s", f"{name}-no"):
        for subscribed in (None, [name], [name, f"{name}-no"]):
            values = {"group_id": group, "member_id": member, "member_epoch": 9, "rack_id": None}
            yield SHARE_GROUP_HEARTBEAT, {**values, "subscribed_topic_names": subscribed}
        yield SHARE_GROUP_DESCRIBE, {"group_ids": [group, name], "include_authorized_operations": True}
        for epoch, id_ in ((0, topic_id), (0, UUID(NO_TOPIC_ID)), (-1, topic_id), (7, topic_id)):
            who = {"group_id": group, "member_id": member, "share_session_epoch": epoch, "is_renew_ack": False}
            batches = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}] if epoch else []
            asked = [{"topic_id": id_, "partitions": [{"partition_index": 9, "acknowledgement_batches": batches}]}]
            limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 100, "max_records": 1, "batch_size": 1}
            yield SHARE_FETCH, {**who, **limits, "share_acquire_mode": 0, "topics": asked, "forgotten_topics_data": []}
            yield SHARE_ACKNOWLEDGE, {**who, "topics": asked}
        topics = [{"topic_name": each, "partitions": [0]} for each in (name, f"{name}-no")]
        for wanted in (topics, None):
            yield DESCRIBE_SHARE_GROUP_OFFSETS, {"groups": [{"group_id": group, "topics": wanted}]}
        altered = [{"topic_name": f"{name}-no", "partitions": [{"partition_index": 0, "start_offset": 0}]}]
        yield ALTER_SHARE_GROUP_OFFSETS, {"group_id": group, "topics": altered}
        yield DELETE_SHARE_GROUP_OFFSETS, {"group_id": group, "topics": [{"topic_name": each["topic_name"]} for each in topics]}


def of_transactions(name: str, topic_id: UUID, _version: Callable[[int], int]) -> Iterator[tuple[int, Values]]:
    for transactional_id in (None, name):
        yield INIT_PRODUCER_ID, {"transactional_id": transactional_id, "transaction_timeout_ms": -5, **_no_producer()}
    of = {"transactional_id": name, **PRODUCER}
    old = {f"v3_and_below_{key}": value for key, value in of.items()}
    topics = [{"name": each, "partitions": [0]} for each in (name, f"{name}-no")]
    entry = {**of, "verify_only": False, "topics": topics}
    yield ADD_PARTITIONS_TO_TXN, {**old, "v3_and_below_topics": topics, "transactions": [entry]}
    yield ADD_PARTITIONS_TO_TXN, {**old, "v3_and_below_topics": topics[:1], "transactions": [{**entry, "topics": topics[:1]}]}
    yield ADD_OFFSETS_TO_TXN, {**of, "group_id": name}
    yield END_TXN, {**of, "committed": True}
    committed = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "", "committed_leader_epoch": -1}
    for named in ([name], [name, f"{name}-no"]):
        commits = [{"name": each, "partitions": [committed]} for each in named]
        yield TXN_OFFSET_COMMIT, {**of, "group_id": name, "member_id": "", "generation_id": -1, "topics": commits}
    records = resealed(batch(producer_id=4_000, producer_epoch=3, is_transactional=True), 53, bytes(4))
    data = [{"name": name, "topic_id": topic_id, "partition_data": [{"index": 0, "records": records}]}]
    for transactional_id in (None, name):
        yield PRODUCE, {"acks": -1, "timeout_ms": 9_000, "transactional_id": transactional_id, "topic_data": data}
    yield DESCRIBE_TRANSACTIONS, {"transactional_ids": [name, f"{name}-no"]}
    yield LIST_TRANSACTIONS, {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}


def _no_producer() -> Values:
    return {"producer_id": -1, "producer_epoch": -1}


def of_the_cluster(name: str, _topic_id: UUID, version: Callable[[int], int]) -> Iterator[tuple[int, Values]]:
    yield DESCRIBE_CLUSTER, {"include_cluster_authorized_operations": True, "endpoint_type": 1}
    for kind, resource in ((TOPIC, name), (TOPIC, f"{name}-no"), (GROUP, name), (BROKER, "1"), (BROKER, "x"), (METRICS, name)):
        asked = {"resource_type": kind, "resource_name": resource, "configuration_keys": ["retention.ms", "message.max.bytes"]}
        yield DESCRIBE_CONFIGS, {"resources": [asked], "include_synonyms": False, "include_documentation": False}
    yield LIST_CONFIG_RESOURCES, {"resource_types": [METRICS]}
    yield DESCRIBE_LOG_DIRS, {"topics": [{"topic": f"{name}-no", "partitions": [0]}]}
    yield DESCRIBE_QUORUM, {"topics": [{"topic_name": name, "partitions": [{"partition_index": 0}]}]}
    yield LIST_REASSIGNMENTS, {"timeout_ms": 1_000, "topics": None}
    yield DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False}
    yield DESCRIBE_SCRAM, {"users": [{"name": "nobody"}, {"name": "no-one"}]}
    yield DESCRIBE_ACLS, _filter(principal_filter="User:nobody")
    if version(DESCRIBE_ACLS) > 1:
        yield DESCRIBE_ACLS, _filter(operation=14, resource_type_filter=7)


def that_change(name: str, topic_id: UUID, version: Callable[[int], int]) -> Iterator[tuple[int, Values]]:
    new = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    made = {"topics": [{"name": f"{name}-new", **new}, {"name": name, **new}], "timeout_ms": 9_000}
    yield CREATE_TOPICS, {**made, "validate_only": True}
    grown = [{"name": each, "count": 3, "assignments": None} for each in (name, f"{name}-no")]
    yield CREATE_PARTITIONS, {"topics": grown, "timeout_ms": 9_000, "validate_only": True}
    if version(DELETE_TOPICS) >= 6:
        yield DELETE_TOPICS, {"topics": [{"name": None, "topic_id": UUID(NO_TOPIC_ID)}], "timeout_ms": 9_000}
    gone = [{"name": f"{name}-no", "topic_id": None}]
    yield DELETE_TOPICS, {"topics": gone, "topic_names": [f"{name}-no"], "timeout_ms": 9_000}
    for topic in (name, f"{name}-no"):
        entries = [{"partition_index": 0, "offset": 0}]
        yield DELETE_RECORDS, {"topics": [{"name": topic, "partitions": entries}], "timeout_ms": 9_000}
    yield from _alterations(name)
    yield ALTER_LOG_DIRS, {"dirs": [{"path": "/nowhere", "topics": [{"name": name, "partitions": [0, 1]}]}]}
    asked = {"topic": f"{name}-no", "partitions": [0]}
    yield ELECT_LEADERS, {"election_type": 0, "topic_partitions": [asked], "timeout_ms": 9_000}
    moved = [{"name": f"{name}-no", "partitions": [{"partition_index": 0, "replicas": [1]}]}]
    yield ALTER_REASSIGNMENTS, {"timeout_ms": 9_000, "topics": moved, "allow_replication_factor_change": True}
    entity = {"entity": [{"entity_type": "user", "entity_name": "x"}], "ops": [{"key": "no", "value": 1.0, "remove": False}]}
    yield ALTER_CLIENT_QUOTAS, {"entries": [entity], "validate_only": True}
    yield ALTER_SCRAM, {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []}
    yield DELETE_GROUPS, {"groups_names": [f"{name}-no", f"{name}-no2"]}
    wrong = [_creation(Acl(4, "other", 3, *_OF_X, 3, 3)), _creation(Acl(2, "", 3, *_OF_X, 3, 3))]
    yield CREATE_ACLS, {"creations": wrong}
    for rule in (Acl(1, "t", 3, *_OF_X, 3, 3), *(Acl(2, "t", *each) for each in ((1, *_OF_X, 3, 3), (2, *_OF_X, 3, 3)))):
        yield CREATE_ACLS, {"creations": [_creation(rule)]}
    for each in ((1, 3), (3, 1)):
        yield CREATE_ACLS, {"creations": [_creation(Acl(2, "t", 3, *_OF_X, *each))]}
    yield DELETE_ACLS, {"filters": [_filter(principal_filter="User:nobody")] * 2}
    yield CREATE_ACLS, {"creations": [_creation(Acl(2, "t", 3, *_OF_X, 3, 3)), _creation(Acl(2, "t", 3, *_OF_X, 1, 3))]}
    yield CREATE_ACLS, {"creations": [_creation(Acl(2, "t", 3, *_OF_X, 99, 3))]}
    yield CREATE_ACLS, {"creations": [_creation(Acl(2, f"{name}-new", 3, *_OF_X, 3, 3))]}
    yield DESCRIBE_ACLS, _filter(operation=99)
    yield DELETE_ACLS, {"filters": [_filter(pattern_type_filter=99)]}
    if version(DELETE_TOPICS) >= 6:
        yield DELETE_TOPICS, {"topics": [{"name": None, "topic_id": topic_id}], "timeout_ms": 9_000}
    else:
        yield DELETE_TOPICS, {"topic_names": [name], "timeout_ms": 9_000}


def that_comes_when_asked_for(name: str, _topic_id: UUID, _version: Callable[[int], int]) -> Iterator[tuple[int, Values]]:
    names = [{"name": each, "topic_id": None} for each in (f"{name}-automatic", "not a topic's name")]
    yield METADATA, {"topics": names, "allow_auto_topic_creation": True}


def _alterations(name: str) -> Iterator[tuple[int, Values]]:
    for kind, resource in ((TOPIC, name), (GROUP, name), (BROKER, "1"), (BROKER, "x"), (LOGGER, "1"), (METRICS, name)):
        key = {GROUP: "consumer.session.timeout.ms", BROKER: "message.max.bytes", METRICS: "interval.ms"}.get(kind, "no.such")
        entry = {"name": key, "value": "45000", "config_operation": 0}
        asked = {"resource_type": kind, "resource_name": resource, "configs": [entry]}
        yield INCREMENTAL_ALTER_CONFIGS, {"resources": [asked], "validate_only": True}
        if kind not in (LOGGER, METRICS, GROUP):
            yield ALTER_CONFIGS, {"resources": [asked], "validate_only": True}


def prepare(probe: Probe, name: str, create: Callable[[Probe, str], UUID]) -> UUID:
    """A topic, a classic group with commits, a consumer and a streams group, each with a member; the topic's id."""
    topic_id = create(probe, name)
    for kind in (0, 1):
        keys = {"key_type": kind, "coordinator_keys": [name]}
        probe.until(FIND_COORDINATOR, 4, keys, lambda body: body.coordinators[0].error_code == 0)
    probe.until(OFFSET_COMMIT, 9, commit_values(name, topic_id), lambda body: body.topics[0].partitions[0].error_code == 0)
    begin = {"transactional_id": f"{name}-other", "transaction_timeout_ms": 60_000, **_no_producer()}
    probe.until(INIT_PRODUCER_ID, 5, begin, lambda body: body.error_code == 0)
    beat = {"member_id": "c" * 22, "member_epoch": 0, "rebalance_timeout_ms": 300_000, "topic_partitions": []}
    probe.call(CONSUMER_GROUP_HEARTBEAT, 1, {"group_id": f"{name}-c", **beat, "subscribed_topic_names": [name]}, note=False)
    App(probe, f"{name}-u").beat(topology=reading(name))
    return topic_id


RULES: Mapping[str, Sequence[str]] = {
    "nothing": [],
    "describe": ["topic:{}* describe", "group:{}* describe", "transactional-id:{} describe"],
    "describe the cluster": ["cluster describe"],
    "read": ["topic:{} read", "group:{}* read"],
    "read groups": ["group:* read,delete"],
    "run streams": ["topic:{}* read", "group:{}* read", "topic:{}-n* create"],
    "write": ["topic:{} write", "transactional-id:{}* write"],
    "write in transactions of a group": ["transactional-id:{} write", "group:{} read", "User:* topic:{}* all"],
    "denied": ["topic:* all", "deny topic:{} write,describe", "group:* all", "deny User:* group:{}* read"],
    "elsewhere": ["alice@10.9.8.7 topic:* all", "bob group:* all", "deny alice@10.9.8.7 cluster all"],
    "alter": ["cluster alter,describe", "topic:{}* alter,create,delete"],
    "create": ["cluster create,idempotent-write"],
    "create, unseen": ["topic:{}-n* create", "topic:{} delete"],
    "configs": ["topic:* alter-configs", "cluster describe-configs", "group:{} describe-configs"],
    "alter configs": ["cluster alter-configs,delete", "group:* alter-configs"],
    "everything": ["User:* topic:rights-* all", "group:* all", "cluster all", "transactional-id:{}* all"],
}
"""What may be done, by alice where nobody else is named; ``{}`` stands for the name of topic, group and transactional id."""


def rules_of(subject: str, name: str) -> list[str]:
    """The rules of a subject in the form of `parse_acl`."""
    found = []
    for rule in RULES[subject]:
        words = rule.format(name).split()
        resource, operations = words[-2:]
        permission = "deny" if words[0] == "deny" else "allow"
        who = words[-3] if len(words) > 2 and words[-3] != "deny" else "alice"
        found.append(f"{permission} {who} {operations} {resource}")
    return found
