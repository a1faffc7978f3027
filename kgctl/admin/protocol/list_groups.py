"""ListGroups at every broker at once: groups of every type, in the states they are in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgctl.admin.protocol.orphaned_groups import OFFSETS_TOPIC, orphaned_groups
from kgctl.admin.results import GroupResults, ItemError, Results
from kgctl.errors import AuthError, KgctlError, TimedOutError, UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupListing, GroupState, GroupType, Node
from kgctl.wire.apis import LIST_GROUPS
from kgctl.wire.cluster import Cluster
from kgctl.wire.connection import Connection
from kgctl.wire.deadline import Deadline

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
