"""Reads and writes one message of one version: a reader and a writer for each, made at first use from its plan.

Both are functions whose source is put together here and compiled, as `dataclasses` does it: one loop for each array, neighbouring
numbers in one `struct` call, no call for a structure. Only names and types of ``messages.json`` get into the source, never
anything that a peer sent.

A peer's bytes are not trusted. A length is compared with what is left before anything is made of it, an array's count with the
fewest bytes that so many elements take; tagged fields that the version does not know are passed over, as Kafka does. Structures
nest as deep as the schema does and no deeper. What cannot be read raises MalformedMessage and nothing else. Bytes after the
end of a message are left alone.

Kafka: the classes that ``org.apache.kafka.message.MessageDataGenerator`` makes, ``ByteBufferAccessor``, ``ByteUtils``.
"""

from __future__ import annotations

import codecs
import gc
import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache, lru_cache
from itertools import groupby
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.serde.frames import MalformedMessage
from kgctl.serde.schemas import FIXED_SIZES, FORMATS, NO_UUID, EntityPlan, FieldPlan, empty_value, min_value_size

Values = Mapping[str, Any]
Reader = Callable[[bytes, int, int], tuple[Any, int]]
"""Takes the bytes, where the message begins and where the bytes end; gives the entity and where it ends."""
Writer = Callable[[Any, bytearray], None]

LARGE_BYTES = 64 * 1024
"""While a message above this is read, the garbage collector rests: it took half of the time."""

MAX_TEXT = 2**15 - 1
"""The bytes of the longest text in the encoding without varints."""


class Entity:
    """A structure that was read; a subclass for each structure and version has its fields as attributes.

    Arrays are tuples, times are integers of milliseconds, a uuid of zeros is None. An error code that kgctl does not know, of a
    newer broker, is UNKNOWN_SERVER_ERROR, as in Kafka's clients (``Errors#forCode``).
    """

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


@cache
def entity_class(plan: EntityPlan) -> type[Any]:
    """Return the class of the structures that are read by this plan."""
    return type(plan.name, (Entity,), {"__slots__": tuple(field.name for field in (*plan.fields, *plan.tagged))})


def read(plan: EntityPlan, data: bytes, position: int = 0) -> Any:
    """Return the entity that begins at ``position``. Raises MalformedMessage."""
    end, entity = len(data), None
    try:
        with _nothing_collected() if end > LARGE_BYTES else nullcontext():
            try:
                entity, stop = reader(plan)(data, position, end)
            except UnicodeDecodeError:
                entity, stop = reader(plan, lenient=True)(data, position, end)
    except (IndexError, struct.error):
        stop = end + 1
    if stop > end:
        raise MalformedMessage(f"{plan.name}: the message ends too early")
    return entity


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Keep the garbage collector from looking through what is being read, again and again: none of it is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def write(plan: EntityPlan, values: Values, out: bytearray) -> None:
    """Append the message to ``out``.

    ``values`` has the plan's field names; error codes and times (in milliseconds) are integers. A field that is absent gets
    Kafka's default, None where the version has no null becomes an empty text or array, a name that the version does not have is
    not written. Raises `struct.error` for a number, or a text's length, that does not fit.
    """
    writer(plan)(values, out)


@cache
def reader(plan: EntityPlan, *, lenient: bool = False) -> Reader:
    """Return the function that reads one structure. ``lenient`` reads text that is no UTF-8 as Java does."""
    function: Reader = _ReaderSource(lenient=lenient).function(lambda source: source.entity(plan, "x"))
    return function


@cache
def writer(plan: EntityPlan) -> Writer:
    """Return the function that appends one structure to a buffer."""
    function: Writer = _WriterSource().function(lambda source: source.entity(plan, "x"))
    return function


def value_writer(field: FieldPlan) -> Writer:
    """Return the function that appends the value of a tagged field, without its tag."""
    function: Writer = _WriterSource().function(lambda source: source.value(field, "x", flexible=True))
    return function


class _Source:
    """The lines of one function, and the constants that they name."""

    head: str
    tail: str

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._indent = 1
        self._constants: dict[str, Any] = {**_HELPERS}
        self._count = 0

    def function(self, write_body: Callable[[Any], None]) -> Any:
        """Return the function between ``head`` and ``tail`` whose lines ``write_body`` adds."""
        write_body(self)
        source = "\n".join((self.head, *self._lines, self.tail))
        exec(compile(source, f"<{type(self).__name__}>", "exec"), self._constants)  # noqa: S102  # made from messages.json alone
        return self._constants["run"]

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        """Add a line that ends with a colon; what is added inside the ``with`` is indented."""
        self.line(text)
        self._indent += 1
        yield
        self._indent -= 1

    def local(self, name: str) -> str:
        """Return a name that nothing else in this function has."""
        self._count += 1
        return f"{name}{self._count}"

    def constant(self, name: str, value: Any) -> str:
        """Return the name by which the function's lines find ``value``."""
        unique = self.local(name)
        self._constants[unique] = value
        return unique

    def fields(self, plan: EntityPlan) -> Iterator[list[FieldPlan]]:
        """The plain fields in their order: neighbours of a fixed size together, each other one alone."""
        for is_fixed, group in groupby(plan.fields, key=lambda field: field.fixed_size is not None):
            fields = list(group)
            yield from [fields] if is_fixed else [[field] for field in fields]


def _struct(fields: list[FieldPlan]) -> struct.Struct:
    return struct.Struct(">" + "".join("16s" if field.kafka_type == "uuid" else FORMATS[field.kafka_type] for field in fields))


class _ReaderSource(_Source):
    head = "def run(b, p, end):"
    tail = "    return x, p"

    def __init__(self, *, lenient: bool = False) -> None:
        super().__init__()
        self._text = "java_text(b[p:e])" if lenient else "b[p:e].decode()"

    def entity(self, plan: EntityPlan, target: str) -> None:
        entity = self.local("o")
        self.line(f"{entity} = new({self.constant('C', entity_class(plan))})")
        for fields in self.fields(plan):
            if fields[0].fixed_size is None:
                self.value(fields[0], f"{entity}.{fields[0].name}", flexible=plan.flexible)
            else:
                self.numbers(fields, [f"{entity}.{field.name}" for field in fields])
        if plan.flexible:
            self.tags(plan, entity)
        self.line(f"{target} = {entity}")

    def numbers(self, fields: list[FieldPlan], targets: list[str]) -> None:
        """Add the lines that read neighbours of a fixed size; error codes and ids are translated after that."""
        packed = _struct(fields)
        translated = [
            (self.local("t"), target, _TRANSLATIONS[field.kafka_type]) if field.kafka_type in _TRANSLATIONS else ("", target, "")
            for field, target in zip(fields, targets, strict=True)
        ]
        unpacked = "".join(f"{name or target}, " for name, target, _ in translated)
        self.line(f"{unpacked}= {self.constant('S', packed.unpack_from)}(b, p)")
        self.line(f"p += {packed.size}")
        for name, target, translation in translated:
            if name:
                self.line(f"{target} = {translation.format(name)}")

    def value(self, field: FieldPlan, target: str, *, flexible: bool) -> None:
        if field.is_array:
            self.array(field, target, flexible=flexible)
        elif field.entity is None or not field.nullable:
            self.element(field, target, flexible=flexible, nullable=field.nullable)
        else:
            self.line("n = b[p]")
            self.line("p += 1")
            with self.block("if n > 127:"):  # a negative byte is null, any other is not
                self.line(f"{target} = None")
            with self.block("else:"):
                self.entity(field.entity, target)

    def element(self, field: FieldPlan, target: str, *, flexible: bool, nullable: bool) -> None:
        """Add the lines that read one value, which is no array."""
        if field.entity is not None:
            self.entity(field.entity, target)
        elif field.kafka_type in FIXED_SIZES:
            self.numbers([field], [target])
        else:
            self.length(flexible=flexible, plain="h" if field.kafka_type == "string" else "i")
            with self.null_or_not(field, target, nullable=nullable):
                self.line("e = p + n")
                with self.block("if e > end:"):
                    self.line("raise too_long(n, end - p)")
                self.line(f"{target} = {self._text if field.kafka_type == 'string' else 'b[p:e]'}")
                self.line("p = e")

    def length(self, *, flexible: bool, plain: str) -> None:
        """Add the lines that read a length, or a number of elements, into ``n``; null is below 0."""
        if not flexible:
            packed = struct.Struct(">" + plain)
            self.line(f"n, = {self.constant('S', packed.unpack_from)}(b, p)")
            self.line(f"p += {packed.size}")
            return
        self.line("n = b[p] - 1")
        self.line("p += 1")
        with self.block("if n > 126:"):
            self.line("n, p = varint(b, p - 1)")
            self.line("n -= 1")

    @contextmanager
    def null_or_not(self, field: FieldPlan, target: str, *, nullable: bool) -> Iterator[None]:
        with self.block("if n < 0:"):
            self.line(f"{target} = None" if nullable else f"raise null({field.name!r})")
        with self.block("else:"):
            yield

    def array(self, field: FieldPlan, target: str, *, flexible: bool) -> None:
        self.length(flexible=flexible, plain="i")
        with self.null_or_not(field, target, nullable=field.nullable):
            with self.block(f"if n * {max(1, min_value_size(field, flexible=flexible))} > end - p:"):
                self.line("raise too_many(n, end - p)")
            if field.entity is None and field.kafka_type in FORMATS and field.kafka_type not in _TRANSLATIONS:
                self.line(f"{target} = unpack_from('>%d{FORMATS[field.kafka_type]}' % n, b, p)")
                self.line(f"p += n * {FIXED_SIZES[field.kafka_type]}")
                return
            items, item = self.local("a"), self.local("i")
            self.line(f"{items} = []")
            with self.block("for _ in range(n):"):
                if field.entity is not None and _is_short(field.entity):
                    self.short(field.entity, item)
                else:
                    self.element(field, item, flexible=flexible, nullable=False)
                self.line(f"{items}.append({item})")
            self.line(f"{target} = tuple({items})")

    def short(self, plan: EntityPlan, target: str) -> None:
        """Add the lines that read an element at once whose one text is empty, as the metadata of most commits; others as any."""
        names = [self.local("t") for _ in plan.fields]
        texts = [name for name, field in zip(names, plan.fields, strict=True) if field.fixed_size is None]
        packed = struct.Struct(
            ">" + "".join(FORMATS.get(field.kafka_type, "B" if plan.flexible else "h") for field in plan.fields)
        )
        self.line(f"{', '.join(names)}, = {self.constant('S', packed.unpack_from)}(b, p)")
        is_empty = f"{texts[0]} == 1 and not b[p + {packed.size}]" if plan.flexible else f"not {texts[0]}"
        with self.block(f"if {is_empty}:"):
            self.line(f"{target} = new({self.constant('C', entity_class(plan))})")
            for name, field in zip(names, plan.fields, strict=True):
                value = "''" if name in texts else _TRANSLATIONS.get(field.kafka_type, "{}").format(name)
                self.line(f"{target}.{field.name} = {value}")
            self.line(f"p += {packed.size + plan.flexible}")
        with self.block("else:"):
            self.entity(plan, target)

    def tags(self, plan: EntityPlan, entity: str) -> None:
        for field in plan.tagged:
            self.line(f"{entity}.{field.name} = {self.constant('D', _read_default(field))}")
        self.line("n = b[p]")
        self.line("p += 1")
        with self.block("if n:"):
            known = {field.tag: (field.name, _tag_reader(field)) for field in plan.tagged}
            self.line(f"p = read_tags({entity}, {self.constant('T', known)}, b, p - 1, end)")


def _is_short(plan: EntityPlan) -> bool:
    """Whether it is one text among numbers."""
    others = [field.kafka_type for field in plan.fields if field.is_array or field.kafka_type not in FORMATS]
    return others == ["string"] and len(plan.fields) > len(others) + 1 and not plan.tagged


def _tag_reader(field: FieldPlan) -> Reader:
    function: Reader = _ReaderSource(lenient=True).function(lambda source: source.value(field, "x", flexible=True))
    return function


def _read_default(field: FieldPlan) -> Any:
    """Return the value of a tagged field that is absent."""
    if field.entity is None or field.is_array or field.default is None:
        return field.default
    out = bytearray()
    write(field.entity, {}, out)
    return read(field.entity, bytes(out))


class _WriterSource(_Source):
    head = "def run(x, o):"
    tail = "    return None"

    def entity(self, plan: EntityPlan, values: str) -> None:
        getter = self.local("g")
        self.line(f"{getter} = {values}.get")
        for fields in self.fields(plan):
            if fields[0].fixed_size is None:
                (field,) = fields
                value = self.local("v")
                self.line(f"{value} = {getter}({field.name!r}, {self.constant('D', field.default)})")
                self.value(field, value, flexible=plan.flexible)
            else:
                self.numbers(fields, values, getter)
        if plan.tagged:
            steps = tuple(_tag_step(field) for field in plan.tagged)
            self.line(f"write_tags({values}, {self.constant('T', steps)}, o)")
        elif plan.flexible:
            self.line("o.append(0)")

    def numbers(self, fields: list[FieldPlan], values: str, getter: str) -> None:
        """Add the lines that write neighbours of a fixed size in one call; what is absent goes the long way round.

        A message leaves more of its fields out than its many entries do, so that its own are asked for with their defaults.
        """
        pack = self.constant("S", _struct(fields).pack)
        is_message = values == "x"
        found = [
            f"{getter}({field.name!r}, {self.constant('D', field.default)})" if is_message else f"{values}[{field.name!r}]"
            for field in fields
        ]
        packed = [
            f"({value} or NO_UUID).bytes" if field.kafka_type == "uuid" else value
            for field, value in zip(fields, found, strict=True)
        ]
        with self.block("try:"):
            self.line(f"o += {pack}({', '.join(packed)})")
        with self.block("except (KeyError, StructError):"):
            self.line(f"o += {pack}(*numbers({values}, {self.constant('F', tuple(fields))}))")

    def value(self, field: FieldPlan, value: str, *, flexible: bool) -> None:
        if field.is_array:
            self.array(field, value, flexible=flexible)
        elif field.entity is None or not field.nullable:
            self.element(field, value, flexible=flexible, nullable=field.nullable)
        else:
            with self.block(f"if {value} is None:"):
                self.line("o.append(255)")
            with self.block("else:"):
                self.line("o.append(1)")
                self.entity(field.entity, value)

    def element(self, field: FieldPlan, value: str, *, flexible: bool, nullable: bool) -> None:
        """Add the lines that write one value, which is no array."""
        if field.entity is not None:
            self.entity(field.entity, value)
        elif field.kafka_type == "uuid":
            self.line(f"o += ({value} or NO_UUID).bytes")
        elif field.kafka_type in FORMATS:
            self.line(f"o += {self.constant('S', _struct([field]).pack)}({value})")
        else:
            plain = "h" if field.kafka_type == "string" else "i"
            with self.null_or_not(value, empty_value(field.kafka_type), nullable=nullable, flexible=flexible, plain=plain):
                if field.kafka_type == "string":
                    self.line(f"{value} = {value}.encode()")
                self.length(value, flexible=flexible, plain=plain)
                self.line(f"o += {value}")

    def length(self, value: str, *, flexible: bool, plain: str) -> None:
        if not flexible:
            self.line(f"o += {self.constant('S', struct.Struct('>' + plain).pack)}(len({value}))")
            return
        self.line(f"n = len({value}) + 1")
        with self.block("if n < 128:"):
            self.line("o.append(n)")
        with self.block("else:"):
            self.line("o += varint_bytes(n)")

    @contextmanager
    def null_or_not(self, value: str, empty: Any, *, nullable: bool, flexible: bool, plain: str) -> Iterator[None]:
        with self.block(f"if {value} is None:"):
            null = b"\0" if flexible else struct.pack(">" + plain, -1)
            self.line(f"o += {null!r}" if nullable else f"{value} = {empty!r}")
        with self.block("else:") if nullable else nullcontext():
            yield

    def array(self, field: FieldPlan, value: str, *, flexible: bool) -> None:
        with self.null_or_not(value, (), nullable=field.nullable, flexible=flexible, plain="i"):
            self.length(value, flexible=flexible, plain="i")
            if field.entity is None and field.kafka_type in FORMATS:
                self.line(f"o += pack('>%d{FORMATS[field.kafka_type]}' % len({value}), *{value})")
                return
            item = self.local("i")
            with self.block(f"for {item} in {value}:"):
                self.element(field, item, flexible=flexible, nullable=False)


TagStep = tuple[str, bytes, Writer, bytes]
"""A tagged field: its name, its tag as a varint, what writes its value, and the bytes of its default."""


def _tag_step(field: FieldPlan) -> TagStep:
    write_value = value_writer(field)
    default = bytearray()
    write_value(field.default, default)
    return field.name, varint_bytes(field.tag or 0), write_value, bytes(default)


def _write_tags(values: Values, steps: tuple[TagStep, ...], out: bytearray) -> None:
    """Append the tagged fields whose bytes differ from those of their default."""
    present = []
    for name, tag, write_value, default in steps:
        if name in values:
            data = bytearray()
            write_value(values[name], data)
            if data != default:
                present.append(tag + varint_bytes(len(data)) + data)
    out += varint_bytes(len(present)) + b"".join(present)


def _numbers(values: Values, fields: tuple[FieldPlan, ...]) -> Iterator[Any]:
    """The fields' numbers as `struct` takes them, with Kafka's default where one is absent."""
    for field in fields:
        value = values.get(field.name, field.default)
        yield (value or NO_UUID).bytes if field.kafka_type == "uuid" else value


def _read_tags(entity: Any, known: dict[int | None, tuple[str, Reader]], data: bytes, position: int, end: int) -> int:
    """Read the tagged fields at ``position`` into ``entity``, pass over those that it does not have, and return their end."""
    count, position = read_varint(data, position)
    for _ in range(count):
        tag, position = read_varint(data, position)
        size, position = read_varint(data, position)
        if size > end - position:
            raise MalformedMessage(f"a tagged field of {size} bytes where {end - position} are left")
        if tag in known:
            name, read_value = known[tag]
            value, stop = read_value(data, position, end)
            if stop != position + size:
                raise MalformedMessage(f"tagged field {tag} is not {size} bytes long")
            setattr(entity, name, value)
        position += size
    return position


def skip_tags(data: bytes, position: int) -> int:
    """Return where the tagged fields at ``position`` end. Raises MalformedMessage."""
    try:
        return _read_tags(None, {}, data, position, len(data))
    except IndexError:
        raise MalformedMessage("the tagged fields end too early") from None


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned varint of at most five bytes, and where it ends. Raises IndexError where the bytes end before."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise MalformedMessage("a varint of more than five bytes")


def varint_bytes(value: int) -> bytes:
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


def _java_text(data: bytes) -> str:
    """Text that Kafka could not write into an answer any more, because U+FFFD made it too long, is refused at once."""
    text = readable_text(data)
    size = len(text.encode())
    if size > max(MAX_TEXT, len(data)):
        raise MalformedMessage(f"a text of {size} bytes")
    return text


@lru_cache(maxsize=4_096)
def _uuid_of(raw: bytes) -> uuid.UUID | None:
    """Return the UUID, None for zeros. Kept, since the same few topic ids stand in most messages."""
    return uuid.UUID(bytes=raw) if any(raw) else None


def _null(name: str) -> MalformedMessage:
    return MalformedMessage(f"null where a value must be: {name}")


def _too_long(size: int, left: int) -> MalformedMessage:
    return MalformedMessage(f"a value of {size} bytes where {left} are left")


def _too_many(count: int, left: int) -> MalformedMessage:
    return MalformedMessage(f"an array of {count} elements in {left} bytes")


_TRANSLATIONS = {"error_code": "error_of({}, UNKNOWN)", "uuid": "uuid_of({})"}
"""What a reader makes of numbers that are more than numbers."""
_HELPERS: dict[str, Any] = {
    "new": object.__new__,
    "varint": read_varint,
    "varint_bytes": varint_bytes,
    "java_text": _java_text,
    "uuid_of": _uuid_of,
    "error_of": {code.value: code for code in ErrorCode}.get,
    "UNKNOWN": ErrorCode.UNKNOWN_SERVER_ERROR,
    "NO_UUID": NO_UUID,
    "StructError": struct.error,
    "unpack_from": struct.unpack_from,
    "pack": struct.pack,
    "numbers": _numbers,
    "read_tags": _read_tags,
    "write_tags": _write_tags,
    "null": _null,
    "too_long": _too_long,
    "too_many": _too_many,
}
"""What the lines of every function may name."""
