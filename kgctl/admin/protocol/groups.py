"""Which groups there are (ListGroups at every broker), and what they are like (DescribeGroups, ConsumerGroupDescribe).

A group is described by the request of its type, so both are asked at once. One that answers to neither does not exist, or is of
a type whose members are described elsewhere (share, streams): ListGroups tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kgctl.admin.protocol.answers import explained
from kgctl.admin.results import GroupResults, ItemError, Results, other_type
from kgctl.errors import AuthError, KgctlError, TimedOutError, UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Assignment, GroupDescription, GroupListing, GroupState, GroupType, MemberDescription, Node
from kgctl.serde.consumer_protocol import decode_assignment_by_topic, decode_subscription
from kgctl.wire.apis import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, LIST_GROUPS
from kgctl.wire.cluster import Cluster, ClusterLayout
from kgctl.wire.connection import Connection, Request
from kgctl.wire.deadline import Deadline
from kgctl.wire.routing import Failure, ask_coordinators

OFFSETS_TOPIC = "__consumer_offsets"


def orphaned_groups(layout: ClusterLayout) -> Mapping[str, ItemError]:
    """Who is missing ("broker 2", or the topic where its replicas are all up) and what is not listed for want of it.

    Nothing where the topic is not there yet, or this user may not see it: then nobody can tell.
    """
    topic = layout.topics.get(OFFSETS_TOPIC)
    if topic is None:
        return {}
    missing: Counter[str] = Counter()
    for partition, leader in topic.leaders.items():
        if leader < 0:
            missing[_culprit(layout, topic.replicas.get(partition, ()))] += 1
    return {who: _orphans(who, count, len(topic.leaders)) for who, count in sorted(missing.items())}


def _culprit(layout: ClusterLayout, replicas: tuple[int, ...]) -> str:
    """The brokers that have the partition and are not in the cluster."""
    gone = [str(node_id) for node_id in sorted(replicas) if node_id not in layout.nodes]
    return f"broker{'s' if len(gone) > 1 else ''} {', '.join(gone)}" if gone else OFFSETS_TOPIC


def _orphans(who: str, count: int, total: int) -> ItemError:
    what = f"groups on {count} of {total} partitions of {OFFSETS_TOPIC} have no coordinator and are not listed"
    return ItemError(ErrorCode.COORDINATOR_NOT_AVAILABLE, what if who == OFFSETS_TOPIC else f"{who} down: {what}")


_LOADING_PATIENCE = 0.7
"""How much of the time left a broker that is still loading is asked again, before that is the answer."""

_STATES_SINCE = 4  # KIP-518
_TYPES_SINCE = 5  # KIP-848, KIP-1043


def list_groups(
    cluster: Cluster, deadline: Deadline, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()
) -> GroupResults[GroupListing]:
    """All groups, sorted by id. A broker that does not answer is in ``unreachable``; raises its error when none answers.

    So are brokers that are gone and took the only copy of their groups with them (`orphaned_groups`).

    `kgctl.errors.UnsupportedError` when a filter is asked for that an old broker does not have.
    """
    layout = cluster.layout([OFFSETS_TOPIC], deadline)
    filters = {"states_filter": [state.value for state in states], "types_filter": [kind.value for kind in types]}

    def ask(connection: Connection, node: Node) -> list[GroupListing]:
        _check_filters(connection, states, types)
        return [_listing(group, node) for group in _ask_until_loaded(connection, filters, deadline)]

    answers = cluster.on_each({node: node for node in layout.nodes.values()}, ask, deadline)
    failed = {node: answer for node, answer in answers.items() if isinstance(answer, KgctlError)}
    if failed and len(failed) == len(answers):
        raise next(iter(failed.values()))
    listings = [listing for answer in answers.values() if not isinstance(answer, KgctlError) for listing in answer]
    return Results(
        {listing.group_id: listing for listing in sorted(listings, key=lambda listing: listing.group_id)},
        {},
        {**{f"{node} (id {node.node_id})": _broker_error(error) for node, error in failed.items()}, **orphaned_groups(layout)},
    )


def _check_filters(connection: Connection, states: Sequence[GroupState], types: Sequence[GroupType]) -> None:
    version = connection.version(LIST_GROUPS)
    if (states and version < _STATES_SINCE) or (types and version < _TYPES_SINCE):
        what = "state" if version < _STATES_SINCE and states else "type"
        raise UnsupportedError(f"{connection.address} is too old to filter groups by {what}")


def _ask_until_loaded(connection: Connection, filters: dict[str, list[str]], deadline: Deadline) -> Sequence[Any]:
    """A broker that is still loading groups would leave them out: it says so, and is asked again."""
    until = deadline.part(_LOADING_PATIENCE)
    while True:
        answer = connection.call(LIST_GROUPS, filters, deadline)
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            return list(answer.groups)
        if not (code.is_retriable and until.wait(0.05)):
            raise ItemError(code, f"{connection.address}: {code.name}").to_exception()


def _listing(group: Any, node: Node) -> GroupListing:
    return GroupListing(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        state=group_state(getattr(group, "group_state", "")),
        type=group_type(getattr(group, "group_type", "")),
        coordinator=node,
    )


def group_state(text: str) -> GroupState:
    """The state by Kafka's name; UNKNOWN for one of a newer Kafka."""
    try:
        return GroupState(text)
    except ValueError:
        return GroupState.UNKNOWN


def group_type(text: str) -> GroupType:
    """The type by Kafka's name; UNKNOWN for one of a newer Kafka."""
    try:
        return GroupType(text.lower())
    except ValueError:
        return GroupType.UNKNOWN


def _broker_error(error: KgctlError) -> ItemError:
    if isinstance(error, TimedOutError):
        return ItemError(ErrorCode.REQUEST_TIMED_OUT, error.message)
    if isinstance(error, AuthError):
        return ItemError(ErrorCode.SASL_AUTHENTICATION_FAILED, error.message)
    return ItemError(ErrorCode.NETWORK_EXCEPTION, error.message)


_GROUPS_PER_REQUEST = 100
_CONSUMER = "consumer"
_CLASSIC_MEMBER = 0
_MEMBER_TYPES = (0, 1)
_NOT_OF_THIS_TYPE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})

Answer = GroupDescription | Failure


def describe_groups(cluster: Cluster, group_ids: Sequence[str], deadline: Deadline) -> GroupResults[GroupDescription]:
    """Each group of the classic or the consumer protocol.

    A missing group has the error GROUP_ID_NOT_FOUND, a group of another type INCONSISTENT_GROUP_PROTOCOL with a message that
    names the type.
    """

    def ask(connection: Connection, groups: list[str]) -> Mapping[str, Answer]:
        answers = _describe(connection, groups, deadline)
        missing = [group for group, answer in answers.items() if _is_missing(answer)]
        return answers | _of_other_types(connection, missing, deadline) if missing else answers

    answers = ask_coordinators(cluster, group_ids, ask, deadline)
    values = {group: answer for group, answer in answers.items() if isinstance(answer, GroupDescription)}
    errors = {group: _error(group, answer) for group, answer in answers.items() if isinstance(answer, Failure)}
    return Results(values, errors)


def _error(group: str, failure: Failure) -> ItemError:
    if failure.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
        return ItemError(failure.code, failure.message or failure.code.name)
    return explained(failure, group=group)


def _is_missing(answer: Answer) -> bool:
    return isinstance(answer, Failure) and answer.code is ErrorCode.GROUP_ID_NOT_FOUND


def _describe(connection: Connection, groups: list[str], deadline: Deadline) -> dict[str, Answer]:
    """Both requests for each hundred groups, sent ahead of their answers."""
    has_consumer_groups = connection.versions.has(CONSUMER_GROUP_DESCRIBE)
    requests: list[Request] = []
    for start in range(0, len(groups), _GROUPS_PER_REQUEST):
        batch = groups[start : start + _GROUPS_PER_REQUEST]
        requests.append(Request(DESCRIBE_GROUPS, connection.version(DESCRIBE_GROUPS), {"groups": batch}))
        if has_consumer_groups:
            version = connection.version(CONSUMER_GROUP_DESCRIBE)
            requests.append(Request(CONSUMER_GROUP_DESCRIBE, version, {"group_ids": batch}))
    answers: dict[str, Answer] = {}
    for request, response in zip(requests, connection.stream(requests, deadline), strict=True):
        of_one = _classic_group if request.api is DESCRIBE_GROUPS else _consumer_group
        for group in response.groups:
            known = answers.get(group.group_id)
            answers[group.group_id] = _better(known, of_one(group, connection))
    return answers


def _better(first: Answer | None, second: Answer) -> Answer:
    """A description, else the error that says more than "not one of mine"."""
    if first is None or isinstance(second, GroupDescription):
        return second
    if isinstance(first, Failure) and first.code is ErrorCode.GROUP_ID_NOT_FOUND and second.code not in _NOT_OF_THIS_TYPE:
        return second
    return first


def _classic_group(group: Any, connection: Connection) -> Answer:
    """Brokers before DescribeGroups version 6 answer Dead, without members, for a group that does not exist."""
    if group.error_code:
        return Failure(ErrorCode(group.error_code), getattr(group, "error_message", None))
    state = group_state(group.group_state)
    if state is GroupState.DEAD and not group.members:
        return Failure(ErrorCode.GROUP_ID_NOT_FOUND)
    is_of_consumers = group.protocol_type == _CONSUMER
    members = (_classic_member(member, is_of_consumers=is_of_consumers) for member in group.members)
    return GroupDescription(
        group_id=group.group_id,
        state=state,
        type=GroupType.CLASSIC,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data or None,
        coordinator=connection.node,
        members=tuple(sorted(members, key=lambda member: member.member_id)),
    )


def _classic_member(member: Any, *, is_of_consumers: bool) -> MemberDescription:
    assignment: Assignment | None = None
    topics: tuple[str, ...] | None = None
    rack: str | None = None
    if is_of_consumers:
        assignment = _assignment_of(member.member_assignment)
        topics, rack = _subscription_of(member.member_metadata)
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        group_instance_id=getattr(member, "group_instance_id", None),
        rack_id=rack,
        assignment=assignment,
        subscribed_topics=topics,
    )


def _assignment_of(data: bytes) -> Assignment | None:
    """None between two generations (no bytes), or where the bytes are not those of a consumer."""
    try:
        by_topic = decode_assignment_by_topic(bytes(data)) if data else None
    except ValueError:
        return None
    return None if by_topic is None else {topic: tuple(sorted(by_topic[topic])) for topic in sorted(by_topic)}


def _subscription_of(data: bytes) -> tuple[tuple[str, ...] | None, str | None]:
    try:
        subscription = decode_subscription(bytes(data)) if data else None
    except ValueError:
        return None, None
    return (tuple(sorted(subscription.topics)), subscription.rack_id) if subscription else (None, None)


def _consumer_group(group: Any, connection: Connection) -> Answer:
    if group.error_code:
        return Failure(ErrorCode(group.error_code), group.error_message)
    return GroupDescription(
        group_id=group.group_id,
        state=group_state(group.group_state),
        type=GroupType.CONSUMER,
        protocol_type=_CONSUMER,
        assignor=group.assignor_name or None,
        coordinator=connection.node,
        members=tuple(sorted(map(_consumer_member, group.members), key=lambda member: member.member_id)),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
    )


def _consumer_member(member: Any) -> MemberDescription:
    kind = getattr(member, "member_type", None)
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        group_instance_id=member.instance_id,
        rack_id=member.rack_id,
        assignment=_by_topic(member.assignment),
        target_assignment=_by_topic(member.target_assignment),
        subscribed_topics=tuple(sorted(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex or None,
        member_epoch=member.member_epoch,
        is_classic_in_consumer_group=kind == _CLASSIC_MEMBER if kind in _MEMBER_TYPES else None,
    )


def _by_topic(assignment: Any) -> Assignment:
    topics = sorted(assignment.topic_partitions, key=lambda topic: topic.topic_name)
    return {topic.topic_name: tuple(sorted(topic.partitions)) for topic in topics}


def _of_other_types(connection: Connection, groups: list[str], deadline: Deadline) -> dict[str, Answer]:
    """Those of ``groups`` that exist all the same, by ListGroups of the same broker, with an error that names their type."""
    listed = {group.group_id: group for group in connection.call(LIST_GROUPS, {}, deadline).groups}
    found: dict[str, Answer] = {}
    for group in groups:
        if group in listed:
            kind = group_type(getattr(listed[group], "group_type", "")).value
            protocol = listed[group].protocol_type
            named = f"{kind} group" if kind not in ("unknown", "classic") else f"group of protocol type '{protocol}'"
            error = other_type(group, named)
            found[group] = Failure(error.code, error.message)
    return found
