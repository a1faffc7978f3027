"""Groups over kgctl's own connection: which there are, what they are like, removal of members, and what a user may not see.

Here is what confluent-kafka cannot do, or cannot do exactly: groups of every type, raw states, epochs, many groups a request,
removal of members. Each is a function of a `kgctl.wire.cluster.ClusterClient` and a deadline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from kgctl.admin import NO_SUCH_NAME, GroupResults, ItemError, Results, Sight, descriptions, other_type, removal_reason
from kgctl.admin.answers import explained
from kgctl.admin.descriptions import group_state, group_type
from kgctl.errors import AuthError, KgctlError, TimedOutError, UnsupportedError
from kgctl.model.access import NOT_TOLD, AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Assignment, GroupDescription, GroupListing, GroupState, GroupType, MemberDescription, Node
from kgctl.model.values import partition_for
from kgctl.wire import Deadline
from kgctl.wire.asking import (
    Failure,
    ask_coordinator,
    ask_coordinators,
    coordinator_in,
    coordinator_question,
    failure_in,
    is_worth_asking,
)
from kgctl.wire.cluster import ClusterClient, ClusterLayout, layout_of
from kgctl.wire.connection import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    LEAVE_GROUP,
    LIST_GROUPS,
    METADATA,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
    Api,
    Connection,
    Request,
)

R = TypeVar("R")

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

_LISTING_PATIENCE = 0.7
"""How much of the time left goes into brokers that are lost; the rest of them is told without their part then."""

_STATES_SINCE = 4  # KIP-518
_TYPES_SINCE = 5  # KIP-848, KIP-1043


def list_groups(
    cluster: ClusterClient, deadline: Deadline, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()
) -> GroupResults[GroupListing]:
    """All groups, sorted by id. A broker that does not answer is in ``unreachable``; raises its error when none answers.

    So are brokers that are gone and took the only copy of their groups with them (`orphaned_groups`).

    What a broker is too old to tell is found out otherwise: before Kafka 2.6 the states, by describing the groups; before 3.8 the
    types, which are classic where there is no other. `kgctl.errors.UnsupportedError` where types are asked for between the two.
    """
    filters = {"states_filter": [state.value for state in states], "types_filter": [kind.value for kind in types]}

    def ask(connection: Connection, node: Node) -> _Listed:
        _check_filters(connection, types)
        found = _ask_until_loaded(connection, filters, deadline)
        listings = [_listing(group, node, _only_type(connection)) for group in found.groups]
        if connection.version(LIST_GROUPS) < _STATES_SINCE:
            listings = _with_states(connection, listings, deadline)
        return found._replace(groups=[each for each in listings if _is_wanted(each, states, types)])

    until, waits = deadline.part(_LISTING_PATIENCE), cluster.settings.reconnect.waits_s()
    listed: dict[Node, _Listed] = {}
    while True:
        layout = cluster.layout([OFFSETS_TOPIC], deadline)
        held = {
            node: listed[node] for node in layout.nodes.values() if node in listed and listed[node].leaders == _leaders(layout)
        }
        answers = cluster.on_each({node: node for node in layout.nodes.values() if node not in held}, ask, deadline)
        failed = {node: answer for node, answer in answers.items() if isinstance(answer, KgctlError)}
        listed = held | {node: answer for node, answer in answers.items() if isinstance(answer, _Listed)}
        has_moved = any(each.leaders != _leaders(layout) for each in listed.values())
        if not ((has_moved or any(map(is_worth_asking, failed.values()))) and until.wait(next(waits))):
            break
    if failed and not listed:
        raise next(iter(failed.values()))
    listings = [listing for each in listed.values() for listing in each.groups]
    unloaded = {node: each for node, each in listed.items() if each.unloaded}
    return Results(
        {listing.group_id: listing for listing in sorted(listings, key=lambda listing: listing.group_id)},
        {},
        {**_by_broker(failed, _broker_error), **_by_broker(unloaded, _not_loaded), **orphaned_groups(layout)},
    )


def _by_broker(found: Mapping[Node, R], told: Callable[[R], ItemError]) -> dict[str, ItemError]:
    return {f"{node} (id {node.node_id})": told(each) for node, each in found.items()}


def _check_filters(connection: Connection, types: Sequence[GroupType]) -> None:
    if types and connection.version(LIST_GROUPS) < _TYPES_SINCE and _only_type(connection) is GroupType.UNKNOWN:
        raise UnsupportedError(f"{connection.address} is too old to filter groups by type")


def _only_type(connection: Connection) -> GroupType:
    """CLASSIC where this broker has no groups of another protocol, else UNKNOWN, until it says which."""
    return GroupType.UNKNOWN if connection.versions.has(CONSUMER_GROUP_HEARTBEAT) else GroupType.CLASSIC


def _with_states(connection: Connection, listings: Sequence[GroupListing], deadline: Deadline) -> list[GroupListing]:
    """The groups with the states that DescribeGroups tells, as it has always done."""
    found = {each.group_id: each for each in listings}
    for part in _describe(connection, list(found), deadline):
        for group_id, answer in part.items():
            if isinstance(answer, GroupDescription):
                found[group_id] = replace(found[group_id], state=answer.state)
    return list(found.values())


def _is_wanted(listing: GroupListing, states: Sequence[GroupState], types: Sequence[GroupType]) -> bool:
    """Whether it passes the filters, which an old broker does not know."""
    return (not states or listing.state in states) and (not types or listing.type in types)


class _Listed(NamedTuple):
    """What one broker lists, and who leads what of the offsets topic as it knows it then; ``unloaded`` are the partitions that it
    leads and has no groups of yet."""

    groups: Sequence[Any]
    leaders: Mapping[int, int]
    unloaded: Sequence[int] = ()


def _not_loaded(listed: _Listed) -> ItemError:
    count, total = len(listed.unloaded), len(listed.leaders)
    what = f"groups on {count} of {total} partitions of {OFFSETS_TOPIC} are not loaded and not listed"
    return ItemError(ErrorCode.COORDINATOR_NOT_AVAILABLE, what)


def _leaders(layout: ClusterLayout) -> Mapping[int, int]:
    topic = layout.topics.get(OFFSETS_TOPIC)
    return topic.leaders if topic else {}


_ABOUT_OFFSETS = {"topics": [{"name": OFFSETS_TOPIC}], "allow_auto_topic_creation": False}


def _ask_until_loaded(connection: Connection, filters: dict[str, list[str]], deadline: Deadline) -> _Listed:
    """A broker that is still loading groups would leave them out: it says so, and is asked again.

    Groups that are being handed over may be listed by neither broker: who leads what is asked for with them, of each broker, and
    they are all asked again where that is not the same everywhere. A broker knows that it leads a partition some time before it
    coordinates its groups, and lists none of them meanwhile, without a word: where none is listed it is asked about one
    (`_name_on`), and lists once more behind that.
    """
    until, probes = deadline.part(_LOADING_PATIENCE), dict[int, str]()
    while True:
        asked: list[tuple[Api, Mapping[str, Any]]] = [(LIST_GROUPS, filters), (METADATA, _ABOUT_OFFSETS)]
        if probes:
            asked.insert(0, (DESCRIBE_GROUPS, {"groups": [*probes.values()]}))
        requests = [Request(api, connection.version(api), values) for api, values in asked]
        *told, answer, metadata = connection.call_all(requests, deadline)
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            leaders = _leaders(layout_of(metadata))
            silent = _without_groups(connection, leaders, answer.groups)
            unloaded = [each for each in _unloaded(connection, probes, told, deadline) if each in silent]
            is_told = silent <= probes.keys() and not unloaded
            probes = {partition: _name_on(partition, len(leaders)) for partition in sorted(silent)}
            if is_told or (unloaded and not until.wait(0.05)) or until.is_over:
                return _Listed(list(answer.groups), leaders, unloaded)
        elif not (code.is_retriable and until.wait(0.05)):
            raise ItemError(code, f"{connection.address}: {code.name}").to_exception()


_MOST_HASHED = 1_000
"""Of more groups, those behind these are not looked at to find partitions without any."""


def _without_groups(connection: Connection, leaders: Mapping[int, int], groups: Sequence[Any]) -> set[int]:
    """The partitions that this broker leads and of which it lists no group: none, but in a small cluster."""
    own = connection.node.node_id if connection.node else None
    silent = {partition for partition, leader in leaders.items() if leader == own}
    for group in groups[:_MOST_HASHED]:
        if not silent:
            break
        silent.discard(partition_for(group.group_id, len(leaders)))
    return silent


def _name_on(partition: int, count: int) -> str:
    """A group id that Kafka puts on this one of so many partitions: a single character, whose hash is its code."""
    return chr(33 + (partition - 33) % count)


_NOT_THE_COORDINATOR = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


def _unloaded(connection: Connection, probes: Mapping[int, str], told: Sequence[Any], deadline: Deadline) -> list[int]:
    """The partitions of whose group the broker says that it is not the coordinator, although it is to be asked about that by its
    own word. Another's word means that groups are not spread there as by Kafka."""
    refused = {group.group_id for answer in told for group in answer.groups if group.error_code in _NOT_THE_COORDINATOR}
    if not refused:
        return []
    name = min(refused)
    version = connection.version(FIND_COORDINATOR)
    found = coordinator_in(connection.call(FIND_COORDINATOR, coordinator_question(name, version), deadline), name)
    is_own = isinstance(found, Node) and connection.node is not None and found.node_id == connection.node.node_id
    return [partition for partition, each in probes.items() if each in refused] if is_own else []


def _listing(group: Any, node: Node, only_type: GroupType) -> GroupListing:
    return GroupListing(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        state=group_state(getattr(group, "group_state", "")),
        type=group_type(getattr(group, "group_type", only_type.value)),
        coordinator=node,
    )


def _broker_error(error: KgctlError) -> ItemError:
    if isinstance(error, TimedOutError):
        return ItemError(ErrorCode.REQUEST_TIMED_OUT, error.message)
    if isinstance(error, AuthError):
        return ItemError(ErrorCode.SASL_AUTHENTICATION_FAILED, error.message)
    return ItemError(ErrorCode.NETWORK_EXCEPTION, error.message)


GROUPS_PER_REQUEST = 100
_NOT_OF_THIS_TYPE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})

Answer = GroupDescription | Failure


def describe_groups(cluster: ClusterClient, group_ids: Sequence[str], deadline: Deadline) -> GroupResults[GroupDescription]:
    """Each group, of any type.

    A missing group has the error GROUP_ID_NOT_FOUND, one of a type that its broker cannot describe INCONSISTENT_GROUP_PROTOCOL
    with a message that names the type.
    """

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Answer]]:
        missing: list[str] = []
        for part in _describe(connection, groups, deadline):
            missing += [group for group, answer in part.items() if _is_missing(answer)]
            yield {group: answer for group, answer in part.items() if not _is_missing(answer)}
        if missing:
            yield _missing(connection, missing, deadline)

    answers = ask_coordinators(cluster, group_ids, ask, deadline)
    values = {group: answer for group, answer in answers.items() if isinstance(answer, GroupDescription)}
    errors = {group: _error(group, answer) for group, answer in answers.items() if isinstance(answer, Failure)}
    return Results(descriptions.with_assignments(cluster, values, deadline), errors)


def _error(group: str, failure: Failure) -> ItemError:
    if failure.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
        return ItemError(failure.code, failure.message or failure.code.name)
    return explained(failure, group=group)


def _is_missing(answer: Answer) -> bool:
    return isinstance(answer, Failure) and answer.code is ErrorCode.GROUP_ID_NOT_FOUND


def _describe(connection: Connection, groups: list[str], deadline: Deadline) -> Iterator[dict[str, Answer]]:
    """Both requests for each hundred groups, sent ahead of their answers; the answers of a hundred at a time."""
    has_consumer_groups = connection.versions.has(CONSUMER_GROUP_DESCRIBE)
    requests: list[Request] = []
    for start in range(0, len(groups), GROUPS_PER_REQUEST):
        batch = groups[start : start + GROUPS_PER_REQUEST]
        requests.append(Request(DESCRIBE_GROUPS, connection.version(DESCRIBE_GROUPS), {"groups": batch}))
        if has_consumer_groups:
            version = connection.version(CONSUMER_GROUP_DESCRIBE)
            requests.append(Request(CONSUMER_GROUP_DESCRIBE, version, {"group_ids": batch}))
    answers: dict[str, Answer] = {}
    for request, response in zip(requests, connection.stream(requests, deadline), strict=True):
        for group in response.groups:
            answers[group.group_id] = _better(answers.get(group.group_id), _described(request.api, group, connection))
        if request.api is CONSUMER_GROUP_DESCRIBE or not has_consumer_groups:
            yield answers
            answers = {}


def _better(first: Answer | None, second: Answer) -> Answer:
    """A description, else the error that says more than "not one of mine"."""
    if first is None or isinstance(second, GroupDescription):
        return second
    if isinstance(first, Failure) and first.code is ErrorCode.GROUP_ID_NOT_FOUND and second.code not in _NOT_OF_THIS_TYPE:
        return second
    return first


def _described(api: Api, group: Any, connection: Connection) -> Answer:
    """Brokers before DescribeGroups version 6 answer Dead, without members, for a group that does not exist."""
    if failure := failure_in(group):
        return failure
    if group.group_state == GroupState.DEAD and not group.members and api is DESCRIBE_GROUPS:
        return Failure(ErrorCode.GROUP_ID_NOT_FOUND)
    kind, of_member = _MEMBER[api]
    members = (of_member(group, each) for each in group.members)
    return descriptions.description(group, group.group_state, kind, members, connection.node)


def _of_share(told: Any) -> MemberDescription:
    topics = tuple(sorted(told.subscribed_topic_names))
    return descriptions.member(told, assignment=_by_topic(told.assignment), subscribed_topics=topics)


def _by_topic(assignment: Any) -> Assignment:
    topics = sorted(assignment.topic_partitions, key=lambda topic: topic.topic_name)
    return {topic.topic_name: tuple(sorted(topic.partitions)) for topic in topics}


_MEMBER: Mapping[Api, tuple[GroupType, Callable[[Any, Any], MemberDescription]]] = {
    DESCRIBE_GROUPS: (
        GroupType.CLASSIC,
        lambda group, each: descriptions.classic_member(group, each, each.member_metadata, each.member_assignment),
    ),
    CONSUMER_GROUP_DESCRIBE: (GroupType.CONSUMER, lambda _, each: descriptions.consumer_member(each, _by_topic)),
    SHARE_GROUP_DESCRIBE: (GroupType.SHARE, lambda _, each: _of_share(each)),
    STREAMS_GROUP_DESCRIBE: (GroupType.STREAMS, lambda _, each: descriptions.member_of(each)),
}
"""Of the groups that an API describes: their type, and how one of their members is read."""
_BY_TYPE = {_MEMBER[api][0]: api for api in (SHARE_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE)}


def _missing(connection: Connection, groups: list[str], deadline: Deadline) -> dict[str, Answer]:
    """What is neither classic nor of the consumer protocol: share and streams groups, where the broker knows such. Those that
    exist all the same, by ListGroups of the same broker, have an error that names their type."""
    apis = [api for api in _BY_TYPE.values() if connection.versions.has(api)]
    requests = [Request(api, connection.version(api), {"group_ids": groups}) for api in apis]
    *answers, listed = connection.call_all([*requests, Request(LIST_GROUPS, connection.version(LIST_GROUPS), {})], deadline)
    kinds = {group.group_id: group for group in listed.groups}
    found: dict[str, Answer] = {group: _undescribed(group, kinds.get(group), connection) for group in groups}
    for api, answer in zip(apis, answers, strict=True):
        for group in answer.groups:
            described = _described(api, group, connection)
            if isinstance(described, GroupDescription) or described.code not in _NOT_OF_THIS_TYPE:
                found[group.group_id] = described
    return found


def _undescribed(group: str, listed: Any, connection: Connection) -> Failure:
    """A group that does not exist; or one that is listed, and cannot be described by this broker, or not by this user."""
    if listed is None:
        return Failure(ErrorCode.GROUP_ID_NOT_FOUND)
    kind = group_type(getattr(listed, "group_type", ""))
    api = _BY_TYPE.get(kind)
    if api is not None and not connection.versions.has(api):
        error = other_type(group, f"{kind.value} group, which brokers tell about since Kafka {api.since}")
    else:
        is_own = kind not in (GroupType.UNKNOWN, GroupType.CLASSIC)
        error = other_type(group, f"{kind.value} group" if is_own else f"group of protocol type '{listed.protocol_type}'")
    return Failure(error.code, error.message)


_LEAVE = -1


def remove_members(
    cluster: ClusterClient,
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
    failed = {key: Failure(code) for key, code in answers.items() if code is not ErrorCode.NONE}
    return Results(values, {key: explained(failure, group=group_id, member=key) for key, failure in failed.items()})


def _leave(
    cluster: ClusterClient, group_id: str, identities: Sequence[Mapping[str, str]], reason: str, deadline: Deadline
) -> dict[str, ErrorCode]:
    members = [{"group_instance_id": None, "reason": reason, **identity} for identity in identities]
    answer = ask_coordinator(cluster, group_id, LEAVE_GROUP, {"group_id": group_id, "members": members}, deadline)
    keys = [member["group_instance_id"] or member["member_id"] for member in members]
    if isinstance(answer, Failure):
        return dict.fromkeys(map(str, keys), answer.code)
    found = {each.group_instance_id or each.member_id: ErrorCode(each.error_code) for each in answer.members}
    return {str(key): found.get(key, ErrorCode.UNKNOWN_SERVER_ERROR) for key in keys}


def _leave_consumer_group(cluster: ClusterClient, group_id: str, keys: Sequence[str], deadline: Deadline) -> dict[str, ErrorCode]:
    """Those of ``keys`` that are members by the consumer protocol after all."""
    described = describe_groups(cluster, [group_id], deadline)
    if group_id in described.errors:
        return dict.fromkeys(keys, described.errors[group_id].code)
    group = described.values[group_id]
    if group.type is not GroupType.CONSUMER:
        return {} if group.type is GroupType.CLASSIC else dict.fromkeys(keys, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    members = {member.group_instance_id or member.member_id: member for member in group.members}
    members |= {member.member_id: member for member in group.members}
    found = {key: members[key] for key in keys if key in members}
    return _last_heartbeats(cluster, group_id, found, deadline) if found else {}


def _last_heartbeats(
    cluster: ClusterClient, group_id: str, members: Mapping[str, MemberDescription], deadline: Deadline
) -> dict[str, ErrorCode]:
    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Any]]:
        version = connection.version(CONSUMER_GROUP_HEARTBEAT)
        requests = [Request(CONSUMER_GROUP_HEARTBEAT, version, _last_heartbeat(group_id, member)) for member in members.values()]
        yield dict.fromkeys(groups, connection.call_all(requests, deadline))

    answers = ask_coordinators(cluster, [group_id], ask, deadline, is_idempotent=False)[group_id]
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


def sight(cluster: ClusterClient, deadline: Deadline, user: str | None) -> Sight:
    """Both questions in one go, at any broker.

    DescribeGroups looks at the right before anything else (KafkaApis#handleDescribeGroupsRequest), and Metadata answers
    TOPIC_AUTHORIZATION_FAILED for a topic that may not be described, there or not. ListGroups has all groups also for whoever may
    describe the cluster.
    """
    about_topics = {"topics": [{"name": NO_SUCH_NAME}], "allow_auto_topic_creation": False}

    def ask(connection: Connection) -> list[Any]:
        asked = ((DESCRIBE_GROUPS, {"groups": [NO_SUCH_NAME]}), (METADATA, about_topics))
        return connection.call_all([Request(api, connection.version(api), values) for api, values in asked], deadline)

    groups, topics = cluster.ask(ask, deadline)
    is_denied = any(group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED for group in groups.groups)
    return Sight(
        all_groups=not is_denied or cluster.ask(lambda connection: _may_describe_cluster(connection, deadline), deadline),
        all_topics=not any(topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED for topic in topics.topics),
        user=user,
    )


def _may_describe_cluster(connection: Connection, deadline: Deadline) -> bool:
    if not connection.versions.has(DESCRIBE_CLUSTER):
        return False
    answer = connection.call(DESCRIBE_CLUSTER, {"include_cluster_authorized_operations": True}, deadline)
    operations: int = answer.cluster_authorized_operations
    return operations != NOT_TOLD and bool(operations & AclOperation.DESCRIBE.bit)
