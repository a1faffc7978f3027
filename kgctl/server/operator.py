"""How a server is doing, as plain data; how an operator asks a running one; and a page of metrics for Prometheus.

An operator asks over the listener that clients use: a frame whose API key is `OPERATOR_KEY`, far from Kafka's, holds a JSON
object behind the usual header; so does its answer. It needs the same login as any request, and a right where there is an
authorizer; it is not among the versions that ApiVersions tells. The page of metrics needs prometheus-client (the extra
``metrics``).
"""

from __future__ import annotations

import json
import os
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Any

from kgctl.coordinator.classic.group import ClassicGroup, ClassicMember
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.errors import AuthError, KgctlError, NotFoundError, RefusedError, UnreachableError
from kgctl.extras import require
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import Done, ForceCompleteRebalance, RebalanceStatus, Result
from kgctl.model.values import frozen_in_order
from kgctl.server.acls import Who
from kgctl.server.request_context import Services
from kgctl.server.traffic import Host, Work

if TYPE_CHECKING:
    from kgctl.wire import Deadline
    from kgctl.wire.connection import Connection


@frozen_in_order
class Wanted:
    """Which groups an operator asks for: these, or all; only those with a rebalance under way; with their members."""

    groups: tuple[str, ...] = ()
    only_rebalancing: bool = False
    with_members: bool = False


_ALL = Wanted()


def rebalances(services: Services) -> Work[list[RebalanceStatus]]:
    """Where each group's rebalance stands that is not over, by group id."""
    core, now_ms = services.runtime.core, services.runtime.clock()
    found = []
    for group_id in sorted(core.shard.groups):
        yield None
        status = core.rebalance_status(group_id, now_ms)
        if status is not None and status.waiting_for is not None:
            found.append(status)
    return found


def _counts(services: Services) -> Work[dict[str, Any]]:
    """Groups by type and state, members by type, offsets."""
    core = services.runtime.core
    groups: Counter[tuple[str, str]] = Counter()
    members: Counter[str] = Counter()
    for group_id in list(core.shard.groups):
        yield None
        group = core.shard.groups.get(group_id)
        if group is not None:
            groups[group.type.value, group.group_state.value] += 1
            members[group.type.value] += group.member_count
    return {
        "groups": [{"type": kind, "state": state, "count": count} for (kind, state), count in sorted(groups.items())],
        "members": dict(members),
        "offsets": len(core.shard.offsets),
    }


def status(services: Services, host: Host) -> Work[dict[str, Any]]:
    """Everything that an operator is told, rebalances under way among it."""
    watch = host.watch
    uptime_s = monotonic() - watch.started_s
    counts = yield from _counts(services)
    under_way = yield from rebalances(services)
    return {
        "process_id": os.getpid(),
        "uptime_s": round(uptime_s, 1),
        "connections": len(host.connections),
        "requests": sum(watch.requests.values()),
        "requests_by_api": {str(key): count for key, count in sorted(watch.requests.items())},
        "requests_per_s": round(watch.rate(), 1),
        "loop_delay_ms": round(watch.delay_s * 1000, 1),
        "longest_loop_delay_ms": round(watch.longest_delay_s * 1000, 1),
        "longest_hold_ms": round(watch.longest_s * 1000, 1),
        "longest_hold": watch.longest,
        "held_too_long": watch.held_too_long,
        "bytes_in_flight": host.budget.used,
        "memory_bytes": memory_bytes(),
        **counts,
        "rebalances": [asdict(rebalance) for rebalance in under_way],
    }


def memory_bytes() -> int | None:
    """What the process keeps in memory now; None where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no file of a user's
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def group_rows(services: Services, wanted: Wanted) -> Work[list[dict[str, Any]]]:
    """One row a group, by id: its state, its generation, whom its rebalance waits for; its members where they are wanted."""
    core, now_ms = services.runtime.core, services.runtime.clock()
    rows = []
    for group_id in wanted.groups or sorted(core.shard.groups):
        yield None
        group, rebalance = core.shard.groups.get(group_id), core.rebalance_status(group_id, now_ms)
        if group is None or rebalance is None or (wanted.only_rebalancing and rebalance.waiting_for is None):
            continue
        activity = services.runtime.activity
        row = _row(group, rebalance, now_ms)
        row |= {"created_ms": activity.created_ms.get(group_id), "last_activity_ms": activity.last_ms.get(group_id)}
        if wanted.with_members:
            row["member_rows"] = yield from _members(services, group)
        rows.append(row)
    return rows


def _row(group: Any, rebalance: RebalanceStatus, now_ms: int) -> dict[str, Any]:
    waits, classic = rebalance.waiting_for is not None, group if isinstance(group, ClassicGroup) else None
    return {
        "group": group.group_id,
        "type": group.type.value,
        "state": group.group_state.value,
        "members": group.member_count,
        "generation": getattr(group, "group_epoch", None) if classic is None else classic.generation_id,
        "leader": classic and classic.leader_id,
        "protocol": classic and classic.protocol_name,
        "in_state_since_ms": classic and classic.state_timestamp_ms,
        "waiting_for": rebalance.waiting_for,
        "awaited": [member.member_id for member in rebalance.awaited] if waits else [],
        "rebalance_started_ms": rebalance.started_ms if waits else None,
        "left_ms": max(0, rebalance.deadline_ms - now_ms) if waits and rebalance.deadline_ms is not None else None,
        "is_stuck": rebalance.is_stuck,
    }


def _members(services: Services, group: Any) -> Work[list[dict[str, Any]]]:
    """One row a member. The last sign of life is what its session counts from; None where a longer time runs (a new member)."""
    timers, rows, now_ms = services.runtime.core.shard.timers, [], services.runtime.clock()
    for member_id in sorted(getattr(group, "members", ())):
        yield None
        member = group.members.get(member_id)
        if member is None:
            continue
        if isinstance(member, ClassicMember):
            deadline_ms, timeout_ms = timers.deadline_ms(member.session_timer), member.session_timeout_ms
        else:
            deadline_ms = timers.deadline_ms(TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member_id))
            own = services.runtime.core.shard.group_config(group.group_id).consumer_session_timeout_ms
            timeout_ms = own if member.classic is None else member.classic.session_timeout_ms
        last_ms = now_ms + 1 if deadline_ms is None else deadline_ms - timeout_ms
        row = {
            "member": member_id,
            "instance": getattr(member, "group_instance_id", None) or getattr(member, "instance_id", None),
            "client": member.client_id,
            "host": member.client_host,
            "last_heartbeat_ms": last_ms if last_ms <= now_ms else None,
            "session_ends_ms": deadline_ms,
            "joined_ms": services.runtime.activity.joined_ms.get((group.group_id, member_id)),
            "is_waiting": bool(getattr(member, "is_waiting", False)),
        }
        rows.append(row)
    return rows


OPERATOR_KEY = 32_001
OPERATOR_PREFIX = struct.pack(">h", OPERATOR_KEY)
_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
COMMANDS = ("status", "complete-rebalance")
Described = Callable[["Wanted"], "Work[Mapping[str, Any]]"]


class MalformedOperation(ValueError):  # noqa: N818 - says what the bytes are
    """Raised for a request that is none of an operator's."""


def answer_operator(payload: bytes, services: Services, who: Who, describe: Described) -> bytes | Awaitable[bytes | None]:
    """The response to an operator's request. Raises `MalformedOperation`."""
    correlation_id, asked = _parse(payload)
    if (refusal := _refusal(services, who, asked)) is not None:
        return _response(correlation_id, {"error": refusal.name})
    if asked.get("command") == "status":
        wanted = Wanted(
            groups=tuple(group for group in asked.get("groups") or () if isinstance(group, str)),
            only_rebalancing=bool(asked.get("only_rebalancing")),
            with_members=bool(asked.get("with_members")),
        )
        found = services.pieces.begin(describe(wanted))
        return _described(services, correlation_id, found) if isinstance(found, Awaitable) else _response(correlation_id, found)
    return _complete(correlation_id, services, str(asked.get("group", "")))


def _parse(payload: bytes) -> tuple[int, dict[str, Any]]:
    try:
        _, _, correlation_id, client_id_bytes = _HEADER.unpack_from(payload)
        asked = json.loads(payload[_HEADER.size + max(client_id_bytes, 0) :])
    except (struct.error, ValueError, RecursionError) as error:
        raise MalformedOperation(f"an operator's request that cannot be read: {error}") from None
    if not isinstance(asked, dict) or asked.get("command") not in COMMANDS:
        raise MalformedOperation("an operator's request without a command")
    return correlation_id, asked


def _refusal(services: Services, who: Who, asked: Mapping[str, Any]) -> ErrorCode | None:
    """Why whoever asks may not: the status shows all groups, and who ends a rebalance makes members leave, as READ does."""
    access = services.access
    if not access.is_asked:
        return None
    if asked.get("command") == "status":
        return None if access.allows(who, AclOperation.DESCRIBE, Resource.CLUSTER) else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    may_end = access.allows(who, AclOperation.READ, Resource.GROUP, str(asked.get("group", "")))
    return None if may_end else ErrorCode.GROUP_AUTHORIZATION_FAILED


def _complete(correlation_id: int, services: Services, group_id: str) -> bytes | Awaitable[bytes | None]:
    runtime = services.runtime
    before = runtime.core.rebalance_status(group_id, runtime.clock())
    removed = [member.member_id for member in before.awaited] if before is not None and before.waiting_for else []

    def render(result: Result) -> dict[str, Any]:
        error = result.error if isinstance(result, Done) else ErrorCode.UNKNOWN_SERVER_ERROR
        return {"error": error.name, "removed": removed if error is ErrorCode.NONE else []}

    answer = runtime.ask(ForceCompleteRebalance(request_id=runtime.next_request_id(), group_id=group_id), render)
    if isinstance(answer, Awaitable):
        return _later(correlation_id, answer)
    return _response(correlation_id, answer or {})


async def _described(services: Services, correlation_id: int, found: Awaitable[Mapping[str, Any]]) -> bytes:
    """Many groups are written beside the event loop."""
    return await services.data.codec.run(_response, correlation_id, await found)


async def _later(correlation_id: int, answer: Awaitable[Mapping[str, Any] | None]) -> bytes:
    return _response(correlation_id, await answer or {})


def _response(correlation_id: int, values: Mapping[str, Any]) -> bytes:
    return _CORRELATION_ID.pack(correlation_id) + json.dumps(values).encode()


def ask_status(connection: Connection, deadline: Deadline, wanted: Wanted = _ALL) -> dict[str, Any]:
    """How the server behind the connection is doing.

    Raises `UnreachableError` where that is no ``kgctl serve``, `AuthError` where the user may not see the cluster.
    """
    found = _ask(connection, {"command": "status", **asdict(wanted)}, deadline)
    if "error" in found:
        raise AuthError(
            f"{connection.address} does not tell its status: DESCRIBE of the cluster is not allowed", code=found["error"]
        )
    return found


def ask_to_complete(connection: Connection, group_id: str, deadline: Deadline) -> list[str]:
    """End the group's rebalance without the members that it waits for, which are removed; their ids.

    Raises `NotFoundError` where there is no such group, `RefusedError` where no rebalance is under way, `AuthError` without
    the right to the group.
    """
    answer = _ask(connection, {"command": "complete-rebalance", "group": group_id}, deadline)
    match answer.get("error"):
        case "NONE":
            return [str(member) for member in answer["removed"]]
        case "GROUP_ID_NOT_FOUND":
            raise NotFoundError(f"group {group_id!r} does not exist", group=group_id)
        case "INVALID_REQUEST":
            raise RefusedError(f"group {group_id!r} has no rebalance under way", group=group_id)
        case "GROUP_AUTHORIZATION_FAILED":
            raise AuthError(f"READ of group {group_id!r} is not allowed", code="GROUP_AUTHORIZATION_FAILED", group=group_id)
        case other:
            raise KgctlError(f"the rebalance could not be completed: {other}", group=group_id)


def _ask(connection: Connection, asked: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
    payload = _HEADER.pack(OPERATOR_KEY, 0, 1, -1) + json.dumps(asked).encode()
    try:
        response = connection.exchange(payload, deadline)
        found = json.loads(response[_CORRELATION_ID.size :])
        if not isinstance(found, dict):
            raise ValueError("it answers something else")
    except (UnreachableError, ValueError, RecursionError) as error:
        raise UnreachableError(f"{connection.address} is no kgctl serve that can be asked: {error}") from None
    return found


Describe = Callable[[], Mapping[str, Any]]
GAUGES = {
    "connections": ("kgctl_connections", "Clients that are connected", 1),
    "offsets": ("kgctl_offsets", "Committed offsets", 1),
    "bytes_in_flight": ("kgctl_bytes_in_flight", "Bytes of large requests that are not answered yet", 1),
    "memory_bytes": ("kgctl_memory_bytes", "Resident memory of the process", 1),
    "uptime_s": ("kgctl_uptime_seconds", "How long the server runs", 1),
    "loop_delay_ms": ("kgctl_loop_delay_seconds", "How late the event loop was with what was due", 0.001),
    "longest_hold_ms": ("kgctl_longest_hold_seconds", "The longest that one request held the event loop", 0.001),
}
"""Keys of the status, with the metric's name, what it says, and the factor to its unit."""


class MetricsPage:
    """An HTTP server in a thread of its own, from now until `close`."""

    def __init__(self, address: tuple[str, int], describe: Describe) -> None:
        """Raises `UsageError` without prometheus-client and `KgctlError` where the address cannot be had."""
        require("--metrics", "prometheus_client")
        from prometheus_client import start_http_server
        from prometheus_client.registry import CollectorRegistry

        registry = CollectorRegistry()
        registry.register(_Collector(describe))
        try:
            self._server, self._thread = start_http_server(address[1], address[0], registry)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise KgctlError(f"cannot listen on {address[0]}:{address[1]} for metrics: {reason}") from error

    @property
    def port(self) -> int:
        """Return the port on which the page is served."""
        return int(self._server.server_port)

    def close(self) -> None:
        """Close the listening socket."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Collector:
    """Asks the server for its figures when a page is requested."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def describe(self) -> list[Any]:
        """Return nothing, so that no figures are asked for before the first page."""
        return []

    def collect(self) -> Iterator[Any]:
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        found = self._describe()
        for key, (name, text, factor) in GAUGES.items():
            if found[key] is not None:
                yield GaugeMetricFamily(name, text, value=found[key] * factor)
        groups = GaugeMetricFamily("kgctl_groups", "Groups", labels=("type", "state"))
        for entry in found["groups"]:
            groups.add_metric((entry["type"], entry["state"]), entry["count"])
        yield groups
        members = GaugeMetricFamily("kgctl_members", "Members of groups", labels=("type",))
        for kind, count in sorted(found["members"].items()):
            members.add_metric((kind,), count)
        yield members
        under_way = GaugeMetricFamily("kgctl_rebalances", "Rebalances that are under way", labels=("stuck",))
        for stuck in (False, True):
            count = sum(1 for rebalance in found["rebalances"] if rebalance["is_stuck"] is stuck)
            under_way.add_metric((str(stuck).lower(),), count)
        yield under_way
        requests = CounterMetricFamily("kgctl_requests", "Requests that were answered", labels=("api_key",))
        for key, count in found["requests_by_api"].items():
            requests.add_metric((key,), count)
        yield requests
        yield CounterMetricFamily("kgctl_held_too_long", "Requests that held the loop above 50 ms", value=found["held_too_long"])
