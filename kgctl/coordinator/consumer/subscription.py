"""What a group subscribes to: the topics, their hash, and whether all members want the same.

Kafka: GroupMetadataManager#updateSubscriptionMetadata, ConsumerGroup#subscriptionType.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from xxhash import xxh3_64_intdigest

from kgctl.coordinator.consumer.group import ConsumerGroup, TopicCount, add, have_same_topics
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.consumer.records import group_record, tombstone
from kgctl.coordinator.consumer.request_context import RequestContext
from kgctl.coordinator.shard import Shard
from kgctl.model.partitions import MetadataImage, TopicMetadata
from kgctl.model.records import ConsumerGroupPartitionMetadataKey

_MAGIC = b"\x00"
_INT32 = struct.Struct("<i")
_INT64 = struct.Struct("<q")


@lru_cache(maxsize=4096)
def topic_hash(topic: TopicMetadata) -> int:
    """The hash of one topic as a signed 64-bit number: id, name, number of partitions, and each partition's racks."""
    data = bytearray(_MAGIC)
    high, low = divmod(topic.topic_id.int, 1 << 64)
    data += struct.pack("<QQ", high, low)
    data += _string(topic.name) + _INT32.pack(topic.partition_count)
    for partition in range(topic.partition_count):
        data += _INT32.pack(partition)
        racks = topic.partition_racks[partition] if partition < len(topic.partition_racks) else ()
        for rack in sorted(racks, key=_utf16_order):
            data += _INT32.pack(len(_utf16(rack)) // 2) + _string(rack)
    return _signed(xxh3_64_intdigest(bytes(data)))


def group_hash(names: Iterable[str], image: MetadataImage) -> int:
    """The hash of a group that subscribes to these names: over those that exist, in order of name; 0 when there are none."""
    topics = sorted((name for name in names if name in image.topics), key=_utf16_order)
    if not topics:
        return 0
    return _signed(xxh3_64_intdigest(b"".join(_INT64.pack(topic_hash(image.topics[name])) for name in topics)))


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _utf16_order(text: str) -> bytes:
    """Sorts as Java compares strings, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> bytes:
    """The units of the text and then how many there are."""
    units = _utf16(text)
    return units + _INT32.pack(len(units) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


METADATA_REFRESH_MS = 2**31 - 1
"""Topics that change say so themselves; the hash is not looked at for any other reason."""


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The outcome: the group epoch, and whether all members subscribe to the same."""

    group_epoch: int
    is_homogeneous: bool


def current_subscriptions(group: ConsumerGroup) -> Subscriptions:
    """Return the subscriptions as they are, for a request that changes none."""
    return Subscriptions(group.group_epoch, group.is_homogeneous)


def update_subscriptions(shard: Shard, change: RequestContext, *, bump: bool) -> Subscriptions:
    """Look at the topics again, with ``new`` in the place of ``old``; a new hash bumps the group epoch, if ``bump`` does not."""
    group, old, new = change.group, change.old, change.new
    counts = topic_counts_with(group, old, new)
    regexes = _regex_subscribers_with(group, old, new)
    new_hash = group_hash(counts, shard.image)
    group_epoch = group.group_epoch
    if bump or new_hash != group.metadata_hash:
        group_epoch += 1
        change.records.append(group_record(group.group_id, group_epoch, new_hash))
    group.metadata_deadline_ms = shard.now_ms + METADATA_REFRESH_MS
    group.metadata_deadline_epoch = group_epoch
    if group.has_partition_metadata_record:
        change.records.append(tombstone(ConsumerGroupPartitionMetadataKey(group.group_id)))
    is_known = new.member_id in group.members or new.instance_id in group.static_members
    size = len(group.members) if is_known else len(group.members) + 1
    return Subscriptions(group_epoch, have_same_topics(regexes, counts, size))


def topic_counts_with(group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> Mapping[str, TopicCount]:
    """The group's counts with ``new`` in the place of ``old``. An expression that nobody uses any more counts no longer."""
    dropped = old.regex is not None and old.regex != new.regex and group.regex_subscribers.get(old.regex, 0) == 1
    if old.topic_set == new.topic_set and not dropped:
        return group.topic_counts
    counts = _copy(group.topic_counts)
    _change(counts, old.subscribed_topics, by_name=-1)
    _change(counts, new.subscribed_topics, by_name=1)
    resolved = group.resolved_regexes.get(old.regex or "") if dropped else None
    if resolved is not None:
        _change(counts, resolved.topics, by_regex=-1)
    return counts


def topic_counts_without(
    group: ConsumerGroup, members: Iterable[ConsumerMember], regexes: Iterable[str]
) -> Mapping[str, TopicCount]:
    """The group's counts when these members and the expressions that only they used are gone."""
    counts = _copy(group.topic_counts)
    for member in members:
        _change(counts, member.subscribed_topics, by_name=-1)
    for regex in regexes:
        if regex in group.resolved_regexes:
            _change(counts, group.resolved_regexes[regex].topics, by_regex=-1)
    return counts


def topic_counts_resolved(group: ConsumerGroup, changes: Mapping[str, tuple[str, ...]]) -> Mapping[str, TopicCount]:
    """The group's counts when these expressions stand for these topics."""
    counts = _copy(group.topic_counts)
    for regex, topics in changes.items():
        if regex in group.resolved_regexes:
            _change(counts, group.resolved_regexes[regex].topics, by_regex=-1)
        _change(counts, topics, by_regex=1)
    return counts


def _copy(counts: Mapping[str, TopicCount]) -> dict[str, TopicCount]:
    return {topic: replace(count) for topic, count in counts.items()}


def _change(counts: dict[str, TopicCount], topics: Iterable[str], *, by_name: int = 0, by_regex: int = 0) -> None:
    for topic in topics:
        count = counts.setdefault(topic, TopicCount())
        count.by_name += by_name
        count.by_regex += by_regex
        if count.by_name <= 0 and count.by_regex <= 0:
            del counts[topic]


def _regex_subscribers_with(group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> Mapping[str, int]:
    if old.regex == new.regex:
        return group.regex_subscribers
    counts = dict(group.regex_subscribers)
    if old.regex is not None:
        add(counts, old.regex, -1)
    if new.regex is not None:
        add(counts, new.regex, 1)
    return counts


def on_topics_changed(shard: Shard, old: MetadataImage) -> None:
    """`Shard.image` is new; ``old`` is what it was. Nothing is written: a group's next heartbeat finds its hash to be due."""
    before, after = old.topics, shard.image.topics
    if any(name not in before or before[name].topic_id != topic.topic_id for name, topic in after.items()):
        shard.last_version_with_new_topics = shard.image.version
    changed = {name for name in (*before, *after) if before.get(name) != after.get(name)}
    for group in shard.groups.values():
        if isinstance(group, ConsumerGroup) and not changed.isdisjoint(group.topic_counts):
            group.metadata_deadline_ms = group.metadata_deadline_epoch = 0
