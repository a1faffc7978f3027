"""Every offset commit that took effect, and every removal of one (null ``committed_offset``).

Of the rows of a group, topic and partition with ``time_ms`` up to T, the one with the highest ``effect_offset`` is what was
committed at T. See ``kgctl.pipeline.decode.schemas.OFFSET_COMMITS`` for the columns and
``kgctl.pipeline.decode.transactions`` for the rule of what takes effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.pipeline.decode.schemas import OFFSET_COMMITS

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.tables.registry import PartitionInputs

NAME = "offset_commits"
VERSION = 1
SCHEMA = OFFSET_COMMITS


def build(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, topic, partition, effect_offset: as `kgctl.pipeline.decode.transactions.resolve` has made them."""
    return inputs.offset_commits
