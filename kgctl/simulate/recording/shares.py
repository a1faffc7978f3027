"""What a share group leaves behind: which records were delivered again, given back, archived or done, when, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from kgctl.simulate.recording.recording import Counted, Intervals
from kgctl.simulate.recording.traffic import LinearSeries
from kgctl.simulate.scenario.vocabulary import GivenBack


class Return(NamedTuple):
    """Records, first to last, that a pod had and has no more; they may be delivered again."""

    at_us: int
    number: int
    first: int
    last: int
    pod: int
    why: GivenBack

    @property
    def amount(self) -> int:
        """Return how many."""
        return self.last - self.first + 1


class Redelivery(NamedTuple):
    """Records, first to last, that are delivered for the ``deliveries``-th time: to whom, from whom they came back, and why."""

    at_us: int
    number: int
    first: int
    last: int
    deliveries: int
    pod: int
    before: int
    why: GivenBack

    @property
    def amount(self) -> int:
        """Return how many."""
        return self.last - self.first + 1


class Archival(NamedTuple):
    """Records, first to last, that are given up after so many deliveries: at the limit, or as the application rejects them."""

    at_us: int
    number: int
    first: int
    last: int
    deliveries: int
    pod: int
    why: GivenBack

    @property
    def before(self) -> int:
        """Return who had them last."""
        return self.pod

    @property
    def amount(self) -> int:
        """Return how many."""
        return self.last - self.first + 1


@dataclass(slots=True)
class ShareHistory:
    """One share group's records. Amounts are records; ``what`` of each `Counted` is its topic."""

    delivered: list[Counted] = field(default_factory=list)
    """Every delivery, the first of a record and each later one."""
    redelivered: list[Redelivery] = field(default_factory=list)
    returned: list[Return] = field(default_factory=list)
    archived: list[Archival] = field(default_factory=list)
    acknowledged: list[Counted] = field(default_factory=list)
    refused: list[Counted] = field(default_factory=list)
    """Acknowledgements that came too late: the records are others' by then."""
    in_flight: dict[str, LinearSeries] = field(default_factory=dict)
    """Topic -> records that members have, over time."""
    held: list[tuple[int, str, Counter[int]]] = field(default_factory=list)
    """(when, topic, how long records were with their member until they were acknowledged -> how many)."""
    waiting: dict[int, Intervals] = field(default_factory=dict)
    """Pod -> when its application waited in poll() for records."""
