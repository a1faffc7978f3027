"""Kafka's requests and responses as tables: which field, of which type, in which order, for one API, version and direction.

``messages.json`` holds one message a line, in the form of Kafka's own message files, from which ``.ci/message_tables.py``
writes it. Field names are Kafka's in snake_case (``SessionTimeoutMs`` is ``session_timeout_ms``). A line is read at its first
use, and a plan is kept, so it is equal to itself alone and cheap as a key.

Kafka: clients/src/main/resources/common/message/README.md.
"""

from __future__ import annotations

import json
import re
import struct
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from kgctl.serde.frames import UnsupportedVersion

Direction = Literal["request", "response"]
Row = dict[str, Any]
"""A field, or a whole message, as messages.json has it."""

FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "error_code": "h", "int32": "i", "uint32": "I", "int64": "q",
    "float64": "d",
}  # fmt: skip
"""What `struct` calls the types of a fixed size."""
FIXED_SIZES = {**{kafka_type: struct.calcsize(f">{code}") for kafka_type, code in FORMATS.items()}, "uuid": 16}
NO_UUID = uuid.UUID(int=0)
_API_VERSIONS = 18


@dataclass(frozen=True, slots=True, eq=False)
class FieldPlan:
    """One field. ``entity`` is set for structures; ``nullable`` speaks of the array where the field is one."""

    name: str
    kafka_type: str
    is_array: bool
    nullable: bool
    tag: int | None
    default: Any
    entity: EntityPlan | None = None

    @property
    def fixed_size(self) -> int | None:
        """Its bytes on the wire, where that never varies."""
        return None if self.is_array or self.entity is not None else FIXED_SIZES.get(self.kafka_type)


@dataclass(frozen=True, slots=True, eq=False)
class EntityPlan:
    """One structure: its plain fields in wire order and its tagged ones by ascending tag."""

    name: str
    flexible: bool
    fields: tuple[FieldPlan, ...]
    tagged: tuple[FieldPlan, ...]

    def min_size(self) -> int:
        """Return the fewest bytes that the structure can take."""
        size = sum(_min_field_size(field, flexible=self.flexible) for field in self.fields)
        return size + (1 if self.flexible else 0)


@cache
def load_plan(api_key: int, version: int, direction: Direction) -> EntityPlan:
    """Return the plan of this message. Raises UnsupportedVersion where there is none."""
    for message in _messages(api_key, direction):
        if _has(message["validVersions"], version):
            return _entity_plan(message, version, flexible=_has(message["flexibleVersions"], version))
    raise UnsupportedVersion(api_key, version)


@cache
def header_is_flexible(api_key: int, version: int, direction: Direction) -> bool:
    """Whether the message's header ends with tagged fields; ApiVersions' response never does (KIP-511)."""
    if api_key == _API_VERSIONS and direction == "response":
        return False
    return load_plan(api_key, version, direction).flexible


@cache
def _lines() -> tuple[str, ...]:
    return tuple(Path(__file__).with_name("messages.json").read_text().splitlines())


@cache
def _messages(api_key: int, direction: Direction) -> tuple[Row, ...]:
    start, kind = f'{{"apiKey":{api_key},"name":"', f'{direction.capitalize()}","validVersions":'
    return tuple(json.loads(line.rstrip(",")) for line in _lines() if line.startswith(start) and kind in line)


def _has(versions: str | None, version: int) -> bool:
    """Whether a range of Kafka's files, such as ``3+``, ``0-4``, ``2`` or ``none``, holds this version."""
    if versions is None or versions == "none":
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, _, last = versions.partition("-")
    return int(first) <= version <= int(last or first)


def _entity_plan(structure: Row, version: int, *, flexible: bool) -> EntityPlan:
    plans = [_field_plan(row, version, flexible=flexible) for row in structure["fields"] if _has(row["versions"], version)]
    return EntityPlan(
        name=str(structure.get("type", structure["name"])).removeprefix("[]"),
        flexible=flexible,
        fields=tuple(plan for plan in plans if plan.tag is None),
        tagged=tuple(sorted((plan for plan in plans if plan.tag is not None), key=lambda plan: plan.tag or 0)),
    )


def _field_plan(row: Row, version: int, *, flexible: bool) -> FieldPlan:
    is_array = row["type"].startswith("[]")
    entity = _entity_plan(row, version, flexible=flexible) if "fields" in row else None
    kafka_type = "entity" if entity else row["type"].removeprefix("[]")
    if kafka_type == "int16" and row["name"].endswith("ErrorCode"):
        kafka_type = "error_code"
    nullable = _has(row.get("nullableVersions"), version)
    return FieldPlan(
        name=re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", row["name"]).lower(),
        kafka_type=kafka_type,
        is_array=is_array,
        nullable=nullable,
        tag=row["tag"] if _has(row.get("taggedVersions"), version) else None,
        default=_default(row.get("default"), kafka_type, is_array=is_array, nullable=nullable),
        entity=entity,
    )


def _default(text: Any, kafka_type: str, *, is_array: bool, nullable: bool) -> Any:
    """Kafka's default; null counts in the versions only that may hold it."""
    if text == "null" and nullable:
        return None
    if is_array:
        return ()
    if text in (None, "", "null"):
        return {} if kafka_type == "entity" else empty_value(kafka_type)
    if kafka_type == "bool":
        return str(text).lower() == "true"
    return text if kafka_type == "string" else int(str(text), 0)


def empty_value(kafka_type: str) -> Any:
    """Return Kafka's default of a type: zero, false, the empty string or no bytes."""
    if kafka_type == "string":
        return ""
    if kafka_type in ("bytes", "records"):
        return b""
    if kafka_type == "uuid":
        return None
    return False if kafka_type == "bool" else 0


def _min_field_size(field: FieldPlan, *, flexible: bool) -> int:
    if field.is_array:
        return 1 if flexible else 4
    if field.entity is not None and field.nullable:
        return 1
    return min_value_size(field, flexible=flexible)


def min_value_size(field: FieldPlan, *, flexible: bool) -> int:
    """Return the fewest bytes that the field's value, or one element of its array, can take."""
    if field.entity is not None:
        return field.entity.min_size()
    if field.kafka_type in FIXED_SIZES:
        return FIXED_SIZES[field.kafka_type]
    if flexible:
        return 1
    return 2 if field.kafka_type == "string" else 4
