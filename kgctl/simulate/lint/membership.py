"""Rules about who is in the group, and with which protocol."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kgctl.errors import did_you_mean
from kgctl.member.config import COOPERATIVE_ASSIGNORS, refusal
from kgctl.simulate.lint.context import Context, Finding
from kgctl.simulate.scenario.event_kinds import Share
from kgctl.simulate.scenario.vocabulary import NODE, Choice


def ids_not_unique(context: Context) -> Iterator[Finding]:
    """Two pods with one instance id fence each other."""
    seen: dict[str, str] = {}
    for members, _ in context.sets():
        if members.instance_id is None:
            continue
        for index in range(members.count):
            pod = f"{members.name}-{index}"
            instance_id = members.instance_id.replace("$name", pod)
            if instance_id in seen:
                yield Finding(
                    ("members", members.name, "instance_id"),
                    f"the instance id {instance_id!r} is that of {seen[instance_id]!r} and of {pod!r}: they fence each other; "
                    "$name makes it each pod's own",
                )
                break
            seen[instance_id] = pod


_REPLACES_PODS = frozenset({"rollout", "drain", "spot_loss"})


def new_ids_in_each_rollout(context: Context) -> Iterator[Finding]:
    """Static members whose ids end with their pods: the coordinator keeps the partitions of the old id until its session ends."""
    named = {members.name for members, _ in context.sets() if "$name" in (members.instance_id or "")}
    for index, event in enumerate(context.scenario.events):
        is_deployment = event.kind in _REPLACES_PODS and (event["workload"] or "deployment") == "deployment"
        meant = event.target if event.selector is None else event.selector.member_set
        static = sorted(named if meant in (None, NODE) else {meant} & named)
        if is_deployment and static:
            yield Finding(
                ("events", index, event.kind),
                f"a Deployment's new pods of {static[0]!r} have new instance ids: the partitions of each old pod are kept for "
                "its session timeout and nobody reads them; use workload: statefulset, or no instance_id",
            )


def mixed_assignor_lists(context: Context) -> Iterator[Finding]:
    """No assignor that all members have, or lists that put the group into another protocol than each member believes."""
    classic = [(members, config) for members, config in context.sets() if config.group_protocol == "classic" and members.count]
    if not classic:
        return
    first, first_config = classic[0]
    common = list(first_config.partition_assignment_strategy)
    for members, config in classic[1:]:
        strategy = config.partition_assignment_strategy
        left = [name for name in common if name in strategy]
        path = context.path_of_setting(members.name, "partition.assignment.strategy")
        if not left:
            yield Finding(path, f"{members.name!r} has no assignor in common with {first.name!r}: INCONSISTENT_GROUP_PROTOCOL")
            return
        if strategy != first_config.partition_assignment_strategy:
            yield Finding(path, f"{members.name!r} and {first.name!r} have different lists of assignors: a vote decides")
        common = left


def client_refuses(context: Context) -> Iterator[Finding]:
    """Settings with which the client does not start."""
    for members, config in context.sets():
        if (why := refusal(config)) is not None:
            yield Finding(("members", members.name), f"a {config.profile} client does not start: {why}")


def settings_without_effect(context: Context) -> Iterator[Finding]:
    """Settings of the classic protocol in a group of the consumer protocol. Those of the group may be for another variant."""
    dead = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")
    for members, config in context.sets():
        if config.group_protocol != "consumer":
            continue
        for name in dead:
            path = context.path_of_setting(members.name, name)
            if path[-1] == name and (path[0] == "members" or context.is_lone):
                yield Finding(path, f"{name} has no effect with group.protocol=consumer; the brokers set it (group.consumer.*)")


def more_members_than_partitions(context: Context) -> Iterator[Finding]:
    """Members that get nothing and still take part in every rebalance."""
    partitions = sum(topic.partitions for topic in context.scenario.topics)
    members = context.started_at_once()
    if members > partitions:
        yield Finding(("members",), f"{members} members for {partitions} partitions: {members - partitions} of them are idle")


def mixes_eager_and_cooperative(context: Context) -> Iterator[Finding]:
    """A list of both is for the middle of a migration: as long as an eager assignor is in it, rebalances are eager."""
    for members, config in context.sets():
        strategy = config.partition_assignment_strategy
        path = context.path_of_setting(members.name, "partition.assignment.strategy")
        cooperative = [name for name in strategy if name in COOPERATIVE_ASSIGNORS]
        given = path[-1] == "partition.assignment.strategy"
        if given and config.group_protocol == "classic" and cooperative and len(cooperative) < len(strategy):
            yield Finding(path, f"{', '.join(strategy)}: with an eager assignor in the list, every rebalance is eager")


def selects_nobody(context: Context) -> Iterator[Finding]:
    """Find events whose selector never matches a pod."""
    counts = {members.name: members.count for members in context.scenario.members}
    scaled = {event.target for event in context.scenario.events if event.kind in ("scale", "rollout")}
    if any(event.kind in ("drain", "spot_loss") for event in context.scenario.events):
        scaled.update(counts)
    for index, event in enumerate(context.scenario.events):
        selector = event.selector
        if selector is None or selector.member_set is None or selector.member_set in scaled:
            continue
        if selector.member_set == NODE and NODE not in counts:
            continue
        if selector.member_set not in counts:  # of another group
            continue
        count = counts[selector.member_set]
        if selector.choice is Choice.RANGE and selector.last >= count:
            there = f"{count} pods, 0 to {count - 1}" if count > 1 else "one pod, 0" if count else "no pods"
            yield Finding(("events", index, event.kind), f"{selector.text!r}: {selector.member_set!r} has {there}")


def drains_that_evict_nobody(context: Context) -> Iterator[Finding]:
    """A disruption budget of nought: kubectl drain asks again and again, and gives up at its deadline."""
    for index, event in enumerate(context.scenario.events):
        if event.kind == "drain" and event["budget"] in (0, Share(0)):
            yield Finding(
                ("events", index, "drain"), "no pod may be missing (budget: 0), so none is evicted: the drain changes nothing"
            )


def patterns_without_topics(context: Context) -> Iterator[Finding]:
    """Find subscriptions that no topic ever matches."""
    created = [event.target for event in context.scenario.events if event.kind == "create_topic"]
    topics = [topic.name for topic in context.scenario.topics] + created
    for members, _ in context.sets():
        if members.pattern is not None and not any(re.fullmatch(members.pattern, topic) for topic in topics):
            path = ("members", members.name, "subscribe")
            yield Finding(path, f"{members.pattern!r} matches none of the topics, as a whole: {', '.join(topics)}")


def names_nearly_there(context: Context) -> Iterator[Finding]:
    """A patch that changes nothing, and adds another set or topic, for a slip of the finger."""
    for key, name in context.variant.added:
        others = [other for other in context.variant.tree.data[key] if other != name and not _is_derived(name, other)]
        if near := did_you_mean(name, others, quoted=True):
            yield Finding((key, name), f"only this variant has {name!r}: it is added, nothing is changed{near}")


def _is_derived(name: str, other: str) -> bool:
    """Whether one is the other and more: ``app-new`` or ``app2`` is no slip for ``app``."""
    short, long = sorted((name, other), key=len)
    return long.startswith(short) and not long[len(short)].isalpha()


def racks_without_racks(context: Context) -> Iterator[Finding]:
    """Find members with racks in a cluster without racks."""
    racks = context.scenario.cluster.racks
    for members, _ in context.sets():
        if members.rack is not None and members.rack != "spread" and members.rack not in racks:
            yield Finding(("members", members.name, "rack"), f"the cluster has no rack {members.rack!r}")
        elif members.rack == "spread" and not racks:
            yield Finding(("members", members.name, "rack"), "the cluster has no racks to spread over (cluster.racks)")
