"""What readers of committed records need to know of one partition: where transactions are open, and which were aborted."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgctl.model.records import TransactionMarker
from kgctl.serde.record_batch import BatchHeader, iterate_batches, parse_marker


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An aborted transaction's records lie from ``first_offset`` to its marker at ``last_offset``."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class TransactionIndex:
    """Fed with each transactional batch and each marker, in the order of the log. Kafka: ProducerStateManager."""

    open: dict[int, int] = field(default_factory=dict)
    """Producer id to the first offset of its open transaction."""
    aborted: list[AbortedTransaction] = field(default_factory=list)

    def wrote(self, header: BatchHeader, base_offset: int) -> None:
        """A batch was appended; only transactional ones matter."""
        if header.is_transactional and not header.is_control:
            self.open.setdefault(header.producer_id, base_offset)

    def ended(self, marker: TransactionMarker, offset: int) -> None:
        """A marker was appended at ``offset``."""
        first = self.open.pop(marker.producer_id, None)
        if first is not None and not marker.committed:
            self.aborted.append(AbortedTransaction(marker.producer_id, first, offset))

    def stable_offset(self, end_offset: int) -> int:
        """The last stable offset: where the oldest open transaction begins, or the end."""
        return min(self.open.values(), default=end_offset)

    def aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records among these offsets."""
        return [entry for entry in self.aborted if entry.last_offset >= start and entry.first_offset < end]

    def read(self, batches: bytes) -> int | None:
        """Take a piece of the log in; the offset after it, None for no batch."""
        next_offset = None
        for position, header in iterate_batches(batches):
            self.wrote(header, header.base_offset)
            marker = parse_marker(batches, position) if header.is_control else None
            if marker is not None:
                self.ended(marker, header.base_offset)
            next_offset = header.last_offset + 1
        return next_offset
