"""What a classic member knows of its membership. Kafka: AbstractCoordinator.Generation and MemberState."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kgctl.model.frozen import frozen_in_order
from kgctl.model.quick_enum import quick_enum

NO_GENERATION_ID = -1


@frozen_in_order
class Generation:
    """A generation as the member was told of it."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = ""
    protocol_name: str | None = None


NO_GENERATION = Generation()


@quick_enum
class JoinPhase(Enum):
    """How far the member is into a generation."""

    UNJOINED = "not in the group"
    PREPARING = "JoinGroup is sent"
    COMPLETING = "JoinGroup is answered, SyncGroup is not"
    STABLE = "in the generation"


@dataclass(slots=True)
class Membership:
    """The mutable whole. ``needs_prepare``: partitions have to be given up (as the protocol has it) before the next JoinGroup."""

    generation: Generation = NO_GENERATION
    phase: JoinPhase = JoinPhase.UNJOINED
    rejoin_needed: bool = True
    needs_prepare: bool = True
    rejoin_reason: str = ""

    @property
    def is_rebalancing(self) -> bool:
        """Whether a join is under way."""
        return self.phase in (JoinPhase.PREPARING, JoinPhase.COMPLETING)

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll()."""
        self.rejoin_needed = True
        self.rejoin_reason = reason

    def reset(self, reason: str, *, keeps_member_id: bool = False) -> None:
        """Out of the group: whatever is still owned is lost, then join anew."""
        self.phase = JoinPhase.UNJOINED
        self.generation = Generation(member_id=self.generation.member_id) if keeps_member_id else NO_GENERATION
        self.request_rejoin(reason)
        self.needs_prepare = True
