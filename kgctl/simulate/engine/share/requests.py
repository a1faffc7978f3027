"""What a share consumer asks of one broker, and where the answer goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kgctl.share.partition import AcknowledgementBatch, AcquireMode

Acknowledgements = Mapping[int, Sequence[AcknowledgementBatch]]
"""Number of a partition -> what is said of its records."""


class Grant(NamedTuple):
    """Records, first to last, that a member was given; delivered so many times by now."""

    number: int
    first: int
    last: int
    deliveries: int

    @property
    def amount(self) -> int:
        """How many."""
        return self.last - self.first + 1


class ShareRequester(Protocol):
    """The consumer, as the brokers know it."""

    @property
    def member_id(self) -> str: ...
    @property
    def pod_number(self) -> int: ...
    def wants_more_at(self, time_us: int) -> bool: ...
    def answered(self, request: ShareRequest) -> None: ...
    def disconnected(self, request: ShareRequest) -> None: ...


@dataclass(slots=True, eq=False)
class ShareRequest:
    """A ShareFetch, or with ``numbers`` None a ShareAcknowledge. ``until_us``: when a fetch that waits is answered empty.

    ``ends_session``: what the member has of this broker's partitions is given back when it is answered.
    """

    who: ShareRequester
    node: int
    acknowledgements: Acknowledgements
    numbers: Sequence[int] | None = None
    ends_session: bool = False
    max_records: int = 0
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED
    max_wait_us: int = 0
    until_us: int = 0
    open: int = 0
    is_over: bool = False
    """A fetch that waits no more, and was answered without records."""
    granted: list[Grant] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
