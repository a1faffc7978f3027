"""The partitions of a run, numbered in the order of their creation."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.model.partitions import TopicPartition


class PartitionTable:
    """Partition <-> number; when each was created and deleted. ``counted``: somebody subscribes to its topic."""

    def __init__(self) -> None:
        self.names: list[TopicPartition] = []
        self.labels: list[str] = []
        """The names as texts: "topic-0"."""
        self.numbers: dict[TopicPartition, int] = {}
        self.created_us: list[int] = []
        self.deleted_us: list[int | None] = []
        self.counted: list[bool] = []
        self.by_topic: dict[str, list[int]] = {}
        self.present: dict[str, list[int]] = {}
        """Topic that there is -> the numbers of its partitions, in their order."""

    def __len__(self) -> int:
        return len(self.names)

    def add(self, topic: str, count: int, now_us: int, *, counted: bool) -> list[int]:
        """The topic has these many partitions more. Their numbers."""
        present = self.present.setdefault(topic, [])
        added = []
        for partition in range(len(present), len(present) + count):
            name = TopicPartition(topic, partition)
            number = len(self.names)
            self.names.append(name)
            self.labels.append(str(name))
            self.numbers[name] = number
            self.created_us.append(now_us)
            self.deleted_us.append(None)
            self.counted.append(counted)
            self.by_topic.setdefault(topic, []).append(number)
            added.append(number)
        present += added
        return added

    def delete(self, topic: str, now_us: int) -> list[int]:
        """The topic is gone. The numbers that its partitions had."""
        gone = [number for number in self.by_topic.get(topic, ()) if self.deleted_us[number] is None]
        for number in gone:
            self.deleted_us[number] = now_us
        self.present.pop(topic, None)
        return gone

    def numbers_of(self, partitions: Iterable[TopicPartition]) -> list[int]:
        """The numbers of these; names that do not exist are left out."""
        found = map(self.numbers.get, partitions)
        return [number for number in found if number is not None]

    def existing(self) -> list[int]:
        """Those that exist now and count."""
        return [number for number in range(len(self.names)) if self.counted[number] and self.deleted_us[number] is None]
