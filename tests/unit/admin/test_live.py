"""Committed offsets and the bounds of logs: batches, old brokers, errors of a part."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.admin import LimitsTime
from kgctl.admin.live import LiveGroupAdmin, list_committed_offsets, list_log_offsets, list_offsets_at, list_topics
from kgctl.admin.writes import delete_offsets
from kgctl.errors import UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import LogOffsets, OffsetAndMetadata, TopicPartition
from kgctl.serde.messages import DecodedRequest
from kgctl.wire import CALLS_SHARE, LOOKS_SHARE, Deadline
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import LIST_OFFSETS, METADATA, OFFSET_DELETE, OFFSET_FETCH
from tests.support.fake_broker import FakeBroker, metadata

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def commits(*partitions: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "t", "partitions": list(partitions)}]


def commit(partition: int, offset: int, metadata: str | None = "", **more: int) -> dict[str, Any]:
    return {"partition_index": partition, "committed_offset": offset, "metadata": metadata, **more}


def test_all_offsets_of_many_groups_come_in_batches(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    def handler(request: DecodedRequest) -> dict[str, Any]:
        assert [group.topics for group in request.body.groups] == [None] * len(request.body.groups)
        return {"groups": [{"group_id": each.group_id, "topics": commits(commit(0, 5))} for each in request.body.groups]}

    broker.handlers[OFFSET_FETCH] = handler
    names = [f"g{number:03}" for number in range(120)]
    found = list_committed_offsets(cluster, names, deadline)

    assert found.values == {name: {T0: OffsetAndMetadata(5)} for name in names}
    assert [len(asked.groups) for asked in broker.asked(OFFSET_FETCH)] == [50, 50, 20]


@pytest.mark.parametrize("highest", [2, 5, 7])
def test_brokers_before_version_8_are_asked_for_one_group_a_request(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline, highest: int
) -> None:
    broker.versions[OFFSET_FETCH] = (0, highest)
    broker.handlers[OFFSET_FETCH] = lambda request: {"topics": commits(commit(0, len(request.body.group_id)))}
    found = list_committed_offsets(cluster, ["a", "bb"], deadline)

    assert found.values == {"a": {T0: OffsetAndMetadata(1)}, "bb": {T0: OffsetAndMetadata(2)}}


def test_offsets_are_sorted_and_partitions_without_a_commit_left_out(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    topics = commits(commit(1, 3, "note\0", committed_leader_epoch=7), commit(0, 0, None), commit(2, -1))
    broker.handlers[OFFSET_FETCH] = lambda _: {"groups": [{"group_id": "g", "topics": topics}]}
    found = list_committed_offsets(cluster, ["g"], deadline).values["g"]

    assert list(found.items()) == [(T0, OffsetAndMetadata(0)), (T1, OffsetAndMetadata(3, "note", 7))]


def test_an_error_of_a_partition_is_its_groups(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    unstable = commits(commit(0, 3), commit(1, -1, error_code=88))
    broker.handlers[OFFSET_FETCH] = lambda _: {
        "groups": [
            {"group_id": "a", "topics": unstable},
            {"group_id": "b", "topics": commits(commit(0, 3))},
            {"group_id": "c", "error_code": 30},
        ]
    }
    found = list_committed_offsets(cluster, ["a", "b", "c"], deadline, require_stable=True)

    assert list(found.values) == ["b"]
    assert {group: error.code for group, error in found.errors.items()} == {
        "a": ErrorCode.UNSTABLE_OFFSET_COMMIT,
        "c": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
    assert [asked.require_stable for asked in broker.asked(OFFSET_FETCH)] == [True]


def log_of(starts_and_ends: dict[TopicPartition, tuple[int, int]], errors: dict[TopicPartition, int]) -> Any:
    def handler(request: DecodedRequest) -> dict[str, Any]:
        topics = []
        for topic in request.body.topics:
            partitions = []
            for asked in topic.partitions:
                key = TopicPartition(topic.name, asked.partition_index)
                offset = starts_and_ends[key][0 if asked.timestamp == -2 else 1]
                error = errors.get(key, 0)
                partitions.append({"partition_index": key.partition, "error_code": error, "offset": offset})
            topics.append({"name": topic.name, "partitions": partitions})
        return {"topics": topics}

    return handler


def test_both_bounds_are_asked_of_the_leader(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": {0: 1, 1: 1}})
    broker.handlers[LIST_OFFSETS] = log_of({T0: (2, 9), T1: (0, 0)}, {})
    found = list_log_offsets(cluster, [T1, T0], deadline)

    assert found.values == {T1: LogOffsets(0, 0), T0: LogOffsets(2, 9)}
    assert [asked.replica_id for asked in broker.asked(LIST_OFFSETS)] == [-1, -1]


def test_an_error_of_one_partition_harms_no_other(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": {0: 1, 1: 1}})
    broker.handlers[LIST_OFFSETS] = log_of({T0: (2, 9), T1: (0, 0)}, {T1: 29})
    found = list_log_offsets(cluster, [T0, T1], deadline)

    assert list(found.values) == [T0]
    assert found.errors[T1].message == "not authorised for topic 't'"


def test_a_partition_that_the_answer_leaves_out_is_an_error_of_its_own(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": {0: 1, 1: 1}})
    whole = log_of({T0: (2, 9), T1: (0, 0)}, {})

    def without_one(request: DecodedRequest) -> dict[str, Any]:
        answer = whole(request)
        if request.body.topics[0].partitions[0].timestamp == -2:
            del answer["topics"][0]["partitions"][1]
        return dict(answer)

    broker.handlers[LIST_OFFSETS] = without_one
    found = list_log_offsets(cluster, [T0, T1], deadline)

    assert found.values == {T0: LogOffsets(2, 9)}
    assert "the broker's answer leaves it out" in found.errors[T1].message


def test_many_partitions_go_in_batches(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    wanted = [TopicPartition("t", number) for number in range(4_500)]
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": dict.fromkeys(range(4_500), 1)})
    broker.handlers[LIST_OFFSETS] = log_of({each: (0, each.partition) for each in wanted}, {})
    found = list_log_offsets(cluster, wanted, deadline)

    assert found.values == {each: LogOffsets(0, each.partition) for each in wanted}
    assert len(broker.asked(LIST_OFFSETS)) == 6


def test_no_record_at_or_after_a_time_is_none(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": {0: 1, 1: 1}})
    broker.handlers[LIST_OFFSETS] = log_of({T0: (0, 4), T1: (0, -1)}, {})

    assert list_offsets_at(cluster, [T0, T1], 1234, deadline).values == {T0: 4, T1: None}
    (asked,) = broker.asked(LIST_OFFSETS)
    assert {each.timestamp for topic in asked.topics for each in topic.partitions} == {1234}


def test_topics_that_are_not_there_are_left_out(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": {0: 1, 1: 1}, "gone": {}, "a": {0: -1}})

    assert list(list_topics(cluster, ["t", "gone", "a"], deadline).items()) == [("a", 1), ("t", 2)]
    assert list_topics(cluster, [], deadline) == {}


def test_deleting_answers_for_each_partition(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    answer = {"topics": [{"name": "t", "partitions": [{"partition_index": 0}, {"partition_index": 1, "error_code": 86}]}]}
    broker.handlers[OFFSET_DELETE] = lambda _: answer
    left_out = TopicPartition("t", 2)
    found = delete_offsets(cluster, "g", [T0, T1, left_out, T0], deadline)

    assert found.values == {T0: None}
    assert {key: error.code for key, error in found.errors.items()} == {
        T1: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        left_out: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
    assert found.errors[T1].message == "group 'g' is subscribed to topic 't': its offsets are in use"


def test_an_error_of_the_whole_deletion_is_on_each_partition(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    broker.handlers[OFFSET_DELETE] = lambda _: {"error_code": ErrorCode.NON_EMPTY_GROUP.value}
    found = delete_offsets(cluster, "g", [T0, T1], deadline)

    assert {key: error.code for key, error in found.errors.items()} == dict.fromkeys([T0, T1], ErrorCode.NON_EMPTY_GROUP)


def test_nothing_to_delete_is_nothing_sent(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    assert delete_offsets(cluster, "g", [], deadline).status == "ok"
    assert broker.requests == []


def test_calls_of_one_limit_end_within_it_together() -> None:
    """Nobody answers: no call takes all that is left, and together they take no more than there is."""
    for share in (CALLS_SHARE, LOOKS_SHARE):
        limit = Deadline(900, share)
        left = [limit.part(1).timeout_ms]
        for _ in range(3):
            left.append(left[-1] - Deadline.of_call(limit, 9_999).timeout_ms)
            limit = Deadline(left[-1], share)
        assert (left[0] > 890, left[1] / 900 == pytest.approx(1 - share, abs=0.02), left[3] < 40) == (True, True, True)
    assert Deadline.of_call(None, 9_999).timeout_ms == 9_999


def test_an_admin_takes_its_time_from_the_limit_of_the_command() -> None:
    with LiveGroupAdmin({"bootstrap.servers": "127.0.0.1:1"}, 5_000) as admin:
        assert isinstance(admin, LimitsTime)
        admin.limit = Deadline(0)
        with pytest.raises(UnreachableError):
            admin.list_groups()


def test_how_far_a_question_is_can_be_told(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    seen: list[tuple[int, int, str]] = []

    def handler(request: DecodedRequest) -> dict[str, Any]:
        seen.append((cluster.answered, cluster.wanted, cluster.noun))
        return {"groups": [{"group_id": each.group_id, "topics": commits(commit(0, 5))} for each in request.body.groups]}

    broker.handlers[OFFSET_FETCH] = handler
    list_committed_offsets(cluster, [f"g{number:03}" for number in range(120)], deadline)
    assert (seen[0], cluster.answered) == ((0, 120, "groups"), 120)
