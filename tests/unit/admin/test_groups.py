"""ListGroups at every broker: types, states, filters, brokers that are away."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

import pytest

from kgctl.admin import ItemError
from kgctl.admin.descriptions import group_state, group_type
from kgctl.admin.groups import (
    OFFSETS_TOPIC,
    describe_groups,
    list_groups,
    orphaned_groups,
    remove_members,
)
from kgctl.errors import AuthError, BrokerError, UnreachableError, UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    ConsumerAssignment,
    ConsumerSubscription,
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    MemberDescription,
    Node,
    TopicPartition,
)
from kgctl.model.values import partition_for, string_hash
from kgctl.serde.consumer_protocol import encode_assignment, encode_subscription
from kgctl.serde.messages import DecodedRequest
from kgctl.wire import Deadline
from kgctl.wire.cluster import ClusterClient, ClusterLayout, TopicLayout
from kgctl.wire.connection import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    LEAVE_GROUP,
    LIST_GROUPS,
    METADATA,
)
from tests.support.fake_broker import CLOSE, FakeBroker, Handler, metadata


def group(group_id: str, protocol: str, state: str, kind: str) -> dict[str, str]:
    return {"group_id": group_id, "protocol_type": protocol, "group_state": state, "group_type": kind}


def answering(*groups: Mapping[str, Any], error: int = 0) -> Any:
    return lambda _: {"error_code": error, "groups": list(groups)}


def test_groups_of_every_type_and_state_are_listed(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[LIST_GROUPS] = answering(
        group("s", "share", "Stable", "Share"),
        group("k", "consumer", "Reconciling", "Consumer"),
        group("c", "connect", "Empty", "Classic"),
        group("x", "streams", "NotReady", "Streams"),
        group("new", "", "Pondering", "Quantum"),
    )
    node = Node(1, "127.0.0.1", broker.port)

    assert list(list_groups(cluster, deadline).values.values()) == [
        GroupListing("c", "connect", GroupState.EMPTY, GroupType.CLASSIC, node),
        GroupListing("k", "consumer", GroupState.RECONCILING, GroupType.CONSUMER, node),
        GroupListing("new", "", GroupState.UNKNOWN, GroupType.UNKNOWN, node),
        GroupListing("s", "share", GroupState.STABLE, GroupType.SHARE, node),
        GroupListing("x", "streams", GroupState.NOT_READY, GroupType.STREAMS, node),
    ]


def test_filters_are_the_brokers_own(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[LIST_GROUPS] = answering()
    list_groups(cluster, deadline, [GroupState.STABLE, GroupState.EMPTY], [GroupType.SHARE])
    (asked,) = broker.asked(LIST_GROUPS)

    assert (asked.states_filter, asked.types_filter) == (("Stable", "Empty"), ("share",))


def old(broker: FakeBroker, highest: int, states: Mapping[str, str]) -> None:
    """The broker is one that has ListGroups up to this version, with these groups."""
    broker.versions |= {LIST_GROUPS: (0, highest), DESCRIBE_GROUPS: (0, 4)}
    broker.handlers[LIST_GROUPS] = answering(*({"group_id": name, "protocol_type": "consumer"} for name in states))
    broker.handlers[DESCRIBE_GROUPS] = lambda request: {
        "groups": [{"group_id": name, "group_state": states[name], "error_code": 0} for name in request.body.groups]
    }


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], ["e", "s"]),
        ([GroupState.EMPTY], [], ["e"]),
        ([GroupState.STABLE, GroupState.DEAD], [GroupType.CLASSIC], ["s"]),
        ([], [GroupType.CONSUMER], []),
    ],
)
def test_a_broker_without_states_and_types_is_asked_otherwise(
    broker: FakeBroker,
    cluster: ClusterClient,
    deadline: Deadline,
    states: list[GroupState],
    types: list[GroupType],
    expected: list[str],
) -> None:
    """Before Kafka 2.6: DescribeGroups has always told the state, and all groups are classic there."""
    old(broker, 3, {"e": "Empty", "s": "Stable"})
    found = list_groups(cluster, deadline, states, types).values

    assert list(found) == expected
    assert {one.type for one in found.values()} <= {GroupType.CLASSIC}
    assert all(one.state is {"e": GroupState.EMPTY, "s": GroupState.STABLE}[name] for name, one in found.items())


def test_a_group_whose_state_is_not_told_is_in_none(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    old(broker, 3, {"g": "Stable"})
    broker.handlers[DESCRIBE_GROUPS] = lambda _: {"groups": [{"group_id": "g", "error_code": ErrorCode.NOT_COORDINATOR}]}

    assert list_groups(cluster, deadline).values["g"].state is GroupState.UNKNOWN
    assert not list_groups(cluster, deadline, [GroupState.STABLE]).values


def test_a_broker_with_consumer_groups_that_tells_no_types_is_too_old_to_be_asked_for_them(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    """Kafka 3.7."""
    broker.versions |= {LIST_GROUPS: (0, 4), CONSUMER_GROUP_HEARTBEAT: (0, 0)}
    broker.handlers[LIST_GROUPS] = answering({"group_id": "g", "protocol_type": "consumer", "group_state": "Stable"})
    broker.handlers[CONSUMER_GROUP_HEARTBEAT] = lambda _: CLOSE

    assert list_groups(cluster, deadline).values["g"].type is GroupType.UNKNOWN
    with pytest.raises(UnsupportedError, match="too old to filter groups by type"):
        list_groups(cluster, deadline, [], [GroupType.CLASSIC])


def test_a_broker_that_loads_is_asked_again(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    answers = iter([answering(error=14), answering(error=15), answering(group("g", "", "Empty", "Classic"))])

    def next_answer(request: DecodedRequest) -> Any:
        return next(answers)(request)

    broker.handlers[LIST_GROUPS] = next_answer

    assert list(list_groups(cluster, deadline).values) == ["g"]


def test_a_broker_that_never_finishes_loading_is_an_error(broker: FakeBroker, cluster: ClusterClient) -> None:
    broker.handlers[LIST_GROUPS] = answering(error=14)

    # Where the time ends while it is asked once more, that is what is said.
    with pytest.raises(UnreachableError, match=r"COORDINATOR_LOAD_IN_PROGRESS|did not answer within"):
        list_groups(cluster, Deadline(1_000))


@pytest.mark.parametrize(("code", "expected"), [(31, AuthError), (42, BrokerError)])
def test_an_error_of_the_only_broker_is_raised(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline, code: int, expected: type[Exception]
) -> None:
    broker.handlers[LIST_GROUPS] = answering(error=code)

    with pytest.raises(expected):
        list_groups(cluster, deadline)


def test_a_broker_that_is_away_is_named_beside_what_the_others_have(broker: FakeBroker, cluster: ClusterClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    answer = metadata([broker])
    answer["brokers"].append({"node_id": 7, "host": "127.0.0.1", "port": port})
    broker.handlers[METADATA] = lambda _: answer
    broker.handlers[LIST_GROUPS] = answering(group("g", "", "Empty", "Classic"))
    found = list_groups(cluster, Deadline(500))

    assert (list(found.values), found.status) == (["g"], "partial")
    assert {name: error.code for name, error in found.unreachable.items()} == {
        f"127.0.0.1:{port} (id 7)": ErrorCode.NETWORK_EXCEPTION
    }


def test_a_broker_that_comes_back_is_listed(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    answers = [CLOSE, CLOSE, {"groups": [group("g", "", "Empty", "Classic")]}]
    broker.handlers[LIST_GROUPS] = lambda _: answers.pop(0)
    found = list_groups(cluster, deadline)
    assert (list(found.values), found.status) == (["g"], "ok")


def test_names_of_states_and_types_are_kafkas() -> None:
    assert [group_state(state.value) for state in GroupState] == list(GroupState)
    assert [group_type(kind.value.capitalize()) for kind in GroupType] == list(GroupType)


NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND.value
ASSIGNMENT = encode_assignment(ConsumerAssignment((TopicPartition("t", 1), TopicPartition("t", 0), TopicPartition("a", 2))))
SUBSCRIPTION = encode_subscription(ConsumerSubscription(topics=("t", "a"), rack_id="r1"))


def describing(name: str, **groups: dict[str, Any]) -> Handler:
    """Answers for these groups, and GROUP_ID_NOT_FOUND for any other."""

    def handler(request: DecodedRequest) -> dict[str, Any]:
        asked = getattr(request.body, name)
        return {"groups": [{"group_id": each, **groups.get(each, {"error_code": NOT_FOUND})} for each in asked]}

    return handler


def serve(broker: FakeBroker, *, classic: dict[str, Any] | None = None, consumer: dict[str, Any] | None = None) -> None:
    broker.handlers[DESCRIBE_GROUPS] = describing("groups", **(classic or {}))
    broker.handlers[CONSUMER_GROUP_DESCRIBE] = describing("group_ids", **(consumer or {}))
    broker.handlers[LIST_GROUPS] = lambda _: {}


def stable(members: list[dict[str, Any]], protocol_type: str = "consumer") -> dict[str, Any]:
    return {"group_state": "Stable", "protocol_type": protocol_type, "protocol_data": "range", "members": members}


def member(member_id: str, **fields: Any) -> dict[str, Any]:
    return {"member_id": member_id, "client_id": "c", "client_host": "/h", **fields}


def test_a_classic_group_has_what_its_members_said(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    joined = {"member_metadata": SUBSCRIPTION, "member_assignment": ASSIGNMENT, "group_instance_id": "i"}
    serve(broker, classic={"g": stable([member("m2"), member("m1", **joined)])})
    found = describe_groups(cluster, ["g"], deadline)

    first = MemberDescription("m1", "c", "/h", "i", "r1", {"a": (2,), "t": (0, 1)}, None, ("a", "t"))
    second = MemberDescription("m2", "c", "/h")
    node = Node(1, "127.0.0.1", broker.port)
    assert found.values == {
        "g": GroupDescription("g", GroupState.STABLE, GroupType.CLASSIC, "consumer", "range", node, (first, second))
    }


@pytest.mark.parametrize("protocol_type", ["connect", "consumer"])
def test_bytes_that_are_not_a_consumers_are_no_assignment(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline, protocol_type: str
) -> None:
    blobs = {"member_metadata": b"\x00\x01garbage", "member_assignment": b"\x00"}
    serve(broker, classic={"g": stable([member("m", **blobs)], protocol_type)})
    found = describe_groups(cluster, ["g"], deadline).values["g"]

    assert found.protocol_type == protocol_type
    assert found.members == (MemberDescription("m", "c", "/h"),)


def test_a_consumer_group_has_epochs_and_targets(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    owned = {"topic_partitions": [{"topic_name": "t", "partitions": [1, 0]}]}
    target = {"topic_partitions": [{"topic_name": "t", "partitions": [0]}]}
    described = {
        "group_state": "Reconciling",
        "group_epoch": 4,
        "assignment_epoch": 3,
        "assignor_name": "uniform",
        "members": [
            member(
                "m",
                instance_id="i",
                rack_id="r",
                member_epoch=2,
                subscribed_topic_names=["t", "a"],
                subscribed_topic_regex="x.*",
                assignment=owned,
                target_assignment=target,
                member_type=1,
            )
        ],
    }
    serve(broker, consumer={"g": described})
    found = describe_groups(cluster, ["g"], deadline).values["g"]

    assert (found.state, found.type, found.assignor) == (GroupState.RECONCILING, GroupType.CONSUMER, "uniform")
    assert (found.group_epoch, found.assignment_epoch) == (4, 3)
    assert found.members == (
        MemberDescription(
            "m", "c", "/h", "i", "r", {"t": (0, 1)}, {"t": (0,)}, ("a", "t"), "x.*", 2, is_classic_in_consumer_group=False
        ),
    )


@pytest.mark.parametrize(("kind", "expected"), [(0, True), (1, False), (-1, None)])
def test_a_classic_member_in_a_consumer_group_is_told_apart(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline, kind: int, expected: bool | None
) -> None:
    serve(broker, consumer={"g": {"group_state": "Stable", "members": [member("m", member_type=kind)]}})
    (found,) = describe_groups(cluster, ["g"], deadline).values["g"].members

    assert found.is_classic_in_consumer_group is expected


def test_each_group_answers_to_the_api_of_its_type(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    serve(broker, classic={"c": {"group_state": "Empty"}}, consumer={"k": {"group_state": "Empty"}})
    found = describe_groups(cluster, ["k", "none", "c"], deadline)

    assert {name: each.type for name, each in found.values.items()} == {"k": GroupType.CONSUMER, "c": GroupType.CLASSIC}
    assert {name: error.code for name, error in found.errors.items()} == {"none": ErrorCode.GROUP_ID_NOT_FOUND}
    assert len(broker.asked(DESCRIBE_GROUPS)) == len(broker.asked(CONSUMER_GROUP_DESCRIBE)) == 1


def test_a_missing_group_is_dead_to_a_broker_before_version_6(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    serve(broker, classic={"g": {"group_state": "Dead"}})
    broker.versions[DESCRIBE_GROUPS] = (0, 5)
    found = describe_groups(cluster, ["g"], deadline)

    assert {name: error.code for name, error in found.errors.items()} == {"g": ErrorCode.GROUP_ID_NOT_FOUND}


def test_a_broker_without_consumer_groups_is_not_asked_for_them(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    serve(broker, classic={"g": {"group_state": "Empty"}})
    del broker.handlers[CONSUMER_GROUP_DESCRIBE]

    assert describe_groups(cluster, ["g"], deadline).values["g"].state is GroupState.EMPTY


def test_a_cluster_that_has_the_consumer_protocol_switched_off_still_describes_classic_groups(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    off = {"error_code": ErrorCode.UNSUPPORTED_VERSION.value}
    serve(broker, classic={"g": {"group_state": "Empty"}}, consumer={"g": off, "none": off})
    found = describe_groups(cluster, ["g", "none"], deadline)

    assert found.values["g"].state is GroupState.EMPTY
    assert found.errors["none"].code is ErrorCode.GROUP_ID_NOT_FOUND


def test_what_the_other_api_says_of_a_group_counts_when_it_says_more(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    serve(broker, consumer={"g": {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED.value}})
    found = describe_groups(cluster, ["g"], deadline)

    assert found.errors["g"].code is ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("kind", "protocol", "named"),
    [
        ("Share", "share", "a share group, which brokers tell about since Kafka 4.1"),
        ("Streams", "streams", "a streams group, which brokers tell about since Kafka 4.2"),
        ("Classic", "odd", "a group of protocol type 'odd'"),
        ("Quantum", "q", "a group of protocol type 'q'"),
    ],
)
def test_a_group_of_another_type_is_named_and_never_taken_for_missing(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline, kind: str, protocol: str, named: str
) -> None:
    serve(broker)
    broker.handlers[LIST_GROUPS] = lambda _: {
        "groups": [{"group_id": "g", "protocol_type": protocol, "group_state": "Stable", "group_type": kind}]
    }
    found = describe_groups(cluster, ["g", "none"], deadline)

    assert {name: error.code for name, error in found.errors.items()} == {
        "g": ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert found.errors["g"].message == f"group 'g' is {named}, not a consumer group"


def test_many_groups_go_in_batches(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    names = [f"g{number:03}" for number in range(250)]
    serve(broker, classic={name: {"group_state": "Empty"} for name in names})
    found = describe_groups(cluster, names, deadline)

    assert list(found.values) == names
    assert [len(asked.groups) for asked in broker.asked(DESCRIBE_GROUPS)] == [100, 100, 50]


NODES = {number: Node(number, "127.0.0.1", 9092 + number) for number in (1, 2)}


def missing(leaders: dict[int, int], replicas: dict[int, tuple[int, ...]]) -> dict[str, ItemError]:
    return dict(orphaned_groups(ClusterLayout(NODES, {OFFSETS_TOPIC: TopicLayout(0, leaders, replicas)})))


def not_listed(who: str, count: int) -> ItemError:
    what = f"groups on {count} of 4 partitions of __consumer_offsets have no coordinator and are not listed"
    return ItemError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{who}{what}")


def test_nothing_is_missing_where_every_partition_has_a_leader() -> None:
    assert missing({0: 1, 1: 2}, {0: (1,), 1: (2, 7)}) == {}


def test_brokers_that_are_gone_are_named_with_what_they_had() -> None:
    found = missing({0: 1, 1: -1, 2: -1, 3: -1}, {0: (1,), 1: (7,), 2: (7,), 3: (9, 1, 8)})

    assert found == {"broker 7": not_listed("broker 7 down: ", 2), "brokers 8, 9": not_listed("brokers 8, 9 down: ", 1)}


def test_a_partition_whose_brokers_are_all_there_is_the_topics_own_trouble() -> None:
    assert missing({0: 1, 1: 2, 2: 1, 3: -1}, {3: (1, 2)}) == {OFFSETS_TOPIC: not_listed("", 1)}


def test_an_offsets_topic_that_is_not_there_or_not_shown_says_nothing() -> None:
    assert orphaned_groups(ClusterLayout(NODES)) == {}
    assert orphaned_groups(ClusterLayout(NODES, {OFFSETS_TOPIC: TopicLayout(29, {})})) == {}


def handed_over(broker: FakeBroker, *, loads: bool = True) -> None:
    """A broker that leads both partitions, and has the groups of one, that of ``a``, from the second question about it on."""
    asked: list[DecodedRequest] = []

    def describe(request: DecodedRequest) -> dict[str, Any]:
        asked.append(request)
        code = ErrorCode.NOT_COORDINATOR if len(asked) == 1 or not loads else ErrorCode.GROUP_ID_NOT_FOUND
        return {"groups": [{"group_id": name, "error_code": code} for name in request.body.groups]}

    def listed(_: DecodedRequest) -> dict[str, Any]:
        names = ("a", "b") if loads and len(asked) > 1 else ("b",)
        return {"groups": [group(name, "", "Empty", "Classic") for name in names]}

    broker.handlers |= {DESCRIBE_GROUPS: describe, LIST_GROUPS: listed}
    broker.handlers[METADATA] = lambda _: metadata([broker], {OFFSETS_TOPIC: {0: 1, 1: 1}})


def test_a_broker_that_leads_a_partition_and_has_not_begun_to_load_it_is_asked_until_it_has(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    handed_over(broker)
    found = list_groups(cluster, deadline)
    assert (list(found.values), found.unreachable) == (["a", "b"], {})
    assert [tuple(asked.groups) for asked in broker.asked(DESCRIBE_GROUPS)] == [("!",), ("!",)]


def test_a_partition_that_is_never_loaded_is_told(broker: FakeBroker, cluster: ClusterClient) -> None:
    handed_over(broker, loads=False)
    found = list_groups(cluster, Deadline(500))
    what = "groups on 1 of 2 partitions of __consumer_offsets are not loaded and not listed"
    assert list(found.values) == ["b"]
    assert list(found.unreachable.values()) == [ItemError(ErrorCode.COORDINATOR_NOT_AVAILABLE, what)]


def test_where_groups_are_spread_otherwise_than_by_kafka_nothing_is_waited_for(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    handed_over(broker, loads=False)
    elsewhere = {"node_id": 2, "host": "127.0.0.1", "port": 1, "error_code": 0}
    broker.handlers[FIND_COORDINATOR] = lambda asked: {
        "coordinators": [{**elsewhere, "key": key} for key in asked.body.coordinator_keys]
    }
    found = list_groups(cluster, deadline)
    assert (list(found.values), found.unreachable, len(broker.asked(DESCRIBE_GROUPS))) == (["b"], {}, 1)


def test_where_each_partition_has_a_group_nothing_more_is_asked(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    handed_over(broker)
    broker.handlers[LIST_GROUPS] = answering(*(group(name, "", "Empty", "Classic") for name in "ab"))
    assert list(list_groups(cluster, deadline).values) == ["a", "b"]
    assert broker.asked(DESCRIBE_GROUPS) == []


def test_a_group_is_on_the_partition_that_kafka_puts_it_on(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    """Their hashes are negative: Kafka takes the absolute value, which another way of losing the sign gives other partitions."""
    names = ("payments-10", "payments-11")
    assert [(string_hash(name) < 0, partition_for(name, 3)) for name in names] == [(True, 0), (True, 2)]
    broker.handlers[METADATA] = lambda _: metadata([broker], {OFFSETS_TOPIC: {0: 1, 1: 2, 2: 1}})
    broker.handlers[LIST_GROUPS] = answering(group(names[0], "", "Empty", "Classic"))
    broker.handlers[DESCRIBE_GROUPS] = lambda asked: {
        "groups": [{"group_id": name, "error_code": ErrorCode.GROUP_ID_NOT_FOUND} for name in asked.body.groups]
    }

    assert list(list_groups(cluster, deadline).values) == [names[0]]

    (probed,) = (asked.groups[0] for asked in broker.asked(DESCRIBE_GROUPS))
    assert partition_for(probed, 3) == 2


UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID.value


def leaving(**errors: int) -> Handler:
    def handler(request: DecodedRequest) -> dict[str, Any]:
        members = []
        for each in request.body.members:
            key = each.group_instance_id or each.member_id
            identity = {"member_id": each.member_id, "group_instance_id": each.group_instance_id}
            members.append({**identity, "error_code": errors.get(key, 0)})
        return {"members": members}

    return handler


def not_a_consumer_group(broker: FakeBroker, error: ErrorCode = ErrorCode.NONE) -> None:
    broker.handlers[DESCRIBE_GROUPS] = lambda _: {"groups": [{"group_id": "g", "group_state": "Stable", "error_code": error}]}
    broker.handlers[LIST_GROUPS] = lambda _: {}


def test_members_leave_by_id_or_by_instance_id(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[LEAVE_GROUP] = leaving()
    found = remove_members(cluster, "g", deadline, member_ids=["m", "m"], group_instance_ids=["i"], reason="why not")
    (asked,) = broker.asked(LEAVE_GROUP)

    assert (found.values, found.errors) == ({"m": None, "i": None}, {})
    assert [(each.member_id, each.group_instance_id, each.reason) for each in asked.members] == [
        ("m", None, "kgctl: why not"),
        ("", "i", "kgctl: why not"),
    ]


def test_a_long_reason_is_cut_to_what_brokers_take(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[LEAVE_GROUP] = leaving()
    remove_members(cluster, "g", deadline, member_ids=["m"], reason="x" * 300)

    assert len(broker.asked(LEAVE_GROUP)[0].members[0].reason) == 255


def test_a_member_that_is_not_there_is_an_error_of_its_own(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    broker.handlers[LEAVE_GROUP] = leaving(nobody=UNKNOWN)
    not_a_consumer_group(broker)
    found = remove_members(cluster, "g", deadline, member_ids=["m", "nobody"])

    assert found.values == {"m": None}
    assert found.errors["nobody"].message == "group 'g' has no member 'nobody'"


def test_a_group_that_is_not_there_is_told(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[LEAVE_GROUP] = lambda _: {"error_code": UNKNOWN}
    not_a_consumer_group(broker, ErrorCode.GROUP_ID_NOT_FOUND)
    found = remove_members(cluster, "g", deadline, member_ids=["m"], group_instance_ids=["i"])

    assert {key: error.code for key, error in found.errors.items()} == dict.fromkeys("mi", ErrorCode.GROUP_ID_NOT_FOUND)


def test_an_error_of_the_whole_request_is_on_each_member(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    broker.handlers[LEAVE_GROUP] = lambda _: {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED.value}
    found = remove_members(cluster, "g", deadline, member_ids=["m"], group_instance_ids=["i"])

    assert {error.message for error in found.errors.values()} == {"not authorised for group 'g'"}


def test_members_of_the_consumer_protocol_leave_by_a_last_heartbeat(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline
) -> None:
    broker.handlers[LEAVE_GROUP] = leaving(m1=UNKNOWN, i2=UNKNOWN, nobody=UNKNOWN)
    not_a_consumer_group(broker, ErrorCode.GROUP_ID_NOT_FOUND)
    members = [{"member_id": "m1"}, {"member_id": "m2", "instance_id": "i2"}]
    broker.handlers[CONSUMER_GROUP_DESCRIBE] = lambda _: {
        "groups": [{"group_id": "g", "group_state": "Stable", "members": members}]
    }
    broker.handlers[CONSUMER_GROUP_HEARTBEAT] = lambda _: {}
    found = remove_members(cluster, "g", deadline, member_ids=["m1", "nobody"], group_instance_ids=["i2"])
    beats = broker.asked(CONSUMER_GROUP_HEARTBEAT)

    assert found.values == {"m1": None, "i2": None}
    assert list(found.errors) == ["nobody"]
    assert [(each.member_id, each.instance_id, each.member_epoch) for each in beats] == [("m1", None, -1), ("m2", "i2", -1)]


def test_nobody_to_remove_is_nothing_sent(broker: FakeBroker, cluster: ClusterClient, deadline: Deadline) -> None:
    assert remove_members(cluster, "g", deadline).status == "ok"
    assert broker.requests == []
