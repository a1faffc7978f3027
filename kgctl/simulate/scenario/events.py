"""Events of a file: the key that is a kind's name says what kind, the kind's fields say the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kgctl.member.config import profile_names
from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.event_kinds import EVENT_KINDS, Condition, Event, EventKind, Field, Share
from kgctl.simulate.scenario.fields import check_settings, parse_rates, read_client_settings
from kgctl.simulate.scenario.quantities import is_duration, parse_distribution, parse_duration, parse_share, shown
from kgctl.simulate.scenario.vocabulary import NODE, Choice, Selector, did_you_mean, parse_selector
from kgctl.yaml_files import Path, Problem, Tree

COMMON = ("at", "after", "every", "times", "when", "name")
WORDS_OF_AFTER = ("previous", "last")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What events refer to: sets of members with their clients, topics with their partitions, how a condition is read, and
    how many brokers and nodes there are."""

    member_sets: Mapping[str, str]
    topics: Mapping[str, int]
    condition: Callable[[str], Condition]
    brokers: int
    nodes: int = 0


class EventReader:
    """Reads the events of one tree; what is wrong is added to ``problems``."""

    def __init__(self, tree: Tree, kinds: Mapping[str, EventKind], around: Surroundings, problems: list[Problem]) -> None:
        self._tree, self._kinds, self._around, self._problems = tree, kinds, around, problems
        self._topics = dict(around.topics)
        self._deleted: set[str] = set()
        self._names: list[str] = []
        self._named: list[str] = []

    def read(self) -> tuple[Event, ...]:
        raw = self._tree.data.get("events") or []
        self._named = [entry["name"] for entry in raw if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        found = []
        for index, entry in enumerate(raw):
            found.append(self._event(entry, ("events", index)))
            name = entry.get("name") if isinstance(entry, dict) else None
            self._names.append(name if isinstance(name, str) else "")
        return tuple(event for event in found if event is not None)

    def _event(self, raw: Any, path: Path) -> Event | None:
        if not isinstance(raw, dict):
            self._wrong(path, "an event is a mapping such as {at: 0s, restart: app}")
            return None
        kind = self._kind(raw, path)
        if kind is None:
            return None
        before = len(self._problems)
        common = self._common(raw, path)
        parameters = self._parameters(raw, kind, path)
        selector = self._target(raw[kind.name], kind, (*path, kind.name))
        self._check_growth(raw, kind, parameters, path)
        if len(self._problems) > before:
            return None
        return Event(kind=kind.name, target=str(raw[kind.name]), selector=selector, parameters=parameters, **common)

    def _kind(self, raw: Mapping[str, Any], path: Path) -> EventKind | None:
        named = [name for name in raw if name in self._kinds]
        if len(named) == 1:
            return self._kinds[named[0]]
        if named:
            self._wrong((*path, named[1]), f"an event has one kind; this is {named[0]!r} and {named[1]!r}")
            return None
        odd = next((name for name in raw if name not in COMMON), None)
        if odd is None:
            self._wrong(path, f"it does not say what happens; kinds: {', '.join(self._kinds)}")
            return None
        self._wrong((*path, odd), f"unknown kind of event {odd!r}{did_you_mean(odd, self._kinds, list_up_to=40)}")
        return None

    def _common(self, raw: Mapping[str, Any], path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, target in (("at", "at_us"), ("every", "every_us")):
            if name in raw:
                found[target] = self._parsed(parse_duration, raw[name], (*path, name), 0)
        if "times" in raw:
            found["times"] = self._parsed(_count, raw["times"], (*path, "times"), 1)
        if "when" in raw:
            found["when"] = self._parsed(self._around.condition, raw["when"], (*path, "when"), None)
        if "name" in raw:
            found["name"] = self._parsed(_event_name, raw["name"], (*path, "name"), "")
            if raw["name"] in self._names:
                self._wrong((*path, "name"), f"events[{self._names.index(raw['name'])}] is called {raw['name']!r}, too")
        if "after" in raw:
            found["after"] = self._parsed(self._after, raw["after"], (*path, "after"), None)
        if ("times" in raw) != ("every" in raw):
            self._wrong(path, "`every` and `times` go together: {every: 20s, times: 5}")
        if raw.get("every") is not None and not found["every_us"]:
            self._wrong((*path, "every"), "must be more than 0s")
        return found

    def _after(self, raw: Any) -> str:
        known = [*WORDS_OF_AFTER, *filter(None, self._names)]
        if not self._names and raw not in self._named:
            raise ValueError("there is no event before the first one")
        if raw not in known:
            if raw in self._named:
                raise ValueError(f"{raw!r} stands further down: an event waits for one before it")
            raise ValueError(f"no event before it is called {raw!r}{did_you_mean(str(raw), known, list_up_to=8)}")
        return str(raw)

    def _parameters(self, raw: Mapping[str, Any], kind: EventKind, path: Path) -> dict[str, Any]:
        fields = {field.name: field for field in kind.fields}
        found: dict[str, Any] = {}
        for name, value in raw.items():
            if name == kind.name or name in COMMON:
                continue
            if (why := _no_field(name, value, kind)) is not None:
                self._wrong((*path, name), why)
            elif value is not None:
                found[name] = self._parsed(self._parser(fields[name]), value, (*path, name), None)
                if fields[name].type == "config" and found[name]:
                    self._check_settings(found[name], raw[kind.name], (*path, name))
        for field in kind.fields:
            if field.is_required and field.name not in raw:
                self._wrong(path, f"a {kind.name!r} event needs {field.name!r}: {field.help}")
        self._check_company(raw, kind, path)
        if kind.one_of and sum(name in raw for name in kind.one_of) != 1:
            self._wrong(path, f"needs exactly one of {', '.join(kind.one_of)} beside {kind.name!r}")
        return found

    def _check_company(self, raw: Mapping[str, Any], kind: EventKind, path: Path) -> None:
        """Complain of each field that means nothing beside what another one says, and of a rollout that could replace no pod."""
        beside = "workload: statefulset" if raw.get("workload") == "statefulset" else "max_surge: 0"
        none = [name for name in ("max_surge", "max_unavailable") if raw.get(name) in (0, "0", "0%") and raw[name] is not False]
        if "max_unavailable" in none and (len(none) > 1 or beside[0] == "w"):
            self._wrong((*path, none[-1]), f"must not be 0 beside {beside}, as Kubernetes says: no pod could be replaced")
        defaults = {field.name: field.default for field in kind.fields}
        for field in kind.fields:
            for other, values in field.only_with.items() if field.name in raw else ():
                if (given := raw.get(other, defaults[other])) not in values:
                    self._wrong((*path, field.name), f"goes with {other}: {' or '.join(values)}, not {given}")

    def _check_settings(self, config: Mapping[str, str], target: Any, path: Path) -> None:
        member_set = str(target).removeprefix("not ").partition("/")[0].strip()
        client = self._around.member_sets.get(member_set, "java")
        if client in profile_names():
            check_settings(config, read_client_settings(client), path, self._tree, self._problems)

    def _parser(self, field: Field) -> Callable[[Any], Any]:
        if field.type == "choice":
            return lambda raw: _choice(raw, field.choices)
        if field.type == "condition":
            return self._around.condition
        return _PARSERS[field.type]

    def _target(self, raw: Any, kind: EventKind, path: Path) -> Selector | None:
        if kind.target == "selector":
            selector: Selector | None = self._parsed(self._selector, raw, path, None)
            return selector
        if kind.target == "broker":
            self._check_broker(raw, path)
            return None
        if not isinstance(raw, str) or not raw:
            self._wrong(path, f"names a {kind.target}, not {shown(raw)}")
            return None
        if kind.target == "set of members" and raw not in self._around.member_sets:
            self._wrong(path, self._no_set(raw, kind))
        if kind.target == "topic" and raw not in self._topics:
            self._wrong(path, f"there is no topic {raw!r}{did_you_mean(raw, self._topics, list_up_to=12)}")
        if kind.target == "new topic":
            if raw in self._topics and raw not in self._deleted:
                self._wrong(path, f"there is a topic {raw!r} already")
            if not fields.NAME.fullmatch(raw):
                self._wrong(path, f"{raw!r} is no name: letters, digits, dots, hyphens and underscores")
            self._topics[raw] = 0
        if kind.name == "delete_topic":
            self._deleted.add(raw)
            self._topics[raw] = 0
        return None

    def _no_set(self, raw: str, kind: EventKind) -> str:
        if raw.partition("/")[0] in self._around.member_sets:
            return f"a {kind.name!r} event is of a whole set of members: write {raw.partition('/')[0]!r}"
        return f"there is no set of members {raw!r}{did_you_mean(raw, self._around.member_sets, list_up_to=12)}"

    def _check_growth(self, raw: Mapping[str, Any], kind: EventKind, parameters: Mapping[str, Any], path: Path) -> None:
        """A topic never shrinks: Kafka refuses as many partitions as there are, or fewer."""
        there = self._topics.get(str(raw[kind.name]), 0)
        wanted = parameters.get("to") if kind.name == "add_partitions" else None
        if wanted is not None and wanted <= there:
            self._wrong((*path, "to"), f"{raw[kind.name]!r} has {there} partitions: to add some, write more than that")

    def _check_broker(self, raw: Any, path: Path) -> None:
        is_number = type(raw) is int and 1 <= raw <= self._around.brokers
        if not is_number and raw != "coordinator":
            brokers = f"1 to {self._around.brokers}" if self._around.brokers > 1 else "1"
            near = did_you_mean(str(raw), ["coordinator"])
            self._wrong(path, f"names a broker ({brokers}), or coordinator, not {raw!r}{near}")

    def _selector(self, raw: Any) -> Selector:
        selector = parse_selector(raw)
        if selector.member_set == NODE and NODE not in self._around.member_sets:
            self._check_nodes(selector)
        elif selector.member_set is not None and selector.member_set not in self._around.member_sets:
            near = did_you_mean(selector.member_set, self._around.member_sets, list_up_to=12)
            if (node := re.fullmatch(r"node[-_ ]?(\d+)", selector.text)) is not None:
                near = f"; did you mean 'node/{node[1]}'?"
            raise ValueError(f"there is no set of members {selector.member_set!r}{near}")
        return selector

    def _check_nodes(self, selector: Selector) -> None:
        nodes = self._around.nodes
        if not nodes:
            raise ValueError("there are no nodes: say how many, cluster: {nodes: 4}")
        if selector.choice is not Choice.RANGE or not 1 <= selector.first <= selector.last <= nodes:
            raise ValueError(f"names a node, node/1 to node/{nodes}, or several: node/1..2")

    def _parsed(self, parse: Callable[[Any], Any], raw: Any, path: Path, default: Any) -> Any:
        try:
            return parse(raw)
        except ValueError as error:
            self._wrong(path, str(error))
            return default

    def _wrong(self, path: Path, message: str) -> None:
        self._problems.append(Problem(self._tree.location(path), path, message))


def _count(raw: Any, least: int = 1) -> int:
    if type(raw) is not int or not least <= raw <= 1_000_000:
        raise ValueError(f"must be a whole number from {least} on, not {shown(raw)}")
    return raw


def _size(raw: Any) -> int:
    return _count(raw, least=0)


def _text(raw: Any) -> str:
    if not isinstance(raw, str) or not raw:
        raise ValueError(f"must be text, not {shown(raw)}")
    return raw


def _event_name(raw: Any) -> str:
    name = _text(raw)
    if name in WORDS_OF_AFTER:
        raise ValueError(f"no event can be called {name!r}: `after: {name}` means another one")
    if is_duration(name):
        raise ValueError(f"no event can be called {name!r}: that is a time")
    return name


def _change(raw: Any) -> int:
    if isinstance(raw, str) and re.fullmatch(r"[+-]\d{1,6}", raw.strip()):
        raw = int(raw)
    if type(raw) is not int or not raw:
        raise ValueError(f"must be a whole number with its sign, such as +10, not {shown(raw)}")
    return raw


def _count_or_share(raw: Any) -> Any:
    return Share(parse_share(raw)) if isinstance(raw, str) else _count(raw)


def _size_or_share(raw: Any) -> Any:
    return Share(parse_share(raw)) if isinstance(raw, str) else _size(raw)


def _steps(raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list) or not raw:
        raise ValueError(f"must be a list of numbers or shares, such as [10%, 50%], not {shown(raw)}")
    steps = tuple(map(_count_or_share, raw))
    if any(type(earlier) is type(later) and later <= earlier for earlier, later in pairwise(steps)):
        raise ValueError(f"must grow from step to step, not {', '.join(map(str, raw))}")
    return steps


def _flag(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise ValueError(f"must be true or false, not {shown(raw)}")
    return raw


def _factor(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 < raw <= 1_000_000:
        raise ValueError(f"must be a number above 0, not {shown(raw)}")
    return round(raw * 1_000_000)


def _no_field(name: str, value: Any, kind: EventKind) -> str | None:
    """What is wrong with a key that this kind of event does not have; None: it has it."""
    fields = [field.name for field in kind.fields]
    if name in fields:
        return "a readiness probe that never succeeds is never_ready: true" if (name, value) == ("ready", "never") else None
    others = [each.name for each in EVENT_KINDS.values() if any(field.name == name for field in each.fields)]
    near = did_you_mean(name, [*fields, *COMMON])
    if not near and others:
        near = f"; {' and '.join(repr(each) for each in others[:3])} events have it"
    return f"unknown key of a {kind.name!r} event{near or did_you_mean(name, [*fields, *COMMON], list_up_to=30)}"


def _choice(raw: Any, choices: tuple[str, ...]) -> Any:
    if raw not in choices:
        raise ValueError(f"must be one of {', '.join(choices)}, not {shown(raw)}{did_you_mean(str(raw), choices)}")
    return raw


_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "duration": parse_duration,
    "distribution": parse_distribution,
    "count": _count,
    "size": _size,
    "change": _change,
    "count or share": _count_or_share,
    "size or share": _size_or_share,
    "steps": _steps,
    "share": parse_share,
    "factor": _factor,
    "rate": parse_rates,
    "config": fields.config,
    "flag": _flag,
}
"""FieldType -> how a value of it is read."""
