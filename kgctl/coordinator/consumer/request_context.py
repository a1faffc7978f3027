"""What a request of one member changes in its group, step by step, before anything is written."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.model.records import CoordinatorRecord


@dataclass(slots=True)
class RequestContext:
    """The group as it was, the member as it was (``old``) and as it is so far (``new``), and the records to write at the end.

    Every step looks at the group as it was before the request; none sees what an earlier one has put into ``records``.
    """

    group: ConsumerGroup
    old: ConsumerMember
    new: ConsumerMember
    records: list[CoordinatorRecord] = field(default_factory=list)

    @property
    def names_changed(self) -> bool:
        """Whether the member subscribes to other names than before."""
        return self.new.topic_set != self.old.topic_set
