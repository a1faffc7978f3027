"""kio's message classes as plans: which field, of which type, in which order, for one API, version and direction.

kio describes each version of each message by a frozen dataclass whose fields carry the Kafka type. The guard and the encoder both
work from the plans made here, so a field has one description. Everything is loaded at first use and
kept, so a plan is equal to itself alone and cheap as a key.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import MISSING, dataclass, field, make_dataclass
from functools import cache
from types import GenericAlias
from typing import Any, Literal

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader
from kio.schema.response_header.v0.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i64

from kgctl.serde.frames import UnsupportedVersion

Direction = Literal["request", "response"]

FIXED_SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "error_code": 2, "int32": 4, "uint32": 4, "timedelta_i32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "timedelta_i64": 8, "datetime_i64": 8, "uuid": 16,
}  # fmt: skip


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

    type: type[Any]
    flexible: bool
    fields: tuple[FieldPlan, ...]
    tagged: tuple[FieldPlan, ...]

    def min_size(self) -> int:
        """Return the fewest bytes that the structure can take."""
        size = sum(_min_field_size(field, flexible=self.flexible) for field in self.fields)
        return size + (1 if self.flexible else 0)


@cache
def load_schema(api_key: int, version: int, direction: Direction) -> Any:
    """kio's class for this message; raises UnsupportedVersion where there is none."""
    from kio.index import KioIndexError, load_request_schema, load_response_schema

    extra = SCHEMAS.get((api_key, version, direction))
    if extra is not None:
        return extra
    try:
        load = load_request_schema if direction == "request" else load_response_schema
        return load(api_key, version)
    except KioIndexError:
        raise UnsupportedVersion(api_key, version) from None


@cache
def load_plan(api_key: int, version: int, direction: Direction) -> EntityPlan:
    """The plan of this message; raises UnsupportedVersion where there is none."""
    return entity_plan(load_schema(api_key, version, direction))


@cache
def header_is_flexible(api_key: int, version: int, direction: Direction) -> bool:
    """Whether the message's header ends with tagged fields; ApiVersions' response never does."""
    return bool(load_schema(api_key, version, direction).__header_schema__.__flexible__)


@cache
def entity_plan(schema: Any) -> EntityPlan:
    """Return the plan of one of kio's classes."""
    plans = [_field_plan(field) for field in dataclasses.fields(schema)]
    return EntityPlan(
        type=schema,
        flexible=schema.__flexible__,
        fields=tuple(plan for plan in plans if plan.tag is None),
        tagged=tuple(sorted((plan for plan in plans if plan.tag is not None), key=lambda plan: plan.tag or 0)),
    )


def _field_plan(field: dataclasses.Field[Any]) -> FieldPlan:
    inner, nullable = _without_none(field.type)
    is_array = typing.get_origin(inner) is tuple
    if is_array:
        inner = typing.get_args(inner)[0]
    is_structure = dataclasses.is_dataclass(inner)
    entity = entity_plan(inner) if is_structure else None
    kafka_type = "entity" if entity is not None else field.metadata["kafka_type"]
    plan = FieldPlan(
        name=field.name,
        kafka_type=kafka_type,
        is_array=is_array,
        # a uuid of zeros is None in kio, on the wire it is 16 bytes all the same
        nullable=nullable and not (kafka_type == "uuid" and not is_array),
        tag=field.metadata.get("tag"),
        default=None,
        entity=entity,
    )
    return dataclasses.replace(plan, default=_default(field, plan))


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return annotation, False
    (inner,) = (arg for arg in typing.get_args(annotation) if arg is not types.NoneType)
    return inner, True


def _default(field: dataclasses.Field[Any], plan: FieldPlan) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if plan.is_array:
        return ()
    if plan.entity is not None:
        return {}
    return empty_value(plan.kafka_type)


def empty_value(kafka_type: str) -> Any:
    """Kafka's default of a type: zero, false, the empty string or no bytes."""
    if kafka_type == "string":
        return ""
    if kafka_type in ("bytes", "records"):
        return b""
    return False if kafka_type == "bool" else 0


def _min_field_size(field: FieldPlan, *, flexible: bool) -> int:
    if field.is_array:
        return 1 if flexible else 4
    if field.entity is not None:
        return 1 if field.nullable else field.entity.min_size()
    if field.fixed_size is not None:
        return field.fixed_size
    if flexible:
        return 1
    return 2 if field.kafka_type == "string" else 4


LIST_OFFSETS_KEY = 2


def _kio_class(name: str, kind: EntityType, header: type[Any], fields: dict[str, tuple[Any, str | None]]) -> type[Any]:
    return make_dataclass(
        name,
        [
            (key, annotation, field(metadata={} if kafka_type is None else {"kafka_type": kafka_type}, default=MISSING))
            for key, (annotation, kafka_type) in fields.items()
        ],
        namespace={
            "__type__": kind,
            "__version__": i16(0),
            "__flexible__": False,
            "__api_key__": i16(LIST_OFFSETS_KEY),
            "__header_schema__": header,
        },
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _array(element: Any) -> Any:
    return GenericAlias(tuple, (element, ...))


def _message(direction: EntityType, header: type[Any], partition: dict[str, tuple[Any, str | None]]) -> type[Any]:
    suffix = direction.name.capitalize()
    partition_class: Any = _kio_class(f"ListOffsetsPartition{suffix}", EntityType.nested, header, partition)
    topic_class: Any = _kio_class(
        f"ListOffsetsTopic{suffix}",
        EntityType.nested,
        header,
        {"name": (str, "string"), "partitions": (_array(partition_class), None)},
    )
    fields: dict[str, tuple[Any, str | None]] = {"topics": (_array(topic_class), None)}
    if direction is EntityType.request:
        fields = {"replica_id": (i32, "int32"), **fields}
    return _kio_class(f"ListOffsets{suffix}", direction, header, fields)


ListOffsetsRequest = _message(
    EntityType.request,
    RequestHeader,
    {"partition_index": (i32, "int32"), "timestamp": (i64, "int64"), "max_num_offsets": (i32, "int32")},
)
ListOffsetsResponse = _message(
    EntityType.response,
    ResponseHeader,
    {
        "partition_index": (i32, "int32"),
        "error_code": (ErrorCode, "error_code"),
        "old_style_offsets": (tuple[i64, ...], "int64"),
    },
)

SCHEMAS = {(LIST_OFFSETS_KEY, 0, "request"): ListOffsetsRequest, (LIST_OFFSETS_KEY, 0, "response"): ListOffsetsResponse}
