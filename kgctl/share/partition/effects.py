"""What a share partition wants done: the persister asked, requests answered, fetches that wait looked at."""

from __future__ import annotations

from kgctl.model.share import PartitionState, StateBatch
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

    @property
    def change(self) -> PartitionState:
        """What it is to keep, as the persister is told."""
        return PartitionState(self.state_epoch, self.start_offset, self.delivery_complete_count, self.batches, self.leader_epoch)


@frozen_in_order
class ShareDone:
    """What was asked for with this ticket is over, well or with a failure."""

    ticket: int
    failure: ShareFailure | None = None


@frozen_in_order
class FetchesMayComplete:
    """Look at the fetches that wait for this share partition: records may have become available, or room for more."""


Effect = ReadState | WriteState | ShareDone | FetchesMayComplete
