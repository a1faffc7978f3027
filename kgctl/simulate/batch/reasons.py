"""Why nobody consumed a partition for a while: who was waited for, by which rule, and what set the rebalance off."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kgctl.coordinator.timers import SESSION_TIMERS
from kgctl.member.api import CallbackKind
from kgctl.member.classic_session import Membership
from kgctl.member.config import MemberConfig
from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import frozen_in_order
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.metrics.tasks import restored_for
from kgctl.simulate.recording.owners import NOBODY, Gap
from kgctl.simulate.recording.trace import GroupChanged, Happened, PodChanged, Removed, TraceEvent
from kgctl.simulate.report.outcome import duration
from kgctl.simulate.scenario.events import EVENT_KINDS
from kgctl.simulate.scenario.fields import member_config, read_broker_settings
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.vocabulary import FAILOVER, EventStage, GapCause, PodChange, WaitedFor

TRIGGERS = {
    "TopicsChanged": "a change of the topics",
    "RegexResolved": "a topic that matches the members' pattern",
    "CoordinatorFailover": "the move of the group to another coordinator",
}
"""What sets a rebalance off that is not a member's doing -> in words."""


_MATTERS = 5
"""A wait is told if it takes at least the fifth part of the piece."""
_WHOLE = 0
"""All that was recorded is told."""


@frozen_in_order
class Origin:
    """What set a rebalance off: in one word, in words, and the pod that did it. All "": there was no rebalance."""

    kind: str = ""
    text: str = ""
    pod: str = ""


@frozen_in_order
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
        """One of them, as Kafka writes it; a scenario's own keys have names alone."""
        return f"{name}={getattr(self.config(number), name.replace('.', '_'), '')}".rstrip("=")

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

    def waits(self, pod: str, from_us: int, to_us: int, *, share: int = _MATTERS) -> str:
        """What a pod's member waited for of its application in a good part of a time (a ``share``-th), in words; "": nothing."""
        number, start_us = self.number(pod), self.result.recording.start_us
        ends = [each.at_us for each in self.changes(pod) if each.what.is_end]
        lengths: Counter[str] = Counter()
        for each in self.result.recording.history.waits:
            if each.pod == number:
                first_us = each.at_us - start_us
                last_us = min(first_us + each.amount, to_us, *(at_us for at_us in ends if at_us >= first_us))
                lengths[each.what] += max(last_us - max(first_us, from_us), 0)
        told = [(what, us) for what, us in lengths.most_common() if us and (not share or us * share >= to_us - from_us)]
        return " and ".join(f"{_WAITS[what].format(duration(us))} ({self.setting(number, what)})" for what, us in told)

    def held_up(self, pod: str, from_us: int, to_us: int) -> str:
        """The same at the end of a line."""
        return f"; {pod} {why}" if (why := self.waits(pod, from_us, to_us)) else ""

    def waits_of(self, pods: Iterable[str]) -> str:
        """The same of several pods, in the piece."""
        return "; ".join(f"{pod} {why}" for pod in pods if (why := self.waits(pod, self.from_us, self.to_us)))

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
    name = look.pod(owner)
    keeps = ", and keeps what a static member (group.instance.id) owned until then" if is_static else ""
    out = next((each for each in look.removals(look.from_us + 1, look.to_us) if each.pod == name), None)
    out_us, limit = look.to_us if out is None else out.at_us, _limit(look, owner, out)
    if is_static and look.gap.after == owner and (away := _away(look, name, out_us)):
        return f"{name} was {away}; the coordinator waits for {limit}{keeps}"
    whose = name if look.is_classic(owner) else "the brokers"
    told = f"{name} sent no heartbeat; the coordinator waits for {limit} of {whose}{keeps}"
    later = ""
    if (look.to_us - out_us) * _MATTERS >= look.to_us - look.from_us and (then := _rebalance(replace(look, from_us=out_us))):
        told, later = f"{told}, until {duration(out_us)}", f"; then {then}"
    return f"{told}{_besides(look, owner, out)}{later}"


def _away(look: ReasonContext, name: str, out_us: int) -> str:
    """For how long a pod that was back before it was taken out was down, and what of that it took to boot; "": it was not."""
    own = look.changes(name)
    back = next((each for each in own if each.what is PodChange.START and look.from_us < each.at_us <= out_us), None)
    if back is None:
        return ""
    boot = next((each for each in own if each.what is PodChange.BOOT and look.from_us <= each.at_us <= back.at_us), back)
    booted = f", {duration(back.at_us - boot.at_us)} of it to boot" if boot.at_us < back.at_us else ""
    return f"down until {duration(back.at_us)}{booted}"


def _besides(look: ReasonContext, owner: int, out: Removed | None) -> str:
    """What else made a session last, or end: a kill instead of a close, a return that was refused, a coordinator that is new."""
    name, found = look.pod(owner), ""
    own = look.changes(name)
    found += "".join(f"; {name} {_ENDED[each.what]}" for each in own if each.at_us == look.from_us and each.what in _ENDED)
    found += _bad_network(look, name, look.from_us)
    here = (event for event in own if look.from_us <= event.at_us <= look.to_us)
    if refused := next((event for event in here if event.what is PodChange.FAILED), None):
        found += f"; {name} was back and refused at {duration(refused.at_us)} ({refused.detail})"
    if out is not None and out.began_us is not None:
        what = f"generation {out.generation} answered its parked JoinGroup" if out.generation >= 0 else _READ
        found += f", from {duration(out.began_us)} on, when {what}"
    return found


_READ = "another coordinator had read the group"
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


def _bad_network(look: ReasonContext, pod: str, at_us: int) -> str:
    """What was wrong with a pod's network at this time, the newest of it; "": nothing."""
    recording, number = look.result.recording, look.number(pod)
    now_us = at_us + recording.start_us
    cuts = [each for each in recording.history.harmed if each.pod == number and each.at_us <= now_us < each.amount]
    return "".join(f"; event {each.what} goes on since {duration(each.at_us - recording.start_us)}" for each in cuts[-1:])


def _stall(look: ReasonContext) -> str:
    owner = look.gap.before
    if owner == NOBODY:
        return ""
    name = look.pod(owner)
    changes = look.changes(name, look.from_us)
    if changes and changes[-1].what is PodChange.PAUSE:
        limit = _limit(look, owner)
        return f"{name} was frozen at {duration(changes[-1].at_us)} and sent no heartbeat; its session ({limit}) held on"
    limit, why = look.setting(owner, "max.poll.interval.ms"), look.held_up(name, look.from_us, look.to_us)
    return f"{name} did not go on; the limit between two poll() calls is {limit}{why}"


_WAITS: Mapping[str, str] = {
    WaitedFor.POLL: "waits {} for its next poll()",
    WaitedFor.BATCH: "is {} in its batch",
    WaitedFor.STALL: "is stuck for {} in its batch",
    WaitedFor.ASSIGNOR: "assigns for {}",
    WaitedFor.REVOKED: "runs onPartitionsRevoked first, {}",
    WaitedFor.ASSIGNED: "runs onPartitionsAssigned first, {}",
    WaitedFor.LOST: "runs onPartitionsLost first, {}",
}
_KILLED, _STOPPED = "was killed at the end of its grace period, its consumer open", "had ended without close()"
_ENDED = {PodChange.KILLED: _KILLED, PodChange.STOPPED: _STOPPED}
_NO_MEMBERS = ("Empty", "Dead")
_SESSIONS = {"", *SESSION_TIMERS}


@frozen_in_order
class _Phase:
    """A time in which the coordinator has the group in one state, with the leader of its end, and what ends it: an API, or timer,
    and the pod whose request it was. It may reach beyond a piece.
    """

    state: str
    from_us: int
    to_us: int
    leader: str
    ended_by: tuple[str, str]
    before: str


def _phases(look: ReasonContext) -> list[_Phase]:
    """Return the phases that take a good part of the piece, in the order of time."""
    found: list[_Phase] = []
    states = [event for event in look.events if isinstance(event, GroupChanged)]
    for state, later in itertools.pairwise(states):
        api, _, pod = later.trigger.removeprefix(f"{FAILOVER} ").partition(" ")
        if found and found[-1].state == state.state:
            found[-1] = replace(found[-1], to_us=later.at_us, leader=state.leader, ended_by=(api, pod))
        else:
            before = found[-1].state if found else "Empty"
            found.append(_Phase(state.state, state.at_us, later.at_us, state.leader, (api, pod), before))
    return [each for each in found if look.inside(each) * _MATTERS >= look.to_us - look.from_us]


@frozen_in_order
class _Dead:
    """Members that were taken out long after their processes had ended: their pods, the ends in words, the last of these."""

    names: str
    ends: str
    out: Removed


def _dead_of(look: ReasonContext, at_us: int) -> _Dead | None:
    """Return the dead that were taken out at this time; None: nobody was."""
    out = [each for each in look.removals(at_us, at_us) if each.why in ("expired", "replaced")]
    found = {each.pod: each for each in out if each.dead_us is not None}
    if not found:
        return None
    when = " and ".join(dict.fromkeys(duration(each.at_us - (each.dead_us or 0)) for each in found.values()))
    return _Dead(" and ".join(found), f"had ended at {when}", [*found.values()][-1])


def _rebalance(look: ReasonContext) -> str:
    """Who was waited for: the dead, the member that joined last, the leader's assignment, or who joins the next round."""
    tellers = {"PreparingRebalance": _parked, "CompletingRebalance": _assignment, "Stable": _next_round}
    told = [tellers[phase.state](look, phase) for phase in _phases(look) if phase.state in tellers]
    return "; then ".join(dict.fromkeys(filter(None, told)))


def _parked(look: ReasonContext, phase: _Phase) -> str:
    """Return who the JoinGroups of a join phase waited for: who ended it."""
    first, last = phase.from_us, phase.to_us
    api, pod = phase.ended_by
    if dead := _dead_of(look, last):
        return (
            f"the JoinGroups of all others were parked for {dead.names}, which {dead.ends}: {_silence(look, dead.out)} "
            f"until {duration(last)}{look.held_up(dead.out.pod, first, last)}"
        )
    if api == "JoinGroup":
        return (
            f"the JoinGroups of all others were parked for {pod}, the last to join, {duration(last - first)} after "
            f"the rebalance began: {_why_late(look, pod, first, last)}"
        )
    if gone := look.removals(last, last):
        why: dict[str, list[str]] = {}
        for each in gone:
            why.setdefault(_going(look, each)[1], []).append(each.pod)
        who = " and ".join(f"{', '.join(pods)}, which {did}" for did, pods in why.items())
        return f"the JoinGroups of all others were parked until {duration(last)} for {who}"
    if api != "timer":
        return ""
    delay_ms = read_broker_settings(look.scenario.cluster.config).group_initial_rebalance_delay_ms
    first_ones = f"for the first members (group.initial.rebalance.delay.ms={delay_ms})"
    others = "for who did not join (a member's max.poll.interval.ms as the rebalance time-out)"
    return f"the coordinator held the JoinGroups until {duration(last)}, {first_ones if phase.before in _NO_MEMBERS else others}"


def _assignment(look: ReasonContext, phase: _Phase) -> str:
    """Return why the leader took so long for the assignment."""
    leader, until = phase.leader, duration(phase.to_us)
    own = look.changes(leader, phase.to_us)
    if own and own[-1].what.is_end:
        end = f"had ended at {duration(own[-1].at_us)} and was still a member"
        return f"{leader}, the leader, {end}: nobody made the assignment, until {until}"
    why = look.held_up(leader, phase.from_us, phase.to_us) or _bad_network(look, leader, phase.from_us)
    length = duration(phase.to_us - phase.from_us)
    return f"all waited {length} for the assignment, until {until}: {leader} leads and makes it in a poll(){why}"


def _next_round(look: ReasonContext, phase: _Phase) -> str:
    """Return who began the round that ended a stable time late: the dead, or a member that its application held up."""
    at_us = phase.to_us
    if dead := _dead_of(look, at_us):
        limit = _limit(look, look.number(dead.out.pod), dead.out)
        return f"the assignment counted on {dead.names}, which {dead.ends} and stayed a member until {duration(at_us)} ({limit})"
    api, pod = phase.ended_by
    told = _told(look, pod, at_us) if api == "JoinGroup" else None
    stops = [each.at_us for each in look.changes(pod, at_us) if each.what is PodChange.STOP and api == "LeaveGroup"]
    since_us = told[0] if told is not None else stops[-1] if stops else at_us
    why = look.waits(pod, max(since_us, look.from_us), at_us, share=_WHOLE)
    return f"the next round waited for {pod}, which {why}" if why else ""


def _told(look: ReasonContext, pod: str, at_us: int) -> tuple[int, str] | None:
    """Return when the member whose JoinGroup came then had been told that it has to join, and by the answer to what; None: it was
    told by nobody."""
    number, start_us = look.number(pod), look.result.recording.start_us
    own = (each for each in reversed(look.result.recording.history.rejoins) if each.pod == number)
    joined = next((each for each in own if each.at_us - start_us <= at_us), None)
    return (joined.at_us - start_us - joined.amount, joined.what) if joined is not None and joined.what else None


_REBALANCING = f"Heartbeat {ErrorCode.REBALANCE_IN_PROGRESS.name}"


def _heard(look: ReasonContext, pod: str, after_us: int, what: str) -> str:
    """Return by what a member heard of a rebalance so long after that began; "": by something else than usual."""
    if what == _REBALANCING and after_us >= 0:
        interval = look.setting(look.number(pod), "heartbeat.interval.ms")
        return f"it heard of the rebalance by its next heartbeat, {duration(after_us)} after that began ({interval})"
    return "it had its assignment, and joins again in a poll()" if what == "SyncGroup" else ""


def _why_late(look: ReasonContext, pod: str, first_us: int, last_us: int) -> str:
    """Return what the last one to join waited for: the answer by which it heard of the rebalance, then its application."""
    told = _told(look, pod, last_us)
    if told is None:
        starts = (each for each in look.changes(pod) if each.what is PodChange.START)
        start = next((each for each in starts if first_us < each.at_us <= last_us), None)
        joins = "a member joins in poll(), when its batch and its callbacks are done"
        heard, told_us = joins if start is None else f"it started at {duration(start.at_us)}", first_us
    else:
        told_us, what = told
        answered = f"its {what.replace(' ', ' was answered with ')} at {duration(told_us)}"
        heard = _heard(look, pod, told_us - first_us, what) or answered
    if why := look.waits(pod, told_us, last_us, share=_WHOLE):
        return f"{heard}; {pod} then {why}"
    return heard + _bad_network(look, pod, last_us)


def origin_of(look: ReasonContext) -> Origin:
    """Return what set off the rebalance that the gap lies in; of several the one that takes the most of the gap."""
    recording = look.result.recording
    start_us = recording.start_us
    unsettled = [(first - start_us, last - start_us) for first, last in recording.history.unsettled.until(recording.end_us)]
    inside = [(first, last) for first, last in unsettled if first <= look.to_us and last >= look.from_us]
    if not inside:
        return Origin()
    first, last = max(inside, key=lambda times: min(times[1], look.to_us) - max(times[0], look.from_us))
    changes = (each for each in look.events if isinstance(each, GroupChanged) and each.begins)
    begun = next((each for each in changes if first <= each.at_us <= min(last, look.to_us)), None)
    if begun is None:
        return Origin()
    at_us = begun.at_us
    api, _, pod = begun.trigger.partition(" ")
    by = f"the rebalance was set off at {duration(at_us)} by"
    if api in TRIGGERS:
        return Origin(api, f"{by} {TRIGGERS[api]}")
    if api == "timer":
        pod = next((each.pod for each in look.removals(at_us, at_us)), pod)
    if not pod:
        return Origin()
    kind, did = _doing(look, pod, at_us, begun.reason)
    return Origin(kind, f"{by} {pod}, which {did}", pod)


def _doing(look: ReasonContext, pod: str, at_us: int, reason: str) -> tuple[str, str]:
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
    if reason:
        kind, setting = ("metadata", " (metadata.max.age.ms)") if reason in Membership.TOPICS_CHANGED else ("again", "")
        return kind, f"was in the group and joined again: {reason}{setting}"
    if start is not None and out is not None:
        return "restarted", f"joined after its start at {duration(start.at_us)}"
    return "joined", "joined" if start is None else f"joined after its start at {duration(start.at_us)}"


def _going(look: ReasonContext, out: Removed) -> tuple[str, str]:
    """Return why a member is out: no poll() in time, its consumer closed, or no heartbeat."""
    number = look.number(out.pod)
    if out.why == "expired":
        return "expired", f"was taken out: {_silence(look, out)}"
    if out.why == "replaced":
        return out.why, f"had joined again with another member id: no heartbeat of the old one for {_limit(look, number)}"
    if out.why != "left":
        return out.why, f"was {out.why}"
    if out.has_closed:
        return "closed", "closed its consumer"
    why = look.waits(out.pod, out.at_us - 1000 * look.config(number).max_poll_interval_ms, out.at_us)
    return "poll", f"left by itself, past {look.setting(number, 'max.poll.interval.ms')}{f': it {why}' if why else ''}"


def _limit(look: ReasonContext, number: int, out: Removed | None = None) -> str:
    """Return the setting by which the coordinator gives this pod up, or gave it up then, with its value."""
    if out is not None and out.timer not in _SESSIONS:
        return look.setting(number, "max.poll.interval.ms")
    return (look.setting if look.is_classic(number) else look.brokers)(number, "session.timeout.ms")


def _silence(look: ReasonContext, out: Removed) -> str:
    """Return what the coordinator did not hear of a member that it took out, and for how long."""
    limit = _limit(look, look.number(out.pod), out)
    return f"no heartbeat for {limit}" if out.timer in _SESSIONS else f"nothing for {limit}, the rebalance time-out,"


def _handover(look: ReasonContext) -> str:
    """In an eager group, and for who leaves one: the rebalance; in a cooperative one: the round after the next."""
    if rule := _rebalance(look):
        return rule
    owners = [look.pod(owner) for owner in dict.fromkeys((look.gap.before, look.gap.after)) if owner != NOBODY]
    return "; ".join(filter(None, (look.waits_of(owners), _given(look))))


def _given(look: ReasonContext) -> str:
    """Return which answer gave the partition to who gets it, in the piece; "": none did."""
    recording, number = look.result.recording, look.gap.after
    answers = [each for each in recording.history.given if each.pod == number]
    inside = [each for each in answers if look.from_us < each.at_us - recording.start_us <= look.to_us]
    if not inside:
        return ""
    at_us, api = inside[-1].at_us - recording.start_us, inside[-1].what
    beats = f" ({look.brokers(number, 'heartbeat.interval.ms')})" if not look.is_classic(number) else ""
    return f"{look.pod(number)} is given it by the answer to its {api} at {duration(at_us)}{beats}"


def _fetch(look: ReasonContext) -> str:
    """What who was given it has to do first, and who gets it in the end."""
    if look.gap.after == NOBODY:
        return ""
    recording = look.result.recording
    begun = [each for each in recording.history.callbacks if each.at_us - recording.start_us == look.from_us and each.amount]
    given = [look.pod(each.pod) for each in begun if each.what == CallbackKind.ASSIGNED]
    if told := look.waits_of(given):
        return f"{told}, and fetches the offset"
    if look.to_us - look.from_us > _SECOND_US and (why := _rebalance(look) or _generations(look)):
        return f"who was given it takes it over in a poll(), unless the next rebalance is there first: {why}"
    return f"{look.pod(look.gap.after)} runs onPartitionsAssigned and fetches the offset"


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
