"""Expectations of a file: what each asks, of which variants, over which seeds, and what stands in a metric's parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import frozen, frozen_in_order
from kgctl.simulate.scenario.expressions import (
    ExpressionError,
    Metric,
    MetricSource,
    Names,
    Node,
    ScenarioSetting,
    Value,
    evaluate,
    located,
    metrics_of,
    parse_check,
    parse_expression,
    variants_of,
)
from kgctl.simulate.scenario.metric import MetricKind, metric_kinds
from kgctl.simulate.scenario.quantities import DURATION_SCHEMA, SHARE_SCHEMA, parse_duration, parse_share, shown
from kgctl.simulate.scenario.vocabulary import CLIENT_ERRORS, SIMULATED_APIS, Choice, Selector, did_you_mean, parse_selector
from kgctl.yaml_files import Path, Problem, Tree

if TYPE_CHECKING:
    from kgctl.simulate.scenario.model import Scenario


class CheckKind(StrEnum):
    """CHECK: of the finished run. ALWAYS: after every event. EVENTUALLY: at some moment. STEADY: a metric that has settled."""

    CHECK = "check"
    ALWAYS = "always"
    EVENTUALLY = "eventually"
    STEADY = "steady"


OVER_SEEDS = ("worst", "p99", "p95", "p90", "p75", "p50", "median", "mean", "best")
SEVERITIES = ("fail", "warn")
_KEYS: Mapping[CheckKind, Mapping[str, Any]] = {
    CheckKind.CHECK: {"at": {"enum": list(OVER_SEEDS), "description": "Which seed decides."}},
    CheckKind.ALWAYS: {},
    CheckKind.EVENTUALLY: {"after": {"type": ["string", "integer"]}, "within": DURATION_SCHEMA},
    CheckKind.STEADY: {"within": SHARE_SCHEMA, "last": DURATION_SCHEMA},
}
_FOR_ALL: Mapping[str, Any] = {
    "when": {"type": "string", "description": "Asked only where this holds."},
    "variants": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    "why": {"type": "string"},
    "severity": {"enum": list(SEVERITIES)},
}


def expectation_schemas() -> list[dict[str, Any]]:
    """The JSON Schema of an expectation that is a mapping, of each kind."""
    return [
        {
            "type": "object",
            "properties": {str(kind): {"type": "string"}, **own, **_FOR_ALL},
            "required": [str(kind)],
            "additionalProperties": False,
        }
        for kind, own in _KEYS.items()
    ]


@frozen
class Check:
    """One entry of ``expect:``. ``text`` is its expression as the file has it.

    ``variants`` None: each that the expression does not name itself. ``at``: which of the seeds decides. ``after``: an event's
    name, "last", "previous" or a time; ``within_us`` None: until the end; ``within_ppm`` and ``last_us`` (None: five
    minutes, or the whole of a shorter run) are of STEADY.
    """

    text: str
    node: Node
    kind: CheckKind = CheckKind.CHECK
    at: str = "worst"
    when: Node | None = None
    variants: tuple[str, ...] | None = None
    why: str = ""
    severity: str = "fail"
    after: str | int = 0
    within_us: int | None = None
    within_ppm: int = 50_000
    last_us: int | None = None

    @property
    def shown(self) -> str:
        if self.kind is CheckKind.CHECK:
            return self.text if self.at == "worst" else f"{self.at}: {self.text}"
        return f"{self.kind}: {self.text}"

    @property
    def named_variants(self) -> tuple[str, ...]:
        """The variants whose metrics the expression names."""
        return variants_of(self.node)

    @property
    def is_of_whole_runs(self) -> bool:
        """Whether it is asked of every run, and of all of it."""
        return self.when is None and self.kind in (CheckKind.CHECK, CheckKind.ALWAYS)

    @property
    def is_about_one_more(self) -> bool:
        """Whether some metric is that of the variant looked at, so that the check is made for each."""
        return any(metric.variant is None for metric in metrics_of(self.node)) or not self.named_variants


def _some_time(raw: object) -> int:
    if not (length_us := parse_duration(raw)):
        raise ValueError("must be a time above 0: in none nothing is seen")
    return length_us


class CheckReader:
    """Reads ``expect:``; what is wrong is added to ``problems``."""

    def __init__(self, tree: Tree, names: Names, problems: list[Problem], event_names: tuple[str, ...] = ()) -> None:
        self._tree, self._names, self._problems = tree, names, problems
        self._event_names = event_names

    def read(self) -> tuple[Check, ...]:
        raw = self._tree.data.get("expect")
        entries = enumerate(raw if isinstance(raw, list) else [])
        return tuple(check for index, entry in entries for check in self.of_entry(entry, ("expect", index)))

    def of_entry(self, raw: Any, path: Path) -> list[Check]:
        """Return what an entry expects: one check, or, with the short names of several groups, one of each variant."""
        kind = next((kind for kind in CheckKind if kind in raw), None) if isinstance(raw, dict) else None
        text = raw if kind is None else raw[kind]
        try:
            texts = self._names.spelled_out(text) if isinstance(text, str) else (text,)
        except ExpressionError:
            texts = (text,)
        found = []
        for each in texts:
            check = self._one(each if kind is None else {**raw, kind: each}, path)
            if check is None:
                return []
            found.append(check)
        return found

    def _one(self, raw: Any, path: Path) -> Check | None:
        if isinstance(raw, str):
            return self._check(CheckKind.CHECK, {"check": raw}, path, path)
        if not isinstance(raw, dict):
            self._wrong(path, "an expectation is a text such as `max_gap < 15s`, or a mapping with one")
            return None
        kinds = [kind for kind in CheckKind if kind in raw]
        if len(kinds) != 1:
            near = "".join(did_you_mean(key, [*map(str, CheckKind)]) for key in raw if not kinds)
            self._wrong(path, f"an expectation has exactly one of {', '.join(CheckKind)}{near}")
            return None
        return self._check(kinds[0], raw, path, (*path, str(kinds[0])))

    def _check(self, kind: CheckKind, raw: Mapping[str, Any], path: Path, text_path: Path) -> Check | None:
        before = len(self._problems)
        known = (kind, *_KEYS[kind], *_FOR_ALL)
        for key in raw:
            if key not in known:
                self._wrong((*path, key), f"unknown key of {kind!s}{did_you_mean(key, known, list_up_to=12)}")
        text, node = self._expression(raw[kind], text_path, logical=kind is not CheckKind.STEADY)
        options = self._options(kind, raw, path)
        if node is None or len(self._problems) > before:
            return None
        self._check_variants(kind, node, text_path)
        return Check(text=text, node=node, kind=kind, **options)

    def _expression(self, raw: Any, path: Path, *, logical: bool) -> tuple[str, Node | None]:
        if isinstance(raw, bool | int | float) or not isinstance(raw, str):
            self._wrong(path, f"an expression is a text such as `max_gap < 15s`, not {shown(raw)}")
            return "", None
        text = " ".join(raw.split())
        try:
            return text, (parse_check if logical else parse_expression)(text, self._names)
        except ExpressionError as error:
            self._wrong(path, located(error, text))
            return text, None

    def _options(self, kind: CheckKind, raw: Mapping[str, Any], path: Path) -> dict[str, Any]:
        readers: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
            "when": ("when", lambda given: self._expression(given, (*path, "when"), logical=True)[1]),
            "why": ("why", str),
            "at": ("at", partial(_one_of, OVER_SEEDS)),
            "severity": ("severity", partial(_one_of, SEVERITIES)),
            "variants": ("variants", lambda given: self._variants(given, (*path, "variants"))),
            "after": ("after", self._after),
            "within": ("within_ppm", parse_share) if kind is CheckKind.STEADY else ("within_us", parse_duration),
            "last": ("last_us", _some_time),
        }
        found: dict[str, Any] = {}
        for key, (name, read) in readers.items():
            try:
                found |= {name: read(raw[key])} if key in raw else {}
            except ValueError as error:
                self._wrong((*path, key), str(error))
        return found

    def _variants(self, raw: Any, path: Path) -> tuple[str, ...]:
        if not isinstance(raw, list) or not raw:
            self._wrong(path, f"must be a list of variants, not {shown(raw)}")
            return ()
        found: list[str] = []
        for index, name in enumerate(map(str, raw)):
            if name not in self._names.variants and name not in self._names.short:
                hint = did_you_mean(name, self._names.variants, list_up_to=12)
                self._wrong((*path, index), f"there is no variant {name!r}{hint}")
            found.extend(self._names.short.get(name, (name,)) if name not in self._names.variants else (name,))
        return tuple(dict.fromkeys(found))

    def _after(self, raw: Any) -> str | int:
        known = ("last", *self._event_names)
        if isinstance(raw, str) and raw in known:
            return raw
        try:
            return parse_duration(raw)
        except ValueError:
            near = did_you_mean(str(raw), known)
            raise ValueError(f"must be a time or the name of an event, not {shown(raw)}{near}") from None

    def _check_variants(self, kind: CheckKind, node: Node, path: Path) -> None:
        if kind is not CheckKind.CHECK and len({metric.variant for metric in metrics_of(node)}) > 1:
            self._wrong(path, f"{kind!s} looks at one variant while it runs; it cannot compare two")
        if kind is CheckKind.STEADY and not isinstance(node, Metric):
            self._wrong(path, "steady takes a metric")

    def _wrong(self, path: Path, message: str) -> None:
        self._problems.append(self._tree.problem(path, message))


def _one_of(choices: tuple[str, ...], raw: Any) -> Any:
    if raw not in choices:
        raise ValueError(f"must be one of {', '.join(choices)}, not {raw!r}")
    return raw


@frozen_in_order
class RunSource:
    """Gives expressions the values of one run, going on or finished."""

    metrics: MetricSource
    settings: Mapping[str, float | str] = field(default_factory=dict)

    def metric(self, metric: Metric) -> Value:
        value: Value = self.metrics.metric(metric.name, metric.filters)
        return value

    def setting(self, setting: ScenarioSetting) -> Value:
        return self.settings.get(setting.name)


@frozen_in_order
class KnownSource(RunSource):
    """Of a run that goes on, what it has had: a time that has not come, or a pod that was not yet, has no value."""

    def metric(self, metric: Metric) -> Value:
        value: Value = getattr(self.metrics, "known", self.metrics.metric)(metric.name, metric.filters)
        return value


@frozen_in_order
class Compiled:
    """A `Condition` that is ready to be evaluated."""

    text: str
    node: Node
    settings: Mapping[str, float | str] = field(default_factory=dict)

    def holds(self, metrics: MetricSource) -> bool:
        return bool(evaluate(self.node, RunSource(metrics, self.settings)))


def compiled(raw: object, names: Names) -> Compiled:
    """The condition of an event.

    Raises:
        ValueError: it is no expression, or names what is not there.
    """
    if not isinstance(raw, str):
        raise ValueError(f"a condition is a text such as `lag > 1000`, not {shown(raw)}")
    text = " ".join(raw.split())
    try:
        return Compiled(text, parse_check(text, Names(names.metrics, ())))
    except ExpressionError as error:
        raise ValueError(located(error, text)) from None


STATISTICS = ("mean", "max", "min", "worst", "total", "peak")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
_NUMBER = re.compile(r"-?\d+")


@frozen
class Filters:
    """All that there may be; times are microseconds after the end of the warm-up. ``words`` is what is none of the rest."""

    cause: str | None = None
    selector: Selector | None = None
    topics: tuple[str, ...] = ()
    before_us: int | None = None
    after_us: int | None = None
    at_us: int | None = None
    during: str | None = None
    step: int | None = None
    at_end: bool = False
    statistic: str | None = None
    percentile: float | None = None
    share: float | None = None
    words: tuple[str, ...] = ()

    @property
    def word(self) -> str | None:
        return self.words[0] if self.words else None


NO_FILTERS = Filters()


def parse_filters(parts: Collection[str], *, topics: Collection[str] = (), member_sets: Collection[str] = ()) -> Filters:
    """The filters that these texts are. Raises ValueError for a time or a selector that is none."""
    filters = NO_FILTERS
    for part in parts:
        filters = _with(filters, part.strip(), topics, member_sets)
    return filters


def _once(filters: Filters, part: str, **said: Any) -> Filters:
    """Raises ValueError where there is one of the kind already: one of two would count, and nobody knows which."""
    if any(getattr(filters, name) != getattr(NO_FILTERS, name) for name in said):
        raise ValueError(f"{part!r} is the second filter of its kind, and takes the place of the first")
    return replace(filters, **said)


def _fixed(part: str) -> Selector:
    """A selector whose pods are the same at all times. Raises ValueError for another: who is the oldest changes in a run."""
    selector = parse_selector(part)
    if selector.choice not in (Choice.ALL, Choice.RANGE):
        raise ValueError(f"{part!r} is not the same pods at all times; write app, app/3, app/0..9 or not app/3")
    return selector


_WITH_A_WORD = ("cause", "during", "step", "before", "after", "at")


def _with_a_word(head: str, rest: str) -> dict[str, Any]:
    """Return the filter that a word and what follows it are. Raises ValueError."""
    if head in ("cause", "during"):
        return {head: rest}
    if head == "step":
        if not rest.isdigit() or not int(rest):
            raise ValueError(f"a step is a number from 1 on, not {rest!r}")
        return {"step": int(rest)}
    return {"at_end": True} if rest == "end" else {f"{head}_us": parse_duration(rest)}


def _with(  # noqa: PLR0911  # one for each kind of filter
    filters: Filters, part: str, topics: Collection[str], member_sets: Collection[str]
) -> Filters:
    head, _, rest = (text.strip() for text in part.partition(" "))
    if head in _WITH_A_WORD and rest:
        return _once(filters, part, **_with_a_word(head, rest))
    if part == "end":
        return _once(filters, part, at_end=True)
    if part in STATISTICS:
        return _once(filters, part, statistic=part)
    if (found := _PERCENTILE.fullmatch(part)) is not None:
        return _once(filters, part, percentile=float(found[1]))
    if (found := _SHARE.fullmatch(part)) is not None:
        return _once(filters, part, share=float(found[1]) / 100)
    if part in topics:
        return replace(filters, topics=(*filters.topics, part))
    if head == "not" or "/" in part or part in member_sets:
        return _once(filters, part, selector=_fixed(part))
    return replace(filters, words=(*filters.words, part))


CALLBACKS = ("assigned", "revoked", "lost", "empty")
"""What ``callbacks(...)`` takes."""
_WORDS: Mapping[str, tuple[str, Callable[[], Collection[str]]]] = {
    "callback": ("kind of callback", lambda: CALLBACKS),
    "error": ("error", lambda: (*CLIENT_ERRORS, *(code.name for code in ErrorCode if code))),
    "series": ("series", lambda: ("replicas", "members", "lag")),
    "api": ("request", lambda: SIMULATED_APIS),
    "partition": ("filter of it", lambda: ("partition",)),
}
"""Kind of filter -> what its words are called, and those that there are. Names of events are those of the file."""
_TAKEN_AS: Mapping[str, tuple[str, str]] = {
    "cause": ("cause", "a cause"),
    "topics": ("topic", "a topic"),
    "selector": ("selector", "pods"),
    "before_us": ("before", "`before`"),
    "after_us": ("after", "`after`"),
    "at_us": ("at", "`at`"),
    "at_end": ("at", "`end`"),
    "percentile": ("percentile", "a percentile"),
    "share": ("share", "a share"),
}
"""Field of `Filters` -> the kind of filter that it is, and what it is called."""
_SAME_AS_PEAK = ("max", "worst")


@frozen_in_order
class FilterNames:
    """What filters may name, of all variants together."""

    topics: tuple[str, ...]
    member_sets: tuple[str, ...]
    events: tuple[str, ...] = ()

    @classmethod
    def of(cls, scenarios: Sequence[Scenario]) -> FilterNames:
        """Topics, also those that events create, and sets of members."""
        topics = [topic.name for each in scenarios for topic in each.topics]
        created = [event.target for each in scenarios for event in each.events if event.creates_topic]
        sets = [members.name for each in scenarios for members in each.members]
        events = [event.title for each in scenarios for event in each.events]
        return cls(tuple(dict.fromkeys([*topics, *created])), tuple(dict.fromkeys(sets)), tuple(dict.fromkeys(events)))


def wrong_filters(check: Check, around: FilterNames) -> Iterator[str]:
    for node in (check.node, check.when):
        for metric in metrics_of(node) if node is not None else ():
            yield from wrong_filters_of(metric, around)


def _unknown_events(filters: Filters, kinds: Collection[str], around: FilterNames) -> list[str]:
    named = [*(() if filters.during is None else (filters.during,)), *(filters.words if "event" in kinds else ())]
    return [word for word in named if word not in around.events and not word.startswith("nemesis ")]


def wrong_filters_of(metric: Metric, around: FilterNames) -> Iterator[str]:
    """What is wrong with the filters of one metric, in words."""

    try:
        filters = parse_filters(metric.filters, topics=around.topics, member_sets=around.member_sets)
    except ValueError as error:
        yield f"{metric.name}: {error}"
        return
    kind = metric_kinds()[metric.name]
    kinds = kind.filters
    if kind.causes and filters.cause is not None and filters.cause not in kind.causes:
        yield f"{metric.name}: there is no cause {filters.cause!r}{did_you_mean(filters.cause, kind.causes, list_up_to=12)}"
    for word in _unknown_events(filters, kinds, around):
        yield f"{metric.name}: there is no event {word!r}{did_you_mean(word, around.events, list_up_to=12)}"
    if (filters.during, filters.step) != (None, None) and "during" not in kinds:
        yield f"{metric.name}: it is not told by event or step"
    for what in _not_taken(filters, kinds):
        yield f"{metric.name}: it does not take {what}; it takes: {', '.join(dict.fromkeys(kinds)) or 'nothing'}"
    for why in _unknown_words(filters, kinds, around):
        yield f"{metric.name}: {why}"
    selected = filters.selector.member_set if filters.selector is not None else None
    if selected is not None and selected not in around.member_sets:
        yield f"{metric.name}: there is no set of members {selected!r}{did_you_mean(selected, around.member_sets, list_up_to=12)}"


def are_elsewhere(filters: Filters, kind: MetricKind, around: FilterNames) -> bool:
    """Whether a filter that the file's reader took names a topic or pods that only others of its variants or groups have."""
    return any(_unknown_words(filters, kind.filters, around))


def is_sum(kind: MetricKind, filters: Collection[str]) -> bool:
    """Whether it is a sum of records as it is now, which grows and shrinks evenly between what happens."""
    return kind.is_of_records and "at" in kind.filters and not any(_is_of_times(part) for part in filters)


def _is_of_times(part: str) -> bool:
    return part in STATISTICS or part == "end" or part.partition(" ")[0] in _WITH_A_WORD


def _unknown_words(filters: Filters, kinds: Collection[str], around: FilterNames) -> Iterator[str]:
    taken = [_WORDS[each] for each in kinds if each in _WORDS]
    if not taken and "event" not in kinds:
        taken = [("filter of it", lambda: (*around.topics, *around.member_sets))]
    for called, known in taken:
        for word in filters.words:
            if word not in known():
                yield f"{word!r} is no {called}{did_you_mean(word, known(), list_up_to=12)}"


def _not_taken(filters: Filters, kinds: Collection[str]) -> Iterator[str]:
    """What stands in the parentheses and would change nothing there."""
    for name, (needed, called) in _TAKEN_AS.items():
        if getattr(filters, name) != getattr(NO_FILTERS, name) and needed not in kinds:
            yield called
    statistic = filters.statistic
    if statistic is not None and statistic not in kinds and not (statistic in _SAME_AS_PEAK and "peak" in kinds):
        yield repr(statistic)
