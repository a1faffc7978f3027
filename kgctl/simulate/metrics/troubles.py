"""What goes wrong in a run though nobody asked: who, by which rule, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from kgctl.errors import first_few, plural
from kgctl.member.config import INVALID_CONFIG, refusal
from kgctl.model.values import frozen_in_order
from kgctl.simulate.engine.run import TIME_LIMIT
from kgctl.simulate.metrics.measured import SECOND
from kgctl.simulate.metrics.rebalances import stuck_since
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.recording.recording import Archival, Counted, PodHistory, Return
from kgctl.simulate.scenario.checks import NO_FILTERS
from kgctl.simulate.scenario.fields import member_config
from kgctl.simulate.scenario.group_types import ScenarioGroupType, type_of_group
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.quantities import distribution_text, format_duration
from kgctl.simulate.scenario.vocabulary import EventStage, GivenBack

OUT_US = 60 * SECOND
"""A pod that was out of the group for so long at the end is missing there."""
OPEN_US = 5 * SECOND
"""A partition without a consumer for so long at the end: a run that ends in a usual handover says no word."""
_NAMED = 3


@frozen_in_order
class Trouble:
    """One kind of what went wrong in a run. ``number``: how often; ``text``: the first of it, and who else there was.

    ``is_allowed``: it fails nothing, as its scenario has it.
    """

    kind: str
    number: int
    text: str
    is_allowed: bool = False


class TroubleOfOne(NamedTuple):
    """Who, and what happened to it; ``is_early``: in the warm-up."""

    who: str
    what: str
    is_early: bool = False


def troubles_of(result: RunResult) -> tuple[Trouble, ...]:
    """Return what went wrong in a run that is over, what its scenario allows too."""
    return tuple(each for name, find in _FIND.items() for each in _judged(name, list(find(result)), result.recording.scenario))


def _judged(name: str, found: list[TroubleOfOne], scenario: Scenario) -> Iterator[Trouble]:
    """An expectation decides what its metric counts: nothing of the warm-up."""
    lets = {early: name in scenario.allow or (name in scenario.decided and not early) for early in (False, True)}
    for is_allowed in (False, True):
        if part := [each for each in found if lets[each.is_early] is is_allowed]:
            yield Trouble(name, len(part), _told(part), is_allowed)


def _told(found: list[TroubleOfOne]) -> str:
    who, what, _ = found[0]
    others = list(dict.fromkeys(each.who for each in found[1:] if each.who != who))
    return f"{who} {what}" + (f"; then {first_few(others, _NAMED)}" if others else "")


def _at(result: RunResult, at_us: int) -> str:
    """A time after the warm-up; what was so before is told as that."""
    since_us = at_us - result.recording.start_us
    return f"{since_us / SECOND:,.1f}s" if since_us >= 0 else "the warm-up"


def _failed(result: RunResult) -> Iterator[TroubleOfOne]:
    pods = result.recording.history.pods
    for each in sorted(result.recording.history.failed):
        pod = pods[each.pod]
        why = refusal(member_config(pod.members, pod.settings)) if each.what == INVALID_CONFIG else None
        what = f"failed at {_at(result, each.at_us)}: {each.what}{f': {why}' if why else ''}"
        yield TroubleOfOne(pod.name, what, each.at_us < result.recording.start_us)


def _kicked(result: RunResult) -> Iterator[TroubleOfOne]:
    for each in sorted(result.recording.history.kicked):
        if each.at_us >= result.recording.start_us:
            pod = result.recording.history.pods[each.pod]
            yield TroubleOfOne(
                pod.name, f"{_rule(each, pod, type_of_group(result.recording.scenario))} at {_at(result, each.at_us)}"
            )


def _rule(each: Counted, pod: PodHistory, kind: ScenarioGroupType) -> str:
    config = member_config(pod.members, pod.settings)
    polls = f"max.poll.interval.ms={format_duration(config.max_poll_interval_ms * 1000)}"
    if each.what:
        return f"left the group, past {polls} without a poll(),"
    session = f"group.{kind.protocol_of(config)}.session.timeout.ms"
    if kind.protocol_of(config) == "classic":
        session = f"session.timeout.ms={format_duration(config.session_timeout_ms * 1000)}"
    return f"was taken out of the group ({session} without a heartbeat, or {polls} without the answer that a rebalance wants)"


def _archived(result: RunResult) -> Iterator[TroubleOfOne]:
    share, start_us = result.recording.share, result.recording.start_us
    for each in share.archived if share is not None else ():
        if each.at_us >= start_us:
            often = "once" if each.deliveries == 1 else f"{each.deliveries} times"
            name = f"record {each.first} of {result.recording.partitions.labels[each.number]}"
            how = f"given up at {_at(result, each.at_us)}, delivered {often}: {each.why.meaning}"
            yield TroubleOfOne(name, f"{how} ({_pod_name(result, each.pod)})")


def _timed_out(result: RunResult) -> Iterator[TroubleOfOne]:
    share, start_us = result.recording.share, result.recording.start_us
    returns: list[Return | Archival] = [*share.returned, *share.archived] if share is not None else []
    for each in sorted(returns, key=lambda each: each.at_us):
        if each.why is GivenBack.TIMED_OUT and each.at_us >= start_us:
            records = f"{plural(each.amount, 'record')} of {result.recording.partitions.labels[each.number]}"
            yield TroubleOfOne(
                _pod_name(result, each.pod), f"had {records} for longer than their lock at {_at(result, each.at_us)}"
            )


def _pod_name(result: RunResult, pod: int) -> str:
    return result.recording.history.pods[pod].name if pod >= 0 else "nobody"


def _stuck(result: RunResult) -> Iterator[TroubleOfOne]:
    measured = result.metrics.measured
    failed = {each.pod for each in result.recording.history.failed}
    for number, pod in enumerate(result.recording.history.pods):
        since_us = stuck_since(measured, number, (measured.start_us, measured.end_us))
        if since_us is not None and number not in failed:
            yield TroubleOfOne(pod.name, f"ran outside of the group from {_at(result, since_us)} on, for more than 60 s")


def _missing(result: RunResult) -> Iterator[TroubleOfOne]:
    end_us = result.metrics.measured.end_us
    failed = {each.pod for each in result.recording.history.failed}
    for number, pod in enumerate(result.recording.history.pods):
        if pod.wanted.since_us is None or not pod.is_booted or pod.in_group.since_us is not None or number in failed:
            continue
        out_us = max(pod.in_group.ended[-1][1] if pod.in_group.ended else 0, pod.wanted.since_us)
        if end_us - out_us >= OUT_US:
            since = f"out from {_at(result, out_us)} on" if pod.in_group.ended else "it never was"
            yield TroubleOfOne(pod.name, f"is wanted and not in the group at the end, {_at(result, end_us)}: {since}")


def _unread(result: RunResult) -> Iterator[TroubleOfOne]:
    """A gap that is open at the end is longer than any metric knows; so is one that is as long as the run itself."""
    end_us, table = result.metrics.measured.end_us, result.recording.partitions
    for gap in result.metrics.measured.gaps(NO_FILTERS):
        is_long = gap.length_us >= OPEN_US or gap.from_us <= result.recording.start_us
        if gap.to_us == end_us and is_long and table.deleted_us[gap.partition] is None:
            since = f"nobody read it from {_at(result, gap.from_us)} on ({gap.causes[-1][0].label})"
            yield TroubleOfOne(table.labels[gap.partition], f"had no consumer at the end, {_at(result, end_us)}: {since}")


def _no_effect(result: RunResult) -> Iterator[TroubleOfOne]:
    """An event that is repeated has an effect if one of its beginnings has."""
    marks = sorted(result.recording.history.events, key=lambda mark: mark.of)
    planned = {event.title for event in result.recording.scenario.events if event.may_be_called_off}
    for (_, name, target), group in groupby(marks, key=lambda mark: mark.of):
        of_it = list(group)
        odd = [
            mark
            for mark in of_it
            if mark.what is EventStage.NO_EFFECT or (mark.what is EventStage.ABORTED and name not in planned)
        ]
        if odd and (odd[0].what is EventStage.ABORTED or len(odd) >= sum(mark.what is EventStage.BEGINS for mark in of_it)):
            yield TroubleOfOne(f"event {name} {target}".rstrip(), f"{odd[0].what} at {_at(result, odd[0].at_us)}")


def _not_started(result: RunResult) -> Iterator[TroubleOfOne]:
    recording = result.recording
    end = _at(result, recording.end_us)
    for pod in recording.history.pods:
        start = pod.members.start
        if start is not None and pod.wanted.since_us is not None and not pod.is_booted and not pod.running.ended:
            yield TroubleOfOne(
                pod.name, f"was to start at {distribution_text(start)}, and the run ended at {end}: give it a `duration`"
            )
    stages = (EventStage.BEGINS, EventStage.LEFT_OUT)
    begun = Counter(mark.position for mark in recording.history.events if mark.what in stages)
    for position, event in enumerate(recording.scenario.events):
        if begun[position] < event.times:
            how_often = f"began {begun[position]} of {event.times} times" if begun[position] else "did not begin"
            yield TroubleOfOne(f"event {event.title} {event.target}".rstrip(), f"{how_often}: the run ended at {end}")


def _not_ended(result: RunResult) -> Iterator[TroubleOfOne]:
    end, under_way = _at(result, result.recording.end_us), Counter[tuple[int, str, str]]()
    for mark in result.recording.history.events:
        under_way[mark.of] += {EventStage.BEGINS: 1, EventStage.ENDS: -1}.get(mark.what, 0)
    for (_, name, target), number in under_way.items():
        if number > 0:
            yield TroubleOfOne(f"event {name} {target}".rstrip(), f"was not over at the end, {end}: give it a longer `duration`")


def _unsettled(result: RunResult) -> Iterator[TroubleOfOne]:
    if result.stopped and result.stopped != TIME_LIMIT:
        yield TroubleOfOne("the run", f"was ended at {_at(result, result.recording.end_us)}: {result.stopped}")


_FIND: Mapping[str, Callable[[RunResult], Iterator[TroubleOfOne]]] = {
    "failed": _failed,
    "kicked": _kicked,
    "archived": _archived,
    "timed_out": _timed_out,
    "stuck": _stuck,
    "missing": _missing,
    "unread": _unread,
    "no_effect": _no_effect,
    "not_started": _not_started,
    "not_ended": _not_ended,
    "unsettled": _unsettled,
}
"""Kind of `kgctl.simulate.scenario.vocabulary.TROUBLES` -> what finds it in a run."""
