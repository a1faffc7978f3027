"""What an answer says about itself: moves, how many had to be, spread, racks."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.assignors import assignor_names
from kgctl.simulate.assign.evaluation import Answer, answer
from kgctl.simulate.assign.groups import parse_document


def _answer(name: str, topics: dict[str, Any], members: dict[str, Any]) -> Answer:
    return answer(parse_document({"topics": topics, "members": members}, 1), name)


@pytest.mark.parametrize("name", assignor_names())
def test_a_group_without_members_has_an_empty_assignment(name: str) -> None:
    found = _answer(name, {"t": 3}, {})

    assert (dict(found.assignment), found.moved, found.moves_needed, found.spread, found.unassigned) == ({}, 0, 0, 0, 0)


@pytest.mark.parametrize("name", assignor_names())
def test_members_without_topics_have_empty_assignments(name: str) -> None:
    assert dict(_answer(name, {"t": 3}, {"a": {"topics": ["gone"]}, "b": {"topics": ["gone"]}}).assignment) == {"a": {}, "b": {}}


def test_moves_are_counted_from_what_members_owned() -> None:
    members = {"a": {"topics": ["t"], "owned": {"t": [0, 1, 2]}, "generation": 1}, "b": {"topics": ["t"]}}
    found = _answer("roundrobin", {"t": 4}, members)

    assert [(change.kept, change.gained, change.lost) for change in found.changes] == [(2, 0, 1), (0, 2, 0)]
    assert (found.moved, found.moves_needed) == (1, 1)


def test_what_is_above_an_even_share_has_to_move() -> None:
    members = {m: {"topics": ["t"], "owned": {"t": own}} for m, own in {"a": [0, 1, 2, 3], "b": [4], "c": []}.items()}

    assert _answer("range", {"t": 5}, members).moves_needed == 2


def test_a_topic_that_is_no_longer_subscribed_has_to_move() -> None:
    members = {"a": {"topics": ["t"], "owned": {"u": [0, 1]}}, "b": {"topics": ["u"], "owned": {}}}
    found = _answer("sticky", {"t": 2, "u": 2}, members)

    assert (found.moved, found.moves_needed) == (2, 2)


def test_partitions_that_do_not_exist_are_no_moves() -> None:
    members = {"a": {"topics": ["t"], "owned": {"t": [0, 7], "gone": [1]}}, "b": {"topics": ["t"]}}

    assert _answer("roundrobin", {"t": 2}, members).moved == 0


def test_spread_is_told_in_total_and_per_topic() -> None:
    found = _answer("range", {"t": 3, "u": 1}, {"a": {"topics": ["t", "u"]}, "b": {"topics": ["t", "u"]}})

    assert (found.spread, found.topic_spreads(found.assignment)) == (2, {"t": 1, "u": 1})


def test_cross_rack_share_counts_partitions_with_known_racks() -> None:
    topics = {"t": {"partitions": 4, "racks": [["a"], ["b"], ["b"], []]}}
    found = _answer("roundrobin", topics, {"m": {"topics": ["t"], "rack": "a"}, "n": {"topics": ["t"]}})

    # m reads partitions 0 and 2, of which 2 is in another rack; n has no rack.
    assert found.cross_rack_share == 0.5


def test_partitions_in_transfer_are_nobodys() -> None:
    members = {"a": {"topics": ["t"], "owned": {"t": [0, 1, 2, 3]}, "generation": 1}, "b": {"topics": ["t"]}}
    found = _answer("cooperative-sticky", {"t": 4}, members)

    assert (found.moved, found.unassigned) == (2, 2)
