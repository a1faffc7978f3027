"""Copies of a state apart from it and from each other: on instances with other client tags (KIP-708).

Kafka: ClientTagAwareStandbyTaskAssignor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import TypeAlias

Instance: TypeAlias = tuple[int, int]
"""What an instance is told apart by."""
Tags: TypeAlias = Mapping[str, str]


class TagValues:
    """The tags of all instances; those of ``wanted`` keys count."""

    def __init__(self, tags: Mapping[Instance, Tags], wanted: Collection[str]) -> None:
        self._tags = tags
        self._wanted = wanted
        self._instances: dict[tuple[str, str], set[Instance]] = {}
        for instance, own in tags.items():
            for entry in own.items():
                self._instances.setdefault(entry, set()).add(instance)

    def wanted_of(self, instance: Instance) -> list[tuple[str, str]]:
        """Return the tags of an instance that count."""
        return [(key, value) for key, value in self._tags[instance].items() if key in self._wanted]

    def entries(self, key: str) -> list[tuple[str, str]]:
        """Return the tag with each value that some instance has."""
        return [entry for entry in self._instances if entry[0] == key]

    def instances(self, entry: tuple[str, str]) -> Set[Instance]:
        """Return those that have this tag with this value."""
        return self._instances[entry]


class UsedTags:
    """The tags of the instances that have a task, or a copy of it."""

    def __init__(self, values: TagValues) -> None:
        self._values = values
        self._used: dict[tuple[str, str], Set[Instance]] = {}

    def use(self, instance: Instance, count: int) -> None:
        """It is the one of this number that has it. A tag of which all values are used begins anew."""
        for key, value in self._values.wanted_of(instance):
            entries = self._values.entries(key)
            if len(entries) <= count:
                for entry in entries:
                    self._used.pop(entry, None)
            else:
                self._used[key, value] = self._values.instances((key, value))

    def shares_with(self, instance: Instance) -> bool:
        """Whether the instance has a value that is used."""
        return any(instance in instances for instances in self._used.values())


def agree(source: Tags, destination: Tags) -> bool:
    """Whether a copy may move: each tag of the one has the same value at the other."""
    return all(destination.get(key) == value for key, value in source.items())
