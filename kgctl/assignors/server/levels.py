"""The members of one topic by load: a range of receivers that grows from the bottom, and one of donors that grows from the top.

The members are sorted once; sizes that change later move nobody. Kafka: ``MemberAssignmentBalancer`` of
``UniformHeterogeneousAssignmentBuilder``.
"""

from __future__ import annotations

from collections.abc import Sequence


class Levels:
    """``sizes`` is shared with the caller, who changes it while partitions move."""

    def __init__(self, members: Sequence[int], sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._members = sorted(members, key=lambda member: (sizes[member], member))
        lowest, highest = sizes[self._members[0]], sizes[self._members[-1]]
        self.imbalance = highest - lowest
        # Receivers are members[:_low_end], donors members[_high_start:_high_end]. A level is the size its members have, or had.
        self._low_level, self._low_end, self._low_next = lowest - 1, 0, 0
        self._high_level = highest + 1
        self._high_start = self._high_end = len(self._members)
        self._high_next = len(self._members) - 1

    def is_balanced(self) -> bool:
        """Whether the levels of both ranges differ by at most one."""
        return self._high_level - self._low_level <= 1

    def next_least_loaded(self) -> int:
        """The next receiver: each member of the range once, from the left; then the level rises and the range grows."""
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._members) and self._sizes[self._members[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        member = self._members[self._low_next]
        self._low_next += 1
        return member

    def next_most_loaded(self) -> int | None:
        """The next donor, from the right; None if nobody is left who could give."""
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                # All of the range were excluded: go on with the next member's level, wherever it is.
                self._high_level = self._sizes[self._members[self._high_start - 1]]
            else:
                self._high_level -= 1
            while self._high_start > 0 and self._sizes[self._members[self._high_start - 1]] == self._high_level:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        member = self._members[self._high_next]
        self._high_next -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """The donor returned last has nothing to give: it changes places with the last of the range, which shrinks."""
        place, end = self._high_next + 1, self._high_end - 1
        members = self._members
        members[place], members[end] = members[end], members[place]
        self._high_end -= 1
