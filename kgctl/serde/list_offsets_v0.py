"""ListOffsets version 0, which Kafka 4 dropped and kio does not have; older lag monitors (Burrow) ask nothing else.

The classes are made in kio's own form, so that its reader, the guard and the encoder treat them like any other message.
"""

from __future__ import annotations

from dataclasses import MISSING, field, make_dataclass
from types import GenericAlias
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader
from kio.schema.response_header.v0.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i64

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
