"""What a group subscribes to: the topics, their hash, and whether all members want the same.

Kafka: GroupMetadataManager#updateSubscriptionMetadata, ConsumerGroup#subscriptionType.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kgctl.coordinator.consumer.assignment.metadata_hash import group_hash
from kgctl.coordinator.consumer.change import Change
from kgctl.coordinator.consumer.group import ConsumerGroup, TopicCount, add, have_same_topics
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.consumer.records import group_record, tombstone
from kgctl.coordinator.shard import Shard
from kgctl.model.records import ConsumerGroupPartitionMetadataKey

METADATA_REFRESH_MS = 2**31 - 1
"""Topics that change say so themselves; the hash is not looked at for any other reason."""


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The outcome: the group epoch, and whether all members subscribe to the same."""

    group_epoch: int
    is_homogeneous: bool


def current_subscriptions(group: ConsumerGroup) -> Subscriptions:
    """As they are, when a request changes nothing."""
    return Subscriptions(group.group_epoch, group.is_homogeneous)


def update_subscriptions(shard: Shard, change: Change, *, bump: bool) -> Subscriptions:
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
