"""Finding coordinators and leaders, and asking again when the cluster is not ready."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.errors import UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Node, OffsetAndMetadata, TopicPartition
from kgctl.serde.messages import DecodedRequest
from kgctl.wire import Deadline
from kgctl.wire.asking import (
    Failure,
    ask_a_group_each,
    ask_coordinator,
    ask_coordinators,
    ask_leaders,
    failure_in,
    find_coordinators,
    find_leaders,
    partitions_in,
    topics_to_commit,
)
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import FIND_COORDINATOR, LEAVE_GROUP, LIST_GROUPS, METADATA, OFFSET_COMMIT, Connection
from kgctl.wire.settings import Address, WireSettings
from tests.support.fake_broker import CLOSE, FakeBroker, coordinator_of, metadata
from tests.support.patience import PATIENCE_MS


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as fake:
        fake.handlers[FIND_COORDINATOR] = coordinator_of(fake)
        yield fake


@pytest.fixture
def cluster(broker: FakeBroker) -> Iterator[ClusterClient]:
    made = ClusterClient(WireSettings((Address("127.0.0.1", broker.port),)))
    yield made
    made.close()


def soon() -> Deadline:
    return Deadline(PATIENCE_MS)


def echo(_: Connection, groups: list[str]) -> Iterator[dict[str, str]]:
    yield {group: group.upper() for group in groups}


def test_many_groups_are_looked_up_in_one_request(broker: FakeBroker, cluster: ClusterClient) -> None:
    route = find_coordinators(cluster, ["a", "b"], soon())

    assert route == ({Node(1, "127.0.0.1", broker.port): ["a", "b"]}, {})
    assert [list(body.coordinator_keys) for body in broker.asked(FIND_COORDINATOR)] == [["a", "b"]]


def test_brokers_before_version_4_are_asked_for_one_group_a_request(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.versions[FIND_COORDINATOR] = (0, 3)
    broker.handlers[FIND_COORDINATOR] = coordinator_of(broker, b=30)
    route = find_coordinators(cluster, ["a", "b"], soon())

    assert route.by_node == {Node(1, "127.0.0.1", broker.port): ["a"]}
    assert {group: failure.code for group, failure in route.failures.items()} == {"b": ErrorCode.GROUP_AUTHORIZATION_FAILED}
    assert [body.key for body in broker.asked(FIND_COORDINATOR)] == ["a", "b"]


def test_a_coordinator_is_remembered_for_the_next_call(broker: FakeBroker, cluster: ClusterClient) -> None:
    assert ask_coordinators(cluster, ["a"], echo, soon()) == {"a": "A"}
    assert ask_coordinators(cluster, ["a", "b"], echo, soon()) == {"a": "A", "b": "B"}

    assert [list(body.coordinator_keys) for body in broker.asked(FIND_COORDINATOR)] == [["a"], ["b"]]


def test_an_error_of_one_group_is_its_own(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.handlers[FIND_COORDINATOR] = coordinator_of(broker, b=30)
    answers = ask_coordinators(cluster, ["b", "a"], echo, soon())

    assert list(answers) == ["b", "a"]
    assert answers["a"] == "A"
    assert answers["b"] == Failure(ErrorCode.GROUP_AUTHORIZATION_FAILED, "")


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_moved_or_loads_is_looked_up_and_asked_again(
    broker: FakeBroker, cluster: ClusterClient, code: ErrorCode
) -> None:
    answers: list[Any] = [Failure(code), "done"]

    result = ask_coordinators(cluster, ["a"], lambda _, groups: iter([dict.fromkeys(groups, answers.pop(0))]), soon())

    assert result == {"a": "done"}
    assert len(broker.asked(FIND_COORDINATOR)) == 2


def test_a_coordinator_that_is_not_there_yet_is_looked_up_again(broker: FakeBroker, cluster: ClusterClient) -> None:
    """The first group of a new cluster: its coordinator's topic is only just being made."""
    tries = iter([coordinator_of(broker, a=15), coordinator_of(broker, a=15), coordinator_of(broker)])

    def next_try(request: DecodedRequest) -> Any:
        return next(tries)(request)

    broker.handlers[FIND_COORDINATOR] = next_try

    assert ask_coordinators(cluster, ["a"], echo, soon()) == {"a": "A"}


def test_a_passing_error_that_does_not_pass_is_the_answer(cluster: ClusterClient) -> None:
    failure = Failure(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    assert ask_coordinators(cluster, ["a"], lambda _, groups: iter([dict.fromkeys(groups, failure)]), Deadline(1_000)) == {
        "a": failure
    }


def test_a_group_that_the_answer_leaves_out_has_an_error(cluster: ClusterClient) -> None:
    answers = ask_coordinators(cluster, ["a"], lambda *_: iter([{}]), soon())

    assert answers == {"a": Failure(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's answer leaves it out")}


def test_a_group_that_has_no_coordinator_in_the_answer_has_an_error(broker: FakeBroker, cluster: ClusterClient) -> None:
    """Also when it was known where it is, and it is not there any more; what nobody asked for does not matter."""
    all_of_it = coordinator_of(broker)

    def answer(request: DecodedRequest) -> dict[str, Any]:
        found = all_of_it(request)["coordinators"]
        return {"coordinators": [each for each in found if each["key"] == "a"] + [{**found[0], "key": "c"}]}

    broker.handlers[FIND_COORDINATOR] = answer
    cluster.coordinators["known"] = Node(1, "127.0.0.1", broker.port)
    left_out = Failure(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's answer leaves it out")

    def ask(_: Connection, groups: list[str]) -> Iterator[dict[str, str | Failure]]:
        yield {group: Failure(ErrorCode.NOT_COORDINATOR) if group == "known" else group.upper() for group in groups}

    assert ask_coordinators(cluster, ["b", "a", "known"], ask, soon()) == {"b": left_out, "a": "A", "known": left_out}


def test_a_coordinator_that_is_down_costs_only_its_groups(broker: FakeBroker, cluster: ClusterClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    def two_coordinators(request: DecodedRequest) -> dict[str, Any]:
        ports = {"down": port, "up": broker.port}
        keys = request.body.coordinator_keys
        return {"coordinators": [{"key": key, "node_id": ports[key], "host": "127.0.0.1", "port": ports[key]} for key in keys]}

    broker.handlers[FIND_COORDINATOR] = two_coordinators
    answers = ask_coordinators(cluster, ["down", "up"], echo, Deadline(500))

    assert answers["up"] == "UP"
    assert isinstance(answers["down"], Failure)
    assert answers["down"].code is ErrorCode.NETWORK_EXCEPTION


def test_the_only_coordinator_being_down_is_raised(broker: FakeBroker, cluster: ClusterClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = Node(2, "127.0.0.1", listener.getsockname()[1])
    cluster.coordinators["a"] = gone

    broker.handlers[FIND_COORDINATOR] = lambda _: {
        "coordinators": [{"key": "a", "node_id": 2, "host": "127.0.0.1", "port": gone.port}]
    }
    with pytest.raises(UnreachableError, match="cannot connect") as caught:
        ask_coordinators(cluster, ["a"], echo, Deadline(500), is_idempotent=False)
    assert caught.value.nothing_sent


def test_leaders_are_found_by_metadata(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": {0: 1, 1: -1}, "gone": {}})
    partitions = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 9), TopicPartition("gone", 0)]
    route = find_leaders(cluster, partitions, soon())

    assert route.by_node == {Node(1, "127.0.0.1", broker.port): [partitions[0]]}
    assert route.failures == {
        partitions[1]: Failure(ErrorCode.LEADER_NOT_AVAILABLE),
        partitions[2]: Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic 't' has no partition 9 (it has 2)"),
        partitions[3]: Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic 'gone' does not exist, or this user may not see it"),
    }


def test_a_partition_without_a_leader_does_not_hold_up_the_rest(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": {0: 1, 1: -1}})
    deadline = Deadline(10_000)
    answers = ask_leaders(
        cluster, [TopicPartition("t", 0), TopicPartition("t", 1)], lambda _, wanted: iter([dict.fromkeys(wanted, 1)]), deadline
    )

    assert answers == {TopicPartition("t", 0): 1, TopicPartition("t", 1): Failure(ErrorCode.LEADER_NOT_AVAILABLE)}
    assert len(broker.asked(METADATA)) == 2, "looked at once more, and not again"
    assert deadline.seconds_left() > 8


def test_a_partition_that_gets_a_leader_meanwhile_is_asked(broker: FakeBroker, cluster: ClusterClient) -> None:
    leaders = [-1, 1]
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": {0: leaders.pop(0)}})
    found = ask_leaders(cluster, [TopicPartition("t", 0)], lambda _, wanted: iter([dict.fromkeys(wanted, 7)]), soon())

    assert found == {TopicPartition("t", 0): 7}


def test_a_leader_that_moved_is_looked_up_again(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.handlers[METADATA] = lambda _: metadata([broker], {"t": {0: 1}})
    answers: list[Any] = [Failure(ErrorCode.NOT_LEADER_OR_FOLLOWER), 7]
    found = ask_leaders(
        cluster, [TopicPartition("t", 0)], lambda _, wanted: iter([dict.fromkeys(wanted, answers.pop(0))]), soon()
    )

    assert found == {TopicPartition("t", 0): 7}


def test_nothing_asked_is_nothing_sent(broker: FakeBroker, cluster: ClusterClient) -> None:
    assert ask_coordinators(cluster, [], echo, soon()) == {}
    assert ask_leaders(cluster, [], lambda *_: iter([{}]), soon()) == {}
    assert broker.asked(LIST_GROUPS) == broker.requests == []


def lists(connection: Connection, groups: list[str]) -> Iterator[dict[str, str]]:
    """A request a group."""
    for group in groups:
        connection.call(LIST_GROUPS, {}, soon())
        yield {group: group.upper()}


class Closing:
    """Answers each request, but closes the connection at those with these numbers."""

    def __init__(self, *numbers: int, answer: Any = None) -> None:
        self._numbers, self._answer, self._count = numbers, answer, 0

    def __call__(self, _: DecodedRequest) -> Any:
        self._count += 1
        return CLOSE if self._count in self._numbers else self._answer


def test_what_was_answered_before_a_connection_broke_is_not_asked_again(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.handlers[LIST_GROUPS] = Closing(2, 3, answer={"groups": []})
    assert ask_coordinators(cluster, ["a", "b", "c"], lists, soon()) == {"a": "A", "b": "B", "c": "C"}
    assert len(broker.asked(LIST_GROUPS)) == 5


def test_what_may_have_arrived_is_not_sent_again_where_that_is_another_thing(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.handlers[LIST_GROUPS] = Closing(1, answer={"groups": []})
    with pytest.raises(UnreachableError, match="closed the connection at ListGroups") as caught:
        ask_coordinators(cluster, ["a"], lists, soon(), is_idempotent=False)
    assert not caught.value.nothing_sent
    assert len(broker.asked(LIST_GROUPS)) == 1


def test_a_broker_that_keeps_closing_is_told_when_the_time_is_over(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.handlers[LIST_GROUPS] = lambda _: CLOSE
    deadline = Deadline(700)
    with pytest.raises(UnreachableError, match="closed the connection at ListGroups"):
        ask_coordinators(cluster, ["a"], lists, deadline)
    assert deadline.is_over


def test_a_coordinator_that_went_down_is_looked_up_again(broker: FakeBroker, cluster: ClusterClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        cluster.coordinators["a"] = Node(2, "127.0.0.1", listener.getsockname()[1])
    assert ask_coordinators(cluster, ["a"], echo, soon()) == {"a": "A"}


def test_a_commit_says_all_of_each_offset_and_topics_are_in_the_order_given() -> None:
    commits = {
        TopicPartition("u", 1): OffsetAndMetadata(5, "why", 3),
        TopicPartition("a", 0): OffsetAndMetadata(6),
        TopicPartition("u", 0): OffsetAndMetadata(7),
    }
    names = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    assert topics_to_commit(commits.items()) == [
        {"name": "u", "partitions": [dict(zip(names, each, strict=True)) for each in ((1, 5, 3, "why"), (0, 7, -1, ""))]},
        {"name": "a", "partitions": [dict(zip(names, (0, 6, -1, ""), strict=True))]},
    ]


LEAVING: dict[str, Any] = {"group_id": "g", "members": []}


def committing(group: str) -> dict[str, Any]:
    commit = topics_to_commit([(TopicPartition("t", 0), OffsetAndMetadata(1))])
    no_member = {"generation_id_or_member_epoch": -1, "member_id": "", "retention_time_ms": -1, "group_instance_id": None}
    return {"group_id": group, "topics": commit, **no_member}


def test_changes_whose_answer_is_lost_are_not_asked_for_again(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.handlers |= dict.fromkeys((LEAVE_GROUP, OFFSET_COMMIT), lambda _: CLOSE)
    with pytest.raises(UnreachableError):
        ask_coordinator(cluster, "g", LEAVE_GROUP, LEAVING, soon())
    with pytest.raises(UnreachableError):
        ask_a_group_each(cluster, ["g", "h"], OFFSET_COMMIT, committing, soon())
    assert len(broker.asked(LEAVE_GROUP)) == 1
    assert [body.group_id for body in broker.asked(OFFSET_COMMIT)] == ["g"]


def test_a_change_that_is_refused_as_a_whole_has_that_failure(broker: FakeBroker, cluster: ClusterClient) -> None:
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    broker.handlers[LEAVE_GROUP] = lambda _: {"error_code": refused, "members": []}
    assert ask_coordinator(cluster, "g", LEAVE_GROUP, LEAVING, soon()) == Failure(refused)


def test_a_group_whose_failure_passes_is_asked_for_again_and_another_error_is_the_answer(
    broker: FakeBroker, cluster: ClusterClient
) -> None:
    loading, refused = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.GROUP_AUTHORIZATION_FAILED
    codes = {"g": [loading, ErrorCode.NONE], "h": [refused]}

    def answer(request: DecodedRequest) -> dict[str, Any]:
        code = codes[request.body.group_id].pop(0)
        return {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": code}]}]}

    def failure(answer: Any) -> Failure | None:
        return next((found for _, each in partitions_in(answer.topics) if (found := failure_in(each))), None)

    broker.handlers[OFFSET_COMMIT] = answer
    found = ask_a_group_each(cluster, ["g", "h"], OFFSET_COMMIT, committing, soon(), failure=failure)
    assert (failure(found["g"]), found["h"], codes) == (None, Failure(refused), {"g": [], "h": []})
