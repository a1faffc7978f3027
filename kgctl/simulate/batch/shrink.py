"""The smallest scenario in which an expectation still fails, with the same seed.

By delta debugging: one reduction after the other is tried and kept if the same expectation still does not hold, until nothing
can be left out any more or the runs that were allowed are used up. Where the expectation is about time without a consumer, it has
to fail for the same cause, too: else a deploy that waits for a stuck member could end as a crash.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kgctl.errors import KgctlError, UsageError
from kgctl.simulate.batch.explain import explain
from kgctl.simulate.batch.judge import Judge, Verdict
from kgctl.simulate.batch.plan import Options, run_all, tasks_of
from kgctl.simulate.batch.reasons import TRIGGERS
from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.event_kinds import Event
from kgctl.simulate.scenario.expressions import metrics_of
from kgctl.simulate.scenario.load import DEFAULT, LoadedFile, expectation_of, load
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.patches import merge_patch, with_setting
from kgctl.simulate.scenario.quantities import format_duration, parse_duration
from kgctl.yaml_files import FileError, Path, Tree, read_yaml

_WHOLE_NUMBERS = ("count", "partitions", "brokers", "times", "by")
_DURATIONS = ("at", "for", "settle", "down", "over", "every", "duration", "until", "boot")
# Without its warm-up a scenario would fail by its members' start, whatever its events do.
_NEEDED = frozenset({"kgctl", "name", "warmup", "topics", "members", "expect", "seed", "events", "variants"})
_SECOND_US = 1_000_000
_OF_GAPS = frozenset(
    {
        *("unavailable", "availability", "max_gap", "gap_p50", "gap_p95", "gap_p99", "gaps", "partition_gap"),
        *("takeover_p50", "takeover_max", "stop_the_world", "collateral"),
    }
)
"""Metrics of time without a consumer: what they come to has a cause that can be told."""
_ONE_POD = re.compile(r"([^\s/]+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What is left. ``before`` and ``after`` count (events, pods, partitions); ``is_minimal`` False: it ended too early to know.

    ``cause``: what the longest gap is due to, in the whole file as in what is left; "" where the expectation is not about gaps.
    """

    data: dict[str, Any]
    verdict: Verdict
    runs: int
    before: tuple[int, int, int]
    after: tuple[int, int, int]
    is_minimal: bool
    cause: str = ""
    was_interrupted: bool = False

    def text(self, source: str) -> str:
        """The file, which says where it comes from. `kgctl simulate run` takes it."""
        head = f"# the smallest form of {source} in which this still fails: {self.verdict.check.shown}\n"
        why = f"# for the same cause: the longest gap is {in_words(self.cause)}\n" if self.cause else ""
        return head + why + as_yaml(self.data)


def prepared(tree: Tree, settings: Sequence[str] = (), checks: Sequence[str] | None = None) -> Tree:
    """Return the file with ``PATH=VALUE`` settings put in, and with these expectations instead of its own.

    Raises:
        UsageError: a setting is none, or leads nowhere.
    """
    for assignment in settings:
        tree = with_setting(tree, assignment)
    if not isinstance(tree.data, dict) or checks is None:
        return tree
    return Tree(tree.file, {**tree.data, "expect": [expectation_of(text) for text in checks]}, tree.locations)


def failing(tree: Tree, loaded: LoadedFile, seed: int) -> Verdict:
    """Return the first expectation of the file that does not hold with this seed.

    Raises:
        UsageError: all hold.
    """
    broken = [verdict for verdict in _verdicts(loaded, seed) if not verdict.passed]
    wrong = [verdict for verdict in broken if verdict.check.severity == "fail"] or broken
    if not wrong:
        raise UsageError(
            f"{tree.file}: every expectation holds with seed {seed}; there is nothing to shrink "
            f"(kgctl simulate run {tree.file} --runs 20 looks for a seed that fails; then --seed)"
        )
    return wrong[0]


def shrink(tree: Tree, verdict: Verdict, seed: int, *, most_runs: int, on_run: Callable[[], None] = lambda: None) -> Shrunk:
    """Make the scenario smaller as long as the verdict's expectation still fails with this seed."""
    search = _Search(tree.file, verdict, seed, most_runs, on_run)
    search.cause = search.cause_in(load(tree), verdict)
    start = search.start(tree.data)
    search.least = start
    was_interrupted = False
    try:
        search.reduce()
    except KeyboardInterrupt:
        was_interrupted = True  # what was found by then fails, too
    is_minimal = search.runs < most_runs and not was_interrupted
    data = search.least
    return Shrunk(data, search.last, search.runs, sizes(start), sizes(data), is_minimal, search.cause, was_interrupted)


def sizes(data: dict[str, Any]) -> tuple[int, int, int]:
    """Return how many events, pods and partitions a scenario has, as far as its file says."""
    topics = data.get("topics") or {}
    members = data.get("members") or {}
    partitions = sum(each if isinstance(each, int) else (each or {}).get("partitions", 12) for each in topics.values())
    return len(data.get("events") or ()), sum((each or {}).get("count", 1) for each in members.values()), partitions


def _verdicts(loaded: LoadedFile, seed: int) -> list[Verdict]:
    values = run_all(tasks_of(loaded, [seed], Options(), None), 1, lambda _: None)
    runs = {one.variant: {seed: one} for one in values}
    settings = {variant.name: variant.settings for variant in loaded.variants}
    return Judge(runs, settings, [seed]).verdicts(loaded.checks)


class _Search:
    def __init__(self, source: str, verdict: Verdict, seed: int, most_runs: int, on_run: Callable[[], None]) -> None:
        self.last = verdict
        self.least: dict[str, Any] = {}
        self.runs = 0
        self.cause = ""
        self._source, self._seed, self._most, self._on_run = source, seed, most_runs, on_run
        self._shown = verdict.check.shown
        self._held: set[str] = set()
        self._variant = verdict.variant

    def start(self, data: dict[str, Any]) -> dict[str, Any]:
        """The failing variant alone, where the expectation is about one, and no other expectation."""
        start = copy.deepcopy(data)
        for key in ("sweep", "report", "output", "extends"):
            start.pop(key, None)
        start["seed"], start["runs"] = self._seed, 1
        own = [entry for entry in start.get("expect") or () if _text_of(entry) == self.last.check.text]
        start["expect"] = own[:1] or list(start.get("expect") or ())
        variants = start.get("variants")
        if isinstance(variants, dict) and not self.last.check.named_variants:
            flat = {key: value for key, value in start.items() if key != "variants"}
            flat = dict(merge_patch(flat, variants.get(self._variant) or {}))
            for entry in flat["expect"]:
                if isinstance(entry, dict):
                    entry.pop("variants", None)
            if self._fails(flat):
                start = flat
        spelled = self._without_nemesis(start)
        return spelled if spelled is not None and self._fails(spelled) else start

    def _without_nemesis(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """Return the scenario with the faults that its nemesis draws as events, to be left out one by one; None: it has none."""
        if data.get("nemesis") is None:
            return None
        try:
            variants = load(Tree(self._source, data)).variants
            drawn = run(variants[0].scenario, self._seed).recording.history.drawn
        except KgctlError:
            return None
        self.runs += 1
        rest = {key: value for key, value in data.items() if key != "nemesis"}
        return {**rest, "events": [*(data.get("events") or ()), *(_as_written(event) for _, event in drawn)]}

    def reduce(self) -> None:
        """Leave events out, then go through the kinds of reductions, from first to last; again, until none finds anything."""
        before = None
        while self.least != before and self.runs < self._most:
            before = self.least
            self._fewer_events()
            for kind in REDUCTIONS:
                tried: int | None = 0
                while tried is not None:
                    tried = self._first(kind(self.least), tried)

    def _first(self, candidates: Iterator[dict[str, Any]], tried: int) -> int | None:
        """Take the first candidate that fails and return its number; None: all hold. So many were tried before the last one."""
        numbered = itertools.islice(enumerate(candidates), tried, None)
        return next((number for number, each in numbered if self._fails(each)), None)

    def _fewer_events(self) -> None:
        """Leave out all events, each half of them, each quarter, ..., each one: what is left fails without none of them."""
        size = len(self.least.get("events") or ())
        while size:
            start = 0
            while start < len(events := self.least["events"]):
                if not self._fails({**self.least, "events": [*events[:start], *events[start + size :]]}):
                    start += size
            size //= 2

    def _fails(self, data: dict[str, Any]) -> bool:
        key = json.dumps(data, sort_keys=True, default=str)
        if self.runs >= self._most or key in self._held:
            return False
        self._held.add(key)
        try:
            loaded = load(Tree(self._source, data))
        except KgctlError:
            return False
        self.runs += 1
        self._on_run()
        wanted = (self._variant, DEFAULT)
        try:
            verdicts = _verdicts(loaded, self._seed)
        except KgctlError:
            return False
        found = [each for each in verdicts if each.check.shown == self._shown and each.variant in wanted and not each.passed]
        if not found or (found[0].observed is None) is not (self.last.observed is None):
            return False  # a metric that has no value any more fails, too, but for no reason that anybody asked about
        if self.cause and self.cause_in(loaded, found[0]) != self.cause:
            return False
        self.last, self.least = found[0], data
        return True

    def cause_in(self, loaded: LoadedFile, verdict: Verdict) -> str:
        """Return what the longest gap of the failing variant is due to; "" where that is not what fails."""
        if not any(metric.name in _OF_GAPS for metric in metrics_of(verdict.check.node)):
            return ""
        scenario = next((each.scenario for each in loaded.variants if each.name == verdict.variant), None)
        return "" if scenario is None else cause_of(scenario, self._seed)


def _as_written(event: Event) -> dict[str, Any]:
    """Return a fault that a nemesis drew as a file has it."""
    fields: dict[str, Any] = dict(event.parameters)
    if "for" in fields:
        fields["for"] = format_duration(fields["for"])
    if "factor" in fields:
        fields["factor"] = fields["factor"] // 1_000_000  # a nemesis knows whole factors only
    return {"at": format_duration(event.at_us), event.kind: event.target, **fields}


def _text_of(entry: Any) -> str:
    if isinstance(entry, dict):
        entry = next((entry[kind] for kind in ("check", "always", "eventually", "steady") if kind in entry), "")
    return " ".join(str(entry).split())


# --- causes


def cause_of(scenario: Scenario, seed: int) -> str:
    """Return what the longest gap of a run is due to, in a few words: its main cause, and what set its rebalance off.

    Raises:
        UsageError, InvariantViolation: as `kgctl.simulate.engine.run.run`.
    """
    story = explain(scenario, seed, ablates=False).story
    return "" if story is None else f"{story.main_cause} {story.origin.kind}".strip()


_KINDS = {
    "joined": "a member that joined",
    "metadata": "a member that saw its topics changed",
    "restarted": "a member that came back after a restart",
    "closed": "a member that closed its consumer",
    "expired": "a member whose heartbeats stopped",
    "poll": "a member past max.poll.interval.ms",
    "fenced": "a member that was fenced",
    "replaced": "a member that took the place of another one",
    **TRIGGERS,
}


def in_words(cause: str) -> str:
    """Return what `cause_of` found as words: "handover, in a rebalance set off by a member that joined"."""
    main, _, kind = cause.partition(" ")
    again = ", back in the group" if kind.startswith("back:") else ""
    words = _KINDS.get(kind.removeprefix("back:"), kind)
    return f"{main}, in a rebalance set off by {words}{again}" if kind else main


# --- what can be made smaller


def _fewer_sections(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key in [key for key in data if key not in _NEEDED]:
        yield _without(data, (key,))
    for section in ("members", "topics", "traffic", "variants"):
        for name in data.get(section) or {}:
            if section in ("traffic", "variants") or len(data[section]) > 1:
                yield _without(data, (section, name))


def _first_pods(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """With the first pod of a set in the place of another one: then fewer pods will do."""
    for path, value in _leaves(data):
        found = _ONE_POD.fullmatch(value) if path[0] == "events" and isinstance(value, str) else None
        if found is not None and found[2] != "0":
            yield _with(data, path, f"{found[1]}/0")


def _smaller_numbers(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, value in _leaves(data):
        is_size = path[-1] in _WHOLE_NUMBERS or (path[0] == "topics" and len(path) == 2)
        if type(value) is int and is_size and path[0] != "expect":
            for smaller in dict.fromkeys((1, value // 4, value // 2, value * 3 // 4, value - 1)):
                if 0 < smaller < value:
                    yield _with(data, path, smaller)


def _fewer_keys(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Without an optional key of a topic, a set of members, the group, the cluster or an event."""
    for path, value in _nodes(data):
        is_inner = len(path) > 1 and path[0] not in ("expect", "variants") and isinstance(path[-1], str)
        if is_inner and path[-1] not in ("count", "partitions") and not isinstance(value, int):
            yield _without(data, path)


def _shorter_times(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, value in _leaves(data):
        if path[-1] in _DURATIONS and path[0] != "expect" and isinstance(value, str):
            try:
                length_us = parse_duration(value)
            except ValueError:
                continue
            rounded = (length_us // unit_us * unit_us for unit_us in (60 * _SECOND_US, 10 * _SECOND_US, _SECOND_US))
            for shorter in dict.fromkeys(
                [*(each // _SECOND_US * _SECOND_US for each in (length_us // 4, length_us // 2)), *rounded]
            ):
                if 0 < shorter < length_us:
                    yield _with(data, path, format_duration(shorter))


def _closer_events(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """With an event and all later ones earlier, by all or a part of the time since the one before it."""
    times: dict[int, int] = {}
    for position, event in enumerate(data.get("events") or ()):
        if isinstance(event, dict) and "after" not in event:
            try:
                times[position] = parse_duration(event.get("at", "0s"))
            except ValueError:
                return
    before_us = 0
    for at_us in sorted(set(times.values())):
        for gap_us in dict.fromkeys((at_us - before_us) // part // _SECOND_US * _SECOND_US for part in (1, 2, 4)):
            if gap_us > 0:
                events = copy.deepcopy(data["events"])
                for position, own_us in times.items():
                    if own_us >= at_us:
                        events[position]["at"] = format_duration(own_us - gap_us)
                yield {**data, "events": events}
        before_us = at_us


REDUCTIONS: tuple[Callable[[dict[str, Any]], Iterator[dict[str, Any]]], ...] = (
    _fewer_sections,
    _first_pods,
    _smaller_numbers,
    _fewer_keys,
    _shorter_times,
    _closer_events,
)
"""Each gives scenarios that are a little smaller, the largest steps first. Some may be no scenarios at all."""


def _nodes(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, value in entries:
        yield (*path, step), value
        yield from _nodes(value, (*path, step))


def _leaves(data: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    return ((path, value) for path, value in _nodes(data) if not isinstance(value, dict | list))


def _with(data: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(data)
    _parent(changed, path)[path[-1]] = value
    return changed


def _without(data: Any, path: Path) -> Any:
    changed = copy.deepcopy(data)
    del _parent(changed, path)[path[-1]]
    return changed


def _parent(data: Any, path: Path) -> Any:
    for step in path[:-1]:
        data = data[step]
    return data


def as_yaml(data: dict[str, Any]) -> str:
    """The data as YAML that is read back as the same data; else as JSON, which is YAML, too."""
    import yaml

    text = str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120))
    try:
        is_same = read_yaml(text, "").data == data
    except FileError:
        is_same = False
    return text if is_same else json.dumps(data, indent=2) + "\n"
