"""Names of topic ids, as the log itself tells them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
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
    """What topic ids are called, by what one group's own records and commits tell; the id itself in Kafka's base64 form where
    they do not.

    Three things tell: commits with id and name, the topics that groups of Kafka before 4.1 list, and what members subscribe to: a
    member that is assigned an id subscribes to its topic, so that subscriptions that have one name in common tell it. Everything
    is learnt before the first question is asked.
    """

    def __init__(self) -> None:
        self._in_commits: dict[str, str] = {}
        self._in_lists: dict[str, str] = {}
        self._candidates: dict[UUID, set[str]] = {}
        self._subscriptions: dict[str, _Subscription] = {}
        self._regexes: dict[str, tuple[str, ...]] = {}
        self._texts: dict[UUID, str] = {}

    def state(self) -> dict[str, Any]:
        """What `restore` needs."""
        return vars(self)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        vars(self).update(state)

    def of(self, topic_id: UUID) -> str:
        """Its name, or the id as text."""
        text = self._texts.get(topic_id)
        if text is None:
            self._texts[topic_id] = text = self._named(topic_id)
        return text

    def has_changed(self) -> bool:
        """Whether an answer that was given before would be another one now."""
        return any(self._named(topic_id) != text for topic_id, text in self._texts.items())

    def _named(self, topic_id: UUID) -> str:
        encoded = uuid_text(topic_id.bytes)
        candidates = self._candidates.get(topic_id, set())
        told = self._in_lists.get(encoded) or self._in_commits.get(encoded)
        return told or (next(iter(candidates)) if len(candidates) == 1 else encoded)

    def learn_commit(self, topic_id: str, topic: str) -> None:
        """A commit has both; of several topics of one id, which no cluster has, the last by name counts."""
        self._in_commits[topic_id] = max(self._in_commits.get(topic_id, ""), topic)

    def learn(self, record: CoordinatorRecord) -> None:
        """The next record of the group."""
        match record.key, record.value:
            case ConsumerGroupPartitionMetadataKey(), bytes(value):
                self._learn_list(value)
            case ConsumerGroupMemberMetadataKey(_, member_id), ConsumerGroupMemberMetadataValue() as value:
                self._subscriptions[member_id] = (value.subscribed_topic_names, value.subscribed_topic_regex or "")
            case ConsumerGroupRegularExpressionKey(_, regex), ConsumerGroupRegularExpressionValue() as value:
                self._regexes[regex] = value.topics
            case ConsumerGroupTargetAssignmentMemberKey(_, member_id), ConsumerGroupTargetAssignmentMemberValue() as value:
                self._narrow(member_id, [topic_id for topic_id, _ in value.topic_partitions])
            case _:
                pass

    def _learn_list(self, partition_metadata: bytes) -> None:
        try:
            topics = _PARTITION_METADATA.read(Reader(partition_metadata, 2))
        except RecordDecodeError:
            return
        self._in_lists.update((uuid_text(topic_id.bytes), name) for topic_id, name in topics)

    def _narrow(self, member_id: str, topic_ids: Sequence[UUID]) -> None:
        names, regex = self._subscriptions.get(member_id, ((), ""))
        resolved = self._regexes.get(regex) if regex else ()
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


def telling(group_records: pa.Table) -> Iterator[tuple[str, CoordinatorRecord]]:
    """The records that `TopicNames.learn` wants, with their groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.array([int(record_type) for record_type in _TELLING], pa.int16())
    is_telling = pc.and_(pc.is_in(group_records.column("record_type"), types), pc.is_valid(group_records.column("value")))
    rows = group_records.filter(is_telling)
    for group, key, value in zip(*(rows.column(name).to_pylist() for name in ("group", "key", "value")), strict=True):
        yield group, decode_record(key, value)


def names_in(offset_commits: pa.Table) -> Iterator[tuple[str, str, str]]:
    """(group, topic id, topic) of commits that have both, each once."""
    rows = offset_commits.select(["group", "topic_id", "topic"]).group_by(["group", "topic_id", "topic"]).aggregate([])
    for row in rows.to_pylist():
        if row["topic_id"] is not None:
            yield row["group"], row["topic_id"], row["topic"]


def _topic(layout: Layout) -> Structure:
    racks = array(lambda inner: Structure(dict, (Field("partition", INT32), Field("racks", array(string))), inner))
    rows = (Field("id", uuid), Field("name", string), Field("partitions", INT32), Field("racks", racks))
    return Structure(lambda **found: (found["id"], found["name"]), rows, layout)


_PARTITION_METADATA = Structure(lambda topics: topics, (Field("topics", array(_topic)),), Layout(0, flexible=True))
"""Kafka: ConsumerGroupPartitionMetadataValue.json."""
