"""Share groups at their coordinator's word: what is known of an offset, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.admin import ItemError
from kgctl.admin.groups import describe_groups
from kgctl.admin.live import list_committed_offsets
from kgctl.admin.share_groups import alter_start_offsets, delete_start_offsets, in_part
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupType, StartOffset, TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import (
    ALTER_SHARE_GROUP_OFFSETS,
    CONSUMER_GROUP_DESCRIBE,
    DELETE_SHARE_GROUP_OFFSETS,
    DESCRIBE_GROUPS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    LIST_GROUPS,
    OFFSET_FETCH,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
)
from tests.support.fake_broker import FakeBroker

JOBS = [TopicPartition("jobs", number) for number in range(3)]


def start(number: int, offset: int, *, lag: int = -1, error: int = 0) -> dict[str, Any]:
    named = {"partition_index": number, "start_offset": offset, "leader_epoch": 4, "lag": lag}
    return {**named, "error_code": error, "error_message": "why" if error else None}


def telling(broker: FakeBroker, *partitions: dict[str, Any], error: int = 0) -> None:
    broker.handlers[OFFSET_FETCH] = lambda request: {"groups": [{"group_id": each.group_id} for each in request.body.groups]}
    topics = [{"topic_name": "jobs", "partitions": list(partitions)}]

    def answer(request: Any) -> dict[str, Any]:
        known = {"group_id": "s", "topics": topics, "error_code": error, "error_message": None}
        missing = {"topics": [], "error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": None}
        asked = [each.group_id for each in request.body.groups]
        return {"groups": [known if group == "s" else {"group_id": group, **missing} for group in asked]}

    broker.handlers[DESCRIBE_SHARE_GROUP_OFFSETS] = answer


def test_start_offsets_stand_where_other_groups_have_commits(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    telling(broker, start(2, 7, lag=0), start(0, 5, lag=9), start(1, -1))

    found = list_committed_offsets(cluster, ["nobody", "s"], deadline)

    assert found.values == {"nobody": {}, "s": {JOBS[0]: StartOffset(5, "", 4), JOBS[2]: StartOffset(7, "", 4)}}
    assert [offset.records_left for offset in found.values["s"].values() if isinstance(offset, StartOffset)] == [9, 0]


def test_a_lag_that_the_coordinator_does_not_tell_is_unknown(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    broker.versions[DESCRIBE_SHARE_GROUP_OFFSETS] = (0, 0)
    telling(broker, {key: value for key, value in start(0, 5).items() if key != "lag"})

    (offset,) = list_committed_offsets(cluster, ["s"], deadline).values["s"].values()

    assert isinstance(offset, StartOffset)
    assert (offset.records_left, offset.is_all(5)) == (None, False)


@pytest.mark.parametrize("of_group", [True, False])
def test_what_is_not_told_is_no_offset(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline, *, of_group: bool) -> None:
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    telling(broker, start(0, 0, error=0 if of_group else code), start(1, 5, lag=0), error=code if of_group else 0)

    found = list_committed_offsets(cluster, ["s"], deadline)

    assert (dict(found.values), found.errors["s"].code) == ({}, code)


@pytest.mark.parametrize(
    ("code", "told"),
    [(ErrorCode.LEADER_NOT_AVAILABLE, "jobs-1 has no leader"), (ErrorCode.UNKNOWN_SERVER_ERROR, "jobs-1: why")],
)
def test_a_partition_that_hides_the_offsets_of_its_group_is_named(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline, code: ErrorCode, told: str
) -> None:
    telling(broker, start(0, 5, lag=0), start(1, 0, error=code))
    assert list_committed_offsets(cluster, ["s"], deadline).errors["s"] == ItemError(code, told)


def test_a_broker_with_share_groups_switched_off_has_none(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    """It knows the request, and answers so for each group: as Kafka 4.1 does, and a cluster whose features were not upgraded."""
    telling(broker, error=ErrorCode.UNSUPPORTED_VERSION)

    found = list_committed_offsets(cluster, ["s"], deadline)

    assert (found.values, found.errors) == ({"s": {}}, {})


def test_a_broker_before_4_1_is_not_asked(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    telling(broker, start(0, 5, lag=0))
    del broker.handlers[DESCRIBE_SHARE_GROUP_OFFSETS]

    assert list_committed_offsets(cluster, ["s"], deadline).values == {"s": {}}


def test_offsets_are_set_and_their_errors_told_by_partition(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    refused = {"partition_index": 1, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "error_message": "gone"}
    broker.handlers[ALTER_SHARE_GROUP_OFFSETS] = lambda _: {
        "responses": [{"topic_name": "jobs", "partitions": [{"partition_index": 0}, refused]}]
    }

    wanted = dict(zip(JOBS, map(StartOffset, (5, 6, 7)), strict=True))
    found = alter_start_offsets(cluster, {"s": wanted}, deadline)["s"]

    assert (dict(found.values), {key: error.message for key, error in found.errors.items()}) == (
        {JOBS[0]: None},
        {JOBS[1]: "gone", JOBS[2]: "the broker's answer leaves it out"},
    )
    (request,) = broker.asked(ALTER_SHARE_GROUP_OFFSETS)
    assert [[(each.partition_index, each.start_offset) for each in topic.partitions] for topic in request.topics] == [
        [(0, 5), (1, 6), (2, 7)]
    ]


def test_a_group_with_members_is_refused_as_a_whole(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    refused = {"error_code": ErrorCode.NON_EMPTY_GROUP, "error_message": "The group is not empty.", "responses": []}
    broker.handlers |= {ALTER_SHARE_GROUP_OFFSETS: lambda _: refused, DELETE_SHARE_GROUP_OFFSETS: lambda _: refused}

    set_ = alter_start_offsets(cluster, {"s": {JOBS[0]: StartOffset(5)}}, deadline)["s"]
    deleted = delete_start_offsets(cluster, "s", JOBS[:1], deadline)

    message = "group 's' is not empty: it has members"
    assert set_.errors == deleted.errors == {JOBS[0]: ItemError(ErrorCode.NON_EMPTY_GROUP, message)}


def test_offsets_of_a_part_of_a_topic_cannot_be_deleted() -> None:
    starts = {partition: StartOffset(1) for partition in JOBS}

    assert in_part(starts, JOBS) == {}
    why = "Kafka deletes the start offsets of a share group by whole topics, and jobs-2 has one too"
    assert in_part(starts, JOBS[:2]) == dict.fromkeys(JOBS[:2], ItemError(ErrorCode.INVALID_REQUEST, why))


def described(broker: FakeBroker, *, has_share: bool) -> None:
    missing = {"error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": "not of mine"}
    answer = {"groups": [{"group_id": "s", **missing}]}
    broker.handlers |= dict.fromkeys((DESCRIBE_GROUPS, CONSUMER_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE), lambda _: answer)
    listed = {"group_id": "s", "protocol_type": "share", "group_state": "Empty", "group_type": "share"}
    broker.handlers[LIST_GROUPS] = lambda _: {"groups": [listed]}
    if has_share:
        group = {"group_id": "s", "group_state": "Empty", "group_epoch": 3, "assignment_epoch": 2, "assignor_name": "simple"}
        broker.handlers[SHARE_GROUP_DESCRIBE] = lambda _: {"groups": [group]}


def test_it_is_described_by_its_own_request(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    described(broker, has_share=True)

    group = describe_groups(cluster, ["s"], deadline).values["s"]

    assert (group.type, group.group_epoch, group.assignment_epoch, group.assignor) == (GroupType.SHARE, 3, 2, "simple")


def test_a_broker_that_cannot_describe_it_names_its_type(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    described(broker, has_share=False)

    message = "group 's' is a share group, which brokers tell about since Kafka 4.1, not a consumer group"
    assert describe_groups(cluster, ["s"], deadline).errors == {"s": ItemError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)}
