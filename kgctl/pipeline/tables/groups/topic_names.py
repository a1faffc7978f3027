"""Names of topic ids, as the log itself tells them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from kgctl.model.records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    CoordinatorRecord,
    RecordType,
)
from kgctl.serde.coordinator_records import decode_record
from kgctl.serde.record_schema import INT32, Field, Layout, Reader, RecordDecodeError, Structure, array, string, uuid, uuid_text

if TYPE_CHECKING:
    import pyarrow as pa


class TopicNames:
    """What a topic id is called; the id itself in Kafka's base64 form where nothing tells.

    Three things tell: commits with id and name, the topics that groups of Kafka before 4.1 list, and what members subscribe to: a
    member that is assigned an id subscribes to its topic, so that subscriptions that have one name in common tell it.
    """

    def __init__(self, offset_commits: pa.Table, group_records: pa.Table) -> None:
        self._names = _names_in(offset_commits)
        self._candidates: dict[UUID, set[str]] = {}
        self._subscriptions: dict[tuple[str, str], _Subscription] = {}
        self._regexes: dict[tuple[str, str], tuple[str, ...]] = {}
        for key, value in _telling(group_records):
            self._learn(decode_record(key, value))
        self._texts: dict[UUID, str] = {}

    def of(self, topic_id: UUID) -> str:
        """Its name, or the id as text."""
        text = self._texts.get(topic_id)
        if text is None:
            self._texts[topic_id] = text = self._named(topic_id)
        return text

    def _named(self, topic_id: UUID) -> str:
        encoded = uuid_text(topic_id.bytes)
        candidates = self._candidates.get(topic_id, set())
        return self._names.get(encoded) or (next(iter(candidates)) if len(candidates) == 1 else encoded)

    def _learn(self, record: CoordinatorRecord) -> None:
        match record.key, record.value:
            case ConsumerGroupPartitionMetadataKey(), bytes(value):
                self._learn_list(value)
            case ConsumerGroupMemberMetadataKey(group, member_id), ConsumerGroupMemberMetadataValue() as value:
                self._subscriptions[group, member_id] = (value.subscribed_topic_names, value.subscribed_topic_regex or "")
            case ConsumerGroupRegularExpressionKey(group, regex), ConsumerGroupRegularExpressionValue() as value:
                self._regexes[group, regex] = value.topics
            case ConsumerGroupTargetAssignmentMemberKey(group, member_id), ConsumerGroupTargetAssignmentMemberValue() as value:
                self._narrow(group, member_id, [topic_id for topic_id, _ in value.topic_partitions])
            case _:
                pass

    def _learn_list(self, partition_metadata: bytes) -> None:
        try:
            topics = _PARTITION_METADATA.read(Reader(partition_metadata, 2))
        except RecordDecodeError:
            return
        self._names.update((uuid_text(topic_id.bytes), name) for topic_id, name in topics)

    def _narrow(self, group: str, member_id: str, topic_ids: Sequence[UUID]) -> None:
        names, regex = self._subscriptions.get((group, member_id), ((), ""))
        resolved = self._regexes.get((group, regex)) if regex else ()
        if resolved is None or not (names or resolved):
            return
        possible = {*names, *resolved}
        for topic_id in topic_ids:
            common = self._candidates.setdefault(topic_id, set(possible)) & possible
            self._candidates[topic_id] = common or possible


_Subscription = tuple[tuple[str, ...], str]
_TELLING = (
    RecordType.CONSUMER_GROUP_PARTITION_METADATA,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION,
)


def _telling(group_records: pa.Table) -> Iterator[tuple[bytes, bytes]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.array([int(record_type) for record_type in _TELLING], pa.int16())
    is_telling = pc.and_(pc.is_in(group_records.column("record_type"), types), pc.is_valid(group_records.column("value")))
    rows = group_records.filter(is_telling)
    yield from zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True)


def _names_in(offset_commits: pa.Table) -> dict[str, str]:
    """The ids in commits with their topics; of several topics of one id, which no cluster has, the last by name."""
    import numpy as np
    import pyarrow as pa

    from kgctl.pipeline.decode.ordering import ranked

    ids, id_texts = ranked(offset_commits.column("topic_id"))
    topics, topic_texts = ranked(offset_commits.column("topic"))
    has_id = ids >= 0
    topic_of = np.zeros(len(id_texts), np.int64)
    np.maximum.at(topic_of, ids[has_id], topics[has_id])
    return dict(zip(id_texts.to_pylist(), topic_texts.take(pa.array(topic_of)).to_pylist(), strict=True))


def _topic(layout: Layout) -> Structure:
    racks = array(lambda inner: Structure(dict, (Field("partition", INT32), Field("racks", array(string))), inner))
    rows = (Field("id", uuid), Field("name", string), Field("partitions", INT32), Field("racks", racks))
    return Structure(lambda **found: (found["id"], found["name"]), rows, layout)


_PARTITION_METADATA = Structure(lambda topics: topics, (Field("topics", array(_topic)),), Layout(0, flexible=True))
"""Kafka: ConsumerGroupPartitionMetadataValue.json."""
