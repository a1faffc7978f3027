"""Checks bytes against their schema before kio reads them.

kio 0.6.5 reserves memory by the array length that the bytes claim, and a forged length ends the whole process, beyond any
exception handler. So no byte of a peer reaches kio before this guard has walked it: each array fits into what is left, each
string and each tagged field as well. Kafka's rule for tagged fields that the schema does not know is to ignore them, which kio
cannot; the guard cuts them out. Two values that kio refuses and Kafka does not are replaced: error codes of newer brokers (they
become UNKNOWN_SERVER_ERROR, as in Kafka's own clients) and times that it cannot hold (the longest that it can). Text is left to
kio; only where it finds bytes that are no UTF-8, which Java replaces, the message is copied and read again.

`guarded` is what callers use. The walk is compiled, once a schema, into closures of ``(buffer, position) -> position``; they
stop with `_NeedsRewrite` at the first thing to change, and only then `kgctl.serde.guard` copies the message.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import cache
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.serde.frames import MalformedMessage
from kgctl.serde.schemas import FIXED_SIZES, EntityPlan, FieldPlan

Walker = Callable[[bytes, int], int]

MAX_TIMEDELTA_MS = (2**63 - 1) // 1_000  # kio counts microseconds in 64 bits
KNOWN_ERROR_CODES = frozenset(code.value.to_bytes(2, "big", signed=True) for code in ErrorCode)


class _NeedsRewrite(Exception):  # noqa: N818 - a signal between two functions of this module, never an error
    """The message is well formed so far, but holds something that kio cannot read."""


def guarded(plan: EntityPlan, buffer: bytes, position: int = 0) -> tuple[bytes, int]:
    """Bytes that kio can read safely, and where in them the message begins.

    Usually these are the arguments themselves. Bytes after the end of the message are left alone. Raises MalformedMessage.
    """
    try:
        end = entity_walker(plan)(buffer, position)
    except _NeedsRewrite:
        return rewritten(plan, buffer, position), 0
    except IndexError:
        raise MalformedMessage(f"{plan.type.__name__}: the message ends too early") from None
    if end > len(buffer):
        raise MalformedMessage(f"{plan.type.__name__}: the message ends too early")
    return buffer, position


def read_varint(buffer: bytes, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes, and where it ends."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise MalformedMessage("a varint of more than five bytes")


@cache
def entity_walker(plan: EntityPlan) -> Walker:
    """Return the function that walks over one structure and raises for what would hurt its reader."""
    steps = _merged(tuple(field_step(field, flexible=plan.flexible) for field in plan.fields))
    if plan.flexible:
        steps = (*steps, _tags_walker(plan))
    if len(steps) == 1:
        return _as_walker(steps[0])
    walkers = tuple(_as_walker(step) for step in steps)

    def walk(buffer: bytes, position: int) -> int:
        for walker in walkers:
            position = walker(buffer, position)
        return position

    return walk


Step = Walker | int
"""A walker, or a number of bytes to skip whatever is in them."""


def _merged(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    merged: list[Step] = []
    for step in steps:
        last = merged[-1] if merged else None
        if isinstance(step, int) and isinstance(last, int):
            merged[-1] = last + step
        else:
            merged.append(step)
    return tuple(merged)


def _as_walker(step: Step) -> Walker:
    if not isinstance(step, int):
        return step
    size = step
    return lambda _, position: position + size


def field_step(field: FieldPlan, *, flexible: bool) -> Step:
    """Return the function that walks over one field, its tag aside."""
    if field.is_array:
        return _array_walker(field, flexible=flexible)
    return _value_step(field, flexible=flexible, nullable=field.nullable)


def field_walker(field: FieldPlan, *, flexible: bool) -> Walker:
    """Return the function that walks over one field's value, its tag aside."""
    return _as_walker(field_step(field, flexible=flexible))


def _value_step(field: FieldPlan, *, flexible: bool, nullable: bool) -> Step:
    if field.entity is not None:
        walker = entity_walker(field.entity)
        return _nullable_entity_walker(walker) if nullable else walker
    if field.kafka_type == "error_code":
        return _walk_error_code
    if field.kafka_type == "timedelta_i64":
        return _walk_long_time
    if field.kafka_type in FIXED_SIZES:
        return FIXED_SIZES[field.kafka_type]
    if flexible:
        return _compact_walker(nullable=nullable)
    return _legacy_walker(2 if field.kafka_type == "string" else 4, nullable=nullable)


def _walk_error_code(buffer: bytes, position: int) -> int:
    if buffer[position : position + 2] not in KNOWN_ERROR_CODES:
        raise _NeedsRewrite if position + 2 <= len(buffer) else IndexError
    return position + 2


def _walk_long_time(buffer: bytes, position: int) -> int:
    if abs(int.from_bytes(buffer[position : position + 8], "big", signed=True)) > MAX_TIMEDELTA_MS:
        raise _NeedsRewrite
    return position + 8


def _nullable_entity_walker(walker: Walker) -> Walker:
    def walk(buffer: bytes, position: int) -> int:
        # any negative marker means null; kio takes 1 and -1 alone
        marker = buffer[position]
        if marker == 0xFF:
            return position + 1
        if marker != 1:
            raise MalformedMessage(f"a nullable structure marked {marker}")
        return walker(buffer, position + 1)

    return walk


def _compact_walker(*, nullable: bool) -> Walker:
    def walk(buffer: bytes, position: int) -> int:
        length = buffer[position]
        position += 1
        if length >= 0x80:
            length, position = read_varint(buffer, position - 1)
        if length == 0:
            if not nullable:
                raise MalformedMessage("null where a value must be")
            return position
        position += length - 1
        if position > len(buffer):
            raise MalformedMessage(f"a value of {length - 1} bytes where {len(buffer) - position + length - 1} are left")
        return position

    return walk


def _legacy_walker(size: int, *, nullable: bool) -> Walker:
    def walk(buffer: bytes, position: int) -> int:
        prefix = buffer[position : position + size]
        position += size
        if len(prefix) < size:
            raise IndexError
        length = int.from_bytes(prefix, "big", signed=True)
        if length < 0:
            if length != -1 or not nullable:
                raise MalformedMessage(f"a value of {length} bytes")
            return position
        position += length
        if position > len(buffer):
            raise MalformedMessage(f"a value of {length} bytes where {len(buffer) - position + length} are left")
        return position

    return walk


def array_length(buffer: bytes, position: int, *, flexible: bool) -> tuple[int, int]:
    """How many elements an array says it has (-1: null), and where they begin."""
    if flexible:
        length, position = read_varint(buffer, position)
        return length - 1, position
    if position + 4 > len(buffer):
        raise IndexError
    return int.from_bytes(buffer[position : position + 4], "big", signed=True), position + 4


def _array_walker(field: FieldPlan, *, flexible: bool) -> Walker:
    element = _value_step(field, flexible=flexible, nullable=False)
    min_size = max(1, _element_min_size(field, flexible=flexible))
    nullable = field.nullable

    def walk(buffer: bytes, position: int) -> int:
        count, position = array_length(buffer, position, flexible=flexible)
        if count < 0:
            if count != -1 or not nullable:
                raise MalformedMessage(f"an array of {count} elements")
            return position
        if count * min_size > len(buffer) - position:
            raise MalformedMessage(f"an array of {count} elements in {len(buffer) - position} bytes")
        if isinstance(element, int):
            return position + count * element
        for _ in range(count):
            position = element(buffer, position)
        return position

    return walk


def _element_min_size(field: FieldPlan, *, flexible: bool) -> int:
    if field.entity is not None:
        return field.entity.min_size()
    if field.kafka_type in FIXED_SIZES:
        return FIXED_SIZES[field.kafka_type]
    if flexible:
        return 1
    return 2 if field.kafka_type == "string" else 4


def _tags_walker(plan: EntityPlan) -> Walker:
    walkers: dict[int | None, Any] = {field.tag: field_walker(field, flexible=True) for field in plan.tagged}

    def walk(buffer: bytes, position: int) -> int:
        count = buffer[position]
        position += 1
        if count == 0:
            return position
        if count >= 0x80:
            count, position = read_varint(buffer, position - 1)
        for _ in range(count):
            tag, position = read_varint(buffer, position)
            size, position = read_varint(buffer, position)
            if size > len(buffer) - position:
                raise MalformedMessage(f"a tagged field of {size} bytes where {len(buffer) - position} are left")
            walker = walkers.get(tag)
            if walker is None:
                raise _NeedsRewrite
            if walker(buffer, position) != position + size:
                raise MalformedMessage(f"tagged field {tag} is not {size} bytes long")
            position += size
        return position

    return walk


_REPLACEMENT = "\ufffd"
_ERRORS = "kgctl-java"


def readable_text(data: bytes) -> str:
    """Return the text as Java's ``new String(data, UTF_8)`` reads it: bad bytes become U+FFFD."""
    return data.decode("utf-8", _ERRORS)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Python takes each byte of a surrogate, whole or cut short, for a mistake, Java all of them for one."""
    assert isinstance(error, UnicodeDecodeError)
    sequence = error.object[error.start : error.start + 3]
    if sequence[0] == 0xED and len(sequence) > 1 and 0xA0 <= sequence[1] <= 0xBF:
        is_whole = len(sequence) == 3 and 0x80 <= sequence[2] <= 0xBF
        return _REPLACEMENT, error.start + (3 if is_whole else 2)
    return _REPLACEMENT, error.end


codecs.register_error(_ERRORS, _replace)


def varint(value: int) -> bytes:
    """Return the bytes of an unsigned varint. ``value`` is not negative."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


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
