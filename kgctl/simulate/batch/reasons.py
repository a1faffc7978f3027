"""Why nobody consumed a partition for a while: who was waited for, by which rule, and what set the rebalance off."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.recording.owners import NOBODY, Gap
from kgctl.simulate.recording.trace import GroupChanged, Happened, PodChanged, Removed, Replied, Requested, TraceEvent
from kgctl.simulate.report.outcome import duration
from kgctl.simulate.scenario.fields import member_config, read_broker_settings
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.vocabulary import Cause

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
class Look:
    """What a rule is looked for with: the run, the gap, the piece's times from the end of the warm-up, the log."""

    result: RunResult
    gap: Gap
    from_us: int
    to_us: int
    events: Sequence[TraceEvent]

    @property
    def scenario(self) -> Scenario:
        return self.result.recording.scenario

    def pod(self, number: int) -> str:
        return self.result.recording.history.pods[number].name

    def setting(self, number: int, name: str) -> str:
        """A setting of a pod's consumer, as Kafka writes it."""
        history = self.result.recording.history.pods[number]
        value = getattr(member_config(history.members, history.settings), name.replace(".", "_"))
        return f"{name}={value}"

    def number(self, pod: str) -> int:
        """The number of the pod of this name; -1: there is none."""
        pods = self.result.recording.history.pods
        return next((number for number, history in enumerate(pods) if history.name == pod), NOBODY)

    def is_classic(self, number: int) -> bool:
        history = self.result.recording.history.pods[number]
        return member_config(history.members, history.settings).group_protocol == "classic"


def _session(look: Look, *, is_static: bool = False) -> str:
    owner = look.gap.before
    if owner == NOBODY:
        return ""
    whose = look.pod(owner) if look.is_classic(owner) else "the brokers"
    limit = f"{_session_limit(look, owner)} of {whose}"
    keeps = ", and keeps what a static member (group.instance.id) owned until then" if is_static else ""
    return f"{look.pod(owner)} sent no heartbeat; the coordinator waits for {limit}{keeps}{_besides(look, owner)}"


def _static(look: Look) -> str:
    return _session(look, is_static=True)


def _besides(look: Look, owner: int) -> str:
    """What else made a session last, or end: a kill instead of a close, a return that was refused, a coordinator that is new."""
    name, found = look.pod(owner), ""
    own = [event for event in look.events if isinstance(event, PodChanged) and event.pod == name]
    if any(event.what == "killed" and event.at_us == look.from_us for event in own):
        found += f"; {name} was killed at the end of its grace period, its consumer open"
    if refused := next((event for event in own if event.what == "failed" and look.from_us <= event.at_us <= look.to_us), None):
        found += f"; {name} was back and refused at {duration(refused.at_us)} ({refused.detail})"
    limit_us = 1_000 * int(_session_limit(look, owner).partition("=")[2])
    moves = [event for event in look.events if isinstance(event, Happened) and event.event in _MOVES and event.what == "begins"]
    if look.to_us - look.from_us > limit_us + _SECOND_US:
        moved = next((event for event in reversed(moves) if event.at_us <= look.to_us - limit_us), None)
        if moved is not None:
            found += f", from when another coordinator had read the group (event {moved.event} at {duration(moved.at_us)})"
    return found


_MOVES = ("broker_down", "coordinator_move")
_SECOND_US = 1_000_000
_FOR_GOOD = ("network", "slow", *_MOVES)
"""Events that may last for good: they are over at once then, by the log."""


def under_way(events: Sequence[TraceEvent], at_us: int) -> list[Happened]:
    """Return the beginnings of those events of the scenario that go on at a time, or last for good since then."""
    found: dict[tuple[str, str], Happened] = {}
    for event in events:
        if not isinstance(event, Happened) or event.at_us > at_us:
            continue
        key = (event.event, event.target)
        if event.what == "begins":
            found[key] = event
        elif event.what == "ends" and key in found and (found[key].at_us < event.at_us or event.event not in _FOR_GOOD):
            del found[key]
    return list(found.values())


def meanwhile(look: Look) -> str:
    """Return which events of the scenario were under way, for a piece of which nothing else says what it waited for."""
    going = under_way(look.events, look.from_us)[-2:]
    return "; ".join(f"event {each.event} {each.target} goes on since {duration(each.at_us)}" for each in going)


def _stall(look: Look) -> str:
    owner = look.gap.before
    if owner == NOBODY:
        return ""
    name = look.pod(owner)
    changes = [each for each in look.events if isinstance(each, PodChanged) and each.pod == name and each.at_us <= look.from_us]
    if changes and changes[-1].what == "pause":
        at_us = changes[-1].at_us
        return (
            f"{name} was frozen at {duration(at_us)} and sent no heartbeat; its session ({_session_limit(look, owner)}) held on"
        )
    return f"{name} did not go on; the limit between two poll() calls is {look.setting(owner, 'max.poll.interval.ms')}"


_MATTERS = 5
"""A wait is told if it takes at least the fifth part of the piece."""
_SOON_US = 50_000
"""A join phase ends within so long of what ends it."""
_ENDS = frozenset({"crash", "killed", "stopped", "exit"})


def _dead(look: Look) -> str:
    """Who is dead and was waited for nevertheless: a leader, for its assignment, or members, for their JoinGroups."""
    states = [event for event in look.events if isinstance(event, GroupChanged)]
    waits = []
    for state, later in itertools.pairwise(states):
        length_us = min(later.at_us, look.to_us) - max(state.at_us, look.from_us)
        if length_us * _MATTERS >= look.to_us - look.from_us and (text := _waits_for_the_dead(look, state, later)):
            waits.append(text)
    return "; then ".join(dict.fromkeys(waits))


def _waits_for_the_dead(look: Look, state: GroupChanged, later: GroupChanged) -> str:
    if state.state == "CompletingRebalance" and (end := _end_of(look, state.leader, later.at_us)):
        return (
            f"{state.leader}, the leader, {end} and was still a member: nobody made the assignment, until {duration(later.at_us)}"
        )
    removed = [each for each in look.events if isinstance(each, Removed) and each.at_us == later.at_us and each.why == "expired"]
    if state.state != "PreparingRebalance" or not removed:
        return ""
    ends = [(each.pod, end) for each in removed if (end := _end_of(look, each.pod, later.at_us))]
    if not ends:
        return ""
    names = " and ".join(pod for pod, _ in ends)
    why = f"{ends[0][1]}: no heartbeat for {_session_limit(look, look.number(ends[0][0]))} until {duration(later.at_us)}"
    return f"the JoinGroups of all others were parked for {names}, which {why}"


def _end_of(look: Look, pod: str, at_us: int) -> str:
    """When this pod's process ended without leaving the group, in words; "": it runs."""
    changes = (each for each in reversed(look.events) if isinstance(each, PodChanged) and each.pod == pod)
    last = next((each for each in changes if each.at_us <= at_us), None)
    return f"had ended at {duration(last.at_us)}" if last is not None and last.what in _ENDS else ""


def _rebalance(look: Look) -> str:
    """Who was waited for: the dead, the member that joined last, or the leader's assignment."""
    if waits := _dead(look):
        return waits
    states = [event for event in look.events if isinstance(event, GroupChanged) and event.at_us <= look.to_us]
    joins = [event for event in look.events if isinstance(event, Requested) and look.from_us <= event.at_us <= look.to_us]
    parked = [
        (state.at_us, later.at_us)
        for state, later in itertools.pairwise(states)
        if state.state == "PreparingRebalance" and later.state != "PreparingRebalance" and later.at_us >= look.from_us
    ]
    if not parked:
        return _assignment(look, states)
    first, last = max(parked, key=lambda times: times[1] - max(times[0], look.from_us))
    if 2 * (min(last, look.to_us) - max(first, look.from_us)) < look.to_us - look.from_us:
        return _assignment(look, states)  # most of the time it was something else
    latest = max((join for join in joins if join.at_us <= last), key=lambda join: join.at_us, default=None)
    if latest is None or last - latest.at_us > 1_000_000:
        if gone := [each for each in look.events if isinstance(each, Removed) and last - _SOON_US <= each.at_us <= last]:
            who = " and ".join(f"{each.pod}, which {_going(look, each)[1]}" for each in gone)
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


def _assignment(look: Look, states: Sequence[GroupChanged]) -> str:
    """Return that the leader's assignor took most of the piece, if it did."""
    for state, later in itertools.pairwise(states):
        length_us = min(later.at_us, look.to_us) - max(state.at_us, look.from_us)
        if state.state == "CompletingRebalance" and 2 * length_us >= look.to_us - look.from_us:
            return (
                f"all waited {duration(length_us)} for the assignment, until {duration(later.at_us)}: {state.leader} "
                "leads and makes it in a poll(), as long as its assignor takes (assign_time)"
            )
    return ""


def _why_late(look: Look, latest: Requested, first_us: int) -> str:
    """Return what the last one to join waited for: its next heartbeat, by which it heard of the rebalance, or its own poll()."""
    heard = next(
        (each for each in look.events if isinstance(each, Replied) and each.pod == latest.pod and each.at_us >= first_us), None
    )
    if heard is None or heard.at_us > latest.at_us or 2 * (heard.at_us - first_us) < latest.at_us - first_us:
        return f"a member joins in poll(), when its batch and its callbacks are done{_stuck(look, latest)}"
    interval = look.setting(look.number(latest.pod), "heartbeat.interval.ms")
    return f"it heard of the rebalance by its next heartbeat, {duration(heard.at_us - first_us)} after that began ({interval})"


def _stuck(look: Look, latest: Requested) -> str:
    """Since when the batch of the last one to join had been stuck, or its network slow; "": neither."""
    own = [each for each in look.events if isinstance(each, PodChanged) and each.pod == latest.pod and each.at_us < latest.at_us]
    last = next((each for each in reversed(own) if each.what in ("stall", "unstall", "start")), None)
    if last is not None and last.what in ("stall", "unstall"):
        since = next((each for each in reversed(own) if each.what == "stall"), last)
        limit = look.setting(look.number(latest.pod), "max.poll.interval.ms")
        return f"; its batch was stuck since {duration(since.at_us)}, within {limit}"
    return ""


def origin_of(look: Look) -> Origin:
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
        pod = next((each.pod for each in look.events if isinstance(each, Removed) and each.at_us == at_us), pod)
    if not pod:
        return Origin()
    kind, did = _doing(look, pod, at_us)
    return Origin(kind, f"{begun} {pod}, which {did}", pod)


def _doing(look: Look, pod: str, at_us: int) -> tuple[str, str]:
    """Return how a member set a rebalance off, in one word and in words: it left, was taken out, or came (again)."""
    removals = [each for each in look.events if isinstance(each, Removed) and each.pod == pod and each.at_us <= at_us]
    changes = [each for each in look.events if isinstance(each, PodChanged) and each.pod == pod and each.at_us <= at_us]
    start = next((each for each in reversed(changes) if each.what == "start"), None)
    out = removals[-1] if removals else None
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


def _has_joined(look: Look, pod: str, from_us: int, to_us: int) -> bool:
    return any(isinstance(each, Requested) and each.pod == pod and from_us <= each.at_us <= to_us for each in look.events)


def _going(look: Look, out: Removed) -> tuple[str, str]:
    """Return why a member is out: no poll() in time, its consumer closed, or no heartbeat."""
    number = look.number(out.pod)
    if out.why == "expired":
        return "expired", f"was taken out: no heartbeat for {_session_limit(look, number)}"
    if out.why != "left":
        return out.why, f"was {out.why}"
    changes = [each for each in look.events if isinstance(each, PodChanged) and each.pod == out.pod and each.at_us <= out.at_us]
    last = next((each for each in reversed(changes) if each.what in ("stall", "unstall", "start", "stop")), None)
    if last is not None and last.what == "stop":
        return "closed", "closed its consumer"
    limit = look.setting(number, "max.poll.interval.ms")
    since = (
        f": no poll() since {duration(last.at_us)}, when its batch got stuck" if last is not None and last.what == "stall" else ""
    )
    return "poll", f"left by itself, past {limit}{since}"


def _session_limit(look: Look, number: int) -> str:
    """Return the setting by which the coordinator gives this pod up, with its value."""
    if look.is_classic(number):
        return look.setting(number, "session.timeout.ms")
    broker = read_broker_settings(look.scenario.cluster.config)
    return f"group.consumer.session.timeout.ms={broker.group_consumer_session_timeout_ms}"


def _handover(look: Look) -> str:
    """In an eager group, and for who leaves one: the rebalance; in a cooperative one: the round after the next."""
    if rule := _rebalance(look):
        return rule
    given = "" if look.gap.after == NOBODY else f"{look.pod(look.gap.after)} is given it by the next round or heartbeat only"
    return "; ".join(filter(None, (_revocation(look), given, _polls(look))))


def _polls(look: Look) -> str:
    """Return that each step of the consumer protocol waits for a poll(), where these are far apart."""
    owners = [owner for owner in (look.gap.before, look.gap.after) if owner != NOBODY and not look.is_classic(owner)]
    slow = [
        (look.pod(owner), poll.mean_us)
        for owner in owners
        if (poll := look.result.recording.history.pods[owner].members.poll).mean_us * 2 * _MATTERS >= look.to_us - look.from_us
    ]
    told = " and ".join(f"{name}, every {duration(round(mean_us))} in the mean" for name, mean_us in slow)
    return f"each step waits for a poll(): {told} (poll)" if told else ""


def _revocation(look: Look) -> str:
    """Return that who had the partition ran its callback first, where that takes a good part of the piece."""
    if look.gap.before == NOBODY:
        return ""
    length_us = look.result.recording.history.pods[look.gap.before].members.callbacks.revoked.mean_us
    if length_us * _MATTERS < look.to_us - look.from_us or not length_us:
        return ""
    return f"{look.pod(look.gap.before)} runs onPartitionsRevoked first, {duration(length_us)} in the mean (callbacks.revoked)"


def _fetch(look: Look) -> str:
    if look.gap.after == NOBODY:
        return ""
    mean_us = look.result.recording.history.pods[look.gap.after].members.callbacks.assigned.mean_us
    long = f", {duration(mean_us)} in the mean (callbacks.assigned)," if mean_us * _MATTERS >= look.to_us - look.from_us else ""
    return f"{look.pod(look.gap.after)} runs onPartitionsAssigned{long} and fetches the offset"


def _discovery(_: Look) -> str:
    return "consumers look for new partitions every metadata.max.age.ms (classic), the brokers at once (consumer protocol)"


RULES = {
    Cause.DETECTION: _session,
    Cause.STATIC_WAIT: _static,
    Cause.STALL: _stall,
    Cause.REBALANCE: _rebalance,
    Cause.HANDOVER: _handover,
    Cause.FETCH: _fetch,
    Cause.DISCOVERY: _discovery,
}
"""Cause -> what words the rule that it waited for."""
