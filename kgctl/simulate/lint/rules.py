"""The linter's rules: who is in the group and with which protocol, timeouts, autoscalers; by name, and how they are applied.

A new rule is a function and a line of ``RULES``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from kgctl.coordinator.config import replicas_of
from kgctl.errors import did_you_mean
from kgctl.member.config import COOPERATIVE_ASSIGNORS, OF_OTHER_PROTOCOL, MemberConfig, others_refused, refusal
from kgctl.simulate.lint.context import Context, Doubts
from kgctl.simulate.lint.expectations import always_holding, of_a_run_without_events, of_records_alone
from kgctl.simulate.scenario.autoscale import Autoscale, ScaleMetric, Select
from kgctl.simulate.scenario.fields import CommitMode, full_batch_us
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.load import LoadedFile
from kgctl.simulate.scenario.metric import OWNERS, metric_kinds
from kgctl.simulate.scenario.model import ONE_PER_SECOND_UHZ, MemberSet, Traffic
from kgctl.simulate.scenario.patches import values_of
from kgctl.simulate.scenario.quantities import UNIT_PR, format_duration
from kgctl.simulate.scenario.vocabulary import NODE, Choice
from kgctl.yaml_files import Path, Problem


def ids_not_unique(context: Context) -> Doubts:
    """Two pods with one instance id fence each other."""
    seen: dict[str, str] = {}
    for members, _ in context.sets():
        if members.instance_id is None:
            continue
        for index in range(members.count):
            pod = f"{members.name}-{index}"
            instance_id = members.instance_id.replace("$name", pod)
            if instance_id in seen:
                yield (
                    ("members", members.name, "instance_id"),
                    f"the instance id {instance_id!r} is that of {seen[instance_id]!r} and of {pod!r}: they fence each other; "
                    "$name makes it each pod's own",
                )
                break
            seen[instance_id] = pod


def new_ids_in_each_rollout(context: Context) -> Doubts:
    """Static members whose ids end with their pods: the coordinator keeps the partitions of the old id until its session ends."""
    named = {members.name for members, _ in context.sets() if "$name" in (members.instance_id or "")}
    found: dict[str, list[Path]] = {}
    for index, event in enumerate(context.scenario.events):
        meant = event.target if event.selector is None else event.selector.member_set
        static = sorted(named if meant in (None, NODE) else {meant} & named)
        if event.makes_new_pods and static:
            found.setdefault(static[0], []).append(("events", index, event.kind))
    for name, (path, *others) in found.items():
        also = f"; so with {len(others)} more" if others else ""
        yield (
            path,
            f"a Deployment's new pods of {name!r} have new instance ids: the partitions of each old pod are kept for "
            f"its session timeout and nobody reads them; use workload: statefulset, or no instance_id{also}",
        )


def mixed_assignor_lists(context: Context) -> Doubts:
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
            yield path, f"{members.name!r} has no assignor in common with {first.name!r}: INCONSISTENT_GROUP_PROTOCOL"
            return
        if strategy != first_config.partition_assignment_strategy:
            yield path, f"{members.name!r} and {first.name!r} have different lists of assignors: a vote decides"
        common = left


def client_refuses(context: Context) -> Doubts:
    """Settings with which the client does not start."""
    for members, config in context.sets():
        if (why := refusal(config)) is not None:
            yield ("members", members.name), f"the client does not start: {why}"
    for index, event in enumerate(context.scenario.events):
        changed = context.config_from(event)
        if changed is not None and (why := refusal(changed)) is not None:
            yield ("events", index, event.settings_key), f"the client does not start with it: {why}"


def settings_of_the_other_protocol(context: Context) -> Doubts:
    """Settings of one protocol in a group of the other. Those of the group may be for another variant."""
    for members, config in context.sets():
        refused = others_refused(config)
        for name in OF_OTHER_PROTOCOL[config.group_protocol]:
            path = context.path_of_setting(members.name, name)
            if name not in refused and path[-1] == name and (path[0] == "members" or context.is_lone):
                yield path, f"{name} has no effect with group.protocol={config.group_protocol}"


def settings_of_fetching(context: Context) -> Doubts:
    """Settings of what is not simulated: a member reads at its ``rate`` as soon as it knows its offset."""
    for members, _ in context.sets():
        for name in members.config:
            if name.startswith(("fetch.", "max.partition.fetch.", "isolation.level", "check.crcs")):
                yield context.path_of_setting(members.name, name), f"{name} changes nothing: fetching is not simulated"


def copies_without_instances(context: Context) -> Doubts:
    """Standbys for which there are no instances, or that have no store to copy."""
    for members, config in context.sets():
        standbys, path = config.num_standby_replicas, context.path_of_setting(members.name, "num.standby.replicas")
        if config.group_protocol != "classic":
            standbys, path = context.broker.group_streams_num_standby_replicas, ("members", members.name)
        if members.streams is None or not standbys:
            continue
        if not any(part.store[0] for part in members.streams.parts):
            yield path, "no part of the application has a store: there is nothing to copy; say streams: {store: 10GB}"
        elif 0 < members.count <= standbys:
            yield path, f"{standbys} copies beside the task need {standbys + 1} instances, and there are {members.count}"


def no_pod_ever_runs(context: Context) -> Doubts:
    """Find scenarios in which nobody consumes: all partitions are unread from begin to end."""
    scenario = context.scenario
    is_grown = scenario.autoscale is not None or any(event.starts_pods for event in scenario.events)
    if not is_grown and not any(each.count and each.start is not None for each in scenario.members):
        yield ("members",), "no pod ever runs: nobody consumes; give a set a count above 0 and a start"


def more_members_than_partitions(context: Context) -> Doubts:
    """Members that get nothing and still take part in every rebalance."""
    scenario, members = context.scenario, context.started_at_once()
    read = [topic for topic in scenario.topics if any(scenario.subscribes(each, topic.name) for each in scenario.members)]
    partitions = sum(topic.partitions for topic in read)
    if 0 < partitions < members and OWNERS in type_of_group(scenario).has:
        yield ("members",), f"{members} members for {partitions} partitions: {members - partitions} of them are idle"


def mixes_eager_and_cooperative(context: Context) -> Doubts:
    """A list of both is for the middle of a migration: as long as an eager assignor is in it, rebalances are eager."""
    for members, config in context.sets():
        strategy = config.partition_assignment_strategy
        path = context.path_of_setting(members.name, "partition.assignment.strategy")
        cooperative = [name for name in strategy if name in COOPERATIVE_ASSIGNORS]
        given = path[-1] == "partition.assignment.strategy"
        if given and config.group_protocol == "classic" and cooperative and len(cooperative) < len(strategy):
            yield path, f"{', '.join(strategy)}: with an eager assignor in the list, every rebalance is eager"


def selects_nobody(context: Context) -> Doubts:
    """Find events whose selector never matches a pod."""
    counts = {members.name: members.count for members in context.scenario.members}
    growing = [event for event in context.scenario.events if event.renumbers]
    scaled = {event.target for event in growing if event.selector is None}
    if any(event.selector is not None for event in growing):
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
            yield ("events", index, event.kind), f"{selector.text!r}: {selector.member_set!r} has {there}"


def patterns_without_topics(context: Context) -> Doubts:
    """Find subscriptions that no topic ever matches."""
    created = [event.target for event in context.scenario.events if event.creates_topic]
    topics = [topic.name for topic in context.scenario.topics] + created
    for members, _ in context.sets():
        if members.pattern is not None and not any(re.fullmatch(members.pattern, topic) for topic in topics):
            path = ("members", members.name, "subscribe")
            yield path, f"{members.pattern!r} matches none of the topics, as a whole: {', '.join(topics)}"


def topics_that_nobody_reads(context: Context) -> Doubts:
    """Find topics whose records no group of the scenario subscribes to: no metric counts them."""
    scenario = context.scenario
    members = [(group, each) for group in scenario.together or (scenario,) for each in group.members]
    for topic in scenario.topics:
        if not any(group.subscribes(each, topic.name) for group, each in members):
            yield ("topics", topic.name), f"nobody subscribes to {topic.name!r}: it counts for nothing, its lag neither"


def names_nearly_there(context: Context) -> Doubts:
    """A patch that changes nothing, and adds another set or topic, for a slip of the finger."""
    for key, name in context.variant.added:
        others = [other for other in context.variant.tree.data[key] if other != name and not _is_derived(name, other)]
        if near := did_you_mean(name, others, quoted=True):
            yield (key, name), f"only this variant has {name!r}: it is added, nothing is changed{near}"


def _is_derived(name: str, other: str) -> bool:
    """Whether one is the other and more: ``app-new`` or ``app2`` is no slip for ``app``."""
    short, long = sorted((name, other), key=len)
    return long.startswith(short) and not long[len(short)].isalpha()


def racks_without_racks(context: Context) -> Doubts:
    """Find members with racks in a cluster without racks."""
    racks = context.scenario.cluster.racks
    for members, _ in context.sets():
        if members.rack is not None and members.rack != "spread" and members.rack not in racks:
            yield ("members", members.name, "rack"), f"the cluster has no rack {members.rack!r}"
        elif members.rack == "spread" and not racks:
            yield ("members", members.name, "rack"), "the cluster has no racks to spread over (cluster.racks)"


def session_below_boot(context: Context) -> Doubts:
    """A static member whose session ends before it is back: its restart is two rebalances instead of none."""
    for members, config in context.sets():
        session_us = context.broker.group_consumer_session_timeout_ms if config.group_protocol == "consumer" else None
        session_us = (session_us or config.session_timeout_ms) * 1_000
        boot_us = members.boot.upper_us or members.boot.mean_us
        if members.instance_id is not None and session_us <= boot_us:
            yield (
                context.path_of_setting(members.name, "session.timeout.ms"),
                f"the session timeout ({format_duration(session_us)}) is below the boot time of {members.name!r} "
                f"({format_duration(boot_us)}): static membership then costs two rebalances a restart instead of none",
            )


def heartbeat_above_third(context: Context) -> Doubts:
    """Fewer than three heartbeats in a session: one that is lost may cost the membership."""
    for members, config in context.sets():
        if config.group_protocol == "classic" and config.heartbeat_interval_ms * 3 > config.session_timeout_ms:
            yield (
                context.path_of_setting(members.name, "heartbeat.interval.ms"),
                f"heartbeat.interval.ms ({config.heartbeat_interval_ms} ms) is above a third of session.timeout.ms "
                f"({config.session_timeout_ms} ms)",
            )


def session_outside_of_the_brokers_bounds(context: Context) -> Doubts:
    """Find session time-outs that the coordinator refuses."""
    low, high = context.broker.group_min_session_timeout_ms, context.broker.group_max_session_timeout_ms
    for members, config in context.sets():
        if config.group_protocol == "classic" and not low <= config.session_timeout_ms <= high:
            yield (
                context.path_of_setting(members.name, "session.timeout.ms"),
                f"the brokers refuse session.timeout.ms {config.session_timeout_ms}: they allow {low} to {high} "
                "(group.min.session.timeout.ms, group.max.session.timeout.ms)",
            )


def poll_beyond_its_limit(context: Context) -> Doubts:
    """Find members whose processing exceeds max.poll.interval.ms."""
    for members, config in context.sets():
        pause_us, batch_us = members.poll.upper_us or members.poll.mean_us, full_batch_us(members, config)
        if config.behaviour.limits_poll_interval and pause_us + batch_us >= config.max_poll_interval_ms * 1_000:
            limit = f"reaches max.poll.interval.ms ({config.max_poll_interval_ms} ms)"
            if pause_us >= batch_us:
                told = f"poll ({format_duration(pause_us)}) {limit}: such a member leaves its group again and again"
            else:
                batch = f"{config.max_poll_records} records (max.poll.records), at {(members.rate_uhz or 0) / 1e6:g}/s"
                told = f"a full batch, {batch}, takes {format_duration(batch_us)} and {limit}: a backlog ends the membership"
            yield ("members", members.name, "poll" if pause_us >= batch_us else "rate"), told


def no_warmup(context: Context) -> Doubts:
    """Events that fall into the time in which the group comes together."""
    scenario = context.scenario
    early = [each for each in scenario.events if each.after is None and each.at_us == 0]
    starts = any(each.start is not None and each.count for each in scenario.members)
    if early and starts and 0 <= scenario.warmup_us < 10_000_000 and not all(each.forms_group for each in early):
        yield (
            ("warmup",) if context.sets_at(("warmup",)) else (),
            f"events at 0s after a warm-up of {format_duration(scenario.warmup_us)}: the group is not together by then; "
            "write warmup: 60s, or nothing: until stable",
        )


def event_after_the_end(context: Context) -> Doubts:
    """Find events that would begin after the run's end."""
    end_us = context.scenario.duration_us
    for index, event in enumerate(context.scenario.events):
        if end_us is None or event.after is not None:
            continue
        if event.at_us >= end_us:
            yield ("events", index, "at"), f"this event is never reached: the run ends at {format_duration(end_us)}"
        elif event.at_us + (event.times - 1) * event.every_us >= end_us:
            yield ("events", index, "times"), f"not all of these begin: the run ends at {format_duration(end_us)}"


def more_traffic_than_the_members_can_take(context: Context) -> Doubts:
    """Find topics that get more records than the members can process."""
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
        yield (
            ("traffic",),
            f"{last // ONE_PER_SECOND_UHZ}/s are written in the end and {capacity // ONE_PER_SECOND_UHZ}/s can be processed: "
            "the lag has no end",
        )


def rates_without_traffic(context: Context) -> Doubts:
    """Members that process nothing: lag and duplicates are all 0."""
    scenario = context.scenario
    for members in scenario.members:
        if members.rate_uhz is not None and not context.scenario.writes:
            yield ("members", members.name, "rate"), "there is no traffic to process: lag and duplicates stay 0"
            return


def rates_that_an_event_needs(context: Context) -> Doubts:
    """Find events that make nothing slower, as no record takes any time."""
    timeless = {members.name for members in context.scenario.members if members.rate_uhz is None}
    for index, event in enumerate(context.scenario.events):
        if event.needs_rate and event.selector is not None and event.selector.member_set in timeless:
            name = event.selector.member_set
            yield ("events", index, event.kind), f"{name!r} has no rate: its records take no time; write process_time: 5ms"


def one_value_along(context: Context) -> Doubts:
    """A chart along a parameter that never changes is a dot."""
    path = context.report.x
    if path is not None and len(values_of(context.variant.tree.data["sweep"][path])) == 1:
        yield ("report", "x"), f"{path} has one value: there is nothing to see along it"


def records_without_traffic(context: Context) -> Doubts:
    """Find metrics of records in a scenario that writes none."""
    if context.scenario.writes or any(path.startswith("traffic") for path in context.variant.tree.data.get("sweep") or ()):
        return
    for metric in context.report.y:
        if metric_kinds()[metric.name].is_of_records:
            yield ("report", "y"), f"there is no traffic: {metric.name} has nothing to show"
            return


def manifests_that_may_say_less(context: Context) -> Doubts:
    """Names of manifests alone: what is gone from them was never told."""
    if given := context.variant.tree.data.get("from_manifest"):
        from kgctl.simulate.scenario.manifests import yaml_word  # few files have any

        files, says = (", ".join(map(yaml_word, given[key])) for key in ("files", "says"))
        yield (
            ("from_manifest",),
            "what these manifests no longer say is not seen, as it is not told what they have said; "
            f"write {{files: [{files}], says: [{says}]}}",
        )


def few_faults(context: Context) -> Doubts:
    """A nemesis that most runs end without having met."""
    nemesis = context.scenario.nemesis
    if nemesis is not None and nemesis.until_us < nemesis.mean_interval_us:
        every, until = format_duration(nemesis.mean_interval_us), format_duration(nemesis.until_us)
        yield ("nemesis", "rate"), f"one fault in {every}, and they end at {until}: most runs have none"


def of_events(context: Context) -> Iterator[tuple[str, Path, str]]:
    """What the events themselves say of doubtful ones: the rule's name, and the finding."""
    scenario = context.scenario
    counts = {members.name: members.count for members in scenario.members}
    coordinators = replicas_of(scenario.group_id, context.broker, scenario.cluster.brokers)
    for index, event in enumerate(scenario.events):
        if why := event.in_vain(scenario.cluster.network.usual):
            yield "event-without-effect", ("events", index, event.kind), f"it does nothing: {why}"
        for doubt in event.doubts(counts, coordinators):
            yield doubt.rule, ("events", index, *filter(None, [doubt.key])), doubt.text


def _autoscaled(context: Context) -> Iterator[tuple[Autoscale, MemberSet, MemberConfig]]:
    """The autoscaler with the pods that it changes, if there is one."""
    spec = context.scenario.autoscale
    for members, config in context.sets():
        if spec is not None and members.name == spec.members:
            yield spec, members, config


def maximum_above_partitions(context: Context) -> Doubts:
    """Pods that would get nothing: KEDA's Kafka scaler stops before, other metrics do not."""
    partitions = sum(topic.partitions for topic in context.scenario.topics)
    for spec, _, _ in _autoscaled(context):
        if not context.sets_at(("autoscale", "max")) or spec.maximum <= partitions:
            continue
        more = spec.metric is not ScaleMetric.LAG or spec.allow_idle_consumers
        what = "the pods above that are idle" if more else "KEDA stops there"
        yield ("autoscale", "max"), f"max is {spec.maximum}, and there are {partitions} partitions: {what}"


def target_below_what_commits_leave(context: Context) -> Doubts:
    """Lag that is there though everything is processed: it asks for pods that nothing needs."""
    for spec, members, config in _autoscaled(context):
        if spec.metric is ScaleMetric.CPU or members.rate_uhz is None:
            continue
        between_us = _between_commits_us(members, config)
        if spec.metric is ScaleMetric.LAG_AGE:
            if spec.target <= between_us:
                yield (
                    ("autoscale", "target"),
                    f"a record is up to {format_duration(between_us)} old before it is committed, however many pods there are: "
                    f"the target of {format_duration(spec.target)} is out of reach",
                )
            continue
        left = members.rate_uhz * between_us // 2 // UNIT_PR
        if spec.target < left:
            yield (
                ("autoscale", "target"),
                f"between two commits, {format_duration(between_us)}, a busy pod leaves {left:,} records of lag in the mean and "
                f"keeps up: a target of {spec.target:,} asks for more pods than the traffic needs",
            )


def _between_commits_us(members: MemberSet, config: MemberConfig) -> int:
    if members.commit.mode is CommitMode.AUTO and config.enable_auto_commit:
        return config.auto_commit_interval_ms * 1_000
    return members.commit.interval_us if members.commit.mode is CommitMode.EVERY else members.poll.mean_us


def window_below_boot(context: Context) -> Doubts:
    """Pods that are stopped before the pods beside them have shown what they can do."""
    for spec, members, config in _autoscaled(context):
        boot_us = members.boot.upper_us or members.boot.mean_us
        settled_us = boot_us + config.heartbeat_interval_ms * 1_000
        if spec.down.select is not Select.DISABLED and spec.down.stabilize_us < settled_us:
            yield (
                _path(context, "scale_down", "stabilize"),
                f"the scale-down window ({format_duration(spec.down.stabilize_us)}) is below boot and rebalance "
                f"({format_duration(settled_us)}): pods are stopped while those just started are not reading yet",
            )


def poll_without_effect(context: Context) -> Doubts:
    """A polling interval that decides nothing, or one that the windows are too short for."""
    for spec, _, _ in _autoscaled(context):
        if spec.use_cached_metrics and 0 < spec.down.stabilize_us < spec.poll_us:
            yield (
                _path(context, "poll"),
                f"the HPA sees a value for {format_duration(spec.poll_us)}, longer than the scale-down window "
                f"({format_duration(spec.down.stabilize_us)}): the window never sees two",
            )
        elif context.sets_at(("autoscale", "poll")) and not spec.use_cached_metrics and spec.minimum:
            yield (
                ("autoscale", "poll"),
                "without use_cached_metrics the HPA measures at each sync (every): poll decides only about the first pod, "
                "with min: 0",
            )


def no_target_in_reach(context: Context) -> Doubts:
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
                yield (
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


RULES: Mapping[str, Callable[[Context], Doubts]] = {
    "session-below-boot": session_below_boot,
    "heartbeat-above-third": heartbeat_above_third,
    "session-out-of-bounds": session_outside_of_the_brokers_bounds,
    "poll-beyond-limit": poll_beyond_its_limit,
    "no-warmup": no_warmup,
    "event-after-end": event_after_the_end,
    "ids-not-unique": ids_not_unique,
    "static-rollout": new_ids_in_each_rollout,
    "mixed-assignors": mixed_assignor_lists,
    "mixed-protocols": mixes_eager_and_cooperative,
    "client-refuses": client_refuses,
    "setting-without-effect": settings_of_the_other_protocol,
    "setting-of-fetching": settings_of_fetching,
    "no-members": no_pod_ever_runs,
    "standbys": copies_without_instances,
    "idle-members": more_members_than_partitions,
    "selects-nobody": selects_nobody,
    "subscribes-to-nothing": patterns_without_topics,
    "nobody-subscribes": topics_that_nobody_reads,
    "variant-adds": names_nearly_there,
    "no-such-rack": racks_without_racks,
    "overload": more_traffic_than_the_members_can_take,
    "no-traffic": rates_without_traffic,
    "no-rate": rates_that_an_event_needs,
    "autoscale-max": maximum_above_partitions,
    "autoscale-target": target_below_what_commits_leave,
    "autoscale-window": window_below_boot,
    "autoscale-poll": poll_without_effect,
    "autoscale-hot-partition": no_target_in_reach,
    "report-one-value": one_value_along,
    "report-no-traffic": records_without_traffic,
    "expect-no-traffic": of_records_alone,
    "expect-always-holds": always_holding,
    "expect-no-events": of_a_run_without_events,
    "manifest-says": manifests_that_may_say_less,
    "few-faults": few_faults,
}


def lint(loaded: LoadedFile) -> list[Problem]:
    """What is doubtful in a file, in its order; the same doubt about several variants once, with their names."""
    found: dict[Problem, dict[str, None]] = {}
    for variant in loaded.variants:
        context = Context(variant, loaded.report, is_lone=len(loaded.variant_names) == 1, checks=loaded.checks)
        of_rules = ((rule, path, message) for rule, function in RULES.items() for path, message in function(context))
        for rule, path, message in (*of_rules, *of_events(context)):
            problem = variant.tree.problem(path, message, "warning", rule)
            found.setdefault(problem, {})[variant.name] = None
    problems = [_named(problem, list(variants), loaded) for problem, variants in found.items()]
    return sorted(problems, key=lambda problem: (problem.location.file, problem.location.line, problem.location.column))


def _named(problem: Problem, variants: list[str], loaded: LoadedFile) -> Problem:
    if len(variants) == len(loaded.variants):
        return problem
    column = "group" if loaded.variants[0].scenario.together else "variant"
    return replace(problem, message=f"{problem.message} ({column} {', '.join(variants)})")
