"""What a share group leaves behind: which records were delivered again, given back, archived or done, when, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kgctl.simulate.recording.recording import Counted, Intervals
from kgctl.simulate.recording.traffic import LinearSeries
from kgctl.simulate.scenario.vocabulary import GivenBack


@dataclass(frozen=True, slots=True)
class RecordRange:
    """Records of a partition, first to last, to which something has happened."""

    at_us: int
    number: int
    first: int
    last: int

    @property
    def amount(self) -> int:
        """Return how many."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Return(RecordRange):
    """Records that a pod had and has no more; they may be delivered again."""

    pod: int
    why: GivenBack


@dataclass(frozen=True, slots=True)
class Redelivery(RecordRange):
    """Records that are delivered for the ``deliveries``-th time: to whom, from whom they came back, and why."""

    deliveries: int
    pod: int
    before: int
    why: GivenBack


@dataclass(frozen=True, slots=True)
class Archival(RecordRange):
    """Records that are given up after so many deliveries: at the limit, or as the application rejects them."""

    deliveries: int
    pod: int
    why: GivenBack

    @property
    def before(self) -> int:
        """Return who had them last."""
        return self.pod


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
