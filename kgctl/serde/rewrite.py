"""Copies a message without what kio cannot read.

That is: unknown tagged fields, unknown error codes, times out of range, broken text, truth values other than 0 and 1.

The slow path of `kgctl.serde.guard`; the same checks, made on the way.
"""

from __future__ import annotations

from kgctl.serde.errors import MalformedMessage
from kgctl.serde.guard import KNOWN_ERROR_CODES, MAX_TIMEDELTA_MS, array_length, field_walker, read_varint
from kgctl.serde.schemas import EntityPlan, FieldPlan
from kgctl.serde.text import readable_text
from kgctl.serde.varints import varint

MAX_TEXT = 2**15 - 1
"""Bytes."""


def rewritten(plan: EntityPlan, buffer: bytes, position: int) -> bytes:
    """The message that begins at ``position``, as kio can read it. Raises MalformedMessage."""
    out = bytearray()
    try:
        end = _copy_entity(plan, buffer, position, out)
    except IndexError:
        end = len(buffer) + 1
    if end > len(buffer):
        raise MalformedMessage(f"{plan.type.__name__}: the message ends too early")
    return bytes(out)


def _copy_entity(plan: EntityPlan, buffer: bytes, position: int, out: bytearray) -> int:
    for field in plan.fields:
        position = _copy_field(field, buffer, position, out, flexible=plan.flexible)
    return _copy_tags(plan, buffer, position, out) if plan.flexible else position


def _copy_field(field: FieldPlan, buffer: bytes, position: int, out: bytearray, *, flexible: bool) -> int:
    if not field.is_array:
        return _copy_value(field, buffer, position, out, flexible=flexible, nullable=field.nullable)
    count, start = array_length(buffer, position, flexible=flexible)
    if count > len(buffer) - start or (count < 0 and not field.nullable):
        raise MalformedMessage(f"an array of {count} elements in {len(buffer) - start} bytes")
    out += buffer[position:start]
    for _ in range(count):
        start = _copy_value(field, buffer, start, out, flexible=flexible, nullable=False)
    return start


def _copy_value(field: FieldPlan, buffer: bytes, position: int, out: bytearray, *, flexible: bool, nullable: bool) -> int:
    if field.entity is not None:
        if nullable:
            out.append(buffer[position])
            position += 1
            if out[-1] == 0xFF:
                return position
        return _copy_entity(field.entity, buffer, position, out)
    if field.kafka_type == "error_code":
        end = position + 2
        code = buffer[position:end]
        out += code if code in KNOWN_ERROR_CODES else b"\xff\xff"
        return end
    if field.kafka_type == "bool":
        out.append(buffer[position] != 0)
        return position + 1
    if field.kafka_type == "timedelta_i64":
        end = position + 8
        time_ms = int.from_bytes(buffer[position:end], "big", signed=True)
        out += max(-MAX_TIMEDELTA_MS, min(MAX_TIMEDELTA_MS, time_ms)).to_bytes(8, "big", signed=True)
        return end
    start = len(out)
    end = _copy_as_it_is(field, buffer, position, out, flexible=flexible, nullable=nullable)
    if field.kafka_type == "string":
        _mend_text(out, start, flexible=flexible)
    return end


def _mend_text(out: bytearray, start: int, *, flexible: bool) -> None:
    """What is no UTF-8 in the text that was copied to ``start`` becomes U+FFFD, as Java reads it."""
    copied = bytes(out[start:])
    begin = read_varint(copied, 0)[1] if flexible else 2
    try:
        copied[begin:].decode()
    except UnicodeDecodeError:
        text = readable_text(copied[begin:]).encode()
        if len(text) > MAX_TEXT:
            raise MalformedMessage(f"a text of {len(text)} bytes") from None
        out[start:] = (varint(len(text) + 1) if flexible else len(text).to_bytes(2, "big")) + text


def _copy_as_it_is(field: FieldPlan, buffer: bytes, position: int, out: bytearray, *, flexible: bool, nullable: bool) -> int:
    from dataclasses import replace

    end = field_walker(replace(field, is_array=False, nullable=nullable), flexible=flexible)(buffer, position)
    if end > len(buffer):
        raise IndexError
    out += buffer[position:end]
    return end


def _copy_tags(plan: EntityPlan, buffer: bytes, position: int, out: bytearray) -> int:
    known = {field.tag: field for field in plan.tagged}
    count, position = read_varint(buffer, position)
    kept: list[bytes] = []
    for _ in range(count):
        tag, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        if size > len(buffer) - position:
            raise MalformedMessage(f"a tagged field of {size} bytes where {len(buffer) - position} are left")
        field = known.get(tag)
        if field is not None:
            value = bytearray()
            if _copy_field(field, buffer, position, value, flexible=True) != position + size:
                raise MalformedMessage(f"tagged field {tag} is not {size} bytes long")
            kept.append(varint(tag) + varint(len(value)) + value)
        position += size
    out += varint(len(kept)) + b"".join(kept)
    return position
