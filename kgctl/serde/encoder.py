"""Nested mappings to bytes, by the same plans that the guard walks.

kio's writers are pure Python and want its dataclasses built first; large responses (many groups, many partitions) spend their
time there. This encoder goes from plain values to bytes at once and is compared with kio's writers, byte for byte, in the
tests.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kgctl.serde.guard import varint
from kgctl.serde.schemas import EntityPlan, FieldPlan, empty_value

Values = Mapping[str, Any]
EntityEncoder = Callable[[Values, bytearray], None]
ValueEncoder = Callable[[Any, bytearray], None]

_FORMATS = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "error_code": "h", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "Q", "float64": "d", "timedelta_i32": "i", "timedelta_i64": "q", "datetime_i64": "q",
}  # fmt: skip
_ZERO_UUID = bytes(16)
_MISSING = object()


def encode(plan: EntityPlan, values: Values, out: bytearray) -> None:
    """Append the message to ``out``.

    ``values`` has kio's field names; a time may also be under its Kafka name, with ``_ms``. A field that is absent gets Kafka's
    default, None where the version has no null becomes the type's empty value, a name that the version does not have is not
    written.
    """
    entity_encoder(plan)(values, out)


@cache
def entity_encoder(plan: EntityPlan) -> EntityEncoder:
    """Return the function that appends one structure to a buffer."""
    steps = _steps(plan)
    tagged = tuple(_tagged_step(field) for field in plan.tagged)
    if not plan.flexible:
        return _in_sequence(steps)
    if not tagged:
        return _in_sequence((*steps, _no_tags))
    return _in_sequence((*steps, _tags_step(tagged)))


def _in_sequence(steps: tuple[EntityEncoder, ...]) -> EntityEncoder:
    if len(steps) == 1:
        return steps[0]

    def encode_entity(values: Values, out: bytearray) -> None:
        for step in steps:
            step(values, out)

    return encode_entity


def _no_tags(_values: Values, out: bytearray) -> None:
    out.append(0)


def _steps(plan: EntityPlan) -> tuple[EntityEncoder, ...]:
    """One step a field, with neighbouring numbers packed together."""
    steps: list[EntityEncoder] = []
    run: list[FieldPlan] = []
    for field in plan.fields:
        if not field.is_array and field.kafka_type in _FORMATS:
            run.append(field)
            continue
        if run:
            steps.append(_packed_step(run))
            run = []
        steps.append(_field_step(field, flexible=plan.flexible))
    if run:
        steps.append(_packed_step(run))
    return tuple(steps)


def _packed_step(fields: list[FieldPlan]) -> EntityEncoder:
    pack = struct.Struct(">" + "".join(_FORMATS[field.kafka_type] for field in fields)).pack
    getters = tuple(_number_getter(field) for field in fields)
    if len(getters) == 1:
        (getter,) = getters

        def encode_one(values: Values, out: bytearray) -> None:
            out += pack(getter(values))

        return encode_one

    def encode_run(values: Values, out: bytearray) -> None:
        out += pack(*[getter(values) for getter in getters])

    return encode_run


def _number_getter(field: FieldPlan) -> Callable[[Values], Any]:
    name, default = field.name, field.default
    if field.kafka_type.startswith(("timedelta", "datetime")):
        return _time_getter(field)

    def get(values: Values) -> Any:
        value = values.get(name, default)
        return 0 if value is None else value

    return get


def _time_getter(field: FieldPlan) -> Callable[[Values], int]:
    name, long_name = field.name, f"{field.name}_ms"
    default = _milliseconds(field.default)

    def get(values: Values) -> int:
        value = values.get(name, _MISSING)
        if value is _MISSING:
            value = values.get(long_name, default)
        return _milliseconds(value)

    return get


def _milliseconds(value: Any) -> int:
    if value is None:
        return -1
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    return int(value)


def _field_step(field: FieldPlan, *, flexible: bool) -> EntityEncoder:
    name, default = field.name, field.default
    encode_value = field_value_encoder(field, flexible=flexible)

    def encode_field(values: Values, out: bytearray) -> None:
        encode_value(values.get(name, default), out)

    return encode_field


def field_value_encoder(field: FieldPlan, *, flexible: bool) -> ValueEncoder:
    """The encoder of one field's value, its tag aside."""
    if field.is_array:
        return _array_encoder(field, flexible=flexible)
    return _value_encoder(field, flexible=flexible, nullable=field.nullable)


def _value_encoder(field: FieldPlan, *, flexible: bool, nullable: bool) -> ValueEncoder:
    if field.entity is not None:
        return _nullable_entity_encoder(field.entity) if nullable else entity_encoder(field.entity)
    if field.kafka_type == "uuid":
        return _encode_uuid
    if field.kafka_type in _FORMATS:
        return _number_encoder(field.kafka_type)
    empty = empty_value(field.kafka_type)
    if flexible:
        return _compact_encoder(None if nullable else empty)
    return _legacy_encoder(">h" if field.kafka_type == "string" else ">i", None if nullable else empty)


def _encode_uuid(value: Any, out: bytearray) -> None:
    out += value.bytes if value else _ZERO_UUID


def _number_encoder(kafka_type: str) -> ValueEncoder:
    pack = struct.Struct(">" + _FORMATS[kafka_type]).pack
    is_time = kafka_type.startswith(("timedelta", "datetime"))

    def encode_number(value: Any, out: bytearray) -> None:
        out += pack(_milliseconds(value) if is_time else value)

    return encode_number


def _nullable_entity_encoder(plan: EntityPlan) -> ValueEncoder:
    encode_entity = entity_encoder(plan)

    def encode_nullable(value: Any, out: bytearray) -> None:
        if value is None:
            out.append(0xFF)
        else:
            out.append(1)
            encode_entity(value, out)

    return encode_nullable


def _compact_encoder(null: str | bytes | None) -> ValueEncoder:
    def encode_compact(value: Any, out: bytearray) -> None:
        if value is None:
            if null is None:
                out.append(0)
                return
            value = null
        data = value.encode() if isinstance(value, str) else value
        out += varint(len(data) + 1)
        out += data

    return encode_compact


def _legacy_encoder(length_format: str, null: str | bytes | None) -> ValueEncoder:
    pack = struct.Struct(length_format).pack
    null_bytes = pack(-1)

    def encode_legacy(value: Any, out: bytearray) -> None:
        if value is None:
            if null is None:
                out += null_bytes
                return
            value = null
        data = value.encode() if isinstance(value, str) else value
        out += pack(len(data))
        out += data

    return encode_legacy


def _array_encoder(field: FieldPlan, *, flexible: bool) -> ValueEncoder:
    null = (b"\x00" if flexible else b"\xff\xff\xff\xff") if field.nullable else None
    length = _compact_length if flexible else struct.Struct(">i").pack
    encode_elements = _elements_encoder(field, flexible=flexible)

    def encode_array(values: Any, out: bytearray) -> None:
        if values is None:
            out += length(0) if null is None else null
            return
        out += length(len(values))
        encode_elements(values, out)

    return encode_array


def _compact_length(length: int) -> bytes:
    return varint(length + 1)


def _elements_encoder(field: FieldPlan, *, flexible: bool) -> ValueEncoder:
    if field.entity is None and field.kafka_type in _FORMATS:
        code = _FORMATS[field.kafka_type]

        def encode_numbers(values: Any, out: bytearray) -> None:
            out += struct.pack(f">{len(values)}{code}", *values)

        return encode_numbers
    encode_value = _value_encoder(field, flexible=flexible, nullable=False)

    def encode_each(values: Any, out: bytearray) -> None:
        for value in values:
            encode_value(value, out)

    return encode_each


TaggedStep = Callable[[Values], bytes | None]


def _tags_step(tagged: tuple[TaggedStep, ...]) -> EntityEncoder:
    def encode_tags(values: Values, out: bytearray) -> None:
        present = [data for step in tagged if (data := step(values)) is not None]
        out += varint(len(present))
        for data in present:
            out += data

    return encode_tags


def _tagged_step(field: FieldPlan) -> TaggedStep:
    """A tagged field is written when its bytes differ from those of its default."""
    encode_value = field_value_encoder(field, flexible=True)
    prefix = varint(field.tag or 0)
    default = _encoded_default(field, encode_value)

    def encode_tagged(values: Values) -> bytes | None:
        value = values.get(field.name, _MISSING)
        if value is _MISSING:
            return None
        data = bytearray()
        encode_value(value, data)
        return None if data == default else prefix + varint(len(data)) + data

    return encode_tagged


def _encoded_default(field: FieldPlan, encode_value: ValueEncoder) -> bytes:
    import dataclasses

    default = field.default
    if field.entity is not None and dataclasses.is_dataclass(default) and not isinstance(default, type):
        default = dataclasses.asdict(default)
    data = bytearray()
    encode_value(default, data)
    return bytes(data)
