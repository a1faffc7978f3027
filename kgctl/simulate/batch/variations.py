"""A scenario with one thing less at a time, or with a better one in its place: what `explain` measures a cause by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from kgctl.simulate.batch.details import OF_BACKLOGS
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.report.outcome import duration
from kgctl.simulate.scenario.application import USUAL_LOOP, Callbacks
from kgctl.simulate.scenario.checks import NO_FILTERS
from kgctl.simulate.scenario.event import Event, Terminates
from kgctl.simulate.scenario.fields import changed, full_batch_us, member_config, read_broker_settings
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.model import AssignTime, MemberSet, Network, Scenario
from kgctl.simulate.scenario.quantities import UNIT_PR, ZERO, Constant, Keys
from kgctl.simulate.scenario.streams import milder

_MOST_EVENTS = 20
_MOST_DRAWN = 8
_SHORT_SESSION_MS = 6_000
FEW_PODS = "too few pods (twice as many)"


def variations(scenario: Scenario, *, asked: Collection[str] = (), was_empty: bool = False) -> Iterator[tuple[str, Scenario]]:
    """Give the scenario with one thing left out at a time: its name, and the scenario. Only what the scenario has.

    ``asked``: the metrics that failing expectations ask about; ``was_empty``: whether the group was without members for a time.
    """
    yield from _without_events(scenario)
    if scenario.nemesis is not None:
        yield "the nemesis", changed(scenario, nemesis=None)
    if scenario.autoscale is not None:
        yield "the autoscaler", changed(scenario, autoscale=None)
    changes: Mapping[str, tuple[Callable[[MemberSet], bool], dict[str, Any]]] = {
        "static membership": (lambda each: each.instance_id is not None, {"instance_id": None}),
        "boot times": (lambda each: each.boot.mean_us > 0, {"boot": ZERO}),
        "the time of callbacks": (lambda each: each.callbacks != Callbacks(), {"callbacks": Callbacks()}),
        "pauses between poll() calls": (lambda each: each.poll.mean_us > 0, {"poll_loop": USUAL_LOOP}),
    }
    for name, (applies, change) in changes.items():
        if any(applies(each) for each in scenario.members):
            yield name, changed(scenario, members=tuple(changed(each, **change) for each in scenario.members))
    if any(_session_ms(each, scenario) > _SHORT_SESSION_MS for each in scenario.members):
        short = {"session.timeout.ms": str(_SHORT_SESSION_MS), "heartbeat.interval.ms": str(_SHORT_SESSION_MS // 3)}
        yield f"long sessions (session.timeout.ms={_SHORT_SESSION_MS})", _with_config(scenario, short, _SHORT_SESSION_MS)
    yield from _with_short_broker_sessions(scenario)
    if any(_has_long_batches(each) for each in scenario.members):
        sets = (
            changed(each, config={**each.config, "max.poll.records": str(_few_records(each))})
            if _has_long_batches(each)
            else each
            for each in scenario.members
        )
        yield f"long batches (max.poll.records for {duration(_SHORT_BATCH_US)})", changed(scenario, members=tuple(sets))
    yield from ((name, changed(scenario, members=better)) for name, better in milder(scenario.members))
    yield from _without_habits(scenario)
    yield from _without_settings(scenario, asked, was_empty=was_empty)
    if scenario.cluster.network != Network():
        calm = Network(latency=Constant(1_000))
        yield "the network's latency and loss", changed(scenario, cluster=changed(scenario.cluster, network=calm))
    if scenario.assign_time != AssignTime():
        yield "the time of the assignor", changed(scenario, assign_time=AssignTime())


def _without_habits(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Each habit of the members, or of whoever deploys them, that makes a part of a rebalance long, replaced by a better one."""
    rough = [event for event in scenario.events if isinstance(event, Terminates) and event.sigterm in ("exit", "ignored")]
    if rough or not all(each.leaves_on_stop for each in scenario.members):
        events = tuple(changed(event, sigterm="close") if event in rough else event for event in scenario.events)
        closing = tuple(changed(each, leaves_on_stop=True) for each in scenario.members)
        yield "consumers that end without close()", changed(scenario, events=events, members=closing)
    classic = [each for each in scenario.members if _session_ms(each, scenario)]
    if classic and any(event.adds_partitions for event in scenario.events):
        yield f"old metadata ({_METADATA}={_SHORT_METADATA_MS})", _with_config(scenario, {_METADATA: str(_SHORT_METADATA_MS)})
    first = {member_config(each, each.config).partition_assignment_strategy[0] for each in classic}
    if first and first <= {"range", "roundrobin"} and all(each.client in ("java", "librdkafka") for each in classic):
        yield (
            f"the assignor {' and '.join(sorted(first))} (cooperative-sticky)",
            _with_config(scenario, {"partition.assignment.strategy": "cooperative-sticky"}),
        )


def _without_settings(scenario: Scenario, asked: Collection[str], *, was_empty: bool) -> Iterator[tuple[str, Scenario]]:
    """What events set, uneven keys, the delay of a group's first rebalance, and (of duplicates) the cooperative protocol."""
    for index, event in enumerate(scenario.events):
        if event.settings:
            events = (*scenario.events[:index], changed(event, given={}), *scenario.events[index + 1 :])
            yield f"what event {index + 1} sets ({event.settings_key})", changed(scenario, events=events)
    limited = [each for each in scenario.members if each.rate_uhz is not None]
    if limited and any(name.startswith(OF_BACKLOGS) for name in asked):
        twice = tuple(changed(each, count=2 * each.count) if each in limited else each for each in scenario.members)
        yield FEW_PODS, changed(scenario, members=twice)
    if any(traffic.weights for traffic in scenario.traffic):
        even = tuple(changed(traffic, keys=Keys()) for traffic in scenario.traffic)
        yield "uneven keys (even)", changed(scenario, traffic=even)
    classic = [each for each in scenario.members if _session_ms(each, scenario)]
    if was_empty and classic and read_broker_settings(scenario.cluster.config).group_initial_rebalance_delay_ms:
        config = {**scenario.cluster.config, _DELAY: "0"}
        yield f"the first rebalance's delay ({_DELAY}=0)", changed(scenario, cluster=changed(scenario.cluster, config=config))
    first = {member_config(each, each.config).partition_assignment_strategy[0] for each in classic}
    if "cooperative-sticky" in first and {"duplicates", "fenced_commits"} & set(asked):
        yield "reading on in a rebalance (sticky)", _with_config(scenario, {"partition.assignment.strategy": "sticky"})


_DELAY = "group.initial.rebalance.delay.ms"
_METADATA = "metadata.max.age.ms"
_SHORT_METADATA_MS = 5_000


def _with_config(scenario: Scenario, config: Mapping[str, str], above_ms: int = 0) -> Scenario:
    """Return the scenario with other settings of its classic members (whose sessions are longer than this)."""
    meant = [each.name for each in scenario.members if _session_ms(each, scenario) > above_ms]
    sets = (changed(each, config={**each.config, **config}) if each.name in meant else each for each in scenario.members)
    return changed(scenario, members=tuple(sets))


def _with_short_broker_sessions(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Protocols whose sessions the brokers time, each with shorter ones."""
    broker, kind, session = read_broker_settings(scenario.cluster.config), type_of_group(scenario), "session.timeout.ms"
    limits = {session: _SHORT_SESSION_MS, "heartbeat.interval.ms": _SHORT_SESSION_MS // 3}
    for protocol in sorted({kind.protocol_of(member_config(each, each.config)) for each in scenario.members} - {"classic"}):
        name = f"group.{protocol}.{session}"
        if f"{protocol}.{session}" in scenario.group.settings or getattr(broker, name.replace(".", "_")) <= _SHORT_SESSION_MS:
            continue
        short = {f"group.{protocol}.{least}{which}": str(value) for which, value in limits.items() for least in ("", "min.")}
        config = {**scenario.cluster.config, **short}
        yield f"long sessions ({name}={_SHORT_SESSION_MS})", changed(scenario, cluster=changed(scenario.cluster, config=config))


def _without_events(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """One event less at a time. What waited for it begins when it would have, had the event taken no time."""
    events = scenario.events
    for index, event in enumerate(events[:_MOST_EVENTS]):
        rest = tuple(_anchored(each, event) for each in (*events[:index], *events[index + 1 :]))
        yield name_of(index, event), changed(scenario, events=rest)


def spelled_out(result: RunResult) -> Scenario:
    """Return the scenario with the faults that the nemesis drew in this run as events of its own."""
    scenario, drawn = result.recording.scenario, result.recording.history.drawn
    return changed(scenario, nemesis=None, events=(*scenario.events, *(event for _, event in drawn)))


def without_drawn(result: RunResult) -> Iterator[tuple[str, Scenario]]:
    """Give one fault of the nemesis less at a time: of the last ones that began before the longest gap ended."""
    gaps = result.metrics.measured.gaps(NO_FILTERS)
    if len(result.recording.history.drawn) < 2 or not gaps:
        return
    gap = max(gaps, key=lambda each: (each.length_us, -each.from_us))
    whole = spelled_out(result)
    for event in [event for at_us, event in result.recording.history.drawn if at_us <= gap.to_us][-_MOST_DRAWN:]:
        name = f"{event.name} {event.target} at {duration(event.at_us)}"
        yield name, changed(whole, events=tuple(each for each in whole.events if each is not event))


def name_of(index: int, event: Event) -> str:
    """What a scenario without this event, the file's so-manieth from 0, is called."""
    return f"event {index + 1}, {event.title} {event.target}"


def _anchored(event: Event, gone: Event) -> Event:
    if not gone.name or event.after != gone.name:
        return event
    return changed(event, after=gone.after, at_us=event.at_us + gone.at_us)


_LONG_BATCH_US, _SHORT_BATCH_US = 1_000_000, 100_000


def _has_long_batches(members: MemberSet) -> bool:
    return full_batch_us(members, member_config(members, members.config)) > _LONG_BATCH_US


def _few_records(members: MemberSet) -> int:
    return max((members.rate_uhz or 0) * _SHORT_BATCH_US // UNIT_PR, 1)


def _session_ms(members: MemberSet, scenario: Scenario) -> int:
    """The session that these members ask for; 0: the brokers say how long it is."""
    config = member_config(members, members.config)
    return config.session_timeout_ms if type_of_group(scenario).protocol_of(config) == "classic" else 0
