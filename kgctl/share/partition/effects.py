"""What a share partition wants done: the persister asked, requests answered, fetches that wait looked at."""

from __future__ import annotations

from kgctl.model.share import StateBatch
from kgctl.model.values import frozen_in_order
from kgctl.share.partition.results import ShareFailure


@frozen_in_order
class ReadState:
    """Ask the persister for what is kept; `SharePartition.read` takes the answer."""

    leader_epoch: int


@frozen_in_order
class WriteState:
    """Ask the persister to keep this; `SharePartition.written` takes the answer, by its ``token``, in any order."""

    token: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


@frozen_in_order
class ShareDone:
    """What was asked for with this ticket is over, well or with a failure."""

    ticket: int
    failure: ShareFailure | None = None


@frozen_in_order
class FetchesMayComplete:
    """Look at the fetches that wait for this share partition: records may have become available, or room for more."""


Effect = ReadState | WriteState | ShareDone | FetchesMayComplete
