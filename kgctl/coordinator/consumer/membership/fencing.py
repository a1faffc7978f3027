"""Members go: they leave, their time is up, or an administrator removes them.

Kafka: GroupMetadataManager#consumerGroupFenceMembers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kgctl.coordinator.consumer.assignment.metadata_hash import group_hash
from kgctl.coordinator.consumer.assignment.subscription import topic_counts_without
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.consumer.migration.downgrade import can_downgrade, downgrade
from kgctl.coordinator.consumer.records import group_record, member_tombstones, tombstone
from kgctl.coordinator.shard import Shard
from kgctl.model.java_order import hash_map_order
from kgctl.model.records import ConsumerGroupRegularExpressionKey, CoordinatorRecord


def fence_members(shard: Shard, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> None:
    """Take members out and bump the group epoch once. The next heartbeat of somebody else computes the new target.

    When only members of the classic protocol are left, the group becomes a classic one, if the migration policy allows it.
    """
    if not members:
        return
    if can_downgrade(shard, group, members):
        downgrade(shard, group, members)
        return
    records: list[CoordinatorRecord] = []
    for member in members:
        records += member_tombstones(group.group_id, member.member_id)
    regexes = _regexes_of_nobody(group, members)
    records += [tombstone(ConsumerGroupRegularExpressionKey(group.group_id, regex)) for regex in regexes]
    new_hash = group_hash(topic_counts_without(group, members, regexes), shard.image)
    records.append(group_record(group.group_id, group.group_epoch + 1, new_hash))
    for member in members:
        for key in group.member_timers(member.member_id):
            shard.disarm(key)
    for record in records:
        shard.append(record.key, record.value)


def _regexes_of_nobody(group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> list[str]:
    """The expressions that only these members use."""
    counts = Counter(member.regex for member in leaving if member.regex is not None)
    return [regex for regex in hash_map_order(counts) if counts[regex] == group.regex_subscribers.get(regex, 0)]
