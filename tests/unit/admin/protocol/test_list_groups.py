"""ListGroups at every broker: types, states, filters, brokers that are away."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

import pytest

from kgctl.admin.protocol.list_groups import group_state, group_type, list_groups
from kgctl.errors import AuthError, BrokerError, UnreachableError, UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupListing, GroupState, GroupType, Node
from kgctl.serde.messages import DecodedRequest
from kgctl.wire.apis import LIST_GROUPS, METADATA
from kgctl.wire.cluster import Cluster
from kgctl.wire.deadline import Deadline
from tests.support.fake_broker import FakeBroker, metadata


def group(group_id: str, protocol: str, state: str, kind: str) -> dict[str, str]:
    return {"group_id": group_id, "protocol_type": protocol, "group_state": state, "group_type": kind}


def answering(*groups: Mapping[str, Any], error: int = 0) -> Any:
    return lambda _: {"error_code": error, "groups": list(groups)}


def test_groups_of_every_type_and_state_are_listed(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
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


def test_filters_are_the_brokers_own(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
    broker.handlers[LIST_GROUPS] = answering()
    list_groups(cluster, deadline, [GroupState.STABLE, GroupState.EMPTY], [GroupType.SHARE])
    (asked,) = broker.asked(LIST_GROUPS)

    assert (asked.states_filter, asked.types_filter) == (("Stable", "Empty"), ("share",))


@pytest.mark.parametrize(
    ("highest", "states", "types", "what"),
    [(3, [GroupState.EMPTY], [], "state"), (4, [], [GroupType.CLASSIC], "type"), (3, [], [GroupType.CLASSIC], "type")],
)
def test_a_filter_that_an_old_broker_lacks_is_unsupported(
    broker: FakeBroker,
    cluster: Cluster,
    deadline: Deadline,
    highest: int,
    states: list[GroupState],
    types: list[GroupType],
    what: str,
) -> None:
    broker.versions[LIST_GROUPS] = (0, highest)
    broker.handlers[LIST_GROUPS] = answering()

    with pytest.raises(UnsupportedError, match=f"too old to filter groups by {what}"):
        list_groups(cluster, deadline, states, types)


def test_an_old_broker_tells_neither_state_nor_type(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
    broker.versions[LIST_GROUPS] = (0, 3)
    broker.handlers[LIST_GROUPS] = answering({"group_id": "g", "protocol_type": "consumer"})
    found = list_groups(cluster, deadline).values["g"]

    assert (found.protocol_type, found.state, found.type) == ("consumer", GroupState.UNKNOWN, GroupType.UNKNOWN)


def test_a_broker_that_loads_is_asked_again(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
    answers = iter([answering(error=14), answering(error=15), answering(group("g", "", "Empty", "Classic"))])

    def next_answer(request: DecodedRequest) -> Any:
        return next(answers)(request)

    broker.handlers[LIST_GROUPS] = next_answer

    assert list(list_groups(cluster, deadline).values) == ["g"]


def test_a_broker_that_never_finishes_loading_is_an_error(broker: FakeBroker, cluster: Cluster) -> None:
    broker.handlers[LIST_GROUPS] = answering(error=14)

    # Where the time ends while it is asked once more, that is what is said.
    with pytest.raises(UnreachableError, match=r"COORDINATOR_LOAD_IN_PROGRESS|did not answer within"):
        list_groups(cluster, Deadline(1_000))


@pytest.mark.parametrize(("code", "expected"), [(31, AuthError), (42, BrokerError)])
def test_an_error_of_the_only_broker_is_raised(
    broker: FakeBroker, cluster: Cluster, deadline: Deadline, code: int, expected: type[Exception]
) -> None:
    broker.handlers[LIST_GROUPS] = answering(error=code)

    with pytest.raises(expected):
        list_groups(cluster, deadline)


def test_a_broker_that_is_away_is_named_beside_what_the_others_have(
    broker: FakeBroker, cluster: Cluster, deadline: Deadline
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    answer = metadata([broker])
    answer["brokers"].append({"node_id": 7, "host": "127.0.0.1", "port": port})
    broker.handlers[METADATA] = lambda _: answer
    broker.handlers[LIST_GROUPS] = answering(group("g", "", "Empty", "Classic"))
    found = list_groups(cluster, deadline)

    assert (list(found.values), found.status) == (["g"], "partial")
    assert {name: error.code for name, error in found.unreachable.items()} == {
        f"127.0.0.1:{port} (id 7)": ErrorCode.NETWORK_EXCEPTION
    }


def test_names_of_states_and_types_are_kafkas() -> None:
    assert [group_state(state.value) for state in GroupState] == list(GroupState)
    assert [group_type(kind.value.capitalize()) for kind in GroupType] == list(GroupType)
