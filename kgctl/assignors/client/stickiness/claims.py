"""What the members of a sticky group say they own, and who of several claimants keeps a partition.

Rules: members are asked in map order. The first claim counts. A later claim of the same partition is compared by generation
with the generation in the *subscription* of the one who holds it, also where the claim itself came in the user data: higher takes
it, lower is ignored, equal leaves it with nobody ("multiple owners"), and then still later claims are compared with this member.
A member that claims one partition twice competes with itself. Kafka: ``AbstractStickyAssignor#allSubscriptionsEqual``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import MemberSpec
from kgctl.model.subscription import NO_GENERATION


@dataclass(frozen=True, slots=True)
class Claim:
    """One member's claim: all partitions it names, of topics of the group; ``generation`` None if it gives none."""

    ids: Sequence[int]
    generation: int | None


@dataclass(slots=True)
class Ownership:
    """Who owns what when the conflicts are settled: ``owned`` stands in map order, as the claims did.

    ``is_clean``: every partition that is owned exists. ``marks``: a byte a partition, 1 where somebody owns it.
    """

    owned: list[Sequence[int]]
    max_generation: int
    multiple_owners: set[int] = field(default_factory=set)
    is_clean: bool = True
    marks: bytearray = field(default_factory=bytearray)


def settle_claims(
    space: PartitionSpace, members: Sequence[MemberSpec], claims: Sequence[Claim], max_generation: int
) -> Ownership:
    """Settles conflicting claims. ``members`` and ``claims`` stand in map order."""
    generations = [NO_GENERATION if claim.generation is None else claim.generation for claim in claims]
    highest = max((max_generation, *generations))
    marks = _mark(space, claims)
    if marks is not None and marks.count(1) == sum(len(claim.ids) for claim in claims):
        return Ownership([claim.ids for claim in claims], highest, marks=marks)
    return _settle_conflicts(space, members, claims, generations, highest)


def _mark(space: PartitionSpace, claims: Sequence[Claim]) -> bytearray | None:
    """A byte for each partition, 1 where it is claimed; None if a claim names a partition that does not exist."""
    marks = bytearray(space.total)
    for claim in claims:
        ids = claim.ids
        if isinstance(ids, range):
            marks[ids.start : ids.stop : ids.step] = b"\x01" * len(ids)
        elif ids and max(ids) >= space.total:
            return None
        else:
            for number in ids:
                marks[number] = 1
    return marks


def _settle_conflicts(
    space: PartitionSpace, members: Sequence[MemberSpec], claims: Sequence[Claim], generations: Sequence[int], highest: int
) -> Ownership:
    owned: list[dict[int, None]] = [{} for _ in claims]
    holder: dict[int, int] = {}
    multiple: set[int] = set()
    for position, claim in enumerate(claims):
        generation = generations[position]
        for number in claim.ids:
            other = holder.get(number)
            if other is None:
                owned[position][number] = None
                holder[number] = position
                continue
            other_generation = max(members[other].generation, NO_GENERATION)
            if generation < other_generation:
                continue
            holder[number] = position
            if generation == other_generation:
                multiple.add(number)
                owned[other].pop(number, None)
            elif other != position:
                owned[other].pop(number, None)
                owned[position][number] = None
    marks = bytearray(space.total)
    lists: list[Sequence[int]] = [list(numbers) for numbers in owned]
    is_clean = True
    for numbers in lists:
        for number in numbers:
            if number < space.total:
                marks[number] = 1
            else:
                is_clean = False
    return Ownership(lists, highest, multiple, is_clean, marks)
