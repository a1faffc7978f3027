"""What a live member is made with: the arguments of its constructor as settings of the member and of its connections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kgctl.errors import UsageError
from kgctl.member.api import MemberIdentity
from kgctl.member.config import Behaviour, MemberConfig, refusal
from kgctl.model.groups import topic_name_problem
from kgctl.wire.settings import WireSettings, checked_property, not_covered, with_msk_mechanism
from kgctl.wire.tokens import MakesTokens

BEHAVIOUR = Behaviour(joins_itself=True, calls_back_itself=True, limits_poll_interval=False)
"""Answers are handled as they come, and no poll() has to be called: the member's thread is kgctl's own."""

ASSIGNORS = ("range", "cooperative-sticky")
NEVER_MS = 365 * 24 * 60 * 60 * 1000


def member_settings(given: Mapping[str, Any]) -> tuple[MemberConfig, MemberIdentity, WireSettings]:
    """Return what the arguments of a group mean. Raises `UsageError` for those that cannot be."""
    protocol, session_ms, heartbeat_ms = given["protocol"], given["session_timeout_ms"], given["heartbeat_interval_ms"]
    if protocol == "consumer":
        _check_told_by_the_cluster(session_timeout_ms=session_ms, heartbeat_interval_ms=heartbeat_ms)
    config = MemberConfig(
        profile="kgctl",
        behaviour=BEHAVIOUR,
        group_protocol=protocol,
        group_remote_assignor=given["server_assignor"],
        session_timeout_ms=45_000 if session_ms is None else session_ms,
        heartbeat_interval_ms=3_000 if heartbeat_ms is None else heartbeat_ms,
        rebalance_timeout_ms=given["rebalance_timeout_ms"],
        partition_assignment_strategy=tuple(given["assignors"]),
        enable_auto_commit=False,
        auto_offset_reset=given["auto_offset_reset"],
        metadata_max_age_ms=given["partition_watch_interval_ms"] or NEVER_MS,
        retry_backoff_ms=given["retry_backoff_ms"],
        request_timeout_ms=given["timeout_ms"],
    )
    identity = MemberIdentity(
        name=given["client_id"],
        group_id=given["group_id"],
        client_id=given["client_id"],
        topics=tuple(given["topics"]),
        pattern=given["pattern"],
        group_instance_id=given["group_instance_id"],
        rack_id=given["rack"],
    )
    _check(config, identity)
    return config, identity, _wire_settings(given["bootstrap"], given["client_id"], given["properties"] or {})


def fetch_properties(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties for reading what such a group is assigned: it joins none and commits nothing."""
    reset = given["auto_offset_reset"]
    return {
        **{name: checked_property(name, value) for name, value in (given["properties"] or {}).items()},
        "bootstrap.servers": given["bootstrap"],
        "client.id": given["client_id"],
        "group.id": given["group_id"],
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "error" if reset == "none" else reset,
        "log_level": "0",
    }


def _check_told_by_the_cluster(**given: int | None) -> None:
    for name, value in given.items():
        if value is not None:
            setting = f"group.consumer.{name.replace('_', '.')}"
            raise UsageError(f'{name} is for protocol="classic"; here the cluster says it ({setting})')


def _check(config: MemberConfig, identity: MemberIdentity) -> None:
    problem = _topics_problem(config, identity) or _times_problem(config) or _assignors_problem(config) or refusal(config)
    if problem is not None:
        for setting, argument in ARGUMENTS.items():
            problem = problem.replace(setting, argument)
        raise UsageError(problem)


def _topics_problem(config: MemberConfig, identity: MemberIdentity) -> str | None:
    if bool(identity.topics) == (identity.pattern is not None):
        return "name the topics, or a pattern: one of the two"
    if identity.pattern is not None and config.group_protocol == "classic":  # else the coordinator reads it, as RE2
        try:
            re.compile(identity.pattern)
        except re.error as error:
            return f"pattern {identity.pattern!r} is no regular expression: {error}"
    return next(filter(None, map(topic_name_problem, identity.topics)), None)


def _times_problem(config: MemberConfig) -> str | None:
    for name, what in MORE_THAN_0.items():
        if getattr(config, name) <= 0:
            return f"{what} must be more than 0, not {getattr(config, name)}"
    interval_ms = config.metadata_max_age_ms
    return None if interval_ms > 0 else f"partition_watch_interval_ms must be 0 (never) or more, not {interval_ms}"


def _assignors_problem(config: MemberConfig) -> str | None:
    names, is_classic = config.partition_assignment_strategy, config.group_protocol == "classic"
    if not names:
        return "assignors names none"
    if len(set(names)) < len(names):
        return f"assignors names one twice: {', '.join(names)}"
    if config.group_remote_assignor is not None and is_classic:
        return 'server_assignor is for protocol="consumer", where the coordinator assigns; here it is assignors'
    if names != ASSIGNORS and not is_classic:
        return 'assignors are for protocol="classic", where a member assigns; here it is server_assignor'
    return None


MORE_THAN_0 = {
    "session_timeout_ms": "session_timeout_ms",
    "heartbeat_interval_ms": "heartbeat_interval_ms",
    "rebalance_timeout_ms": "rebalance_timeout_ms",
    "request_timeout_ms": "timeout_ms",
    "retry_backoff_ms": "retry_backoff_ms",
}
"""Field of the member's settings -> the argument's name."""


_TIMES = {name: name.replace(".", "_") for name in ("heartbeat.interval.ms", "session.timeout.ms")}
ARGUMENTS = {**_TIMES, "partition.assignment.strategy": "assignors"}
"""What a member that is refused is told by Kafka's names -> the argument's name."""


def _wire_settings(bootstrap: str, client_id: str, properties: Mapping[str, str | MakesTokens]) -> WireSettings:
    checked_properties = with_msk_mechanism({name: checked_property(name, value) for name, value in properties.items()})
    given = {**checked_properties, "bootstrap.servers": bootstrap, "client.id": client_id}
    why = not_covered(given)
    if why is not None:
        raise UsageError(f"a ConsumerGroup connects by kgctl's own connection, which does not cover {why}")
    return WireSettings.from_properties(given)
