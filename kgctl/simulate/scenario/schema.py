"""The form of a scenario file: its JSON Schema for editors; what is wrong with a file, in plain words and with its place; and, in
the words of a file, what a scenario asks: all that it says but what is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from kgctl.member.config import settings
from kgctl.simulate.scenario.checks import expectation_schemas
from kgctl.simulate.scenario.event import MEMBER_SET, Event
from kgctl.simulate.scenario.events import EVENT_KINDS, with_key
from kgctl.simulate.scenario.fields import TELL, ByName, ReadBy, Reading, Section
from kgctl.simulate.scenario.model import NO_KEY, Scenario, ScenarioFile
from kgctl.simulate.scenario.vocabulary import TRIED, did_you_mean, in_other_words, in_words, other_words, plain
from kgctl.yaml_files import Path, Problem, Tree


def validate(file: Reading, problems: list[Problem]) -> ScenarioFile | None:
    """Return the scenario of a merged file; None, with the reasons added to ``problems``, where a value in it is none.

    What contradicts something else is told to ``file``.
    """
    tree = file.tree
    try:
        return ScenarioFile.model_validate(tree.data, context=file, by_alias=True, by_name=False)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            path = _real_path(tree.data, one["loc"])
            message = _words(one, _keys_of(ScenarioFile, path[:-1]), tree.data)
            problems.append(tree.problem(path, message))
        return None


def without(tree: Tree, paths: Sequence[Path]) -> Tree:
    """The tree without what stands there. A thing with a name (a set of members, a topic) stays, without a word about it.

    The lines that every file has are in it.
    """
    data = tree.data
    for path in paths:
        data = _without(data, path, keeps=len(path) == 2 and path[0] in ("members", "topics"))
    return Tree(tree.file, {"kgctl": 1, "name": "unnamed"} | data, tree.locations)


def _without(node: Any, path: Path, *, keeps: bool) -> Any:
    if not path or not _has(node, path[0]):
        return node
    rest: dict[str, Any] | None = {} if keeps else None
    value = _without(node[path[0]], path[1:], keeps=keeps) if len(path) > 1 else rest
    if isinstance(node, list):
        return [value if index == path[0] else entry for index, entry in enumerate(node)]
    found = {key: value if key == path[0] else entry for key, entry in node.items()}
    return found if value is not None else {key: entry for key, entry in found.items() if key != path[0]}


def _real_path(data: Any, loc: tuple[str | int, ...]) -> Path:
    """pydantic's location without what stands for no key of the file."""
    path: list[str | int] = []
    for step in loc:
        if _has(data, step):
            data = data[step]
        elif step != loc[-1] or not isinstance(data, dict):
            continue
        path.append(step)
    return tuple(path)


def _has(data: Any, step: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(step, int) and step < len(data)
    return isinstance(data, dict) and step in data


def _words(error: Any, known: list[str], data: Mapping[str, Any]) -> str:
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        return f"unknown key{_near(error, known, data)}"
    if kind == "model_type" and error["loc"][:1] == ("members",) and type(value) is int:
        return f"must be a mapping, not {value}: write {{count: {value}}}"
    if kind == "dict_type" and isinstance(value, list) and len(error["loc"]) == 1 and error["loc"][0] in _WITH_NAMES:
        return in_words(error) + f": write {_WITH_NAMES[error['loc'][0]](value)}"
    is_instance_id = kind == "string_type" and error["loc"][-1:] == ("instance_id",)
    example = _EXAMPLES.get(error["loc"], "").replace("SET", next(iter(_names_of("members", data)), "app"))
    return in_words(error, "instance_id" if is_instance_id else "", example)


_SUCH_AS = {"members": " such as members: {app: {count: 3}}"}
_EXAMPLES: Mapping[tuple[str | int, ...], str] = {
    ("kgctl",): "kgctl: 1",
    ("name",): "name: orders-deploy",
    ("autoscale", "members"): "members: SET",
    ("autoscale", "target"): "target: 1000",
}
"""What to write where a key is missing; SET stands for a set of members of the file."""
_WITH_NAMES: Mapping[str | int, Callable[[list[Any]], str]] = {
    "topics": lambda names: f"{{{', '.join(f'{name}: 12' for name in names[:3] if isinstance(name, str)) or 'orders: 12'}}}",
    "members": lambda _: "{app: {count: 3}}",
}


def _near(error: Any, known: list[str], data: Mapping[str, Any]) -> str:
    """What was meant by an unknown key: of members it may be one that an event says, of a group one of the file."""
    loc: Sequence[str | int] = error["loc"]
    name = str(loc[-1])
    if loc[0] in ("group", "groups") and name in {*ScenarioFile.model_fields} - {"group", "groups"}:
        its = f", {{group: {loc[1]}}} in each set" if (loc[0], name) == ("groups", "members") else ""
        return f" of a group: {name} stands beside {loc[0]}{its}"
    if meant := in_other_words(name, known):
        return f"; did you mean {meant!r}?{_SUCH_AS.get(meant, '') if len(loc) == 1 else ''}"
    if len(loc) == 3 and loc[0] == "members" and (event := _event_with(name, str(loc[1]))):
        return f" of members; an event says it: {event}"
    if found := _elsewhere(loc, error["input"], data):
        return f"; did you mean {' or '.join(map(repr, found))}?"
    return did_you_mean(name, known, list_up_to=30)


def _event_with(name: str, members: str) -> str:
    """An event of a set of members that is called so, or has such a key; "": none."""
    if name in EVENT_KINDS:
        return f"{{{name}: {members}}}"
    for word in (name, *other_words().get(plain(name), ())):
        for kind in with_key(word):
            if EVENT_KINDS[kind].target_type is MEMBER_SET:
                return f"{{{kind}: {members}, {word}: ...}}"
    return ""


def _elsewhere(loc: Sequence[str | int], value: Any, data: Mapping[str, Any]) -> list[str]:
    """Where else in a file such a key may stand, below another section: ``cluster: {brokers: 3}``."""
    name = str(loc[-1])
    place = "group" if name in settings() else "cluster"
    usual = [section for section in _by_key(ScenarioFile) if section not in _LESS_USUAL and section != loc[0]]
    ways = {section: _key_below(section, name) for section in usual}
    certain = [section for section, key in ways.items() if key and not key.startswith("config: ")]
    of_its_name = [section for section in certain if len(loc) == 3 and loc[1] in _names_of(section, data)]
    found = of_its_name or certain or [section for section in (place,) if ways.get(section)]
    written = str(value) if isinstance(value, str | int | float) else "..."
    return [_written(section, ways[section], written, _name_below(section, loc, data)) for section in found]


_LESS_USUAL = ("groups", "report", "output", "assign_time", "nemesis")
"""Sections that nobody means who has not heard of them."""


def _key_below(section: str, name: str) -> str:
    """What such a key is called below a section of the file, or below each name of it; "": there is none."""
    form = _by_key(ScenarioFile)[section]
    inner = _model_in(form.form) if isinstance(form, ByName) else form
    is_section = isinstance(inner, type) and issubclass(inner, BaseModel)
    return in_other_words(name, list(_by_key(inner))) if is_section else ""


def _written(section: str, key: str, value: str, name: str) -> str:
    said = f"{{{key.replace('...', value) if ':' in key else f'{key}: {value}'}}}"
    return f"{section}: {{{name}: {said}}}" if name else f"{section}: {said}"


def _names_of(section: str, data: Mapping[str, Any]) -> list[str]:
    """The names that stand below a section of names, or may: traffic has those of topics."""
    found = data.get("topics" if section == "traffic" else section)
    return [name for name in found if isinstance(name, str)] if isinstance(found, dict) else []


def _name_below(section: str, loc: Sequence[str | int], data: Mapping[str, Any]) -> str:
    """The name of a section of names that a key stands below in another one, or its first; "": it is no such section."""
    if not isinstance(_by_key(ScenarioFile)[section], ByName):
        return ""
    names = _names_of(section, data)
    return str(loc[1]) if len(loc) == 3 and loc[1] in names else next(iter(names), "app" if section == "members" else "orders")


def _keys_of(model: type[BaseModel], path: Path) -> list[str]:
    """Return the keys that the mapping at this path of a file may have."""
    found: Any = model
    for step in path:
        if isinstance(found, type) and issubclass(found, BaseModel):
            found = _by_key(found).get(str(step))
        elif isinstance(found, ByName):
            found = _model_in(found.form)
        else:
            found = None
    return list(_by_key(found)) if isinstance(found, type) and issubclass(found, BaseModel) else []


_FIRST = ("kgctl", "name", "question", "seed", "runs")
"""Keys that a file has at its top."""


def _by_key(model: type[BaseModel]) -> dict[str, Any]:
    """Return what stands under each key that a file may have in this mapping: a model, a `ByName`, or something else."""
    keys = {str(field.validation_alias or name): field for name, field in model.model_fields.items()}
    keys = {key: keys[key] for key in (*filter(keys.__contains__, _FIRST), *keys)}
    return {
        key: next((each for each in field.metadata if isinstance(each, ByName)), None) or _model_in(field.annotation)
        for key, field in keys.items()
        if key != NO_KEY
    }


def _model_in(annotation: Any) -> Any:
    """The model or container among what an annotation allows."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        return next((_model_in(part) for part in get_args(annotation) if part is not type(None)), None)
    return annotation


class _Schema(GenerateJsonSchema):
    """With defaults as a file has them; without those that no single value of a file stands for."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        made = super().default_schema(schema)
        tell = schema["schema"].get("metadata", {}).get(TELL)
        if tell is not None and "default" in made:
            made["default"] = tell(self.get_default_value(schema))
        if not isinstance(made.get("default"), str | int | float | None):
            del made["default"]
        return made


_TEXTS = {"type": "array", "items": {"type": "string"}}


def scenario_schema() -> dict[str, Any]:
    """The schema. It allows what variants need: a patch is any mapping."""
    schema = ScenarioFile.model_json_schema(schema_generator=_Schema)
    properties = schema["properties"]
    properties["from_manifest"] = {
        "anyOf": [_TEXTS, {"type": "object", "properties": {"files": _TEXTS, "says": _TEXTS}, "required": ["files"]}],
        "description": "Manifests and .properties files that the file agrees with; where they say something else, or no longer"
        " what they said, it is refused.",
    }
    properties["extends"] = {"type": "string", "description": "builtin:NAME or a file that this one is merged over."}
    properties["events"] = {"type": "array", "items": {"anyOf": [_event(kind) for kind in EVENT_KINDS.values()]}}
    properties["expect"] = {
        "type": "array",
        "items": {"anyOf": [{"type": "string", "description": "An expression: max_gap < 15s"}, *expectation_schemas()]},
    }
    properties["variants"] = {
        "type": "object",
        "description": "Name -> merge patch (RFC 7396) over the file; metrics are then NAME.metric.",
        "additionalProperties": {"type": ["object", "null"]},
    }
    schema["title"] = "kgctl scenario"
    schema["description"] = "One question about a consumer group, and what is expected of the answer."
    # With extends, the rest may come from the other file.
    schema["required"] = ["kgctl", "name"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _event(kind: type[Event]) -> dict[str, Any]:
    """The form of an event: its kind's own key first, then what the kind has, then what every event may have."""
    made = kind.model_json_schema()
    forms = {
        key: {name: value for name, value in form.items() if name not in ("title", "default")}
        for key, form in made["properties"].items()
        if key != "target"
    }
    own = {key: forms.pop(key) for key in kind.by_key()}
    target = {**kind.target_type.form, "description": f"A {kind.target_type.text}."}
    found: dict[str, Any] = {
        "type": "object",
        "title": kind.kind,
        "description": kind.help(),
        "properties": {kind.kind: target, **own, **forms},
        "required": [kind.kind, *(key for key in made["required"] if key != "target")],
        "additionalProperties": False,
    }
    if kind.one_of:
        found["oneOf"] = [{"required": [name]} for name in kind.one_of]
    return found


# --- the question: a field that nobody has marked as `TRIED` belongs to it


def question_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the topics that are read, with what is written to them; each event with its times and its strength, and how often;
    and the rest of what is not tried, where it is not as it is by default.
    """
    events = Counter(_asked(event) for event in scenario.events)
    often = (f"{each} ({number} times)" if number > 1 else each for each, number in events.items())
    forms = {
        name: ScenarioFile.model_fields[name] for name in Scenario.model_fields if name not in ("topics", "traffic", "events")
    }
    return (*_topics(scenario), *often, *_told(scenario, forms))


def _topics(scenario: Scenario) -> Iterator[str]:
    written = {each.topic: each for each in scenario.traffic}
    for topic in scenario.topics:
        if any(scenario.subscribes(members, topic.name) for members in scenario.members):
            traffic = written.get(topic.name)
            yield _with(
                f"topic {topic.name}", (*_all_told(topic), *(() if traffic is None else _all_told(traffic, but=("topic",))))
            )


def _asked(event: Event) -> str:
    """A name stands for what is done, and of a deploy it is tried how; whom it strikes, when and how hard is the question."""
    how = {*type(event).model_fields} - {*Event.model_fields} if event.is_deploy else set()
    return _with(f"{event.title} {event.target}", tuple(_all_told(event, but={*how, "target", "name"})))


def _with(what: str, parts: Collection[str]) -> str:
    return f"{what} ({', '.join(parts)})" if parts else what


def _all_told(section: Section, but: Collection[str] = ()) -> Iterator[str]:
    return _told(section, {name: field for name, field in type(section).model_fields.items() if name not in but})


def _told(section: Section, forms: Mapping[str, FieldInfo]) -> Iterator[str]:
    """Yield the keys of these fields with their values: those that are neither tried nor as they are by default."""
    for name, field in forms.items():
        value, key = getattr(section, name), field.validation_alias or name
        if key == NO_KEY or TRIED in field.metadata or value == field.get_default(call_default_factory=True):
            continue
        if not isinstance(value, Section):
            yield f"{key} {_text(value, [*field.metadata, *_marks(field.annotation)])}"
        elif parts := tuple(_all_told(value)):
            yield _with(str(key), parts)


def _text(value: Any, marks: Collection[Any]) -> str:
    mark = next((each for each in marks if isinstance(each, ReadBy)), None)
    found = value if mark is None else mark.tell(value)
    return ", ".join(map(str, found)) if isinstance(found, tuple) else str(found)


def _marks(annotation: Any) -> Iterator[Any]:
    """Yield what an annotation says of the value, one of several that there may be."""
    if get_origin(annotation) is Annotated:
        yield from get_args(annotation)[1:]
    for part in get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ():
        yield from _marks(part)
