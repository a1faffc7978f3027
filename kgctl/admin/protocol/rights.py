"""What brokers hide from this user: asked with names that nobody has (`kgctl.admin.rights`)."""

from __future__ import annotations

from kgctl.admin.rights import NO_SUCH_NAME, Sight
from kgctl.model.error_codes import ErrorCode
from kgctl.wire.apis import DESCRIBE_CLUSTER, DESCRIBE_GROUPS, METADATA
from kgctl.wire.cluster import Cluster
from kgctl.wire.connection import Connection, Request
from kgctl.wire.deadline import Deadline

_DESCRIBE = 8  # AclOperation's number, and so its bit in a set of authorised operations


def sight(cluster: Cluster, deadline: Deadline, user: str | None) -> Sight:
    """Both questions in one go, at any broker.

    DescribeGroups looks at the right before anything else (KafkaApis#handleDescribeGroupsRequest), and Metadata answers
    TOPIC_AUTHORIZATION_FAILED for a topic that may not be described, there or not. ListGroups has all groups also for whoever may
    describe the cluster.
    """
    connection = cluster.any_broker(deadline)
    groups, topics = connection.call_all(
        [
            Request(DESCRIBE_GROUPS, connection.version(DESCRIBE_GROUPS), {"groups": [NO_SUCH_NAME]}),
            Request(
                METADATA,
                connection.version(METADATA),
                {"topics": [{"name": NO_SUCH_NAME}], "allow_auto_topic_creation": False},
            ),
        ],
        deadline,
    )
    is_denied = any(group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED for group in groups.groups)
    return Sight(
        all_groups=not is_denied or _may_describe_cluster(connection, deadline),
        all_topics=not any(topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED for topic in topics.topics),
        user=user,
    )


def _may_describe_cluster(connection: Connection, deadline: Deadline) -> bool:
    if not connection.versions.has(DESCRIBE_CLUSTER):
        return False
    answer = connection.call(DESCRIBE_CLUSTER, {"include_cluster_authorized_operations": True}, deadline)
    operations: int = answer.cluster_authorized_operations
    return operations >= 0 and bool(operations >> _DESCRIBE & 1)
