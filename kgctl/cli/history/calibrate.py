"""``kgctl history calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kgctl.admin.times import format_instant
from kgctl.cli.history import asking
from kgctl.cli.history.asking import HistoryQuestion, ask, limits, told_of
from kgctl.cli.history.columns import TOLD
from kgctl.cli.parameters import argument, flag, option
from kgctl.cli.report import BOOL, NUMBER, WHOLE, Column, Report, Row, shows
from kgctl.cli.session import Session
from kgctl.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kgctl.pipeline.answers.recorded import MemberStay, RecordedPast
    from kgctl.simulate.batch.against import RecordedGroup, RecordedPod, Search, Trial

COLUMNS = (
    Column("metric", "what is compared; those that end with `_s` are seconds"),
    Column("recorded", "its value in the history; null: nothing tells it", NUMBER),
    Column("sim_min", "the lowest of the seeds", NUMBER, header="SIM-MIN"),
    Column("simulated", "the median of the seeds", NUMBER),
    Column("sim_max", "the highest of the seeds", NUMBER, header="SIM-MAX"),
    Column("inside", "whether what was recorded lies within their range", BOOL),
    Column("before", "the median with the defaults", NUMBER),
    Column("meaning", "what the metric is, in words", wide=True),
)
SUMMARY = (
    Column("pause_ms", "what fits best: the longest pause of the poll loop", WHOLE, "ms"),
    Column("heartbeat_ms", "the heartbeat interval", WHOLE, "ms"),
    Column("session_ms", "the session time-out", WHOLE, "ms"),
    Column("latency_ms", "the network's latency, one way", NUMBER, "ms"),
    Column("distance", "how far the best is from what was recorded: 0 the same, 1 nothing like it", NUMBER),
    Column("distance_before", "the same with the defaults", NUMBER),
    *TOLD,
)


@shows(COLUMNS, summary=SUMMARY, examples="kgctl history calibrate payments --from '2h ago' --to '1h ago' --out payments.yaml")
def history_calibrate(
    session: Session,
    group: Annotated[str, argument("GROUP", "A group id.")],
    *,
    from_: asking.From = None,
    to: asking.To = None,
    out: Annotated[Path | None, option("FILE", "Write the scenario, with what fits best.", "--out")] = None,
    client: Annotated[
        str | None,
        option("NAME", "Their client, as librdkafka. [default: by the client ids, else java]", "--client"),
    ] = None,
    runs: Annotated[int, option("N", "So many seeds for the comparison.", "--runs", min=1, max=100)] = 5,
    search: Annotated[bool, flag("--search/--no-search", "Search for what fits, or take the defaults.")] = True,
    warehouse: asking.Warehouse = None,
    cluster: asking.Cluster = None,
) -> Report:
    """Simulate what the history says a group did, show both side by side, and propose the settings that fit best.

    The scenario has the members that came and went in that time, as they did (left, or crashed where that is inferred), with the
    time-outs and commit intervals that the records tell. The poll loop's pause, the heartbeat and the network are not in the
    records: they are searched, a few values each, with three seeds.
    `simulated` is the median of the seeds, `inside` whether what was recorded lies within their range, `before` the median with
    the defaults. Nothing is asked of a cluster.
    """
    if out is not None:
        from kgctl.files import check_place

        check_place(out)
    span = asking.read_span(from_, to, session.environment)
    question = ask(session, [group], asking.AskedHistory(warehouse, cluster))
    if not question.is_answerable:
        return Report(COLUMNS, errors=question.errors)
    from_ms, to_ms = _window(question, group, span)
    from kgctl.pipeline.answers.recorded import happened, measures

    found = happened(question.history, group, from_ms, to_ms)
    _require(found, group, (from_ms, to_ms))
    _require_profile(client)
    story = _story(found, group, from_ms, to_ms, client)
    tried = _search(story, measures(found, from_ms, to_ms))
    before, best = _fitted(tried, runs, searches=search)
    notices = _told(story, before, best, tried.runs)
    if out is not None:
        _write(out, tried, best)
        notices.append(f"written: {out}: kgctl simulate run {out}")
    return Report(
        COLUMNS,
        _rows(tried, before, best),
        notices=[*notices, *limits(question, from_ms, to_ms - 1)],
        name_keys=("metric",),
        something_done=True,
        summary={**_summary(before, best), **told_of(question)},
    )


def _require_profile(client: str | None) -> None:
    from kgctl.member.config import profile_names

    if client is not None and client not in profile_names():
        raise UsageError(f"--client {client}: there are {', '.join(profile_names())}")


def _window(question: HistoryQuestion, group: str, span: asking.TimeSpan) -> tuple[int, int]:
    """From when to before when; without a limit all that was collected. Raises `NotFoundError` where records are missing."""
    history = question.history
    reach = history.reach([group])
    if reach is None:
        raise NotFoundError(f"nothing was collected of the records of group {group!r}", group=group)
    from_ms = reach.first_ms if span.from_ms is None else span.from_ms
    to_ms = reach.last_ms + 1 if span.to_ms is None else min(span.to_ms, reach.last_ms + 1)
    if from_ms < reach.first_ms or from_ms >= to_ms:
        raise NotFoundError(
            f"group {group!r}: collected from {format_instant(reach.first_ms)} to {format_instant(reach.last_ms)}: "
            "what it did outside of that is not known; without --from it begins there",
            group=group,
        )
    for number in history.partitions([group]):
        runs = [run for run in history.coverage(number) if run.last_ms >= from_ms and run.first_ms < to_ms]
        if len(runs) > 1:
            raise NotFoundError(
                f"group {group!r}: of __consumer_offsets-{number} the records between {format_instant(runs[0].last_ms)} and "
                f"{format_instant(runs[1].first_ms)} were not collected (or compacted away before): choose a time without holes",
                group=group,
            )
    return from_ms, to_ms


def _require(found: RecordedPast, group: str, window: tuple[int, int]) -> None:
    from kgctl.simulate.batch.against import MOST_EVENTS

    shown = f"between {format_instant(window[0])} and {format_instant(window[1])}"
    if not found.generations:
        raise NotFoundError(f"group {group!r} had no rebalance {shown}: there is nothing to compare", group=group)
    if found.kind not in ("consumer", ""):
        raise UsageError(f"group {group!r} is no group of consumers but of {found.kind}: it cannot be simulated", group=group)
    if not found.stays:
        raise NotFoundError(f"no member of group {group!r} is known {shown}: there is nobody to play", group=group)
    if not found.partitions:
        raise NotFoundError(f"group {group!r} had no partition and committed nothing {shown}", group=group)
    moves = sum(1 for stay in found.stays if stay.from_ms >= window[0]) + sum(1 for stay in found.stays if stay.to_ms is not None)
    if moves > MOST_EVENTS:
        raise UsageError(
            f"{moves} members came or went {shown}, and {MOST_EVENTS} can be played: choose a shorter time", group=group
        )


def _story(found: RecordedPast, group: str, from_ms: int, to_ms: int, client: str | None) -> RecordedGroup:
    from kgctl.pipeline.answers.recorded import measures
    from kgctl.simulate.batch.against import RecordedGroup

    row = found.generations[-1]
    interval = measures(found, from_ms, to_ms)["commit_interval_s"]
    commit_ms = None if interval is None else max(round(interval * 10) * 100, 100)
    return RecordedGroup(
        group=group,
        is_consumer=row["type"] == "consumer",
        assignor=next((each["assignor"] for each in reversed(found.generations) if each["assignor"]), None),
        topics=found.partitions,
        pods=_pods(found, from_ms, to_ms, commit_ms),
        commit_ms=commit_ms,
        client=client,
        written=_written(found, to_ms - from_ms),
        length_us=(to_ms - from_ms) * 1000,
    )


def _pods(found: RecordedPast, from_ms: int, to_ms: int, commit_ms: int | None) -> list[RecordedPod]:
    """A pod for each member; one for all stays under one instance id."""
    from kgctl.simulate.batch.against import RecordedPod

    stays: dict[str, list[MemberStay]] = {}
    for stay in found.stays:
        if stay.to_ms is None or stay.to_ms >= from_ms:
            stays.setdefault(stay.instance_id or f"member {stay.member_id}", []).append(stay)
    return [
        RecordedPod(
            each[0].instance_id or each[0].client_id,
            each[0].instance_id is not None,
            each[0].session_ms,
            each[0].rebalance_ms,
            tuple(_played(stay, from_ms, to_ms, commit_ms, is_replaced=stay is not each[-1]) for stay in each),
        )
        for each in stays.values()
    ]


def _played(stay: MemberStay, from_ms: int, to_ms: int, commit_ms: int | None, *, is_replaced: bool) -> Any:
    """``is_replaced``: another one came under its instance id."""
    from kgctl.simulate.batch.against import PodStay as Played

    begin_us = None if stay.from_ms < from_ms else (stay.from_ms - from_ms) * 1000
    if stay.to_ms is None or stay.to_ms >= to_ms:
        return Played(begin_us, None)
    died_ms = _died_ms(stay, stay.to_ms, commit_ms, is_replaced=is_replaced)
    end_ms = stay.to_ms if died_ms is None else max(died_ms, stay.from_ms)
    return Played(begin_us, (end_ms - from_ms) * 1000, is_crash=died_ms is not None)


def _died_ms(stay: MemberStay, to_ms: int, commit_ms: int | None, *, is_replaced: bool) -> int | None:
    """When the process ended, of a member that did not leave; None: it left.

    A static member's close() sends no LeaveGroup: one that is gone was replaced, or silent for its session. So was any member
    whose last commit is that long ago, unless the inference says something else.
    """
    from kgctl.pipeline.answers.inferred import LEFT
    from kgctl.pipeline.answers.recorded import is_crash

    committed_ms = stay.last_commit_ms
    between_ms = None if committed_ms is None else committed_ms + (commit_ms or 0) // 2  # it died between two commits
    if is_replaced and stay.instance_id is not None:
        return min(to_ms - _RESTART_MS, to_ms if between_ms is None else between_ms)
    if is_crash(stay):
        return between_ms
    silent_since_ms = None if stay.session_ms is None else to_ms - stay.session_ms
    is_silent = silent_since_ms is not None and (committed_ms is None or committed_ms <= silent_since_ms + _RESTART_MS)
    return silent_since_ms if is_silent and (stay.instance_id is not None or (stay.ending != LEFT and committed_ms)) else None


_RESTART_MS = 1_000
"""A process is gone for so long at least before another one has its instance id."""


def _written(found: RecordedPast, length_ms: int) -> dict[str, float]:
    """Records a second by topic: as many as were committed."""
    totals: dict[str, int] = {}
    for (topic, _), commits in found.commits.items():
        totals[topic] = totals.get(topic, 0) + max(commits[-1][1] - commits[0][1], 0)
    return {topic: total * 1000 / length_ms for topic, total in sorted(totals.items()) if total}


def _search(story: RecordedGroup, recorded: dict[str, float | None]) -> Search:
    from kgctl.pipeline.answers.recorded import happened_in, measures
    from kgctl.simulate.batch.against import Search

    def measure(records: Any, begin_ms: int, end_ms: int) -> dict[str, float | None]:
        return measures(happened_in(records, begin_ms, end_ms), begin_ms, end_ms)

    return Search(story, recorded, measure)


def _fitted(tried: Search, runs: int, *, searches: bool) -> tuple[Trial, Trial]:
    """The defaults and the best, each with all seeds."""
    from kgctl.simulate.batch.against import first

    start = first(tried.story)
    best = tried.best().settings if searches else start
    seeds = range(1, runs + 1)
    return tried.tried(start, seeds), tried.tried(best, seeds)


def _rows(tried: Search, before: Trial, best: Trial) -> list[Row]:
    from kgctl.pipeline.answers.recorded import MEASURES

    rows: list[Row] = []
    for name, meaning in MEASURES.items():
        value, found = tried.recorded[name], best.ranges.get(name)
        low, middle, high = found if found is not None else (None, None, None)
        inside = None if value is None or low is None or high is None else _is_inside(value, low, high)
        earlier = before.ranges.get(name)
        rows.append(
            {
                "metric": name,
                "recorded": _rounded(value),
                "sim_min": _rounded(low),
                "simulated": _rounded(middle),
                "sim_max": _rounded(high),
                "inside": inside,
                "before": None if earlier is None else _rounded(earlier[1]),
                "meaning": meaning,
            }
        )
    return rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _is_inside(value: float, low: float, high: float) -> bool:
    """Within the range, or as near to it as a broker's load makes a difference: 50 ms, or a fiftieth."""
    near = max(0.05, value / 50)
    return low - near <= value <= high + near


_NAMES = {
    "pause": "pause of the poll loop, at most",
    "heartbeat": "heartbeat interval",
    "session": "session time-out",
    "latency": "network latency, one way",
}


def _told(story: RecordedGroup, before: Trial, best: Trial, runs: int) -> list[str]:
    crashes = sum(1 for pod in story.pods for stay in pod.stays if stay.is_crash)
    came = sum(1 for pod in story.pods for stay in pod.stays if stay.begin_us is not None)
    went = sum(1 for pod in story.pods for stay in pod.stays if stay.end_us is not None)
    played = f"{len(story.pods)} members, {came} came, {went} went, {crashes} of them crashed (inferred)"
    changed = [
        f"{words} {getattr(best.settings, name)} ms (default {getattr(before.settings, name)} ms)"
        for name, words in _NAMES.items()
        if getattr(best.settings, name) != getattr(before.settings, name)
    ]
    fits = f"Fits best: {', '.join(changed)}" if changed else "The defaults fit as well as anything that was tried"
    far = f"distance {best.distance:.3f}" + (f", {before.distance:.3f} with the defaults" if changed else "")
    return [f"Played: {played}.", f"{fits}: {far} (0 the same, 1 nothing like it), {runs} runs."]


def _summary(before: Trial, best: Trial) -> dict[str, Any]:
    found: dict[str, Any] = {f"{name}_ms": getattr(best.settings, name) for name in _NAMES}
    return {**found, "distance": round(best.distance, 4), "distance_before": round(before.distance, 4)}


def _write(out: Path, tried: Search, best: Trial) -> None:
    from kgctl.files import write_whole
    from kgctl.simulate.batch.against import document
    from kgctl.simulate.batch.shrink import as_yaml

    text = as_yaml(document(tried.story, best.settings))
    write_whole(out, lambda file: file.write(text.encode()))
