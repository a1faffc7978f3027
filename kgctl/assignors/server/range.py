"""server-range: the coordinator's "range". Each topic cut into one run of partitions per subscriber, the first one longer.

Static members come first, by instance id, then the others by member id. History and racks are ignored. Kafka: the group
coordinator's ``RangeAssignor``, which is not the consumers' assignor of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kgctl.assignors.partition_space import java_text_key
from kgctl.assignors.server.spec import (
    IndexedGroup,
    IndexedMember,
    IndexedTarget,
    Move,
    TargetSpec,
    assign_by_name,
    by_id,
    indexed,
)
from kgctl.assignors.spec import GroupAssignment, GroupSpec, Promises


class ServerRangeAssignor:
    """The assignor that brokers know as "range". Kafka: RangeAssignor of the coordinator."""

    name = "server-range"
    promises = Promises(even_per_topic=True, ignores_member_order=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Return the targets of a group whose topics are given by name."""
        return assign_by_name(self.assign_indexed, group)

    def assign_targets(self, spec: TargetSpec, moves: list[Move] | None = None) -> dict[str, dict[UUID, Sequence[int]]]:  # noqa: ARG002
        """Runs of partitions, per topic balanced to one; none moves.

        Raises:
            AssignorError: a subscribed topic is not in ``spec.topics``.
        """
        group = indexed(spec)
        return by_id(spec, group.ids, self.assign_indexed(group))

    def assign_indexed(self, group: IndexedGroup) -> list[IndexedTarget]:
        """The same with indexes for ids, in the order of the members."""
        subscribers = [0] * len(group.counts)
        for member in group.members:
            for topic in member.topics:
                subscribers[topic] += 1
        group.check_topics_exist([topic for topic, count in enumerate(subscribers) if count])
        cuts = [_Cut(group.counts[topic], count) if count else None for topic, count in enumerate(subscribers)]
        targets: list[IndexedTarget] = [{} for _ in group.members]
        for position, member in sorted(enumerate(group.members), key=_order):
            target = targets[position]
            for topic in member.topics:
                cut = cuts[topic]
                assert cut is not None
                if run := cut.next():
                    target[topic] = run
        return targets


def _order(entry: tuple[int, IndexedMember]) -> tuple[bool, bytes]:
    member = entry[1]
    text = member.member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, java_text_key(text)


class _Cut:
    """A topic that is cut into runs, one for each subscriber."""

    def __init__(self, count: int, subscribers: int) -> None:
        self._quota, self._extras = divmod(count, subscribers)
        self._start = 0

    def next(self) -> range:
        """Return the next subscriber's run of partitions."""
        start = self._start
        self._start += self._quota
        if self._extras:
            self._start += 1
            self._extras -= 1
        return range(start, self._start)
