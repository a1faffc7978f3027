"""Rules about timeouts."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.simulate.lint.context import Context, Finding
from kgctl.simulate.scenario.values.durations import format_duration


def session_below_boot(context: Context) -> Iterator[Finding]:
    """A static member whose session ends before it is back: its restart is two rebalances instead of none."""
    for members, config in context.sets():
        session_us = context.broker.group_consumer_session_timeout_ms if config.group_protocol == "consumer" else None
        session_us = (session_us or config.session_timeout_ms) * 1_000
        boot_us = members.boot.upper_us or members.boot.mean_us
        if members.instance_id is not None and session_us <= boot_us:
            yield Finding(
                context.path_of_setting(members.name, "session.timeout.ms"),
                f"the session timeout ({format_duration(session_us)}) is below the boot time of {members.name!r} "
                f"({format_duration(boot_us)}): static membership then costs two rebalances a restart instead of none",
            )


def heartbeat_above_third(context: Context) -> Iterator[Finding]:
    """Fewer than three heartbeats in a session: one that is lost may cost the membership."""
    for members, config in context.sets():
        if config.group_protocol == "classic" and config.heartbeat_interval_ms * 3 > config.session_timeout_ms:
            yield Finding(
                context.path_of_setting(members.name, "heartbeat.interval.ms"),
                f"heartbeat.interval.ms ({config.heartbeat_interval_ms} ms) is above a third of session.timeout.ms "
                f"({config.session_timeout_ms} ms)",
            )


def session_outside_of_the_brokers_bounds(context: Context) -> Iterator[Finding]:
    """The coordinator refuses such a member."""
    low, high = context.broker.group_min_session_timeout_ms, context.broker.group_max_session_timeout_ms
    for members, config in context.sets():
        if config.group_protocol == "classic" and not low <= config.session_timeout_ms <= high:
            yield Finding(
                context.path_of_setting(members.name, "session.timeout.ms"),
                f"the brokers refuse session.timeout.ms {config.session_timeout_ms}: they allow {low} to {high} "
                "(group.min.session.timeout.ms, group.max.session.timeout.ms)",
            )


def poll_beyond_its_limit(context: Context) -> Iterator[Finding]:
    """A member that is thrown out again and again."""
    for members, config in context.sets():
        longest_us = members.poll.upper_us or members.poll.mean_us
        if config.behaviour.limits_poll_interval and longest_us >= config.max_poll_interval_ms * 1_000:
            yield Finding(
                ("members", members.name, "poll"),
                f"poll ({format_duration(longest_us)}) reaches max.poll.interval.ms ({config.max_poll_interval_ms} ms): "
                "such a member leaves its group again and again",
            )


def no_warmup(context: Context) -> Iterator[Finding]:
    """Events that fall into the time in which the group comes together."""
    scenario = context.scenario
    early = [each for each in scenario.events if each.after is None and each.at_us == 0]
    starts = any(each.start is not None and each.count for each in scenario.members)
    if early and starts and scenario.warmup_us < 10_000_000 and any(each.kind not in ("start", "scale") for each in early):
        yield Finding(
            ("warmup",) if context.sets_at(("warmup",)) else (),
            f"events at 0s after a warm-up of {format_duration(scenario.warmup_us)}: the group is not together by then; "
            "write warmup: 60s",
        )


def event_after_the_end(context: Context) -> Iterator[Finding]:
    """An event that never happens."""
    end_us = context.scenario.duration_us
    for index, event in enumerate(context.scenario.events):
        if end_us is not None and event.after is None and event.at_us >= end_us:
            yield Finding(("events", index, "at"), f"this event is never reached: the run ends at {format_duration(end_us)}")
