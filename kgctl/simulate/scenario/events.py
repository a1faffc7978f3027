"""The kinds of events, and those of a file: the key that is a kind's name says what kind, the kind's fields say the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError, ValidationInfo

from kgctl.member.config import profile_names, unknown_setting
from kgctl.simulate.scenario import kinds
from kgctl.simulate.scenario.event import WORDS_OF_AFTER, Event, EventSurroundings, GoesWith
from kgctl.simulate.scenario.fields import Reading, check_settings, read_client_settings, reading
from kgctl.simulate.scenario.quantities import shown
from kgctl.simulate.scenario.vocabulary import did_you_mean, in_words, plain
from kgctl.yaml_files import Path

COMMON = ("at", "after", "every", "times", "when", "name")
"""The keys of every event."""


def _all_of(found: type[Event]) -> Iterator[type[Event]]:
    if "kind" in found.__dict__:
        yield found
    for more in found.__subclasses__():
        yield from _all_of(more)


def _read() -> Mapping[str, type[Event]]:
    modules = [module.name for module in iter_modules(kinds.__path__)]
    for module in modules:
        import_module(f"{kinds.__name__}.{module}")
    found = dict.fromkeys(_all_of(Event))  # type: ignore[type-abstract]  # whose kinds are not
    places = {each: (modules.index(each.__module__.rpartition(".")[2]), number) for number, each in enumerate(found)}
    return {each.kind: each for each in sorted(found, key=places.__getitem__)}


EVENT_KINDS = _read()
"""Key -> the class, in the order of the modules' names and of the classes in them."""


def with_key(key: str) -> list[str]:
    """Return the kinds of events that have such a key."""
    return [name for name, kind in EVENT_KINDS.items() if key in kind.by_key()]


class EventReader:
    """Reads the events of one file; what is wrong is told to it."""

    def __init__(self, file: Reading, around: EventSurroundings) -> None:
        self._file, self._around = file, around
        self._names: list[str] = []
        self._named: list[str] = []

    def read(self) -> tuple[Event, ...]:
        raw = self._file.tree.data.get("events") or []
        self._named = [entry["name"] for entry in raw if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        found = []
        for index, entry in enumerate(raw):
            found.append(self._event(entry, ("events", index)))
            name = entry.get("name") if isinstance(entry, dict) else None
            self._names.append(name if isinstance(name, str) else "")
        return tuple(event for event in found if event is not None)

    def _event(self, raw: Any, path: Path) -> Event | None:
        if not isinstance(raw, dict):
            self._file.wrong(path, "an event is a mapping such as {at: 0s, restart: app}")
            return None
        kind = self._kind(raw, path)
        if kind is None:
            return None
        before = len(self._file.problems)
        self._check_common(raw, path)
        self._check_company(raw, kind, path)
        event = self._validated(raw, kind, path)
        try:
            kind.target_type.check(raw[kind.kind], self._around, kind.kind)
        except ValueError as error:
            self._file.wrong((*path, kind.kind), str(error))
        if event is not None:
            for key, why in event.contradictions(self._around):
                self._file.wrong((*path, key), why)
            self._check_settings(event, path)
        return event if len(self._file.problems) == before else None

    def _kind(self, raw: Mapping[str, Any], path: Path) -> type[Event] | None:
        named = [name for name in raw if name in EVENT_KINDS]
        if len(named) == 1:
            return EVENT_KINDS[named[0]]
        odd = next((name for name in raw if name not in COMMON), None)
        if named:
            self._file.wrong((*path, named[1]), f"an event has one kind; this is {named[0]!r} and {named[1]!r}")
        elif odd is None:
            self._file.wrong(path, f"it does not say what happens; kinds: {', '.join(EVENT_KINDS)}")
        else:
            self._file.wrong((*path, odd), f"unknown kind of event {odd!r}{_near(odd, raw[odd])}")
        return None

    def _validated(self, raw: Mapping[str, Any], kind: type[Event], path: Path) -> Event | None:
        """The event; None where one of its values is none. A key that stands there without a value is not given."""
        given = {key: value for key, value in raw.items() if key != kind.kind and (value is not None or key in COMMON)}
        try:
            return kind.model_validate({**given, "target": str(raw[kind.kind])}, context=self._file, by_alias=True)
        except ValidationError as error:
            meant = _meant(raw, kind)
            for one in error.errors(include_url=False):
                key = str(one["loc"][0])
                if one["type"] == "missing" and key in meant:
                    continue
                if one["type"] == "missing":
                    self._file.wrong(path, f"a {kind.kind!r} event needs {key!r}: {_help_of(kind, key)}")
                elif one["type"] == "extra_forbidden":
                    self._file.wrong((*path, key), _no_key(key, kind))
                else:
                    self._file.wrong((*path, key), _words(one, kind, key, given[key]))
            return None

    def _check_common(self, raw: Mapping[str, Any], path: Path) -> None:
        if "name" in raw and raw["name"] in self._names:
            self._file.wrong((*path, "name"), f"events[{self._names.index(raw['name'])}] is called {raw['name']!r}, too")
        if "after" in raw and (why := self._wrong_after(raw["after"])):
            self._file.wrong((*path, "after"), why)
        if ("times" in raw) != ("every" in raw):
            self._file.wrong(path, "`every` and `times` go together: {every: 20s, times: 5}")
        if raw.get("every") in (0, "0s") and raw["every"] is not False:
            self._file.wrong((*path, "every"), "must be more than 0s")

    def _wrong_after(self, raw: Any) -> str:
        known = [*WORDS_OF_AFTER, *filter(None, self._names)]
        if not self._names and raw not in self._named:
            return "there is no event before the first one"
        if raw in known:
            return ""
        if raw in self._named:
            return f"{raw!r} stands further down: an event waits for one before it"
        return f"no event before it is called {raw!r}{did_you_mean(str(raw), known, list_up_to=8)}"

    def _check_company(self, raw: Mapping[str, Any], kind: type[Event], path: Path) -> None:
        """Complain of each field that means nothing beside what another one says, and of several where one is needed."""
        keys = kind.by_key()
        for key in raw:
            marks = kind.model_fields[keys[key]].metadata if key in keys else ()
            others = {name: values for mark in marks if isinstance(mark, GoesWith) for name, values in mark.others.items()}
            for other, values in others.items():
                if (given := raw.get(other, kind.model_fields[keys[other]].default)) not in values:
                    self._file.wrong((*path, key), f"goes with {other}: {' or '.join(values)}, not {given}")
        if kind.one_of and sum(key in raw for key in kind.one_of) != 1 and not _meant(raw, kind) & {*kind.one_of}:
            self._file.wrong(path, f"needs exactly one of {', '.join(kind.one_of)} beside {kind.kind!r}")

    def _check_settings(self, event: Event, path: Path) -> None:
        if not event.settings:
            return
        member_set = event.target.removeprefix("not ").partition("/")[0].strip()
        client = self._around.member_sets.get(member_set, "java")
        if client in profile_names():
            read = read_client_settings(client)
            place = (*path, event.settings_key)
            given = {name: value for name, value in event.settings.items() if value is not None}
            check_settings(given, read, place, self._file)
            for name in event.settings.keys() - given.keys():
                if (unknown := unknown_setting(name, client)) is not None:
                    self._file.wrong((*place, name), unknown)


def _near(word: str, target: Any) -> str:
    """What was meant by a word that is no kind of events: one, several with what each does, or a way in which one goes."""
    named = [kind for kind in EVENT_KINDS.values() if plain(word) in map(plain, kind.also)]
    if len(named) > 1:
        return "; did you mean " + ", or ".join(f"{each.kind!r}: {each.help().rstrip('.')}" for each in named) + "?"
    if named:
        return f"; did you mean {named[0].kind!r}?"
    for kind in EVENT_KINDS.values():
        for key, name in kind.by_key().items():
            if value := next((one for one in _choices(kind.model_fields[name].annotation) if plain(one) == plain(word)), ""):
                return f"; did you mean {{{kind.kind}: {target}, {key}: {value}}}?"
    return did_you_mean(word, EVENT_KINDS, list_up_to=40)


def _choices(annotation: Any) -> tuple[str, ...]:
    """The words that a field takes, where these are all; () for another field."""
    return tuple(map(str, get_args(annotation))) if get_origin(annotation) is Literal else ()


def _help_of(kind: type[Event], key: str) -> str:
    return kind.model_fields[kind.by_key()[key]].description or ""


def _meant(raw: Mapping[str, Any], kind: type[Event]) -> set[str]:
    """Return the keys that unknown ones are told to be: that they are not there is not told, too."""
    known = [*kind.by_key(), *COMMON]
    near = [did_you_mean(key, known) for key in raw if key not in (*known, kind.kind)]
    return {name for name in known if f"; did you mean {name!r}?" in near}


def _no_key(key: str, kind: type[Event]) -> str:
    """What is wrong with a key that this kind of event does not have."""
    known = [*kind.by_key(), *COMMON]
    near = did_you_mean(key, known)
    if not near and (others := with_key(key)):
        near = f"; {' and '.join(repr(each) for each in others[:3])} events have it"
    return f"unknown key of a {kind.kind!r} event{near or did_you_mean(key, known, list_up_to=30)}"


def _words(one: Any, kind: type[Event], key: str, value: Any) -> str:
    if (key, value) == ("ready", "never") and "never_ready" in kind.by_key():
        return "a readiness probe that never succeeds is never_ready: true"
    return in_words(one)


def read_events(raw: Any, info: ValidationInfo) -> tuple[Event, ...]:
    """Return the events; what is wrong with one is told to the `Reading`. They name what stands in the sections before them."""
    file, known = reading(info), info.data
    if file is None:
        return tuple(raw)
    if not isinstance(raw, list):
        raise ValueError(f"must be a list, not {shown(raw)}")
    if not all(section in known for section in ("cluster", "topics", "members")):
        return ()
    cluster = known["cluster"]
    clients = {each.name: each.client for each in known["members"]}
    topics = {each.name: each.partitions for each in known["topics"]}
    around = EventSurroundings(clients, topics, cluster.brokers, cluster.nodes, cluster.racks)
    return EventReader(file, around).read()
