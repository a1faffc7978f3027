"""What must hold for every assignor of the registry, those of installed packages included, and what each declares of itself.

``KGCTL_TEST_ASSIGNORS=module:Class,...`` holds assignors of one's own to the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgctl.assignors import assignor_names, get_assignor
from kgctl.assignors.spec import Promises, promises_of
from kgctl.simulate.assign.evaluation import MAX_ROUNDS, answer, rounds
from kgctl.simulate.assign.groups import GroupDocument, parse_document

NAMES = (*assignor_names(), *filter(None, os.environ.get("KGCTL_TEST_ASSIGNORS", "").split(",")))
FEWER = settings(max_examples=max(settings().max_examples // 4, 10))
"""Every test looks at groups of the same kind with every assignor: together they see many hundreds."""
BY_OWNED_TOPICS = {"uniform"}
"""Kafka's own gives up the last topics that a member owns in the order in which it is told of them: tests/golden/assignors."""

LIBRDKAFKA = "librdkafka:cooperative-sticky"
"""As the real one (tests/conformance/assignors): with racks each rebalance moves something, as members lose what is not in their
rack, and others get it for balance; and who owns a topic that nobody subscribes to any more is given it back."""

every_assignor = pytest.mark.parametrize("name", NAMES)


def promises(name: str) -> Promises:
    return promises_of(get_assignor(name))


def _promising(what: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [name for name in NAMES if getattr(promises(name), what)])


@st.composite
def groups(draw: st.DrawFn, *, equal: bool = False, racks: bool = True) -> dict[str, Any]:
    """Groups without contradictions: one owner a partition, partitions that exist, names once.

    Everybody subscribes to something: Kafka's sticky assignors do not look at members without topics that come first in map
    order.
    """
    counts = draw(st.dictionaries(st.sampled_from([f"t{n}" for n in range(6)]), st.integers(1, 15), min_size=1))
    ids = draw(st.lists(st.text("abcäz1-", min_size=1, max_size=6), min_size=1, max_size=9, unique=True))
    topics: dict[str, Any] = dict(counts)
    members: dict[str, dict[str, Any]] = {}
    for member_id in ids:
        subscribed = sorted(counts) if equal else draw(st.lists(st.sampled_from(sorted(counts)), unique=True, min_size=1))
        members[member_id] = {"topics": subscribed}
    if racks and draw(st.booleans()):
        for topic, count in counts.items():
            topics[topic] = {"partitions": count, "racks": [[draw(st.sampled_from("abc"))] for _ in range(count)]}
        for member in members.values():
            member["rack"] = draw(st.sampled_from("abc"))
    owners = draw(st.lists(st.integers(0, len(ids)), max_size=12))
    place = 0
    for topic, count in counts.items() if owners else ():
        for partition in range(count):
            owner = owners[place % len(owners)]
            place += 1
            if owner < len(ids):
                members[ids[owner]].setdefault("owned", {}).setdefault(topic, []).append(partition)
    for member in members.values():
        member["generation"] = 3
    return {"topics": topics, "members": members}


def _document(raw: Mapping[str, Any]) -> GroupDocument:
    return parse_document(raw, 1)


def _sound(name: str, raw: dict[str, Any]) -> dict[str, Any]:
    if name != LIBRDKAFKA:
        return raw
    topics = {topic: count if isinstance(count, int) else count["partitions"] for topic, count in raw["topics"].items()}
    wanted = {topic for member in raw["members"].values() for topic in member["topics"]}
    return {"topics": topics, "members": {member: _without_racks(each, wanted) for member, each in raw["members"].items()}}


def _without_racks(member: Mapping[str, Any], wanted: set[str]) -> dict[str, Any]:
    owned = {topic: partitions for topic, partitions in member.get("owned", {}).items() if topic in wanted}
    return {**{key: value for key, value in member.items() if key != "rack"}, "owned": owned}


def _owners(raw: Mapping[str, Any], assignment: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, int], str]:
    """The owner of each assigned partition, after checking that it is one subscriber of its topic."""
    assert list(assignment) == list(raw["members"])
    owners: dict[tuple[str, int], str] = {}
    for member_id, topics in assignment.items():
        assert set(topics) <= set(raw["members"][member_id]["topics"])
        for topic, partitions in topics.items():
            assert list(partitions) == sorted(set(partitions))
            for partition in partitions:
                assert owners.setdefault((topic, partition), member_id) == member_id
    return owners


def _partitions(raw: Mapping[str, Any]) -> set[tuple[str, int]]:
    counts = {name: topic if isinstance(topic, int) else topic["partitions"] for name, topic in raw["topics"].items()}
    subscribed = {topic for member in raw["members"].values() for topic in member["topics"]}
    return {(topic, partition) for topic in subscribed for partition in range(counts[topic])}


def _owned(raw: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    return {
        (topic, partition): member_id
        for member_id, member in raw["members"].items()
        for topic, partitions in member.get("owned", {}).items()
        for partition in partitions
    }


@every_assignor
@FEWER
@given(raw=groups())
def test_every_partition_goes_to_one_subscriber(name: str, raw: dict[str, Any]) -> None:
    raw = _sound(name, raw)
    assignment = answer(_document(raw), name).assignment

    owners = _owners(raw, assignment)
    if promises(name).is_cooperative:
        before = _owned(raw)
        left_out = _partitions(raw) - set(owners)
        assert all(before.get(partition) is not None for partition in left_out)
    else:
        assert set(owners) == _partitions(raw)


@_promising("is_cooperative")
@FEWER
@given(raw=groups())
def test_nothing_is_handed_over_in_the_round_in_which_it_is_revoked(name: str, raw: dict[str, Any]) -> None:
    raw = _sound(name, raw)
    owners = _owners(raw, answer(_document(raw), name).assignment)

    assert {partition: owner for partition, owner in owners.items() if _owned(raw).get(partition, owner) != owner} == {}


@_promising("is_cooperative")
@FEWER
@given(raw=groups())
def test_a_cooperative_group_settles_with_everything_assigned(name: str, raw: dict[str, Any]) -> None:
    raw = _sound(name, raw)
    answers = rounds(_document(raw), name, until_settled=True)

    assert len(answers) < MAX_ROUNDS
    assert answers[-1].moved == 0
    assert set(_owners(raw, answers[-1].assignment)) == _partitions(raw)


@_promising("even_in_total")
@FEWER
@given(raw=groups(equal=True))
def test_totals_are_even_where_all_subscribe_alike(name: str, raw: dict[str, Any]) -> None:
    raw = _sound(name, raw)
    settled = rounds(_document(raw), name, until_settled=True)[-1]

    assert settled.spread <= 1


@_promising("even_per_topic")
@FEWER
@given(raw=groups())
def test_each_topic_is_even_among_its_subscribers(name: str, raw: dict[str, Any]) -> None:
    found = answer(_document(raw), name)

    assert max(found.topic_spreads(found.assignment).values(), default=0) <= 1


@_promising("moves_least")
@FEWER
@given(raw=groups(equal=True, racks=False))
def test_no_more_moves_than_have_to(name: str, raw: dict[str, Any]) -> None:
    found = answer(_document(raw), name)

    assert found.moved == found.moves_needed


@every_assignor
@FEWER
@given(raw=groups(), data=st.data())
def test_order_of_topics_and_of_owned_partitions_is_without_meaning(name: str, raw: dict[str, Any], data: st.DataObject) -> None:
    topics = data.draw(st.permutations(sorted(raw["topics"])))
    mixed = {
        "topics": {topic: raw["topics"][topic] for topic in topics},
        "members": {
            member_id: member | {"owned": {topic: partitions[::-1] for topic, partitions in member.get("owned", {}).items()}}
            for member_id, member in raw["members"].items()
        },
    }

    assert dict(answer(_document(mixed), name).assignment) == dict(answer(_document(raw), name).assignment)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BY_OWNED_TOPICS])
@FEWER
@given(raw=groups())
def test_order_of_owned_topics_is_without_meaning(name: str, raw: dict[str, Any]) -> None:
    members = {
        member_id: member | {"owned": dict(reversed(member.get("owned", {}).items()))}
        for member_id, member in raw["members"].items()
    }

    assert dict(answer(_document(raw | {"members": members}), name).assignment) == dict(answer(_document(raw), name).assignment)


@_promising("ignores_member_order")
@FEWER
@given(raw=groups(), data=st.data())
def test_order_of_members_is_without_meaning_where_declared(name: str, raw: dict[str, Any], data: st.DataObject) -> None:
    order = data.draw(st.permutations(sorted(raw["members"])))
    mixed = raw | {"members": {member_id: raw["members"][member_id] for member_id in order}}

    assert dict(answer(_document(mixed), name).assignment) == dict(answer(_document(raw), name).assignment)


@every_assignor
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=groups())
def test_an_assignor_has_no_memory(name: str, raw: dict[str, Any]) -> None:
    group = _document(raw).group(name)
    assignor = get_assignor(name)
    other = assignor.assign(_document({"topics": {"x": 3}, "members": {"m": {"topics": ["x"]}}}).group(name))

    first = {member: dict(topics) for member, topics in assignor.assign(group).items()}

    assert Counter(len(p) for topics in other.values() for p in topics.values()) == Counter([3])
    assert first == {member: dict(topics) for member, topics in get_assignor(name).assign(group).items()}


_HASHED = """
import json, sys
from kgctl.assignors import get_assignor
from kgctl.simulate.assign.groups import parse_document
raw = json.loads(sys.argv[1])
names = sys.argv[2].split(",")
print(json.dumps([dict(get_assignor(name).assign(parse_document(raw, 1).group(name))) for name in names]))
"""


def test_pythons_hash_seed_is_without_meaning() -> None:
    raw = {
        "topics": {f"topic-{n}": {"partitions": 9, "racks": [["a", "b"], ["b", "c"], ["c"]] * 3} for n in range(5)},
        "members": {
            f"consumer-{n}": {"topics": [f"topic-{t}" for t in range(5) if (t + n) % 4], "rack": "abc"[n % 3]} for n in range(8)
        },
    }

    def run(seed: int) -> str:
        command = [sys.executable, "-c", _HASHED, json.dumps(raw), ",".join(assignor_names())]
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    assert run(1) == run(2)
