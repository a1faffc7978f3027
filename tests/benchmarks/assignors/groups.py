"""The groups that are assigned: sizes, subscriptions, names, and what happens to them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

Owned = Mapping[str, Mapping[str, Sequence[int]]]


@dataclass(frozen=True)
class Group:
    """A group: topics of one size, members with their subscriptions."""

    topics: Mapping[str, int]
    subscriptions: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Size:
    """``subscriptions``: "equal", "half" (every member half of the topics, at random) or "odd" (one member lacks one topic)."""

    topics: int
    partitions: int
    members: int
    subscriptions: str = "equal"
    scattered: bool = False

    def __str__(self) -> str:
        names = ", scattered names" if self.scattered else ""
        return f"{self.topics} x {self.partitions} partitions, {self.members} members, {self.subscriptions} subscriptions{names}"

    def group(self) -> Group:
        """The group. Java's hashing makes names like topic-000 and scattered ones differ in speed."""
        random = Random(1)
        names = tuple(sorted(self._name(number) for number in range(self.topics)))
        subscriptions = {}
        for number in range(self.members):
            wanted = names
            if self.subscriptions == "half":
                wanted = tuple(sorted(random.sample(names, len(names) // 2)))
            elif self.subscriptions == "odd" and number == 0:
                wanted = names[1:]
            subscriptions[f"consumer-{number}-{number * 2654435761 % 2**32:08x}"] = wanted
        return Group(dict.fromkeys(names, self.partitions), subscriptions)

    def _name(self, number: int) -> str:
        return hashlib.md5(str(number).encode()).hexdigest()[:20] if self.scattered else f"topic-{number:03d}"


def steps(group: Group, assign: Callable[[Group, Owned], Owned]) -> Iterator[tuple[str, Group, Owned]]:
    """What happens: a fresh group, then from its assignment one member left, one joined, a tenth left."""
    yield "fresh", group, {}
    owned = assign(group, {})
    ids = list(group.subscriptions)
    yield "one left", Group(group.topics, {m: group.subscriptions[m] for m in ids[1:]}), owned
    yield "one joined", Group(group.topics, {**group.subscriptions, "consumer-new": tuple(group.topics)}), owned
    yield "a tenth left", Group(group.topics, {m: group.subscriptions[m] for m in ids[len(ids) // 10 :]}), owned
