"""server-range: the coordinator's "range". Each topic cut into one run of partitions per subscriber, the first one longer.

Static members come first, by instance id, then the others by member id. History and racks are ignored. Kafka: the group
coordinator's ``RangeAssignor``, which is not the consumers' assignor of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kgctl.assignors.partition_space import java_text_key
from kgctl.assignors.server.by_name import assign_by_name
from kgctl.assignors.server.spec import TargetMember, TargetSpec
from kgctl.assignors.spec import AssignorError, GroupAssignment, GroupSpec


class ServerRangeAssignor:
    """The assignor that brokers know as "range"."""

    name = "server-range"

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """The targets of a group with topics by name."""
        return assign_by_name(self, group)

    def assign_targets(self, spec: TargetSpec) -> dict[str, dict[UUID, Sequence[int]]]:
        """Runs of partitions, per topic balanced to one.

        Raises:
            AssignorError: a subscribed topic is not in ``spec.topics``.
        """
        members = sorted(spec.members, key=_order)
        subscribers: dict[UUID, int] = {}
        for member in members:
            for topic in member.topic_ids:
                subscribers[topic] = subscribers.get(topic, 0) + 1
        if not subscribers.keys() <= spec.topics.keys():
            raise AssignorError("Member is subscribed to a non-existent topic")
        cuts = {topic: _Cut(spec.topics[topic], count) for topic, count in subscribers.items()}
        targets = {member.member_id: {topic: cuts[topic].next() for topic in member.topic_ids} for member in members}
        return {
            member.member_id: {topic: run for topic, run in targets[member.member_id].items() if run} for member in spec.members
        }


def _order(member: TargetMember) -> tuple[bool, bytes | str]:
    text = member.member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, java_text_key(text)


class _Cut:
    """A topic that is cut into runs."""

    def __init__(self, count: int, subscribers: int) -> None:
        self._quota, self._extras = divmod(count, subscribers)
        self._start = 0

    def next(self) -> range:
        """The next subscriber's run."""
        start = self._start
        self._start += self._quota
        if self._extras:
            self._start += 1
            self._extras -= 1
        return range(start, self._start)
