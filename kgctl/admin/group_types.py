"""What a reset means for a group by its type: rows are planned as for consumer groups, and made here what Kafka can do.

A share group has start offsets; a streams group has topics of its own, and none of others than its topology has.
"""

from __future__ import annotations

from dataclasses import replace

from kgctl.admin import ItemError
from kgctl.admin.offset_reset import ResetResult, ResetRow
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupDescription, OffsetAndMetadata, StartOffset
from kgctl.model.streams import is_inferred_internal

FORGETS = "which records past {} are acknowledged is forgotten, and no undo brings that back"


def is_own_topic(description: GroupDescription, topic: str) -> bool:
    """Whether it is a topic that the application itself writes: by its topology, else by its name."""
    topology = description.topology
    if topology is None:
        return False
    if topology.subtopologies is None:
        return is_inferred_internal(topic, description.group_id)
    return topic in topology.internal_topics


def of_type(row: ResetRow, description: GroupDescription) -> ResetRow:
    """The row with what a group of this type has in the place of a commit; failed where it can have none there."""
    if description.type.has_start_offsets:
        return _of_share_group(row)
    if row.old is None and row.new is not None and not _may_have(description, row.partition.topic):
        why = f"topic '{row.partition.topic}' is not part of the streams group '{description.group_id}'"
        return replace(row, result=ResetResult.FAILED, note=why, error=ItemError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why))
    if isinstance(row.new, StartOffset):
        return replace(row, new=OffsetAndMetadata(row.new.offset, "", row.new.leader_epoch))
    return row


def _may_have(description: GroupDescription, topic: str) -> bool:
    """Kafka's own tool goes by the commits alone; the topology is what these come from."""
    topology = description.topology
    return topology is None or topology.subtopologies is None or topic in topology.source_topics | topology.repartition_topics


def _of_share_group(row: ResetRow) -> ResetRow:
    """A start offset that stays is set all the same where records past it are, or may be, acknowledged."""
    if row.new is None:
        return row
    new = StartOffset(row.new.offset, "", row.new.leader_epoch)
    if row.old is None or row.old.is_all(row.log.log_end_offset) or row.result not in _TO_DO:
        return replace(row, new=new)
    forgets = FORGETS.format(row.old.offset)
    return replace(row, new=new, result=ResetResult.PLANNED, note=f"{row.note}; {forgets}" if row.note else forgets)


_TO_DO = (ResetResult.PLANNED, ResetResult.UNCHANGED)
