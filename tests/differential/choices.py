"""What a sequence is made of: ids, topics, settings, and a way to choose among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from kgctl.coordinator.config import setting_names
from kgctl.coordinator.profile import Profile

T = TypeVar("T")

IDS = ("A", "B", "mm", "zz", "consumer-1-8f3a", "dK3xw_0QQ2GdTzq0b0bV5A", "Aa", "BB", "q-7", "x9")
"""Member ids that clients make. "Aa" and "BB" have the same hash in Java."""
DRAWN = tuple(f"{name}{number}" for number in range(8) for name in ("c-", "n", "Zq4-", "uuid-7f-", "m"))
"""Ids that the coordinator draws."""
INSTANCES = ("i-1", "i-2", "AaBB", "BBAa")
REGEXES = ("T.*", "T[13]", "T1|T2", ".*3", "none.*", "(?i)t2", "(", "a**", "T{1,2}4?", "")
GROUPS = ("g", "g", "g", "g", "g", "g", "h", "s")
PROTOCOLS = (
    ["range"],
    ["range", "roundrobin"],
    ["roundrobin", "range"],
    ["cooperative-sticky", "range"],
    ["sticky", "roundrobin"],
)
SETTINGS: dict[str, tuple[object, ...]] = {
    "group.initial.rebalance.delay.ms": (0, 0, 3000, 500),
    "group.max.size": (2, 3, 4),
    "group.consumer.max.size": (1, 2, 3),
    "group.consumer.assignment.interval.ms": (0, 0, 0, 1000, 5000),
    "group.share.assignment.interval.ms": (0, 0, 0, 1000, 5000),
    "group.share.max.size": (1, 2, 3, 10),
    "group.share.initialize.retry.interval.ms": (1, 10_000),
    "group.streams.initial.rebalance.delay.ms": (0, 0, 3000, 500),
    "group.streams.assignment.interval.ms": (0, 0, 0, 1000, 5000),
    "group.streams.num.standby.replicas": (0, 1, 2),
    "group.streams.max.size": (1, 2, 3),
    "group.consumer.assignors": ("range", "range,uniform", "uniform"),
    "group.consumer.migration.policy": ("disabled", "upgrade", "downgrade", "bidirectional"),
    "group.consumer.regex.refresh.interval.ms": (10000, 15000),
    "offsets.retention.minutes": (1, 1, 2),
    "offsets.retention.check.interval.ms": (10000, 20000),
    "offset.metadata.max.bytes": (3, 10),
}
TOPIC_IDS = {
    "T1": "T1-A4s3VTwiI5CTbEp6POw",
    "T2": "T2-B4s3VTwiI5YHbPp6YUe",
    "T3": "T3-CU8fVTLCz5YMkLoDQsa",
    "T4": "AAAAAAAAAAEAAAAAAAAAAg",
    "t3": "-0___________________w",
    **{name: f"{name}-A4s3VTwiI5CTbEp6POw" for name in ("C1", "C2", "R1", "R2")},
}
AGAIN = {name: f"{text[:10]}Z{text[11:]}" for name, text in TOPIC_IDS.items()}
"""The ids of topics of the same names that come after those."""


class Choice:
    """Chooses in the words that the sequences need; ``number`` is a number between two, both included.

    `random.Random.randint` is a fast one; `drawn_by_hypothesis` is one that hypothesis can make smaller: to the first of some.
    """

    def __init__(self, number: Callable[[int, int], int]) -> None:
        self.number = number

    def of(self, options: Sequence[T]) -> T:
        """One of these; the first is the simplest."""
        return options[self.number(0, len(options) - 1)]

    def often(self, usual: T, *others: T) -> T:
        """Mostly the first one."""
        return self.of((usual, usual, usual, usual, *others))

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.number(0, one_in - 1) == one_in - 1

    def some(self, options: Sequence[T]) -> list[T]:
        """Some of these, each once, perhaps none."""
        chosen = self.number(0, 2 ** len(options) - 1)
        return [option for bit, option in enumerate(options) if chosen >> bit & 1]

    def settings(self, profile: Profile) -> dict[str, Any]:
        """A few settings that are not the defaults, of those that the version has."""
        known = setting_names(profile)
        return {name: self.of(values) for name, values in SETTINGS.items() if name in known and self.chance(3)}


def drawn_by_hypothesis(data: DataObject) -> Choice:
    """Choices that hypothesis makes."""
    return Choice(lambda low, high: data.draw(st.integers(low, high)))
