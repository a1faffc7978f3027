"""uniform answers the same whether members' partitions come as names or as numbers, which it does not turn into names."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kgctl.assignors.partition_space import PartitionIds, PartitionSpace
from kgctl.assignors.spec import GroupSpec, MemberSpec, OwnedPartitions, TopicSpec
from kgctl.assignors.uniform import UniformAssignor, ascending


def random_owners(source: random.Random, space: PartitionSpace, members: int) -> list[list[int]]:
    """Numbers for each member: runs as after a first assignment, or scattered; some belong to nobody."""
    numbers = list(range(space.total))
    if source.random() < 0.5:
        source.shuffle(numbers)
    cuts = sorted(source.choices(range(space.total + 1), k=members - 1))
    parts = [numbers[start:end] for start, end in zip([0, *cuts], [*cuts, space.total], strict=True)]
    return [[] if source.random() < 0.2 else part[: len(part) - source.randint(0, 1)] for part in parts]


@pytest.mark.parametrize("seed", range(60))
def test_numbers_and_names_make_the_same_assignment(seed: int) -> None:
    source = random.Random(seed)
    counts = {f"topic-{number}": source.randint(1, 12) for number in range(source.randint(1, 6))}
    space, members = PartitionSpace(counts), source.randint(2, 9)
    owners = random_owners(source, space, members)
    topics = {name: TopicSpec(count) for name, count in counts.items()}
    ids = [f"m-{number}" for number in range(members)]

    def assigned(owned: Sequence[OwnedPartitions]) -> dict[str, dict[str, list[int]]]:
        specs = [MemberSpec(member, tuple(counts), owned=mine) for member, mine in zip(ids, owned, strict=True)]
        return dict(UniformAssignor().assign(GroupSpec(topics, specs)))

    assert assigned([PartitionIds(space, each) for each in owners]) == assigned([space.by_topic(each) for each in owners])


@pytest.mark.parametrize("total", [0, 1, 255, 256, 257, 65_536, 65_537, 200_000])
def test_numbers_in_four_bytes(total: int) -> None:
    assert ascending(total) == struct.pack(f"<{total}i", *range(total))


@pytest.mark.parametrize("moved", [[1, 0, 2], [0, 2, 1], [0, 0, 2]])
def test_a_list_that_only_looks_like_a_run_is_answered_by_name_and_by_number_alike(moved: list[int]) -> None:
    space = PartitionSpace({"orders": 6})
    members = [MemberSpec("a", ("orders",), owned=PartitionIds(space, moved)), MemberSpec("b", ("orders",))]
    named = [replace(members[0], owned={"orders": moved}), members[1]]
    topics = {"orders": TopicSpec(6)}

    by_number, by_name = (dict(UniformAssignor().assign(GroupSpec(topics, each))) for each in (members, named))

    assert {member: sorted(each["orders"]) for member, each in by_number.items()} == {
        member: sorted(each["orders"]) for member, each in by_name.items()
    }
