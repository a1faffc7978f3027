"""Timers that take a member out when they fire. Kafka: the operations of GroupMetadataManager#schedule*."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from kgctl.coordinator.modern.group import ModernGroup
from kgctl.coordinator.modern.member import Refusal

if TYPE_CHECKING:
    from kgctl.coordinator.shard import Shard
    from kgctl.coordinator.timers import Timer

RETRY_MS = 500
"""After this a timer whose work Kafka's own code fails at is tried again. Kafka: CoordinatorTimerImpl's retryBackoff."""

G = TypeVar("G", bound=ModernGroup[Any, Any])


def fencing(kind: type[G], fence: Callable[[Shard, G, Any], None], *, at_epoch: bool = False) -> Callable[[Shard, Timer], None]:
    """What a member's timer does: ``fence`` the member, if it and its group are still there.

    ``at_epoch``: only if it is still at the epoch for which the timer was armed. A member that has done what it had to is at
    another; the timer of a later duty has replaced this one.
    """

    def on_timer(shard: Shard, timer: Timer) -> None:
        group = shard.groups.get(timer.key.group_id)
        member = group.members.get(timer.key.member_id) if isinstance(group, kind) else None
        if not isinstance(group, kind) or member is None or (at_epoch and member.member_epoch != timer.argument):
            return
        shard.story.note(group.group_id, shard.now_ms, f"{timer.key.kind} timer fences", member.member_id)
        try:
            fence(shard, group, member)
        except Refusal:
            shard.arm(timer.key, RETRY_MS, timer.argument)

    return on_timer
