"""Rules about timeouts."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.coordinator.config import replicas_of
from kgctl.simulate.lint.context import Context, Finding
from kgctl.simulate.scenario.model import ONE_PER_SECOND_UHZ
from kgctl.simulate.scenario.patches import values_of
from kgctl.simulate.scenario.quantities import format_duration


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


def more_traffic_than_the_members_can_take(context: Context) -> Iterator[Finding]:
    """Lag that never ends."""
    scenario = context.scenario
    rates = [members.rate_uhz for members in scenario.members if members.start is not None and members.count]
    if not rates or None in rates:
        return
    most = {scenario.autoscale.members: scenario.autoscale.maximum} if scenario.autoscale is not None else {}
    counts = {members.name: most.get(members.name, members.count) for members in scenario.members if members.start is not None}
    capacity = sum((members.rate_uhz or 0) * counts.get(members.name, 0) for members in scenario.members)
    last = sum(traffic.steps[-1][1] for traffic in scenario.traffic if traffic.steps)
    last += sum(traffic.wave.mean_uhz for traffic in scenario.traffic if traffic.wave is not None)
    if last > capacity:
        yield Finding(
            ("traffic",),
            f"{last // ONE_PER_SECOND_UHZ}/s are written in the end and {capacity // ONE_PER_SECOND_UHZ}/s can be processed: "
            "the lag has no end",
        )


def rates_without_traffic(context: Context) -> Iterator[Finding]:
    """Members that process nothing: lag and duplicates are all 0."""
    scenario = context.scenario
    for members in scenario.members:
        if members.rate_uhz is not None and not context.writes:
            yield Finding(("members", members.name, "rate"), "there is no traffic to process: lag and duplicates stay 0")
            return


_OF_RECORDS = frozenset(
    {
        "lag",
        "lag_peak",
        "backlog",
        "backlog_peak",
        "lag_area",
        "lag_age",
        "latency_mean",
        "latency_p99",
        "drain_time",
        "processed",
        "duplicates",
        "duplicates_bound",
        "lost",
        "r_score",
    }
)


def one_value_along(context: Context) -> Iterator[Finding]:
    """A chart along a parameter that never changes is a dot."""
    path = context.report.x
    if path is not None and len(values_of(context.variant.tree.data["sweep"][path])) == 1:
        yield Finding(("report", "x"), f"{path} has one value: there is nothing to see along it")


def records_without_traffic(context: Context) -> Iterator[Finding]:
    """Metrics of records where none are written."""
    if context.writes or any(path.startswith("traffic") for path in context.variant.tree.data.get("sweep") or ()):
        return
    for metric in context.report.y:
        if metric.name in _OF_RECORDS:
            yield Finding(("report", "y"), f"there is no traffic: {metric.name} has nothing to show")
            return


def nobody_takes_over(context: Context) -> Iterator[Finding]:
    """A coordinator without a replica elsewhere."""
    scenario = context.scenario
    leader, *others = replicas_of(scenario.group_id, context.broker, scenario.cluster.brokers)
    if others:
        return
    for index, event in enumerate(scenario.events):
        if event.kind == "broker_down" and event.target in ("coordinator", str(leader)):
            until = "until it is back" if event["for"] is not None else "for the rest of the run"
            yield Finding(("events", index), f"no other broker has the group's records: there is no coordinator {until}")
