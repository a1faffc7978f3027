"""Client families: what each has as defaults, and how it behaves. A new one is one entry here.

Every client was run against `kgctl serve` with nothing configured but its group, and its requests looked at: session and
rebalance timeout, protocols, periods of heartbeats and commits, what close() sends. Java: kafka-clients 4.3.1, librdkafka 2.16.0,
kafka-python 3.0.12, aiokafka 0.14.0, franz-go 1.21.1, kafka-go 0.4.51. Their heartbeats are 1 to 13 ms late, Java's more. What
no request shows (``metadata.max.age.ms``, ``auto.offset.reset``, request timeouts) is as their sources have it: librdkafka's
CONFIGURATION.md, kafka-python's ``DEFAULT_CONFIG``, aiokafka's signatures, franz-go's ``defaultCfg``, kafka-go's
``ReaderConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kgctl.errors import UsageError, did_you_mean
from kgctl.member.config import Behaviour, HeartbeatDrift, MemberConfig

_PUNCTUAL = HeartbeatDrift(constant_us=1_000, walk_us=2_000, jitter_us=2_000)

_JAVA = MemberConfig(
    profile="java",
    behaviour=Behaviour(
        close_lag_us=500_000,
        # Classic: 3.020 s, sd 0.032 s, range 2.91-3.12 s; eight members have spread over 0.3-0.5 s after 400 s.
        classic_drift=HeartbeatDrift(constant_us=20_000, walk_us=20_000, jitter_us=36_000),
        # Consumer protocol: 5.000 s, sd 0.009 s, the phase of each member's own start.
        consumer_drift=HeartbeatDrift(jitter_us=11_000),
    ),
)

PROFILES: Mapping[str, MemberConfig] = {
    "java": _JAVA,
    "librdkafka": replace(
        _JAVA,
        profile="librdkafka",
        behaviour=Behaviour(mixes_protocols=False, polls_itself=True, classic_drift=_PUNCTUAL, consumer_drift=_PUNCTUAL),
        partition_assignment_strategy=("range", "roundrobin"),
        request_timeout_ms=60_000,
    ),
    "kafka-go": replace(
        _JAVA,
        profile="kafka-go",
        behaviour=Behaviour(
            polls_itself=True,
            speaks_cooperative=False,
            speaks_consumer_protocol=False,
            watches_partitions=False,
            limits_poll_interval=False,
            assignor_prefix="kafka-go:",
            classic_drift=_PUNCTUAL,
        ),
        partition_assignment_strategy=("range", "roundrobin"),
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    ),
    "franz-go": replace(
        _JAVA,
        profile="franz-go",
        behaviour=Behaviour(polls_itself=True, limits_poll_interval=False, classic_drift=_PUNCTUAL, consumer_drift=_PUNCTUAL),
        partition_assignment_strategy=("cooperative-sticky",),
        rebalance_timeout_ms=60_000,
        auto_offset_reset="earliest",
    ),
    "kafka-python": replace(
        _JAVA,
        profile="kafka-python",
        behaviour=Behaviour(speaks_consumer_protocol=False, classic_drift=_PUNCTUAL),
        partition_assignment_strategy=("range", "roundrobin"),
    ),
    "aiokafka": replace(
        _JAVA,
        profile="aiokafka",
        behaviour=Behaviour(
            polls_itself=True,
            speaks_cooperative=False,
            speaks_consumer_protocol=False,
            rebalance_timeout_is_session_timeout=True,
            classic_drift=_PUNCTUAL,
        ),
        partition_assignment_strategy=("roundrobin",),
        session_timeout_ms=10_000,
        request_timeout_ms=40_000,
    ),
}

_ALIASES: Mapping[str, Mapping[str, str]] = {
    "librdkafka": {"topic.metadata.refresh.interval.ms": "metadata.max.age.ms", "socket.timeout.ms": "request.timeout.ms"},
}


def profile_names() -> tuple[str, ...]:
    """The clients that there are, in their order."""
    return tuple(PROFILES)


def get_profile(name: str) -> tuple[MemberConfig, Mapping[str, str]]:
    """A client's defaults, and its own names for settings that Kafka calls otherwise. Raises `UsageError` for an unknown one."""
    if name not in PROFILES:
        raise UsageError(f"unknown client {name!r}{did_you_mean(name, PROFILES)} (known: {', '.join(PROFILES)})")
    return PROFILES[name], _ALIASES.get(name, {})
