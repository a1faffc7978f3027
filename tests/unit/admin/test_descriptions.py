"""Streams groups at their coordinator's word: topologies that are not there, and tasks whose topics have fewer partitions."""

from __future__ import annotations

from typing import Any

from kgctl.admin.groups import describe_groups
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType
from kgctl.model.streams import Topology, is_inferred_internal
from kgctl.wire import Deadline
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    METADATA,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
)
from tests.support.fake_broker import FakeBroker, metadata

TASKS = {"active_tasks": [{"subtopology_id": "0", "partitions": [2, 0]}], "standby_tasks": [], "warmup_tasks": []}
MEMBER = {"member_id": "m", "process_id": "p", "assignment": TASKS, "target_assignment": TASKS, "is_classic": False}
SUBTOPOLOGY = {"subtopology_id": "0", "source_topics": ["wide", "narrow"]}


def answering(broker: FakeBroker, topology: Any) -> None:
    missing = {"groups": [{"group_id": "app", "error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": "not of mine"}]}
    group = {"group_id": "app", "group_state": "NotReady", "topology": topology, "members": [MEMBER]}
    broker.handlers |= dict.fromkeys((DESCRIBE_GROUPS, CONSUMER_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE), lambda _: missing)
    broker.handlers |= {
        STREAMS_GROUP_DESCRIBE: lambda _: {"groups": [group]},
        LIST_GROUPS: lambda _: {"groups": []},
        METADATA: lambda _: metadata([broker], {"wide": dict.fromkeys(range(3), 1), "narrow": {0: 1}}),
    }


def test_a_task_reads_what_its_topics_have(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    answering(broker, {"epoch": 1, "subtopologies": [SUBTOPOLOGY]})

    group = describe_groups(cluster, ["app"], deadline).values["app"]

    assert (group.type, group.state) == (GroupType.STREAMS, GroupState.NOT_READY)
    (member,) = group.members
    assert member.assignment == member.target_assignment == {"narrow": (0,), "wide": (0, 2)}
    assert member.subscribed_topics == ("narrow", "wide")


def test_a_topology_that_is_not_ready_assigns_nothing_that_is_known(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    for topology, known in ((None, None), ({"epoch": 1, "subtopologies": None}, Topology(1))):
        answering(broker, topology)

        group = describe_groups(cluster, ["app"], deadline).values["app"]

        assert group.topology == known
        assert [(member.assignment, member.subscribed_topics) for member in group.members] == [(None, None)]


def test_internal_topics_are_told_by_kafka_s_own_names() -> None:
    ours = ("app-a-changelog", "app-x-repartition", "app-x-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-12-topic")
    assert all(is_inferred_internal(topic, "app") for topic in ours)
    assert not any(
        is_inferred_internal(topic, "app") for topic in ("words", "app-words", "apple-x-changelog", "other-x-repartition")
    )
