"""The JSON Schema of scenario files, for editors: sections from their models, events from their kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.checks import OVER_SEEDS, SEVERITIES
from kgctl.simulate.scenario.event_kinds import EventKind, Field
from kgctl.simulate.scenario.sections import ScenarioSections

_OF_TYPE: Mapping[str, Mapping[str, Any]] = {
    "duration": fields.DURATION_SCHEMA,
    "distribution": fields.DISTRIBUTION_SCHEMA,
    "count": {"type": "integer", "minimum": 1},
    "size": {"type": "integer", "minimum": 0},
    "change": {"type": ["integer", "string"]},
    "size or share": {"type": ["integer", "string"]},
    "count or share": {"type": ["integer", "string"]},
    "steps": {"type": "array", "minItems": 1, "items": {"type": ["integer", "string"]}},
    "share": fields.SHARE_SCHEMA,
    "factor": {"type": "number", "exclusiveMinimum": 0},
    "rate": {"type": ["string", "number", "object"]},
    "config": fields.CONFIG_SCHEMA,
    "flag": {"type": "boolean"},
    "condition": {"type": "string"},
}
_COMMON: Mapping[str, Any] = {
    "at": {**fields.DURATION_SCHEMA, "description": "After the end of the warm-up; with after: after the end of that event."},
    "after": {"type": "string", "description": "previous, last, or the name of an event before it."},
    "every": {**fields.DURATION_SCHEMA, "description": "Again after each such time."},
    "times": {"type": "integer", "minimum": 1},
    "when": {"type": "string", "description": "Left out unless this holds when its time has come."},
    "name": {"type": "string"},
}


def scenario_schema(kinds: Iterable[EventKind]) -> dict[str, Any]:
    """The schema. It allows what variants need: a patch is any mapping."""
    schema = ScenarioSections.model_json_schema()
    properties = schema["properties"]
    properties["extends"] = {"type": "string", "description": "builtin:NAME or a file that this one is merged over."}
    properties["events"] = {"type": "array", "items": {"anyOf": [_event(kind) for kind in kinds]}}
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


def _event(kind: EventKind) -> dict[str, Any]:
    fields = {field.name: _field(field) for field in kind.fields}
    found: dict[str, Any] = {
        "type": "object",
        "title": kind.name,
        "description": kind.help,
        "properties": {kind.name: _target(kind), **fields, **_COMMON},
        "required": [kind.name, *(field.name for field in kind.fields if field.is_required)],
        "additionalProperties": False,
    }
    if kind.one_of:
        found["oneOf"] = [{"required": [name]} for name in kind.one_of]
    return found


def _target(kind: EventKind) -> dict[str, Any]:
    if kind.target == "broker":
        return {"type": ["integer", "string"], "description": "A broker's number, from 1, or coordinator: the group's."}
    return {"type": "string", "description": f"A {kind.target}."}


def _field(field: Field) -> dict[str, Any]:
    form: Mapping[str, Any] = {"enum": list(field.choices)} if field.type == "choice" else _OF_TYPE[field.type]
    return {**form, "description": field.help}


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
