"""Why nobody consumed a partition for a while: who was waited for, by which rule, and what set the rebalance off."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kgctl.member.config import MemberConfig
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.metrics.tasks import restored_for
from kgctl.simulate.recording.owners import NOBODY, Gap
from kgctl.simulate.recording.trace import GroupChanged, Happened, PodChanged, Removed, Replied, Requested, TraceEvent
from kgctl.simulate.report.outcome import duration
from kgctl.simulate.scenario.events import EVENT_KINDS
from kgctl.simulate.scenario.fields import full_batch_us, member_config, read_broker_settings
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.vocabulary import EventStage, GapCause, PodChange

TRIGGERS = {
    "TopicsChanged": "a change of the topics",
    "RegexResolved": "a topic that matches the members' pattern",
    "CoordinatorFailover": "the move of the group to another coordinator",
}
"""What sets a rebalance off that is not a member's doing -> in words."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What set a rebalance off: in one word, in words, and the pod that did it. All "": there was no rebalance."""

    kind: str = ""
    text: str = ""
    pod: str = ""


@dataclass(frozen=True, slots=True)
class ReasonContext:
    """What a rule is looked for with: the run, the gap, the piece's times from the end of the warm-up, the log."""

    result: RunResult
    gap: Gap
    from_us: int
    to_us: int
    events: Sequence[TraceEvent]

    def inside(self, phase: _Phase) -> int:
        return min(phase.to_us, self.to_us) - max(phase.from_us, self.from_us)

    @property
    def scenario(self) -> Scenario:
        return self.result.recording.scenario

    def pod(self, number: int) -> str:
        return self.result.recording.history.pods[number].name

    def config(self, number: int) -> MemberConfig:
        """The settings of a pod's consumer."""
        history = self.result.recording.history.pods[number]
        return member_config(history.members, history.settings)

    def setting(self, number: int, name: str) -> str:
        """One of them, as Kafka writes it."""
        return f"{name}={getattr(self.config(number), name.replace('.', '_'))}"

    def batch(self, number: int) -> str:
        """How long this pod works on a full batch; "": no time."""
        config = self.config(number)
        length_us = full_batch_us(self.result.recording.history.pods[number].members, config)
        return (
            f"a batch of {config.max_poll_records} records (max.poll.records) takes it {duration(length_us)}" if length_us else ""
        )

    def number(self, pod: str) -> int:
        """The number of the pod of this name; -1: there is none."""
        pods = self.result.recording.history.pods
        return next((number for number, history in enumerate(pods) if history.name == pod), NOBODY)

    def changes(self, pod: str, until_us: int | None = None) -> list[PodChanged]:
        """What became of a pod until a time, or at all."""
        own = (each for each in self.events if isinstance(each, PodChanged) and each.pod == pod)
        return [each for each in own if until_us is None or each.at_us <= until_us]

    def removals(self, from_us: int, to_us: int) -> list[Removed]:
        """The members that were taken out between two times, both included."""
        return [each for each in self.events if isinstance(each, Removed) and from_us <= each.at_us <= to_us]

    def protocol(self, number: int) -> str:
        """What this pod's member speaks with its coordinator, as Kafka's settings name it."""
        return type_of_group(self.scenario).protocol_of(self.config(number))

    def is_classic(self, number: int) -> bool:
        return self.protocol(number) == "classic"

    def brokers(self, number: int, name: str) -> str:
        """A setting of the brokers for groups of this pod's protocol, as Kafka writes it: the group's own, where it has one."""
        own = f"{self.protocol(number)}.{name}"
        if own in self.scenario.group.settings:
            return f"{own}={self.scenario.group.settings[own]}"
        return f"group.{own}={getattr(read_broker_settings(self.scenario.cluster.config), f'group.{own}'.replace('.', '_'))}"


def _session(look: ReasonContext, *, is_static: bool = False) -> str:
    owner = look.gap.before
    if owner == NOBODY:
        return ""
    name, limit = look.pod(owner), _session_limit(look, owner)
    keeps = ", and keeps what a static member (group.instance.id) owned until then" if is_static else ""
    out_us = next((each.at_us for each in look.removals(look.from_us + 1, look.to_us) if each.pod == name), look.to_us)
    if is_static and look.gap.after == owner and (away := _away(look, name, out_us)):
        return f"{name} was {away}; the coordinator waits for {limit}{keeps}"
    whose = name if look.is_classic(owner) else "the brokers"
    told = f"{name} sent no heartbeat; the coordinator waits for {limit} of {whose}{keeps}"
    later = ""
    if (look.to_us - out_us) * _MATTERS >= look.to_us - look.from_us and (then := _rebalance(replace(look, from_us=out_us))):
        told, later = f"{told}, until {duration(out_us)}", f"; then {then}"
    return f"{told}{_besides(look, owner, out_us)}{later}"


def _away(look: ReasonContext, name: str, out_us: int) -> str:
    """For how long a pod that was back before it was taken out was down, and what of that it took to boot; "": it was not."""
    own = look.changes(name)
    back = next((each for each in own if each.what is PodChange.START and look.from_us < each.at_us <= out_us), None)
    if back is None:
        return ""
    boot = next((each for each in own if each.what is PodChange.BOOT and look.from_us <= each.at_us <= back.at_us), back)
    booted = f", {duration(back.at_us - boot.at_us)} of it to boot" if boot.at_us < back.at_us else ""
    return f"down until {duration(back.at_us)}{booted}"


def _besides(look: ReasonContext, owner: int, out_us: int) -> str:
    """What else made a session last, or end: a kill instead of a close, a return that was refused, a coordinator that is new."""
    name, found = look.pod(owner), ""
    own = look.changes(name)
    found += "".join(f"; {name} {_ENDED[each.what]}" for each in own if each.at_us == look.from_us and each.what in _ENDED)
    found += _bad_network(look, look.from_us)
    here = (event for event in own if look.from_us <= event.at_us <= look.to_us)
    if refused := next((event for event in here if event.what is PodChange.FAILED), None):
        found += f"; {name} was back and refused at {duration(refused.at_us)} ({refused.detail})"
    limit_us = 1_000 * int(_session_limit(look, owner).partition("=")[2])
    moves = [
        event
        for event in look.events
        if isinstance(event, Happened) and EVENT_KINDS[event.event_kind].moves_coordinator and event.what is EventStage.BEGINS
    ]
    if out_us - look.from_us > limit_us + _SECOND_US:
        # a session begins anew when a parked JoinGroup is answered (GroupMetadataManager#completeClassicGroupJoin)
        answers = (each for each in look.events if isinstance(each, GroupChanged) and each.state == "CompletingRebalance")
        answered = next((each for each in answers if abs(each.at_us + limit_us - out_us) <= _SOON_US), None)
        if answered is not None:
            found += f", from {duration(answered.at_us)} on, when generation {answered.generation} answered its parked JoinGroup"
        moved = next((event for event in reversed(moves) if event.at_us <= look.to_us - limit_us), None)
        if moved is not None:
            found += f", from when another coordinator had read the group (event {moved.event} at {duration(moved.at_us)})"
    return found


_SECOND_US = 1_000_000


def under_way(events: Sequence[TraceEvent], at_us: int) -> list[Happened]:
    """Return the beginnings of those events of the scenario that go on at a time, or last for good since then."""
    found: dict[tuple[str, str, str], Happened] = {}
    for event in events:
        if not isinstance(event, Happened) or event.at_us > at_us:
            continue
        key = (event.event_kind, event.event, event.target)
        stays = key in found and found[key].at_us == event.at_us and EVENT_KINDS[event.event_kind].may_stay
        if event.what is EventStage.BEGINS:
            found[key] = event
        elif event.what is EventStage.ENDS and not stays:
            found.pop(key, None)
    return list(found.values())


def meanwhile(look: ReasonContext) -> str:
    """Return which events of the scenario were under way, for a piece of which nothing else says what it waited for."""
    going = under_way(look.events, look.from_us)[-2:]
    return "; ".join(f"event {each.event} {each.target} goes on since {duration(each.at_us)}" for each in going)


def _bad_network(look: ReasonContext, at_us: int) -> str:
    """The scenario's last bad network that goes on at this time; "": there is none."""
    cuts = [each for each in under_way(look.events, at_us) if EVENT_KINDS[each.event_kind].is_bad_network]
    return "".join(f"; event {each.event} {each.target} goes on since {duration(each.at_us)}" for each in cuts[-1:])


def _stall(look: ReasonContext) -> str:
    owner = look.gap.before
    if owner == NOBODY:
        return ""
    name = look.pod(owner)
    changes = look.changes(name, look.from_us)
    if changes and changes[-1].what is PodChange.PAUSE:
        limit = _session_limit(look, owner)
        return f"{name} was frozen at {duration(changes[-1].at_us)} and sent no heartbeat; its session ({limit}) held on"
    limit, batch = look.setting(owner, "max.poll.interval.ms"), look.batch(owner)
    is_stuck = bool(changes) and changes[-1].what is PodChange.STALL
    why = f"; {batch}" if batch and not is_stuck else ""
    return f"{name} did not go on; the limit between two poll() calls is {limit}{why}"


_MATTERS = 5
"""A wait is told if it takes at least the fifth part of the piece."""
_KILLED, _STOPPED = "was killed at the end of its grace period, its consumer open", "had ended without close()"
_ENDED = {PodChange.KILLED: _KILLED, PodChange.STOPPED: _STOPPED}
_STALLS = (PodChange.STALL, PodChange.UNSTALL)
_SOON_US = 50_000
"""A join phase ends within so long of what ends it."""


@dataclass(frozen=True, slots=True)
class _Phase:
    """A time in which the coordinator has the group in one state, with the leader of its end. It may reach beyond a piece."""

    state: str
    from_us: int
    to_us: int
    leader: str


def _phases(look: ReasonContext) -> list[_Phase]:
    """Return the phases that take a good part of the piece, in the order of time."""
    found: list[_Phase] = []
    states = [event for event in look.events if isinstance(event, GroupChanged)]
    for state, later in itertools.pairwise(states):
        if found and found[-1].state == state.state:
            found[-1] = replace(found[-1], to_us=later.at_us, leader=state.leader)
        else:
            found.append(_Phase(state.state, state.at_us, later.at_us, state.leader))
    return [each for each in found if look.inside(each) * _MATTERS >= look.to_us - look.from_us]


@dataclass(frozen=True, slots=True)
class _Dead:
    """Members that were taken out long after their processes had ended: their pods, the ends in words, the last of these."""

    names: str
    ends: str
    pod: str
    ended_us: int


def _dead_of(look: ReasonContext, from_us: int, to_us: int) -> _Dead | None:
    """Return the dead that were taken out in this time; None: nobody was."""
    out = [each for each in look.removals(from_us, to_us) if each.why in ("expired", "replaced")]
    found = list({each.pod: each.at_us - each.dead_us for each in out if each.dead_us is not None}.items())
    if not found:
        return None
    when = " and ".join(dict.fromkeys(duration(at_us) for _, at_us in found))
    return _Dead(" and ".join(pod for pod, _ in found), f"had ended at {when}", *found[-1])


def _rebalance(look: ReasonContext) -> str:
    """Who was waited for: the dead, the member that joined last, the leader's assignment, or who joins the next round."""
    tellers = {"PreparingRebalance": _parked, "CompletingRebalance": _assignment, "Stable": _next_round}
    told = [tellers[phase.state](look, phase) for phase in _phases(look) if phase.state in tellers]
    return "; then ".join(dict.fromkeys(filter(None, told)))


def _parked(look: ReasonContext, phase: _Phase) -> str:
    """Return who the JoinGroups of a join phase waited for."""
    first, last = phase.from_us, phase.to_us
    joins = [event for event in look.events if isinstance(event, Requested) and max(first, look.from_us) <= event.at_us <= last]
    latest = max(joins, key=lambda join: join.at_us, default=None)
    if dead := _dead_of(look, last - _SOON_US, last):
        limit = _session_limit(look, look.number(dead.pod))
        stuck = _stuck(look, dead.pod, dead.ended_us)
        return (
            f"the JoinGroups of all others were parked for {dead.names}, which {dead.ends}: no heartbeat for {limit} "
            f"until {duration(last)}{stuck}"
        )
    if latest is None or last - latest.at_us > _SECOND_US:
        if gone := look.removals(last - _SOON_US, last):
            why: dict[str, list[str]] = {}
            for each in gone:
                why.setdefault(_going(look, each)[1], []).append(each.pod)
            who = " and ".join(f"{', '.join(pods)}, which {did}" for did, pods in why.items())
            return f"the JoinGroups of all others were parked until {duration(last)} for {who}"
        config = read_broker_settings(look.scenario.cluster.config)
        return (
            f"the coordinator held the JoinGroups until {duration(last)}: nobody joined in the last "
            f"{duration(last - (latest.at_us if latest else first))} (group.initial.rebalance.delay.ms="
            f"{config.group_initial_rebalance_delay_ms}, or a member's max.poll.interval.ms as the rebalance time-out)"
        )
    return (
        f"the JoinGroups of all others were parked for {latest.pod}, the last to join, {duration(latest.at_us - first)} after "
        f"the rebalance began: {_why_late(look, latest, first)}"
    )


def _assignment(look: ReasonContext, phase: _Phase) -> str:
    """Return why the leader took so long for the assignment."""
    leader, until = phase.leader, duration(phase.to_us)
    own = look.changes(leader, phase.to_us)
    if own and own[-1].what.is_end:
        end = f"had ended at {duration(own[-1].at_us)} and was still a member"
        return f"{leader}, the leader, {end}: nobody made the assignment, until {until}"
    stuck = _stuck(look, leader, phase.to_us)
    return (
        f"all waited {duration(phase.to_us - phase.from_us)} for the assignment, until {until}: {leader} "
        f"leads and makes it in a poll(), as long as its assignor takes (assign_time){stuck or _bad_network(look, phase.from_us)}"
    )


def _next_round(look: ReasonContext, phase: _Phase) -> str:
    """Return who began the round that ended a stable time late: the dead, or a member whose callback came first."""
    at_us = phase.to_us
    if dead := _dead_of(look, at_us, at_us):
        limit = _session_limit(look, look.number(dead.pod))
        return f"the assignment counted on {dead.names}, which {dead.ends} and stayed a member until {duration(at_us)} ({limit})"
    joined = next((each for each in look.events if isinstance(each, Requested) and each.at_us == at_us), None)
    if joined is None:
        return ""
    callbacks = look.result.recording.history.pods[look.number(joined.pod)].members.callbacks
    for name, length_us in (("assigned", callbacks.assigned.mean_us), ("revoked", callbacks.revoked.mean_us)):
        if length_us * 2 >= look.inside(phase):
            called = f"onPartitions{name.title()} first, {duration(length_us)} in the mean (callbacks.{name})"
            return f"the next round waited for {joined.pod}, which runs {called}"
    return ""


def _why_late(look: ReasonContext, latest: Requested, first_us: int) -> str:
    """Return what the last one to join waited for: its next heartbeat, by which it heard of the rebalance, or its own poll()."""
    heard = next(
        (each for each in look.events if isinstance(each, Replied) and each.pod == latest.pod and each.at_us >= first_us), None
    )
    if heard is None or heard.at_us > latest.at_us or 2 * (heard.at_us - first_us) < latest.at_us - first_us:
        return f"a member joins in poll(), when its batch and its callbacks are done{_own_time(look, latest)}"
    interval = look.setting(look.number(latest.pod), "heartbeat.interval.ms")
    return f"it heard of the rebalance by its next heartbeat, {duration(heard.at_us - first_us)} after that began ({interval})"


def _own_time(look: ReasonContext, latest: Requested) -> str:
    """What of the application's own makes the last one join late: a batch that is stuck, or poll() calls far apart."""
    if why := _stuck(look, latest.pod, latest.at_us) or _bad_network(look, latest.at_us):
        return why
    members, length_us = look.result.recording.history.pods[look.number(latest.pod)].members, look.to_us - look.from_us
    backoff_ms = member_config(members, members.config).join_group_backoff_ms
    out = [each for each in look.removals(latest.at_us - 2_000 * backoff_ms, latest.at_us) if each.pod == latest.pod]
    if members.client == "kafka-go" and out:
        return f"; kafka-go waits before it joins again once it was refused (JoinGroupBackoff={backoff_ms} ms)"
    if members.callbacks.revoked.mean_us * _MATTERS >= length_us:
        return f"; its onPartitionsRevoked takes {duration(members.callbacks.revoked.mean_us)} in the mean (callbacks.revoked)"
    if members.poll.mean_us * _MATTERS >= length_us:
        return f"; its poll() calls are {duration(members.poll.mean_us)} apart in the mean (poll)"
    batch = look.batch(look.number(latest.pod))
    return (
        f"; {batch}" if batch and full_batch_us(members, member_config(members, members.config)) * _MATTERS >= length_us else ""
    )


def _stuck(look: ReasonContext, pod: str, at_us: int) -> str:
    """Since when the batch of this pod had been stuck; "": it was not."""
    own = look.changes(pod, at_us)
    last = next((each for each in reversed(own) if each.what in (*_STALLS, PodChange.START)), None)
    if last is not None and last.what in _STALLS:
        since = next((each for each in reversed(own) if each.what is PodChange.STALL), last)
        limit = look.setting(look.number(pod), "max.poll.interval.ms")
        return f"; its batch was stuck since {duration(since.at_us)}, within {limit}"
    return ""


def origin_of(look: ReasonContext) -> Origin:
    """Return what set off the rebalance that the gap lies in; of several the one that takes the most of the gap."""
    recording = look.result.recording
    start_us = recording.start_us
    unsettled = [(first - start_us, last - start_us) for first, last in recording.history.unsettled.until(recording.end_us)]
    inside = [(first, last) for first, last in unsettled if first <= look.to_us and last >= look.from_us]
    if not inside:
        return Origin()
    first, last = max(inside, key=lambda times: min(times[1], look.to_us) - max(times[0], look.from_us))
    triggers = [(at_us - start_us, what) for at_us, what in recording.history.triggers]
    at_us, what = next((each for each in triggers if first <= each[0] <= min(last, look.to_us)), (0, ""))
    api, _, pod = what.partition(" ")
    begun = f"the rebalance was set off at {duration(at_us)} by"
    if api in TRIGGERS:
        return Origin(api, f"{begun} {TRIGGERS[api]}")
    if api == "timer":
        pod = next((each.pod for each in look.removals(at_us, at_us)), pod)
    if not pod:
        return Origin()
    kind, did = _doing(look, pod, at_us)
    return Origin(kind, f"{begun} {pod}, which {did}", pod)


def _doing(look: ReasonContext, pod: str, at_us: int) -> tuple[str, str]:
    """Return how a member set a rebalance off, in one word and in words: it left, was taken out, or came (again)."""
    out = next(
        (each for each in reversed(look.events) if isinstance(each, Removed) and each.pod == pod and each.at_us <= at_us), None
    )
    start = next((each for each in reversed(look.changes(pod, at_us)) if each.what is PodChange.START), None)
    if out is not None and out.at_us == at_us:
        return _going(look, out)
    if out is not None and (start is None or start.at_us < out.at_us):
        kind, why = _going(look, out)
        return f"back:{kind}", f"joined again, out of the group since {duration(out.at_us)}: it {why}"
    stable = [
        each.at_us for each in look.events if isinstance(each, GroupChanged) and each.state == "Stable" and each.at_us < at_us
    ]
    if (
        start is not None
        and any(start.at_us < stable_us for stable_us in stable)
        and _has_joined(look, pod, start.at_us, stable[-1])
    ):
        return (
            "metadata",
            "was in the group and joined again, as a member does that sees its topics changed (metadata.max.age.ms)",
        )
    if start is not None and out is not None:
        return "restarted", f"joined after its start at {duration(start.at_us)}"
    return "joined", "joined" if start is None else f"joined after its start at {duration(start.at_us)}"


def _has_joined(look: ReasonContext, pod: str, from_us: int, to_us: int) -> bool:
    return any(isinstance(each, Requested) and each.pod == pod and from_us <= each.at_us <= to_us for each in look.events)


def _going(look: ReasonContext, out: Removed) -> tuple[str, str]:
    """Return why a member is out: no poll() in time, its consumer closed, or no heartbeat."""
    number = look.number(out.pod)
    if out.why == "expired":
        return "expired", f"was taken out: no heartbeat for {_session_limit(look, number)}"
    if out.why == "replaced":
        return out.why, f"had joined again with another member id: no heartbeat of the old one for {_session_limit(look, number)}"
    if out.why != "left":
        return out.why, f"was {out.why}"
    changes = look.changes(out.pod, out.at_us)
    last = next((each for each in reversed(changes) if each.what in (*_STALLS, PodChange.START, PodChange.STOP)), None)
    if last is not None and last.what is PodChange.STOP:
        return "closed", "closed its consumer"
    limit, batch = look.setting(number, "max.poll.interval.ms"), look.batch(number)
    if last is not None and last.what is PodChange.STALL:
        since = f": no poll() since {duration(last.at_us)}, when its batch got stuck"
    else:
        since = f": {batch}" if batch else ""
    return "poll", f"left by itself, past {limit}{since}"


def _session_limit(look: ReasonContext, number: int) -> str:
    """Return the setting by which the coordinator gives this pod up, with its value."""
    return (look.setting if look.is_classic(number) else look.brokers)(number, "session.timeout.ms")


def _handover(look: ReasonContext) -> str:
    """In an eager group, and for who leaves one: the rebalance; in a cooperative one: the round after the next."""
    if rule := _rebalance(look):
        return rule
    given = ""
    if look.gap.after != NOBODY:
        after, name = look.gap.after, "heartbeat.interval.ms"
        by = "the next round" if look.is_classic(after) else f"its next heartbeat ({look.brokers(after, name)})"
        given = f"{look.pod(look.gap.after)} is given it by {by} only"
    return "; ".join(filter(None, (_revocation(look), given, _polls(look))))


def _polls(look: ReasonContext) -> str:
    """Return that each step of the consumer protocol waits for a poll(), where these are far apart."""
    owners = [owner for owner in (look.gap.before, look.gap.after) if owner != NOBODY and not look.is_classic(owner)]
    slow = [
        (look.pod(owner), poll.mean_us)
        for owner in owners
        if (poll := look.result.recording.history.pods[owner].members.poll).mean_us * 2 * _MATTERS >= look.to_us - look.from_us
    ]
    told = " and ".join(f"{name}, every {duration(round(mean_us))} in the mean" for name, mean_us in slow)
    return f"each step waits for a poll(): {told} (poll)" if told else ""


def _revocation(look: ReasonContext) -> str:
    """Return that who had the partition ran its callback first, where that takes a good part of the piece."""
    pods, before = look.result.recording.history.pods, look.gap.before
    length_us = 0 if before == NOBODY else pods[before].members.callbacks.revoked.mean_us
    if length_us * _MATTERS < look.to_us - look.from_us or not length_us:
        return ""
    return f"{look.pod(before)} runs onPartitionsRevoked first, {duration(length_us)} in the mean (callbacks.revoked)"


def _fetch(look: ReasonContext) -> str:
    if look.gap.after == NOBODY:
        return ""
    length_us = look.to_us - look.from_us
    pods = look.result.recording.history.pods
    mean_us = pods[look.gap.after].members.callbacks.assigned.mean_us
    if mean_us * _MATTERS < length_us and length_us > _SECOND_US:
        slow = {each.member_set: each.members.poll.mean_us for each in pods if each.members.poll.mean_us * _MATTERS >= length_us}
        told = [f"those of {name} are {duration(us)} apart in the mean (poll)" for name, us in slow.items()]
        if why := " and ".join(told) or _rebalance(look) or _generations(look):
            return f"who was given it takes it over in a poll(), unless the next rebalance is there first: {why}"
    long = f", {duration(mean_us)} in the mean (callbacks.assigned)," if mean_us * _MATTERS >= length_us else ""
    return f"{look.pod(look.gap.after)} runs onPartitionsAssigned{long} and fetches the offset"


def _generations(look: ReasonContext) -> str:
    """How many generations followed one another in the piece; "": one at the most."""
    states = [each for each in look.events if isinstance(each, GroupChanged) and look.from_us <= each.at_us <= look.to_us]
    count = len({each.generation for each in states})
    latency_us = look.scenario.cluster.network.client.mean_us
    return f"{count} generations followed one another; a message takes {duration(latency_us)} one way" if count > 1 else ""


_DISCOVERY = "consumers look for new partitions every metadata.max.age.ms (classic), the brokers at once (consumer protocol)"
RULES: Mapping[GapCause, Callable[[ReasonContext], str]] = {
    GapCause.DETECTION: _session,
    GapCause.STATIC_WAIT: partial(_session, is_static=True),
    GapCause.STALL: _stall,
    GapCause.REBALANCE: _rebalance,
    GapCause.HANDOVER: _handover,
    GapCause.FETCH: _fetch,
    GapCause.RESTORE: lambda look: restored_for(look.result.recording, look.gap, look.from_us, look.to_us),
    GapCause.DISCOVERY: lambda _: _DISCOVERY,
}
"""Cause -> what words the rule that it waited for."""
