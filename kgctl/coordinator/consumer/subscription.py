"""What a group subscribes to: the topics, by name and by expression, their hash, and whether all members want the same.

An expression that nobody uses yet is resolved by the driver, asked with a `ResolveRegexes` effect after the heartbeat that
brought it; until then it stands for no topic. All expressions of a group are resolved together, at most every ten seconds.

Kafka: GroupMetadataManager#updateSubscriptionMetadata, #maybeUpdateRegularExpressions and #handleRegularExpressionsResult;
ConsumerGroup#subscriptionType.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kgctl.coordinator.consumer.group import ConsumerGroup, HeartbeatContext, TopicCount, add, have_same_topics
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.consumer.records import group_record, partition_metadata_record, regex_record, tombstone
from kgctl.coordinator.effects import ResolveRegexes
from kgctl.coordinator.modern.group import ModernGroup
from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.modern.topics import Subscriptions, group_hash
from kgctl.coordinator.shard import Shard
from kgctl.model.coordinator_records import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    CoordinatorRecord,
)
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.requests import Done, RegexResolved
from kgctl.model.values import copied_map_capacity, frozen_in_order, grown_capacity, hash_map_order, power_of_two_at_least
from kgctl.serde.partition_metadata import SubscribedTopic


def current_subscriptions(group: ConsumerGroup) -> Subscriptions:
    """Return the subscriptions as they are, for a request that changes none."""
    return Subscriptions(group.group_epoch, group.is_homogeneous)


def update_subscriptions(shard: Shard, change: HeartbeatContext, *, bump: bool) -> Subscriptions:
    """Look at the topics again, with ``new`` in the place of ``old``; a new hash bumps the group epoch, if ``bump`` does not."""
    group, old, new = change.group, change.old, change.new
    counts = topic_counts_with(group, old, new)
    regexes = _regex_subscribers_with(group, old, new)
    # A new epoch alone makes a new target: topics that changed need one, though nobody's subscription did (KIP-848).
    records = epoch_records(group, counts, shard.image, bump=bump)
    group_epoch = group.group_epoch + bool(records)
    change.records += records
    group.put_metadata_off(shard.now_ms, group_epoch)
    # Older brokers kept the partitions of each topic; the hash has replaced them (KIP-1101), so that record goes.
    if group.has_partition_metadata_record and group.profile.hashes_topics:
        change.records.append(tombstone(ConsumerGroupPartitionMetadataKey(group.group_id)))
    is_known = new.member_id in group.members or new.instance_id in group.static_members
    size = len(group.members) if is_known else len(group.members) + 1
    return Subscriptions(group_epoch, have_same_topics(regexes, counts, size))


def epoch_records(group: ConsumerGroup, names: Iterable[str], image: MetadataImage, *, bump: bool) -> list[CoordinatorRecord]:
    """The records of the next group epoch; none where neither ``bump`` nor the topics of these names ask for one."""
    if group.profile.hashes_topics:
        new_hash = group_hash(names, image)
        if bump or new_hash != group.metadata_hash:
            return [group_record(group.group_id, group.group_epoch + 1, new_hash)]
        return []
    topics = subscribed_topics(names, image)
    changed = topics != group.subscribed_topics
    records = [partition_metadata_record(group.group_id, topics)] if changed else []
    return [*records, group_record(group.group_id, group.group_epoch + 1, 0)] if bump or changed else []


def subscribed_topics(names: Iterable[str], image: MetadataImage) -> tuple[SubscribedTopic, ...]:
    """What brokers before 4.1 keep of the topics of these names: those that exist, by name."""
    topics = [image.topics[name] for name in sorted(names) if name in image.topics]
    return tuple(SubscribedTopic(topic.topic_id, topic.name, topic.partition_count) for topic in topics)


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
    # Only topics that came can match an expression anew; growing and going change what is matched already.
    if any(name not in before or before[name].topic_id != topic.topic_id for name, topic in after.items()):
        shard.last_version_with_new_topics = shard.image.version
    changed = {name for name in (*before, *after) if before.get(name) != after.get(name)}
    for group in shard.groups.values():
        if isinstance(group, ModernGroup) and any(map(group.depends_on, changed)):
            group.ask_for_metadata()


MIN_INTERVAL_MS = 10_000
"""Between two resolutions of a group. Kafka: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS."""


@frozen_in_order
class RegexUpdate:
    """What a request did to the member's expression. ``to_resolve``: all that the driver has to resolve now, if not empty.

    ``bumps``: the topics it stands for are known at once (it is resolved already, or it is gone), so the group epoch grows now.
    """

    changed: bool
    bumps: bool
    to_resolve: tuple[str, ...] = ()


_NOTHING_NEW = RegexUpdate(changed=False, bumps=False)


def update_regex(shard: Shard, change: HeartbeatContext) -> RegexUpdate:
    """Compare the member's expression before and after; ask for a resolution where one is due.

    Raises `Refusal` for bad syntax.
    """
    group, old, new = change.group, change.old, change.new
    changed = old.subscribed_regex != new.subscribed_regex
    if new.uses_classic_protocol and not group.profile.drops_regexes:
        return _NOTHING_NEW
    if not changed and not group.regex_subscribers:
        return _NOTHING_NEW
    bumps = is_new = False
    if changed:
        # The last subscriber takes the expression along. Kafka: GroupMetadataManager#maybeDeleteResolvedRegularExpressions.
        if old.regex is not None and group.regex_subscribers.get(old.regex, 0) == 1:
            change.records.append(tombstone(ConsumerGroupRegularExpressionKey(group.group_id, old.regex)))
        if new.regex is None:
            bumps = old.regex is not None and group.profile.drops_regexes
        elif group.regex_subscribers.get(new.regex, 0) == 0:
            # Checked once: whoever subscribes to it later finds it in the group.
            _check_syntax(new.regex)
            is_new = True
        else:
            bumps = new.regex in group.resolved_regexes
    return RegexUpdate(changed, bumps, _due(shard, change, is_new=is_new))


def _check_syntax(regex: str) -> None:
    from kgctl.coordinator.re2 import RegexSyntaxError, compiled

    try:
        compiled(regex)
    except RegexSyntaxError as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from error


def _due(shard: Shard, change: HeartbeatContext, *, is_new: bool) -> tuple[str, ...]:
    """The expressions to resolve now; none unless a resolution is due."""
    group = change.group
    # One resolution of a group at a time, and none where nobody subscribes by expression.
    if (not is_new and not group.regex_subscribers) or group.resolution_started_ms is not None:
        return ()
    order = group.resolved_regexes.java_order()
    # All of them are resolved together, so any one tells when. Kafka: ConsumerGroup#lastResolvedRegularExpressionRefreshTimeMs.
    last = group.resolved_regexes[order[0]] if order else None
    if last is not None and shard.now_ms <= last.timestamp_ms + MIN_INTERVAL_MS:
        return ()
    subscribed = _subscribed(change)
    is_due = (
        is_new
        or len(subscribed) != len(order)
        or (0 if last is None else last.version) < shard.last_version_with_new_topics
        or (last is None or shard.now_ms > last.timestamp_ms + shard.config.group_consumer_regex_refresh_interval_ms)
    )
    return subscribed if is_due else ()


def _subscribed(change: HeartbeatContext) -> tuple[str, ...]:
    """The expressions in use with this change, in the order of a HashMap copied from the group's, changed with compute."""
    counts, names = dict(change.group.regex_subscribers), change.group.regex_subscribers.java_order()
    capacity = copied_map_capacity(len(names))
    for member, by in ((change.old, -1), (change.new, 1)):
        regex = member.regex
        if regex is not None:
            if regex not in counts and by > 0:
                names.insert(0, regex)
            add(counts, regex, by)
            if regex not in counts:
                names.remove(regex)
    return tuple(hash_map_order(names, capacity=capacity))


def request_resolution(shard: Shard, group_id: str) -> None:
    """Ask the driver for what the request found to be due, now that its records are written and it is answered."""
    if not shard.regexes_to_resolve:
        return
    regexes = shard.regexes_to_resolve.pop(group_id, None)
    group = shard.groups.get(group_id)
    if regexes and isinstance(group, ConsumerGroup):
        group.resolution_started_ms = shard.now_ms
        shard.emit(ResolveRegexes(group_id, regexes, shard.now_ms, shard.image.version))


def handle_regex_resolved(shard: Shard, request: RegexResolved) -> None:
    """The driver's answer: a record for each expression in use, and a new group epoch if they stand for other topics now."""
    group = shard.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        shard.reply(request.request_id, Done(error=ErrorCode.GROUP_ID_NOT_FOUND))
        return
    group.resolution_started_ms = None
    # Members may have come and gone meanwhile: only what is in use still gets a record.
    capacity = grown_capacity(len(request.topics), power_of_two_at_least(len(request.topics)))
    order = hash_map_order(request.topics, capacity=capacity)
    in_use = [regex for regex in order if group.regex_subscribers.get(regex, 0) > 0]
    records = [
        regex_record(group.group_id, regex, request.topics[regex], request.metadata_version, request.started_ms)
        for regex in in_use
    ]
    changes = {regex: tuple(request.topics[regex]) for regex in in_use if _stands_for_others(group, regex, request)}
    new_epoch = epoch_records(group, topic_counts_resolved(group, changes), shard.image, bump=bool(changes))
    if new_epoch:
        group.put_metadata_off(shard.now_ms, group.group_epoch + 1)
    records += new_epoch
    for record in records:
        shard.append_record(record)
    shard.reply(request.request_id, Done())


def _stands_for_others(group: ConsumerGroup, regex: str, request: RegexResolved) -> bool:
    before = group.resolved_regexes.get(regex)
    return set(before.topics if before is not None else ()) != set(request.topics[regex])
