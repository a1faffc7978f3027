"""A small schema language for Kafka's generated messages, as far as the records of ``__consumer_offsets`` need it.

A message is a table of `Field` rows; `Structure` turns the table, for one version, into a codec that reads and writes one of our
own dataclasses. Plain and compact (flexible) encodings, version ranges and tagged fields are all there is. A log may be damaged:
no length is believed before that many bytes are known to be there.

Why this stands beside `kgctl.serde.codec`, which reads requests and responses of the wire: a record becomes a value of
`kgctl.model.coordinator_records`, the wire's message an entity with error codes and without null UUIDs; a damaged text is an
error here and U+FFFD there, as Java has it in each place; and the pipeline walks these tables to make a decoder of columns. In
the coordinator's way a commit's record costs 1.1 us to write and 2.3 to read, a request with the same fields by the other codec
3.0 and 4.8.

Kafka: clients/src/main/resources/common/message/README.md; ``MessageUtil``, ``ByteBufferAccessor``.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from kgctl.model.values import frozen_in_order

MAX_PLAIN_STRING_BYTES = 32_767
INT8_MAX = 127
_NEWEST = 32_767


class RecordDecodeError(ValueError):
    """These bytes are no record of the type that they claim to be: too short, a forged length, an unknown version."""


class RecordEncodeError(ValueError):
    """This value cannot be written in Kafka's format: a string too long for its length field, a number out of range."""


class Reader:
    """Walks over bytes; every step checks that the bytes are there and raises `RecordDecodeError` if not."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    @property
    def remaining(self) -> int:
        """Return how many bytes are not read yet."""
        return len(self.data) - self.position

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise RecordDecodeError(f"{count} bytes announced at byte {self.position}, {self.remaining} left")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def varint(self) -> int:
        """Return the next unsigned varint, of at most five bytes."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise RecordDecodeError(f"a varint longer than five bytes at byte {self.position - 5}")


def write_varint(out: bytearray, value: int) -> None:
    """Append ``value`` as an unsigned varint."""
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


@lru_cache(maxsize=8_192)
def uuid_text(raw: bytes) -> str:
    """As Kafka writes the 16 bytes of an id: URL-safe base64 without padding."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def uuid_from_bytes(raw: bytes) -> UUID:
    """The UUID of these 16 bytes; the same few topic ids occur in most records of a log."""
    return UUID(bytes=raw)


class Codec(Protocol):
    """Reads and writes values of one type; `Reader` has the bytes."""

    def read(self, reader: Reader) -> Any:
        """Return the next value."""

    def write(self, out: bytearray, value: Any) -> None:
        """Append ``value``."""


class Layout(NamedTuple):
    """How a message is written: in which version, and whether that has the compact (flexible) encoding."""

    version: int
    flexible: bool


PLAIN = Layout(0, flexible=False)

Type = Callable[[Layout], Codec]
"""Makes the codec of a type in a layout."""


class Fixed:
    """A number of a fixed size, big-endian."""

    def __init__(self, layout: str) -> None:
        self._struct = Struct(layout)
        self.size = self._struct.size

    def read(self, reader: Reader) -> int:
        value: int = self._struct.unpack(reader.take(self.size))[0]
        return value

    def write(self, out: bytearray, value: int) -> None:
        try:
            out += self._struct.pack(value)
        except struct_error as error:
            raise RecordEncodeError(f"{value} does not fit: {error}") from None


class UuidBytes:
    """A UUID as its 16 bytes."""

    size = 16

    def read(self, reader: Reader) -> UUID:
        return uuid_from_bytes(reader.take(self.size))

    def write(self, out: bytearray, value: UUID) -> None:
        out += value.bytes


_INT16, _INT32 = Fixed(">h"), Fixed(">i")


class Length:
    """The length of a string, of bytes or of an array: compact, or a plain int16 or int32. -1 stands for null."""

    def __init__(self, *, flexible: bool, plain: Fixed) -> None:
        self.flexible = flexible
        self.plain = plain

    def read(self, reader: Reader) -> int:
        return reader.varint() - 1 if self.flexible else self.plain.read(reader)

    def write(self, out: bytearray, length: int) -> None:
        if self.flexible:
            write_varint(out, length + 1)
        else:
            self.plain.write(out, length)


class Text:
    """A string behind its length; null where the codec allows it."""

    def __init__(self, *, flexible: bool, nullable: bool) -> None:
        self.length = Length(flexible=flexible, plain=_INT16)
        self.nullable = nullable

    def read(self, reader: Reader) -> str | None:
        length = self.length.read(reader)
        if length == -1 and self.nullable:
            return None
        try:
            return reader.take(length).decode()
        except UnicodeDecodeError as error:
            raise RecordDecodeError(f"a string that is not UTF-8: {error}") from None

    def write(self, out: bytearray, value: str | None) -> None:
        if value is None:
            self._write_null(out)
            return
        encoded = value.encode("utf-8", "replace")  # an unpaired surrogate becomes "?", as in Java
        if len(encoded) > MAX_PLAIN_STRING_BYTES and not self.length.flexible:
            raise RecordEncodeError(f"a string of {len(encoded)} bytes; its length field ends at {MAX_PLAIN_STRING_BYTES}")
        self.length.write(out, len(encoded))
        out += encoded

    def _write_null(self, out: bytearray) -> None:
        if not self.nullable:
            raise RecordEncodeError("null in a field that cannot be null")
        self.length.write(out, -1)


class Blob:
    """Bytes behind their length."""

    def __init__(self, *, flexible: bool) -> None:
        self.length = Length(flexible=flexible, plain=_INT32)

    def read(self, reader: Reader) -> bytes:
        return reader.take(self.length.read(reader))

    def write(self, out: bytearray, value: bytes) -> None:
        self.length.write(out, len(value))
        out += value


class Array:
    """An array behind its length, as a tuple. Null reads as empty."""

    def __init__(self, element: Codec, *, flexible: bool) -> None:
        self.length = Length(flexible=flexible, plain=_INT32)
        self.element = element

    def read(self, reader: Reader) -> tuple[Any, ...]:
        count = self.length.read(reader)
        if count < -1 or count > reader.remaining:  # each element has at least one byte
            raise RecordDecodeError(f"an array of {count} elements at byte {reader.position}, {reader.remaining} bytes left")
        return tuple(self.element.read(reader) for _ in range(count))

    def write(self, out: bytearray, value: Sequence[Any]) -> None:
        self.length.write(out, len(value))
        for element in value:
            self.element.write(out, element)


@frozen_in_order
class Field:
    """One row of a message's table: the attribute's name, its type, the versions that have it; ``tag`` for a tagged field.

    A tagged field is written only when it differs from ``default``, and reads as ``default`` when it is missing.
    """

    name: str
    type: Type
    since: int = 0
    until: int = _NEWEST
    tag: int | None = None
    default: Any = None


class Structure:
    """One message in one version. ``build`` gets the fields by name; ``values`` gives them back in the order of the table."""

    def __init__(
        self,
        build: Callable[..., Any],
        fields: Sequence[Field],
        layout: Layout,
        *,
        values: Callable[[Any], Sequence[Any]] | None = None,
    ) -> None:
        here = [field for field in fields if field.since <= layout.version <= field.until]
        self._build = build
        self.flexible = layout.flexible
        self._names = [field.name for field in fields]
        self._values = values
        self.plain = [(field.name, field.type(layout)) for field in here if field.tag is None]
        self.tagged = {field.tag: (field, field.type(layout)) for field in here if field.tag is not None}

    def read(self, reader: Reader) -> Any:
        """The next structure; tagged fields that are not in the table are skipped."""
        found = {name: codec.read(reader) for name, codec in self.plain}
        if self.flexible:
            found.update((field.name, field.default) for field, _ in self.tagged.values())
            self._read_tags(reader, found)
        return self._build(**found)

    def _read_tags(self, reader: Reader, found: dict[str, Any]) -> None:
        for _ in range(reader.varint()):
            tag, size = reader.varint(), reader.varint()
            data = reader.take(size)
            if tag in self.tagged:
                field, codec = self.tagged[tag]
                found[field.name] = codec.read(Reader(data))

    def write(self, out: bytearray, value: Any) -> None:
        """Append ``value``."""
        values = self._values(value) if self._values else [getattr(value, name) for name in self._names]
        by_name = dict(zip(self._names, values, strict=True))
        for name, codec in self.plain:
            codec.write(out, by_name[name])
        if self.flexible:
            self._write_tags(out, by_name)

    def _write_tags(self, out: bytearray, by_name: dict[str, Any]) -> None:
        present = [(tag, codec, by_name[f.name]) for tag, (f, codec) in self.tagged.items() if by_name[f.name] != f.default]
        write_varint(out, len(present))
        for tag, codec, value in present:
            data = bytearray()
            codec.write(data, value)
            write_varint(out, tag)
            write_varint(out, len(data))
            out += data


class Nullable:
    """A structure that may be null, as a tagged field holds it: a leading 1, or a single 0."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    def read(self, reader: Reader) -> Any:
        return self.structure.read(reader) if reader.varint() else None

    def write(self, out: bytearray, value: Any) -> None:
        out.append(0 if value is None else 1)
        if value is not None:
            self.structure.write(out, value)


class NullableInPlace:
    """A structure that may be null, as a field among others holds it: an int8, negative for null."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    def read(self, reader: Reader) -> Any:
        return None if reader.take(1)[0] > INT8_MAX else self.structure.read(reader)

    def write(self, out: bytearray, value: Any) -> None:
        out.append(0xFF if value is None else 1)
        if value is not None:
            self.structure.write(out, value)


def _fixed(layout: str) -> Type:
    codec = Fixed(layout)
    return lambda _layout: codec


INT8 = _fixed(">b")
INT16 = _fixed(">h")
UINT16 = _fixed(">H")
INT32 = _fixed(">i")
INT64 = _fixed(">q")


def uuid(_layout: Layout) -> Codec:
    """Return the codec of a UUID."""
    return UuidBytes()


def string(layout: Layout) -> Codec:
    """Return the codec of a string that is never null."""
    return Text(flexible=layout.flexible, nullable=False)


def nullable_string(layout: Layout) -> Codec:
    """Return the codec of a string or None."""
    return Text(flexible=layout.flexible, nullable=True)


def blob(layout: Layout) -> Codec:
    """Return the codec of bytes that are never null."""
    return Blob(flexible=layout.flexible)


def array(element: Type) -> Type:
    """Return the codec of a tuple of ``element``."""
    return lambda layout: Array(element(layout), flexible=layout.flexible)


def nullable(element: Callable[[Layout], Structure]) -> Type:
    """Return the codec of a structure or None, in a tagged field."""
    return lambda layout: Nullable(element(layout))


def nullable_in_place(element: Callable[[Layout], Structure]) -> Type:
    """Return the codec of a structure or None, in a field that is not tagged."""
    return lambda layout: NullableInPlace(element(layout))
