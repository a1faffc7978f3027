"""LeaveGroup on behalf of members (KIP-345, KIP-571), and the last heartbeat of members that speak the consumer protocol.

LeaveGroup removes members of the classic protocol only; for a member of the consumer protocol it answers UNKNOWN_MEMBER_ID. Those
leave as they would themselves, with a ConsumerGroupHeartbeat of member epoch -1 (KIP-848), which carries no reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kgctl.admin.client import removal_reason
from kgctl.admin.protocol.answers import explained
from kgctl.admin.protocol.groups import describe_groups
from kgctl.admin.results import GroupResults, ItemError, Results
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupType, MemberDescription
from kgctl.wire.apis import CONSUMER_GROUP_HEARTBEAT, LEAVE_GROUP
from kgctl.wire.cluster import Cluster
from kgctl.wire.connection import Connection, Request
from kgctl.wire.deadline import Deadline
from kgctl.wire.routing import Failure, ask_coordinators

_LEAVE = -1


def remove_members(
    cluster: Cluster,
    group_id: str,
    deadline: Deadline,
    *,
    member_ids: Sequence[str] = (),
    group_instance_ids: Sequence[str] = (),
    reason: str | None = None,
) -> GroupResults[None]:
    """Results by member id or group instance id. A failure of the whole request is on each."""
    static = dict.fromkeys(group_instance_ids)
    identities = [{"member_id": member} for member in dict.fromkeys(member_ids)]
    identities += [{"member_id": "", "group_instance_id": instance} for instance in static]
    if not identities:
        return Results()
    answers = _leave(cluster, group_id, identities, removal_reason(reason), deadline)
    unknown = [key for key, code in answers.items() if code is ErrorCode.UNKNOWN_MEMBER_ID]
    if unknown:
        answers |= _leave_consumer_group(cluster, group_id, unknown, deadline)
    values = dict.fromkeys(key for key, code in answers.items() if code is ErrorCode.NONE)
    errors = {key: _error(code, group_id, key) for key, code in answers.items() if code is not ErrorCode.NONE}
    return Results(values, errors)


def _error(code: ErrorCode, group_id: str, member: str) -> ItemError:
    return explained(Failure(code), group=group_id, member=member)


def _leave(
    cluster: Cluster, group_id: str, identities: Sequence[Mapping[str, str]], reason: str, deadline: Deadline
) -> dict[str, ErrorCode]:
    members = [{"group_instance_id": None, "reason": reason, **identity} for identity in identities]

    def ask(connection: Connection, groups: list[str]) -> Mapping[str, Any]:
        answer = connection.call(LEAVE_GROUP, {"group_id": group_id, "members": members}, deadline)
        return dict.fromkeys(groups, Failure(ErrorCode(answer.error_code)) if answer.error_code else answer)

    answer = ask_coordinators(cluster, [group_id], ask, deadline)[group_id]
    keys = [member["group_instance_id"] or member["member_id"] for member in members]
    if isinstance(answer, Failure):
        return dict.fromkeys(map(str, keys), answer.code)
    found = {each.group_instance_id or each.member_id: ErrorCode(each.error_code) for each in answer.members}
    return {str(key): found.get(key, ErrorCode.UNKNOWN_SERVER_ERROR) for key in keys}


def _leave_consumer_group(cluster: Cluster, group_id: str, keys: Sequence[str], deadline: Deadline) -> dict[str, ErrorCode]:
    """Those of ``keys`` that are members by the consumer protocol after all."""
    described = describe_groups(cluster, [group_id], deadline)
    if group_id in described.errors:
        return dict.fromkeys(keys, described.errors[group_id].code)
    group = described.values[group_id]
    if group.type is not GroupType.CONSUMER:
        return {}
    members = {member.group_instance_id or member.member_id: member for member in group.members}
    members |= {member.member_id: member for member in group.members}
    found = {key: members[key] for key in keys if key in members}
    return _last_heartbeats(cluster, group_id, found, deadline) if found else {}


def _last_heartbeats(
    cluster: Cluster, group_id: str, members: Mapping[str, MemberDescription], deadline: Deadline
) -> dict[str, ErrorCode]:
    def ask(connection: Connection, groups: list[str]) -> Mapping[str, Any]:
        version = connection.version(CONSUMER_GROUP_HEARTBEAT)
        requests = [Request(CONSUMER_GROUP_HEARTBEAT, version, _last_heartbeat(group_id, member)) for member in members.values()]
        return dict.fromkeys(groups, connection.call_all(requests, deadline))

    answers = ask_coordinators(cluster, [group_id], ask, deadline)[group_id]
    if isinstance(answers, Failure):
        return dict.fromkeys(members, answers.code)
    return {key: ErrorCode(answer.error_code) for key, answer in zip(members, answers, strict=True)}


def _last_heartbeat(group_id: str, member: MemberDescription) -> dict[str, Any]:
    return {
        "group_id": group_id,
        "member_id": member.member_id,
        "member_epoch": _LEAVE,
        "instance_id": member.group_instance_id,
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": None,
        "topic_partitions": None,
    }
