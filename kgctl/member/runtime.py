"""What the parts of one member share: the moment of the present call, what it has led to, and what is due later."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgctl.member.api import Action, MemberIdentity, PositionOf, Rng
from kgctl.member.config import MemberConfig


class Deadlines:
    """Named deadlines; arming one again replaces it. Ties go by the order of arming."""

    __slots__ = ("_armed", "_at", "_next_us")

    def __init__(self) -> None:
        self._at: dict[str, tuple[int, int]] = {}
        self._armed = 0
        self._next_us: int | None = None
        """The earliest; None: to be looked for."""

    def arm(self, name: str, at_us: int) -> None:
        """Arm the deadline of this name."""
        self._armed += 1
        next_us = self._next_us
        if next_us is not None:
            if at_us <= next_us:
                self._next_us = at_us
            elif name in self._at and self._at[name][0] == next_us:
                self._next_us = None
        self._at[name] = (at_us, self._armed)

    def cancel(self, name: str) -> None:
        """Forget it, if it is armed."""
        entry = self._at.pop(name, None)
        if entry is not None and entry[0] == self._next_us:
            self._next_us = None

    def at(self, name: str) -> int | None:
        """When it is due; None: not armed."""
        entry = self._at.get(name)
        return None if entry is None else entry[0]

    def is_armed(self, name: str) -> bool:
        """Whether it is armed."""
        return name in self._at

    def next_us(self) -> int | None:
        """The earliest deadline."""
        if self._next_us is None and self._at:
            self._next_us = min(self._at.values())[0]
        return self._next_us

    def next_except(self, names: frozenset[str]) -> int | None:
        """The earliest deadline of another name than these."""
        if self._at.keys() <= names:
            return None
        return min([entry[0] for name, entry in self._at.items() if name not in names])

    def pop_due(self, now_us: int) -> str | None:
        """Take the earliest deadline that has come; None: there is none."""
        next_us = self.next_us()
        if next_us is None or next_us > now_us:
            return None
        name = min(self._at, key=self._at.__getitem__)
        del self._at[name]
        self._next_us = None
        return name

    def clear(self) -> None:
        """Forget all."""
        self._at.clear()
        self._next_us = None


@dataclass(slots=True)
class Runtime:
    """The member's surroundings in one object; ``now_us`` is the time of the call that is being answered."""

    identity: MemberIdentity
    config: MemberConfig
    rng: Rng
    position_of: PositionOf
    now_us: int = 0
    deadlines: Deadlines = field(default_factory=Deadlines)
    actions: list[Action] = field(default_factory=list)

    def emit(self, action: Action) -> None:
        """Something for the driver to do."""
        self.actions.append(action)

    def take_actions(self) -> list[Action]:
        """What this call has led to."""
        taken, self.actions = self.actions, []
        return taken

    def arm_in(self, name: str, delay_us: int) -> None:
        """Arm a deadline this long from now."""
        self.deadlines.arm(name, self.now_us + delay_us)


def draw(rng: Rng, bound: int) -> int:
    """An evenly spread whole number of 0..bound."""
    return rng.getrandbits(32) * (bound + 1) >> 32 if bound > 0 else 0
