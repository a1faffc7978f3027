"""LeaveGroup for classic members, the last heartbeat for members of the consumer protocol."""

from __future__ import annotations

from typing import Any

from kgctl.admin.protocol.groups import remove_members
from kgctl.model.error_codes import ErrorCode
from kgctl.serde.messages import DecodedRequest
from kgctl.wire.cluster import Cluster
from kgctl.wire.connection import CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT, DESCRIBE_GROUPS, LEAVE_GROUP, LIST_GROUPS
from kgctl.wire.deadline import Deadline
from tests.support.fake_broker import FakeBroker, Handler

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


def test_members_leave_by_id_or_by_instance_id(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
    broker.handlers[LEAVE_GROUP] = leaving()
    found = remove_members(cluster, "g", deadline, member_ids=["m", "m"], group_instance_ids=["i"], reason="why not")
    (asked,) = broker.asked(LEAVE_GROUP)

    assert (found.values, found.errors) == ({"m": None, "i": None}, {})
    assert [(each.member_id, each.group_instance_id, each.reason) for each in asked.members] == [
        ("m", None, "kgctl: why not"),
        ("", "i", "kgctl: why not"),
    ]


def test_a_long_reason_is_cut_to_what_brokers_take(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
    broker.handlers[LEAVE_GROUP] = leaving()
    remove_members(cluster, "g", deadline, member_ids=["m"], reason="x" * 300)

    assert len(broker.asked(LEAVE_GROUP)[0].members[0].reason) == 255


def test_a_member_that_is_not_there_is_an_error_of_its_own(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
    broker.handlers[LEAVE_GROUP] = leaving(nobody=UNKNOWN)
    not_a_consumer_group(broker)
    found = remove_members(cluster, "g", deadline, member_ids=["m", "nobody"])

    assert found.values == {"m": None}
    assert found.errors["nobody"].message == "group 'g' has no member 'nobody'"


def test_a_group_that_is_not_there_is_told(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
    broker.handlers[LEAVE_GROUP] = lambda _: {"error_code": UNKNOWN}
    not_a_consumer_group(broker, ErrorCode.GROUP_ID_NOT_FOUND)
    found = remove_members(cluster, "g", deadline, member_ids=["m"], group_instance_ids=["i"])

    assert {key: error.code for key, error in found.errors.items()} == dict.fromkeys("mi", ErrorCode.GROUP_ID_NOT_FOUND)


def test_an_error_of_the_whole_request_is_on_each_member(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
    broker.handlers[LEAVE_GROUP] = lambda _: {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED.value}
    found = remove_members(cluster, "g", deadline, member_ids=["m"], group_instance_ids=["i"])

    assert {error.message for error in found.errors.values()} == {"not authorised for group 'g'"}


def test_members_of_the_consumer_protocol_leave_by_a_last_heartbeat(
    broker: FakeBroker, cluster: Cluster, deadline: Deadline
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


def test_nobody_to_remove_is_nothing_sent(broker: FakeBroker, cluster: Cluster, deadline: Deadline) -> None:
    assert remove_members(cluster, "g", deadline).status == "ok"
    assert broker.requests == []
