"""A response as plain values that two servers can be compared by: free of ids and times, lists in an order of their own."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

from kgctl.serde.codec import Entity
from kgctl.serde.record_batch import iterate_batches, iterate_records

ORDER_KEYS = (
    "name",
    "topic",
    "topic_id",
    "group_id",
    "partition_index",
    "partition",
    "index",
    "key",
    "entity_type",
    "user",
    "mechanism",
)
"""What a list of topics, partitions or groups is sorted by."""


class Plain:
    """``name`` makes a value that stands in a field (by its name) comparable: an id becomes a name."""

    def __init__(self, name: Callable[[Any, str], Any], order_keys: tuple[str, ...] = ORDER_KEYS) -> None:
        self._name = name
        self._order_keys = order_keys

    def of(self, value: Any, key: str = "") -> Any:
        """The plain form of an entity or of a part of one."""
        if isinstance(value, Entity):
            return {name: self.of(getattr(value, name), name) for name in value.__slots__}
        if key == "records" and value:
            return self._batches(value)
        if isinstance(value, tuple):
            return self._in_order([self.of(entry, key) for entry in value])
        if isinstance(value, enum.Enum):
            return value.name
        if key == "log_append_time_ms" and value != -1:
            return "a time"
        return self._name(value, key)

    def _batches(self, data: bytes) -> Any:
        """Record batches without their checksums, and without the time of a marker, which the server sets."""
        batches = []
        for position, header in iterate_batches(data):
            fields = {field.name: getattr(header, field.name) for field in dataclasses.fields(header)}
            hidden = ("crc", "base_timestamp_ms", "max_timestamp_ms") if header.is_control else ("crc",)
            records = [(record.offset, record.key, record.value) for record in iterate_records(data, position)]
            named = {key: self._name(value, key) for key, value in fields.items() if key not in hidden}
            batches.append({**named, "records": records})
        return batches

    def _in_order(self, entries: list[Any]) -> list[Any]:
        """Topics, partitions and groups by name and number: Kafka answers many of them in the order of a hash map."""
        if all(isinstance(entry, dict) for entry in entries):
            return sorted(entries, key=lambda entry: tuple(str(entry.get(key, "")) for key in self._order_keys))
        return entries
