"""What of a scenario can be played with real clients, what each client is told, and which metrics can then be measured."""

from __future__ import annotations

import random  # noqa: TID251  # pauses of a real application, which no seed governs
from collections.abc import Iterator, Mapping

from kgctl.model.values import frozen_in_order
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.scenario.checks import Check, Compiled
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.events import EVENT_KINDS
from kgctl.simulate.scenario.expressions import Metric, metrics_of
from kgctl.simulate.scenario.fields import CommitMode, changed, changed_settings, client_id_of, commit_of, member_config
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.scenario.model import MemberSet, Scenario
from kgctl.simulate.scenario.quantities import Distribution
from kgctl.simulate.scenario.vocabulary import Choice

MOST_PODS = 200


def is_measured(check: Check) -> bool:
    """Whether everything that a check asks can be measured in a play."""
    nodes = [node for node in (check.node, check.when) if node is not None]
    return all(_is_measured(metric) for node in nodes for metric in metrics_of(node))


def _is_measured(metric: Metric) -> bool:
    """Not what lies inside of brokers and clients: requests, what a timer took out, a single record."""
    kind = metric_kinds()[metric.name]
    return kind.is_playable and not any(part.partition(" ")[0] in kind.unmeasured for part in metric.filters)


def obstacles(scenario: Scenario) -> Iterator[str]:
    """Say what of the scenario cannot be played, a sentence each."""
    for number, event in enumerate(scenario.events, 1):
        yield from (f"event {number}, {event.kind}: {why}" for why in _obstacles(event))
    drawn = scenario.nemesis.of if scenario.nemesis is not None else ()
    for name in drawn:
        if not EVENT_KINDS[name].is_playable:
            yield f"nemesis: faults of the {name} are not made against real clients"
    if scenario.autoscale is not None:
        yield "autoscale: an autoscaler goes by lag and load, which a play does not measure while it runs"
    pods = sum(members.count for members in scenario.members)
    if pods > MOST_PODS:
        yield f"{pods} pods are as many processes here; at most {MOST_PODS} are played"
    if not (found := type_of_group(scenario)).is_playable:
        yield f"group {scenario.group_id}: groups of type {found.name} are not played"
    for members in scenario.members:
        if members.config.get("group.protocol", "classic") not in ("classic", "consumer"):
            yield f"members {members.name}: group.protocol={members.config['group.protocol']} is not played"


def _obstacles(event: Event) -> Iterator[str]:
    if not event.is_playable:
        yield "not done to a real cluster"
    if event.selector is not None and event.selector.choice is Choice.LEADER:
        yield "who leads a real group is not known to others"
    conditions = [condition for condition in event.conditions if isinstance(condition, Compiled)]
    if not all(_is_measured(metric) for condition in conditions for metric in metrics_of(condition.node)):
        yield "its condition asks for what a play does not measure"


def can_be_killed(scenario: Scenario, members: MemberSet) -> bool:
    """Whether a pod of this set may need a process of its own, because it is killed or frozen."""
    if scenario.nemesis is not None or not members.leaves_on_stop:
        return True
    return any(event.may_kill and event.concerns({members.name}) for event in scenario.events)


_DRAWS = 64
_JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
_STRATEGY = "partition.assignment.strategy"
_COMMON = (
    *("session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms", "enable.auto.commit", "auto.commit.interval.ms"),
    *("auto.offset.reset", "retry.backoff.ms", "group.instance.id", _STRATEGY),
)
_AS_KAFKA = {name: name for name in (*_COMMON, "metadata.max.age.ms", "request.timeout.ms", "client.rack")}
"""What the clients of Python and of Go are told, whose processes know each setting by Kafka's name."""
_LIBRDKAFKA = {
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
    "request.timeout.ms": "socket.timeout.ms",
    **{name: name for name in (*_COMMON, "group.protocol", "group.remote.assignor", "retry.backoff.max.ms", "client.rack")},
}


@frozen_in_order
class _Family:
    """A client's assignors, and Kafka's name of a setting -> its own, where it has not all of them: others are left out."""

    assignors: Mapping[str, str]
    settings: Mapping[str, str] | None = None


def _as_named(*assignors: str) -> dict[str, str]:
    return {name: name for name in assignors}


_FAMILIES = {
    "java": _Family(_JAVA_ASSIGNORS),
    "librdkafka": _Family(_as_named("range", "roundrobin", "cooperative-sticky"), _LIBRDKAFKA),
    "kafka-python": _Family(_as_named(*_JAVA_ASSIGNORS), _AS_KAFKA),
    "aiokafka": _Family(_as_named("range", "roundrobin", "sticky"), _AS_KAFKA),
    "kafka-go": _Family(_as_named("range", "roundrobin"), _AS_KAFKA),
    "franz-go": _Family(_as_named(*_JAVA_ASSIGNORS), _AS_KAFKA),
}


def settings_of(pod: Pod, group_id: str) -> dict[str, str]:
    """Return the settings of this pod's next consumer in a group of this name, as its client is told them."""
    family, config = _FAMILIES[pod.members.client], member_config(pod.members, pod.settings)
    given = {"group.protocol": config.group_protocol, **pod.settings}
    given.pop("group.membership.operation", None)
    if pod.instance_id is not None:
        given["group.instance.id"] = pod.instance_id
    if pod.rack is not None:
        given["client.rack"] = pod.rack
    if config.group_protocol != "consumer":  # else it is what the file says: a client refuses the other protocol's settings
        given[_STRATEGY] = ",".join(family.assignors[name] for name in config.partition_assignment_strategy)
    if (own := family.settings) is not None:
        given = {own[name]: value for name, value in given.items() if name in own}
    client_id = client_id_of(pod.members, group_id, pod.name, pod.instance_id)
    return {**given, "group.id": group_id, "client.id": client_id, **_loop(pod)}


def _loop(pod: Pod) -> dict[str, str]:
    """How the application of this pod polls, in the words of `kgctl.simulate.against.client.ClientLoop`."""
    members, config = pod.members, member_config(pod.members, pod.settings)
    commit = commit_of(members, config)
    found = {"poll.pauses.ms": _draws(members.poll), "commit.mode": str(commit.mode)}
    if commit.mode is CommitMode.EVERY:
        found["commit.every.ms"] = str(commit.interval_us / 1000)
    if members.poll_timeout_us is not None:
        found |= {"poll.timeout.ms": str(members.poll_timeout_us / 1000), "poll.pauses.always": "true"}
    if members.rate_uhz is not None:
        found["records.per.second"] = str(members.rate_uhz / 1_000_000)
    found["max.poll.records"] = str(config.max_poll_records)
    for name in ("assigned", "revoked", "lost"):
        duration: Distribution = getattr(members.callbacks, name)
        if duration.mean_us:
            found[f"callback.{name}.ms"] = _draws(duration)
    return found


def _draws(distribution: Distribution) -> str:
    """Return values of a distribution, in milliseconds, as a client's argument."""
    if distribution.upper_us == 0:
        return "0"
    values = [distribution.sample(random) for _ in range(_DRAWS)]
    return ",".join(f"{value / 1000:g}" for value in values)


def unknown_to(profile: str, scenario: Scenario) -> Iterator[str]:
    """Say what of the scenario a client does not have, assignors and the consumer protocol, a sentence each."""
    known = _FAMILIES[profile].assignors
    for members in scenario.members:
        told = [(f"members {members.name}", members.config)]
        events = [each for each in scenario.events if {_STRATEGY, "group.protocol"} & set(each.settings)]
        told += [(f"event {each.title}", changed_settings(members.config, each.settings)) for each in events]
        for where, settings in told:
            config = member_config(changed(members, client=profile), settings)
            if config.group_protocol == "consumer" and not config.behaviour.speaks_consumer_protocol:
                yield f"{where}: this client does not speak the consumer protocol"
            for name in config.partition_assignment_strategy:
                if name not in known:
                    yield f"{where}: this client has no assignor {name!r}; it has {', '.join(known)}"
