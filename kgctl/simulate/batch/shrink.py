"""The smallest scenario in which an expectation still fails, with the same seed.

By delta debugging: one reduction after the other is tried and kept if the same expectation still does not hold, until nothing
can be left out any more or the runs that were allowed are used up. Where the expectation is about time without a consumer, it has
to fail for the same cause, too: else a deploy that waits for a stuck member could end as a crash. Where the expectation holds in
another variant of the file, it has to hold there to the end: what is left has the difference that matters.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kgctl.errors import KgctlError, UsageError
from kgctl.model.values import frozen_in_order
from kgctl.simulate.batch.explain import explain
from kgctl.simulate.batch.judge import Judge, Judgement, RunValues
from kgctl.simulate.batch.plan import BatchOptions, run_all, tasks_of
from kgctl.simulate.batch.reasons import TRIGGERS
from kgctl.simulate.metrics.result import run
from kgctl.simulate.metrics.troubles import Trouble
from kgctl.simulate.scenario.expressions import metrics_of
from kgctl.simulate.scenario.load import DEFAULT, LoadedFile, expectation_of, load
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.patches import merge_patch, patch_between, with_setting
from kgctl.simulate.scenario.quantities import format_duration, is_duration, parse_duration
from kgctl.simulate.scenario.vocabulary import TROUBLES
from kgctl.yaml_files import FileError, Path, Tree, core_dumper, read_yaml

_WHOLE_NUMBERS = ("count", "partitions", "brokers", "times", "by")
_DURATIONS = ("at", "for", "settle", "down", "over", "every", "duration", "until", "boot")
# Without its warm-up a scenario would fail by its members' start, whatever its events do.
_NEEDED = frozenset({"kgctl", "name", "warmup", "topics", "members", "expect", "seed", "events", "variants"})
_ORDER = (
    *("kgctl", "name", "question", "seed", "warmup", "duration", "cluster", "topics", "group", "groups", "members", "traffic"),
    *("nemesis", "events", "variants", "expect"),
)
_SECOND_US = 1_000_000
_ONE_POD = re.compile(r"([^\s/]+)/(\d+)")


@frozen_in_order
class Shrunk:
    """What is left. ``before`` and ``after`` count (events, pods, partitions); ``is_minimal`` False: it ended too early to know.

    ``cause``: what the longest gap is due to, in the whole file as in what is left; "" where the expectation is not about gaps.
    ``contrast``: the variant in which the expectation holds, in the file as in what is left; "" where there was none.
    """

    data: dict[str, Any]
    verdict: Judgement
    runs: int
    before: tuple[int, int, int]
    after: tuple[int, int, int]
    is_minimal: bool
    cause: str = ""
    was_interrupted: bool = False
    contrast: str = ""

    def text(self, source: str) -> str:
        """The file, which says where it comes from. `kgctl simulate run` takes it."""
        head = f"# the smallest form of {source} in which this still fails: {self.verdict.check.shown}\n"
        why = f"# for the same cause: the longest gap is {cause_in_words(self.cause)}\n" if self.cause else ""
        why += f"# and holds in the variant {self.contrast}\n" if self.contrast else ""
        return head + why + as_yaml({**{key: self.data[key] for key in _ORDER if key in self.data}, **self.data})


def prepared(tree: Tree, settings: Sequence[str] = (), checks: Sequence[str] | None = None) -> Tree:
    """Return the file with ``PATH=VALUE`` settings put in, and with these expectations instead of its own.

    Raises:
        UsageError: a setting is none, or leads nowhere.
    """
    for assignment in settings:
        tree = with_setting(tree, assignment)
    if not isinstance(tree.data, dict):
        return tree
    asked = {} if checks is None else {"expect": [expectation_of(text) for text in checks]}
    kept = {key: value for key, value in tree.data.items() if key != "from_manifest"}  # it is no form of them any more
    return Tree(tree.file, {**kept, **asked}, tree.locations)


def failing(tree: Tree, loaded: LoadedFile, seeds: Sequence[int]) -> Judgement:
    """Return the first expectation of the file that does not hold, with the first of these seeds that one fails with.

    Raises:
        UsageError: all hold with every seed, or could not be decided.
    """
    undecided = ""
    unasked: list[Trouble] = []
    for seed in seeds:
        values = _values_of(loaded, seed)
        unasked += [trouble for each in values for trouble in each.troubles]
        broken = [verdict for verdict in _judged(loaded, seed, values) if not verdict.passed]
        found = [verdict for verdict in broken if verdict.is_decided]
        if found:
            return next((verdict for verdict in found if verdict.check.severity == "fail"), found[0])
        undecided = undecided or next((f"{verdict.check.shown} is not decided: {verdict.note}" for verdict in broken), "")
    if undecided:
        raise UsageError(f"{tree.file}: {undecided}")
    if asked := next((TROUBLES[each.kind].metric for each in unasked if TROUBLES[each.kind].metric), ""):
        line = f"kgctl simulate shrink {tree.file} --check '{asked} == 0'"
        raise UsageError(f"{tree.file}: its expectations hold, but {unasked[0].text}; {line} shrinks that")
    tried = f"seed {seeds[0]}" if len(seeds) == 1 else f"the seeds {seeds[0]} to {seeds[-1]}"
    more = f"kgctl simulate run {tree.file} --runs 20 looks for a seed that fails; then --seed"
    raise UsageError(f"{tree.file}: every expectation holds with {tried}; there is nothing to shrink ({more})")


def shrink(tree: Tree, verdict: Judgement, seed: int, *, most_runs: int, on_run: Callable[[], None] = lambda: None) -> Shrunk:
    """Make the scenario smaller as long as the verdict's expectation still fails with this seed."""
    search = _Search(tree.file, verdict, seed, most_runs, on_run)
    search.least = start = tree.data
    was_interrupted = False
    try:
        loaded = load(tree)
        search.cause = search.cause_in(loaded, verdict)
        search.find_contrast(loaded)
        search.least = start = search.start(tree.data)
        search.reduce()
    except KeyboardInterrupt:
        was_interrupted = True  # what was found by then fails, too
    is_minimal = search.runs < most_runs and not was_interrupted
    data = search.least
    cause, contrast = search.cause, search.contrast
    return Shrunk(data, search.last, search.runs, sizes(start), sizes(data), is_minimal, cause, was_interrupted, contrast)


def sizes(data: dict[str, Any]) -> tuple[int, int, int]:
    """Return how many events, pods and partitions a scenario has, as far as its file says."""
    topics = data.get("topics") or {}
    members = data.get("members") or {}
    partitions = sum(each if isinstance(each, int) else (each or {}).get("partitions", 12) for each in topics.values())
    return len(data.get("events") or ()), sum((each or {}).get("count", 1) for each in members.values()), partitions


def verdicts_of(loaded: LoadedFile, seed: int) -> list[Judgement]:
    return _judged(loaded, seed, _values_of(loaded, seed))


def _values_of(loaded: LoadedFile, seed: int) -> list[RunValues]:
    return run_all(tasks_of(loaded, [seed], BatchOptions(), None), 1, lambda _: None)


def _judged(loaded: LoadedFile, seed: int, values: Sequence[RunValues]) -> list[Judgement]:
    runs = {one.variant: {seed: one} for one in values}
    settings = {variant.name: variant.settings for variant in loaded.variants}
    return Judge(runs, settings, [seed]).verdicts(loaded.checks)


class _Search:
    def __init__(self, source: str, verdict: Judgement, seed: int, most_runs: int, on_run: Callable[[], None]) -> None:
        self.last = verdict
        self.least: dict[str, Any] = {}
        self.runs = 0
        self.cause = self.contrast = ""
        self._source, self._seed, self._most, self._on_run = source, seed, most_runs, on_run
        self._texts = {verdict.check.text}
        self._held: set[str] = set()
        self._variant = verdict.variant

    def find_contrast(self, loaded: LoadedFile) -> None:
        """Find the first variant in which the expectation holds with this seed."""
        if len(loaded.variants) > 1:
            self.runs += 1
            self.contrast = next((each.variant for each in verdicts_of(loaded, self._seed) if self._holds(each)), "")

    def _holds(self, verdict: Judgement) -> bool:
        return verdict.passed and verdict.is_decided and verdict.check.text in self._texts

    def start(self, data: dict[str, Any]) -> dict[str, Any]:
        """The failing variant alone, where the expectation is about one, and no other expectation."""
        start = copy.deepcopy(data)
        for key in ("sweep", "report", "output", "extends"):
            start.pop(key, None)
        start["seed"], start["runs"] = self._seed, 1
        variants = start.get("variants") or {}
        columns = {f"{patch}-{group}": patch for patch in variants for group in start.get("groups") or ()}
        patch = columns.get(self._variant, self._variant)
        self._texts.add(self.last.check.text.replace(f"{patch}-", ""))
        own = [entry for entry in start.get("expect") or () if _text_of(entry) in self._texts]
        start["expect"] = own[:1] or list(start.get("expect") or ())
        if patch in variants:
            base = {key: copy.deepcopy(value) for key, value in start.items() if key != "variants"}
            flat: dict[str, Any] = dict(merge_patch(base, variants[patch] or {}))
            for entry in flat["expect"]:
                if isinstance(entry, dict):
                    entry.pop("variants", None)
            start = self._beside_contrast(flat, base, variants) or (flat if self._fails(flat) else start)
        spelled = self._without_nemesis(start)
        return spelled if spelled is not None and self._fails(spelled) else start

    def _beside_contrast(self, flat: dict[str, Any], base: dict[str, Any], variants: Any) -> dict[str, Any] | None:
        """Return the failing variant's scenario with what makes it the one that holds; None: there is none, or not so."""
        if self.contrast in variants:
            other = merge_patch(base, variants[self.contrast] or {})
            patch = patch_between(flat, {**other, "expect": flat["expect"]})
            pair = {**flat, "variants": {self._variant: {}, self.contrast: patch}}
            if self._fails(pair):
                return pair
        self.contrast = ""
        return None

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
        return {**rest, "events": [*(data.get("events") or ()), *(event.as_drawn() for _, event in drawn)]}

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
                if not self._fails(_without_events(self.least, events[start : start + size])):
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
        try:
            verdicts = verdicts_of(loaded, self._seed)
        except KgctlError:
            return False
        found = [each for each in verdicts if self._is_wanted(each)]
        if not found or (self.cause and _alike(self.cause_in(loaded, found[0])) != _alike(self.cause)):
            return False
        if self.contrast and not any(each.variant == self.contrast and self._holds(each) for each in verdicts):
            return False
        self.last, self.least = found[0], data
        return True

    def _is_wanted(self, verdict: Judgement) -> bool:
        """Whether it is the expectation that is looked for, and fails as it did: not for a value or an event that is gone."""
        if verdict.passed or not verdict.is_decided or verdict.check.text not in self._texts:
            return False
        has_value = (verdict.observed is None) is (self.last.observed is None)
        return has_value and (verdict.variant in (self._variant, DEFAULT) or self._variant.endswith(f"-{verdict.variant}"))

    def cause_in(self, loaded: LoadedFile, verdict: Judgement) -> str:
        """Return what the longest gap of the failing variant is due to; "" where that is not what fails."""
        if not any(metric_kinds()[metric.name].is_of_gaps for metric in metrics_of(verdict.check.node)):
            return ""
        scenario = next((each.scenario for each in loaded.variants if each.name == verdict.variant), None)
        return "" if scenario is None else main_cause_of(scenario, self._seed)


def _text_of(entry: Any) -> str:
    if isinstance(entry, dict):
        entry = next((entry[kind] for kind in ("check", "always", "eventually", "steady") if kind in entry), "")
    return " ".join(str(entry).split())


# --- causes


def main_cause_of(scenario: Scenario, seed: int) -> str:
    """Return what the longest gap of a run is due to, in a few words: its main cause, and what set its rebalance off.

    Raises:
        UsageError, InvariantViolation: as `kgctl.simulate.engine.run.run`.
    """
    story = explain(scenario, seed, ablates=False).story
    return "" if story is None else f"{story.main_cause} {story.origin.kind}".strip()


def _alike(cause: str) -> str:
    return cause.replace("restarted", "joined")  # who comes back counts as restarted only if an earlier event took it out, too


_KINDS = {
    "joined": "a member that joined",
    "again": "a member that joined again",
    "metadata": "a member that saw its topics changed",
    "restarted": "a member that came back after a restart",
    "closed": "a member that closed its consumer",
    "expired": "a member whose heartbeats stopped",
    "poll": "a member past max.poll.interval.ms",
    "fenced": "a member that was fenced",
    "replaced": "a member that took the place of another one",
    **TRIGGERS,
}


def cause_in_words(cause: str) -> str:
    """Return what `main_cause_of` found as words: "handover, in a rebalance set off by a member that joined"."""
    main, _, kind = cause.partition(" ")
    again = ", back in the group" if kind.startswith("back:") else ""
    words = _KINDS.get(kind.removeprefix("back:"), kind)
    return f"{main}, in a rebalance set off by {words}{again}" if kind else main


# --- what can be made smaller


def anchored(events: Sequence[Any], gone: Sequence[Any]) -> list[Any]:
    """Return the events with those that waited for one that is gone waiting for what that one waited for."""
    anchors = {each["name"]: each for each in gone if isinstance(each, dict) and "name" in each}
    found = []
    for event in events:
        left = event
        while isinstance(left, dict) and (anchor := anchors.get(str(left.get("after")))) is not None:
            rest = {key: value for key, value in left.items() if key not in ("after", "at")}
            later = {"after": anchor["after"]} if "after" in anchor else {}
            left = {**later, "at": _sum_of(left.get("at", 0), anchor.get("at", 0)), **rest}
        found.append(left)
    return found


def _without_events(data: dict[str, Any], gone: Sequence[Any]) -> dict[str, Any]:
    """Return the scenario without these events; a variant with events of its own is without them, too."""
    left = {**data, "events": anchored([each for each in data["events"] if not _is_in(each, gone)], gone)}
    own = {name: patch for name, patch in (data.get("variants") or {}).items() if patch and patch.get("events")}
    for name, patch in own.items():
        kept = [each for each in patch["events"] if each not in gone]
        left["variants"] = {**left["variants"], name: {**patch, "events": anchored(kept, gone)}}
    return left


def _is_in(event: Any, events: Sequence[Any]) -> bool:
    """Whether it is one of these very events, not one like them."""
    return any(event is each for each in events)


def _sum_of(first: Any, second: Any) -> Any:
    is_sum = is_duration(str(first)) and is_duration(str(second))
    return format_duration(parse_duration(first) + parse_duration(second)) if is_sum else first


def _fewer_sections(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key in [key for key in data if key not in _NEEDED or data[key] == []]:
        yield _without(data, (key,))
    yield from _fewer_groups(data)
    for name, patch in (data.get("variants") or {}).items():
        yield from (_without(data, ("variants", name, key)) for key in patch or ())
    for section in ("members", "topics", "traffic", "variants"):
        for name in data.get(section) or {}:
            if section in ("traffic", "variants") or len(data[section]) > 1:
                yield _without_topic(data, name) if section == "topics" else _without(data, (section, name))


def _fewer_groups(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Without a group and all its members."""
    groups = data.get("groups") or {}
    for name in groups if len(groups) > 1 else ():
        left = {key: value for key, value in groups.items() if key != name}
        members = data["members"].items()
        own = {key: value for key, value in members if not isinstance(value, dict) or value.get("group") != name}
        yield {**data, "groups": left, "members": own}


def _without_topic(data: dict[str, Any], topic: str) -> dict[str, Any]:
    changed: dict[str, Any] = _without(data, ("topics", topic))
    if isinstance(changed.get("traffic"), dict):
        changed["traffic"].pop(topic, None)
    for each in changed["members"].values():
        names = each.get("subscribe") if isinstance(each, dict) else None
        if isinstance(names, list) and topic in names:
            each["subscribe"] = [name for name in names if name != topic]
    return changed


def _fewer_pods(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Fewer pods of a set, each event's pod among those that are left; and the first pod in the place of another one."""
    for name, each in data["members"].items():
        places = _pods_of(data, name)
        for fewer in _smaller(each.get("count", 1) if isinstance(each, dict) else 1):
            smaller = _with(data, ("members", name, "count"), fewer)
            for path, pod in places:
                _parent(smaller, path)[path[-1]] = f"{name}/{pod % fewer}"
            yield smaller
        yield from (_with(data, path, f"{name}/0") for path, pod in places if pod)


def _pods_of(data: dict[str, Any], member_set: str) -> list[tuple[Path, int]]:
    """Return the places in events at which one pod of the set stands, and its number."""
    texts = [(path, str(value)) for path, value in _leaves(data) if path[0] == "events" and len(path) == 3]
    found = [(path, _ONE_POD.fullmatch(text)) for path, text in texts]
    return [(path, int(match[2])) for path, match in found if match is not None and match[1] == member_set]


def _smaller(value: Any) -> list[int]:
    """Return smaller numbers to try, the smallest first."""
    if type(value) is not int:
        return []
    return [each for each in dict.fromkeys((1, value // 4, value // 2, value * 3 // 4, value - 1)) if 0 < each < value]


def _smaller_numbers(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, value in _leaves(data):
        is_size = path[-1] in _WHOLE_NUMBERS or (path[0] == "topics" and len(path) == 2)
        if is_size and path[0] != "expect":
            yield from (_with(data, path, smaller) for smaller in _smaller(value))


def _fewer_keys(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Without an optional key; an event keeps its ``for``: without it a fault would last for ever, which is not less."""
    for path, value in _nodes(data):
        is_inner = len(path) > 1 and path[0] not in ("expect", "variants") and isinstance(path[-1], str)
        if is_inner and path[-1] not in ("count", "partitions", "for") and not isinstance(value, int):
            yield _without(data, path)


def _shorter_times(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, value in _leaves(data):
        if path[-1] in _DURATIONS and path[0] != "expect" and isinstance(value, str) and is_duration(value):
            length_us = parse_duration(value)
            parts = (each // _SECOND_US * _SECOND_US for each in (length_us // 4, length_us // 2))
            rounded = (length_us // unit_us * unit_us for unit_us in (60 * _SECOND_US, 10 * _SECOND_US, _SECOND_US))
            for shorter in dict.fromkeys([*parts, *rounded]):
                if 0 < shorter < length_us:
                    yield _with(data, path, format_duration(shorter))


def _closer_events(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """With an event and all later ones earlier, by all or a part of the time since the one before it."""
    times = _times_of(data)
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


def _in_order(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """With events that wait for no other one in the order of time."""
    times = _times_of(data)
    if len(times) == len(data.get("events") or ()) and list(times.values()) != sorted(times.values()):
        yield {**data, "events": [data["events"][position] for position in sorted(times, key=lambda each: times[each])]}


def _times_of(data: dict[str, Any]) -> dict[int, int]:
    """Return when the events begin that do not wait for others, by their number."""
    events = enumerate(data.get("events") or ())
    free = {position: event.get("at", 0) for position, event in events if isinstance(event, dict) and "after" not in event}
    return {position: parse_duration(at) for position, at in free.items() if is_duration(str(at))}


REDUCTIONS: tuple[Callable[[dict[str, Any]], Iterator[dict[str, Any]]], ...] = (
    _fewer_sections,
    _fewer_pods,
    _smaller_numbers,
    _fewer_keys,
    _shorter_times,
    _closer_events,
    _in_order,
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

    text = str(yaml.dump(data, Dumper=core_dumper(), sort_keys=False, allow_unicode=True, width=120))
    try:
        is_same = read_yaml(text, "").data == data
    except FileError:
        is_same = False
    return text if is_same else json.dumps(data, indent=2) + "\n"
