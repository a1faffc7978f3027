"""What the coordinator wants done: replies to give, records to append, background work to run. It never does anything itself."""

from __future__ import annotations

from kgctl.errors import InvariantViolation
from kgctl.model.groups import CoordinatorRecord, TransactionMarker
from kgctl.model.requests import Result
from kgctl.model.values import frozen_in_order


@frozen_in_order
class Reply:
    """Answer the request with this id, once every `AppendRecord` before it in the same list is durable."""

    request_id: int
    result: Result


@frozen_in_order
class AppendRecord:
    """Append this to the log. It is applied to the core's own state already (through ``replay``): do not replay it again.

    ``producer_id`` is set on transactional offsets, which stay pending until the `TransactionMarker`. ``member_id`` names the
    member that committed an offset, where there is one: the record itself does not hold it, the audit log does.
    """

    record: CoordinatorRecord | TransactionMarker
    producer_id: int | None = None
    producer_epoch: int = 0
    member_id: str | None = None


@frozen_in_order
class ResolveRegexes:
    """Match these RE2 expressions against all topic names, whole names only, and hand the result back as a `RegexResolved`."""

    group_id: str
    regexes: tuple[str, ...]
    started_ms: int
    metadata_version: int


@frozen_in_order
class GroupFailed:
    """Tell the operator that a timer of this group (of the coordinator itself: ``""``) broke an invariant: a bug, with its story.

    Nobody else is concerned, and the coordinator has seen to the group: whoever waits in it is told to ask again, and the
    timer is tried again later. A driver that runs tests or simulations raises ``error``.
    """

    group_id: str
    error: InvariantViolation


Effect = Reply | AppendRecord | ResolveRegexes | GroupFailed
