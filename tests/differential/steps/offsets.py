"""Steps about offsets, transactions among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.group import Group
from tests.differential.steps.classic import identity

if TYPE_CHECKING:
    from tests.differential.sequences import SequenceBuilder

Step = dict[str, Any]


def _offsets(builder: SequenceBuilder) -> dict[str, int]:
    chosen = builder.choice.some(builder.existing[:6]) or builder.existing[:1]
    return {name: builder.choice.number(0, 9) for name in chosen}


def _owner(builder: SequenceBuilder, group: Group | None) -> ConsumerMember | None:
    """A member that holds partitions."""
    members = group.members.values() if isinstance(group, ConsumerGroup) else ()
    owners = [member for member in members if member.assigned or member.pending_revocation]
    return builder.choice.of(owners) if owners else None


def _with_old_epoch(builder: SequenceBuilder, member: ConsumerMember) -> Step:
    """A commit of partitions that it holds, or nearly, with an epoch of the time since it has held them, or nearly."""
    choice = builder.choice
    held = sorted({*builder.names(member.assigned), *builder.names(member.pending_revocation)})
    epochs = {epoch for owned in (member.assigned, member.pending_revocation) for one in owned.values() for epoch in one.values()}
    names = choice.some(held[:6]) or held[:1]
    if choice.chance(6):
        names.append(choice.of(builder.existing))
    epoch = choice.of([*sorted(epochs), member.member_epoch, member.member_epoch - 1, min(epochs) - 1])
    step: Step = {"member": member.member_id, "generation": epoch}
    if member.instance_id is not None:
        step["instance"] = member.instance_id
    return {**step, "offsets": {name: choice.number(0, 9) for name in sorted(set(names))}}


def commit(builder: SequenceBuilder, group: Group | None) -> Step:
    """OffsetCommit, of a member or from outside."""
    choice = builder.choice
    step: Step = {"op": "offset_commit", "v": choice.often(9, 8, 7, 2), "offsets": _offsets(builder)}
    owner = _owner(builder, group)
    if owner is not None and choice.chance(2):
        step |= _with_old_epoch(builder, owner)
    else:
        step |= {"member": "", "generation": -1} if choice.chance(3) else identity(builder, group)
    if step["v"] < 7:
        step.pop("instance", None)
    if step["v"] == 2 and choice.chance(2):
        step["retention_ms"] = choice.of((0, 5000, 90_000))
    if choice.chance(6):
        step["metadata"] = {next(iter(step["offsets"])): choice.of(("note", "x*4097", "x*4096", "abc", "\u00e4\u20ac"))}
    return step


def txn_commit(builder: SequenceBuilder, group: Group | None) -> Step:
    """TxnOffsetCommit."""
    step: Step = {"op": "txn_offset_commit", "producer_id": builder.choice.of((1, 2)), "offsets": _offsets(builder)}
    owner = _owner(builder, group)
    if owner is not None and builder.choice.chance(3):
        return step | _with_old_epoch(builder, owner)
    return step if builder.choice.chance(2) else step | identity(builder, group)


def end_txn(builder: SequenceBuilder, _: Group | None) -> Step:
    """The end of a transaction."""
    return {"op": "end_txn", "producer_id": builder.choice.of((1, 2)), "result": builder.choice.of(("commit", "abort"))}


def fetch(builder: SequenceBuilder, group: Group | None) -> Step:
    """OffsetFetch."""
    step: Step = {"op": "offset_fetch", "topics": builder.choice.of((None, builder.existing[:3], ["gone-0", "T1-99"]))}
    if builder.choice.chance(2):
        said = identity(builder, group)
        step |= {"member": None if builder.choice.chance(10) else said["member"], "epoch": said["generation"]}
    if builder.choice.chance(3):
        step["require_stable"] = True
    return step


def delete_offsets(builder: SequenceBuilder, _: Group | None) -> Step:
    """OffsetDelete."""
    names = [*builder.existing[:5], "gone-0"]
    return {"op": "offset_delete", "topics": builder.choice.some(names) or names[:1]}
