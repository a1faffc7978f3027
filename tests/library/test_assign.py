"""kgctl.assign: what Kafka's assignors make of a group and of what its members had before."""

from __future__ import annotations

import pytest

import kgctl
from kgctl.errors import UsageError


def test_a_previous_assignment_is_kept_as_far_as_balance_allows() -> None:
    first = kgctl.assign("sticky", topics={"t": 5}, members=["a", "b"])
    joined = kgctl.assign("sticky", topics={"t": 5}, members=["a", "b", "c"], previous=first.assignment)

    assert first.assignment == {"a": {"t": (0, 2, 4)}, "b": {"t": (1, 3)}}
    assert joined.assignment == {"a": {"t": (0, 2)}, "b": {"t": (1, 3)}, "c": {"t": (4,)}}
    assert (joined.moved, joined.moves_needed, joined.spread) == (1, 1, 1)


def test_a_cooperative_assignor_leaves_out_what_must_be_revoked_first() -> None:
    first = kgctl.assign("cooperative-sticky", topics={"t": 3}, members=["a"])
    joined = kgctl.assign("cooperative-sticky", topics={"t": 3}, members=["a", "b"], previous=first.assignment)

    assert (joined.assignment, joined.unassigned) == ({"a": {"t": (0, 1)}, "b": {}}, 1)


def test_partitions_of_members_that_left_go_to_others() -> None:
    found = kgctl.assign("uniform", topics={"t": 2}, members=["b"], previous={"a": {"t": [0]}, "b": {"t": [1]}})

    assert (found.assignment, found.moved) == ({"b": {"t": (0, 1)}}, 0)


def test_where_kafkas_assignor_throws_so_does_this_one() -> None:
    with pytest.raises(UsageError, match="sticky"):
        kgctl.assign("sticky", topics={"t": 2}, members=["a", "b", "c"], previous={"a": {"t": [7]}, "b": {"t": [8, 9]}, "c": {}})
