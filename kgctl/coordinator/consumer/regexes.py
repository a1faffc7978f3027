"""Subscriptions by regular expression: matched against all topics in the background, the result kept in records.

An expression that nobody uses yet is resolved by the driver, asked with a `ResolveRegexes` effect after the heartbeat that
brought it; until then it stands for no topic. All expressions of a group are resolved together, at most every ten seconds.
Kafka: GroupMetadataManager#maybeUpdateRegularExpressions and #handleRegularExpressionsResult.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.coordinator.consumer.group import ConsumerGroup, add
from kgctl.coordinator.consumer.member import Refusal
from kgctl.coordinator.consumer.records import group_record, regex_record, tombstone
from kgctl.coordinator.consumer.request_context import RequestContext
from kgctl.coordinator.consumer.subscription import METADATA_REFRESH_MS, group_hash, topic_counts_resolved
from kgctl.coordinator.effects import ResolveRegexes
from kgctl.coordinator.re2 import RegexSyntaxError, compiled
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.java_order import copied_map_capacity, grown_capacity, hash_map_order, power_of_two_at_least
from kgctl.model.records import ConsumerGroupRegularExpressionKey
from kgctl.model.requests import RegexResolved
from kgctl.model.results import Done

MIN_INTERVAL_MS = 10_000
"""Between two resolutions of a group. Kafka: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS."""


@dataclass(frozen=True, slots=True)
class RegexUpdate:
    """What a request did to the member's expression. ``to_resolve``: all that the driver has to resolve now, if not empty.

    ``bumps``: the topics it stands for are known at once (it is resolved already, or it is gone), so the group epoch grows now.
    """

    changed: bool
    bumps: bool
    to_resolve: tuple[str, ...] = ()


def update_regex(shard: Shard, change: RequestContext) -> RegexUpdate:
    """Compare the member's expression before and after; ask for a resolution where one is due.

    Raises `Refusal` for bad syntax.
    """
    group, old, new = change.group, change.old, change.new
    changed = old.subscribed_regex != new.subscribed_regex
    bumps = is_new = False
    if changed:
        if old.regex is not None and group.regex_subscribers.get(old.regex, 0) == 1:
            change.records.append(tombstone(ConsumerGroupRegularExpressionKey(group.group_id, old.regex)))
        if new.regex is None:
            bumps = old.regex is not None
        elif group.regex_subscribers.get(new.regex, 0) == 0:
            _check_syntax(new.regex)
            is_new = True
        else:
            bumps = new.regex in group.resolved_regexes
    return RegexUpdate(changed, bumps, _due(shard, change, is_new=is_new))


def _check_syntax(regex: str) -> None:
    try:
        compiled(regex)
    except RegexSyntaxError as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from error


def _due(shard: Shard, change: RequestContext, *, is_new: bool) -> tuple[str, ...]:
    """The expressions to resolve now; none unless a resolution is due."""
    group = change.group
    if (not is_new and not group.regex_subscribers) or group.resolution_started_ms is not None:
        return ()
    order = group.resolved_regexes.java_order()
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


def _subscribed(change: RequestContext) -> tuple[str, ...]:
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
    capacity = grown_capacity(len(request.topics), power_of_two_at_least(len(request.topics)))
    order = hash_map_order(request.topics, capacity=capacity)
    in_use = [regex for regex in order if group.regex_subscribers.get(regex, 0) > 0]
    records = [
        regex_record(group.group_id, regex, request.topics[regex], request.metadata_version, request.started_ms)
        for regex in in_use
    ]
    changes = {regex: tuple(request.topics[regex]) for regex in in_use if _stands_for_others(group, regex, request)}
    new_hash = group_hash(topic_counts_resolved(group, changes), shard.image)
    if changes or new_hash != group.metadata_hash:
        group_epoch = group.group_epoch + 1
        records.append(group_record(group.group_id, group_epoch, new_hash))
        group.metadata_deadline_ms = shard.now_ms + METADATA_REFRESH_MS
        group.metadata_deadline_epoch = group_epoch
    for record in records:
        shard.append(record.key, record.value)
    shard.reply(request.request_id, Done())


def _stands_for_others(group: ConsumerGroup, regex: str, request: RegexResolved) -> bool:
    before = group.resolved_regexes.get(regex)
    return set(before.topics if before is not None else ()) != set(request.topics[regex])
