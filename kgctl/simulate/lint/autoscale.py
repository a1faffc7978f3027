"""Rules about autoscalers."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.member.config import MemberConfig
from kgctl.simulate.lint.context import Context, Finding
from kgctl.simulate.scenario.autoscale import Autoscale, ScaleMetric, Select
from kgctl.simulate.scenario.model import ONE_PER_SECOND_UHZ, CommitMode, MemberSet, Traffic
from kgctl.simulate.scenario.quantities import format_duration


def _autoscaled(context: Context) -> Iterator[tuple[Autoscale, MemberSet, MemberConfig]]:
    """The autoscaler with the pods that it changes, if there is one."""
    spec = context.scenario.autoscale
    for members, config in context.sets():
        if spec is not None and members.name == spec.members:
            yield spec, members, config


def maximum_above_partitions(context: Context) -> Iterator[Finding]:
    """Pods that would get nothing: KEDA's Kafka scaler stops before, other metrics do not."""
    partitions = sum(topic.partitions for topic in context.scenario.topics)
    for spec, _, _ in _autoscaled(context):
        if not context.sets_at(("autoscale", "max")) or spec.maximum <= partitions:
            continue
        more = spec.metric is not ScaleMetric.LAG or spec.allow_idle_consumers
        what = "the pods above that are idle" if more else "KEDA stops there"
        yield Finding(("autoscale", "max"), f"max is {spec.maximum}, and there are {partitions} partitions: {what}")


def target_below_what_commits_leave(context: Context) -> Iterator[Finding]:
    """Lag that is there though everything is processed: it asks for pods that nothing needs."""
    for spec, members, config in _autoscaled(context):
        if spec.metric is ScaleMetric.CPU or members.rate_uhz is None:
            continue
        between_us = _between_commits_us(members, config)
        if spec.metric is ScaleMetric.LAG_AGE:
            if spec.target <= between_us:
                yield Finding(
                    ("autoscale", "target"),
                    f"a record is up to {format_duration(between_us)} old before it is committed, however many pods there are: "
                    f"the target of {format_duration(spec.target)} is out of reach",
                )
            continue
        left = members.rate_uhz * between_us // 2 // (ONE_PER_SECOND_UHZ * 1_000_000)
        if spec.target < left:
            yield Finding(
                ("autoscale", "target"),
                f"between two commits, {format_duration(between_us)}, a busy pod leaves {left:,} records of lag in the mean and "
                f"keeps up: a target of {spec.target:,} asks for more pods than the traffic needs",
            )


def _between_commits_us(members: MemberSet, config: MemberConfig) -> int:
    if members.commit.mode is CommitMode.AUTO and config.enable_auto_commit:
        return config.auto_commit_interval_ms * 1_000
    return members.commit.interval_us if members.commit.mode is CommitMode.EVERY else members.poll.mean_us


def window_below_boot(context: Context) -> Iterator[Finding]:
    """Pods that are stopped before the pods beside them have shown what they can do."""
    for spec, members, config in _autoscaled(context):
        boot_us = members.boot.upper_us or members.boot.mean_us
        settled_us = boot_us + config.heartbeat_interval_ms * 1_000
        if spec.down.select is not Select.DISABLED and spec.down.stabilize_us < settled_us:
            yield Finding(
                _path(context, "scale_down", "stabilize"),
                f"the scale-down window ({format_duration(spec.down.stabilize_us)}) is below boot and rebalance "
                f"({format_duration(settled_us)}): pods are stopped while those just started are not reading yet",
            )


def poll_without_effect(context: Context) -> Iterator[Finding]:
    """A polling interval that decides nothing, or one that the windows are too short for."""
    for spec, _, _ in _autoscaled(context):
        if spec.use_cached_metrics and 0 < spec.down.stabilize_us < spec.poll_us:
            yield Finding(
                _path(context, "poll"),
                f"the HPA sees a value for {format_duration(spec.poll_us)}, longer than the scale-down window "
                f"({format_duration(spec.down.stabilize_us)}): the window never sees two",
            )
        elif context.sets_at(("autoscale", "poll")) and not spec.use_cached_metrics and spec.minimum:
            yield Finding(
                ("autoscale", "poll"),
                "without use_cached_metrics the HPA measures at each sync (every): poll decides only about the first pod, "
                "with min: 0",
            )


def no_target_in_reach(context: Context) -> Iterator[Finding]:
    """A partition with more traffic than a pod can process: more pods do not help."""
    rates = [(traffic, _highest(traffic)) for traffic in context.scenario.traffic]
    partitions = {topic.name: topic.partitions for topic in context.scenario.topics}
    for _, members, _ in _autoscaled(context):
        for traffic, highest in rates:
            count = partitions.get(traffic.topic, 0)
            weights = (
                [traffic.weights[number % len(traffic.weights)] for number in range(count)] if traffic.weights else [1] * count
            )
            if members.rate_uhz is None or not sum(weights):
                continue
            hottest = highest * max(weights) // sum(weights)
            if hottest > members.rate_uhz:
                yield Finding(
                    ("traffic", traffic.topic),
                    f"the hottest partition gets {hottest // ONE_PER_SECOND_UHZ}/s and a pod processes "
                    f"{members.rate_uhz // ONE_PER_SECOND_UHZ}/s: no number of pods ends its lag",
                )


def _highest(traffic: Traffic) -> int:
    return max((rate for _, rate in traffic.steps), default=0) if traffic.wave is None else traffic.wave.high_uhz


def _path(context: Context, *keys: str) -> tuple[str, ...]:
    """The deepest part of ``autoscale: ...`` that the file has."""
    path: tuple[str, ...] = ("autoscale", *keys)
    while len(path) > 1 and not context.sets_at(path):
        path = path[:-1]
    return path
