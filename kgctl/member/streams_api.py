"""What a member of a Kafka Streams application asks of the rest of its instance, which is its driver's.

Kafka: TaskManager and StateDirectory, as StreamsPartitionAssignor and StreamsRebalanceData see them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol
from uuid import UUID

from kgctl.assignors.high_availability import NumberedTask
from kgctl.assignors.streams.partition_assignor import TaskTopology


class TaskHost(Protocol):
    """One instance with its tasks and what it has on disk."""

    @property
    def process_id(self) -> UUID:
        """The id of this instance, which lives as long as its state directory."""
        ...

    @property
    def topology(self) -> TaskTopology:
        """What the application consists of."""
        ...

    def offset_sums(self, now_us: int) -> Mapping[NumberedTask, int]:
        """How far the states that are here are: of running tasks `LATEST_OFFSET`, of others the sum of their offsets."""
        ...

    def end_offset_sums(self, tasks: Collection[NumberedTask], now_us: int) -> Mapping[NumberedTask, int]:
        """Where the changelogs of these tasks end, as the brokers say."""
        ...

    def assigned(self, active: Collection[NumberedTask], standby: Collection[NumberedTask], now_us: int) -> None:
        """These tasks are its from now on, to run or as copies; the partitions of new ones come after it."""
        ...

    def probes(self, now_us: int) -> None:
        """It joins again to see whether copies have caught up, as its leader has told it."""
        ...
