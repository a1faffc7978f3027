"""The form of a scenario file: its JSON Schema for editors, and what is wrong with a file, in plain words and with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.checks import OVER_SEEDS, SEVERITIES
from kgctl.simulate.scenario.event import MEMBER_SET, Event
from kgctl.simulate.scenario.events import EVENT_KINDS, with_key
from kgctl.simulate.scenario.fields import ByName, Reading
from kgctl.simulate.scenario.model import NO_KEY, ScenarioFile
from kgctl.simulate.scenario.vocabulary import did_you_mean, in_words
from kgctl.yaml_files import Path, Problem, Tree


def validate(file: Reading, problems: list[Problem]) -> ScenarioFile | None:
    """Return the scenario of a merged file; None, with the reasons added to ``problems``, where a value in it is none.

    What contradicts something else is told to ``file``.
    """
    tree = file.tree
    if not isinstance(tree.data, dict):
        problems.append(Problem(tree.location(()), (), "a scenario is a mapping: name, topics, members and so on"))
        return None
    try:
        return ScenarioFile.model_validate(tree.data, context=file, by_alias=True, by_name=False)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            path = _real_path(tree.data, one["loc"])
            message = _words(one, _keys_of(ScenarioFile, path[:-1]))
            problems.append(Problem(tree.location(path), path, message))
        return None


def without(tree: Tree, paths: Sequence[Path]) -> Tree:
    """The tree without what stands there. A thing with a name (a set of members, a topic) stays, without a word about it."""
    data = tree.data
    for path in paths:
        data = _without(data, path, keeps=len(path) == 2 and path[0] in ("members", "topics"))
    return Tree(tree.file, data, tree.locations)


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


def _words(error: Any, known: list[str]) -> str:
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        return f"unknown key{_near(str(error['loc'][-1]), known, error['loc'])}"
    if kind == "model_type" and error["loc"][:1] == ("members",) and type(value) is int:
        return f"must be a mapping, not {value}: write {{count: {value}}}"
    return in_words(error, "instance_id" if kind == "string_type" and error["loc"][-1:] == ("instance_id",) else "")


def _near(name: str, known: list[str], loc: Sequence[str | int]) -> str:
    """What was meant by an unknown key: of members it may be one that an event says, of a group one of the file."""
    if loc[0] in ("group", "groups") and name in {*ScenarioFile.model_fields} - {"group", "groups"}:
        its = f", {{group: {loc[1]}}} in each set" if (loc[0], name) == ("groups", "members") else ""
        return f" of a group: {name} stands beside {loc[0]}{its}"
    events = [kind for kind in with_key(name) if EVENT_KINDS[kind].target_type is MEMBER_SET]
    if len(loc) == 3 and loc[0] == "members" and events:
        return f" of members; an event says it: {{{events[0]}: {loc[1]}, {name}: ...}}"
    return did_you_mean(name, known, list_up_to=30)


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


def scenario_schema() -> dict[str, Any]:
    """The schema. It allows what variants need: a patch is any mapping."""
    schema = ScenarioFile.model_json_schema()
    properties = schema["properties"]
    properties["from_manifest"] = {
        "type": "array",
        "items": {"type": "string"},
        "description": "Manifests and .properties files that the file agrees with; where they say something else, it is refused.",
    }
    properties["extends"] = {"type": "string", "description": "builtin:NAME or a file that this one is merged over."}
    properties["events"] = {"type": "array", "items": {"anyOf": [_event(kind) for kind in EVENT_KINDS.values()]}}
    properties["expect"] = {"type": "array", "items": _expectation()}
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


def _expectation() -> dict[str, Any]:
    shared = {
        "when": {"type": "string", "description": "Asked only where this holds."},
        "variants": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "why": {"type": "string"},
        "severity": {"enum": list(SEVERITIES)},
    }
    kinds: Mapping[str, Mapping[str, Any]] = {
        "check": {"at": {"enum": list(OVER_SEEDS), "description": "Which seed decides."}},
        "always": {},
        "eventually": {"after": {"type": ["string", "integer"]}, "within": fields.DURATION_SCHEMA},
        "steady": {"within": fields.SHARE_SCHEMA, "last": fields.DURATION_SCHEMA},
    }
    forms = [
        {
            "type": "object",
            "properties": {kind: {"type": "string"}, **own, **shared},
            "required": [kind],
            "additionalProperties": False,
        }
        for kind, own in kinds.items()
    ]
    return {"anyOf": [{"type": "string", "description": "An expression: max_gap < 15s"}, *forms]}
