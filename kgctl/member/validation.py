"""Settings that a client refuses when it is started."""

from __future__ import annotations

from kgctl.assignors.registry import assignor_names
from kgctl.member.config import MemberConfig

COOPERATIVE_ASSIGNORS = frozenset({"cooperative-sticky"})


def is_cooperative(strategy: tuple[str, ...]) -> bool:
    """Whether a consumer with these assignors rebalances cooperatively: all of them must be able to."""
    return bool(strategy) and all(name in COOPERATIVE_ASSIGNORS for name in strategy)


def refusal(config: MemberConfig) -> str | None:
    """Why the client would not start with these settings; None: it starts."""
    if config.group_protocol == "consumer":
        if not config.behaviour.speaks_consumer_protocol:
            return f"{config.profile} does not speak the consumer protocol (group.protocol=consumer)"
        return None
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        return (
            f"heartbeat.interval.ms ({config.heartbeat_interval_ms}) must be lower than session.timeout.ms "
            f"({config.session_timeout_ms})"
        )
    return _strategy_refusal(config)


def _strategy_refusal(config: MemberConfig) -> str | None:
    strategy, behaviour = config.partition_assignment_strategy, config.behaviour
    if not strategy:
        return "partition.assignment.strategy names no assignor"
    known = assignor_names()
    for name in strategy:
        if behaviour.assignor_prefix + name not in known and name not in known and ":" not in name:
            return f"partition.assignment.strategy: unknown assignor {name!r}"
    cooperative = [name for name in strategy if name in COOPERATIVE_ASSIGNORS]
    if cooperative and not behaviour.speaks_cooperative:
        return f"{config.profile} does not rebalance cooperatively: it has no assignor {cooperative[0]!r}"
    if cooperative and len(cooperative) < len(strategy) and not behaviour.mixes_protocols:
        return f"{config.profile} refuses a list that mixes eager and cooperative assignors: {', '.join(strategy)}"
    return None
