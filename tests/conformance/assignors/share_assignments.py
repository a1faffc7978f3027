"""Share groups that change, round by round, and their targets by kgctl's simple assignor; in the documents of Kafka's.

``python -m tests.conformance.assignors.share_assignments 2000`` asks Kafka's own about that many groups.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from kgctl.assignors.simple import SimpleAssignor
from kgctl.assignors.spec import TargetMember, TargetSpec, topic_id_of_name
from kgctl.model.values import copied_set_order, hash_map_order
from tests.support.java_assignors import SOURCES, JavaAssignors
from tests.support.maven import compile_java

Targets = dict[str, dict[str, list[int]]]
FAILS = "Kafka's assignor throws"
_NAMES = ("t1", "t2", "orders", "Aa", "BB", "x-7", "logs.eu", "payments")
_IDS = tuple(f"{name}{number}" for number in range(12) for name in ("m", "Zq-", "consumer-1-", "uuid-7f-"))
ROUNDS = 5


def group_documents(seed: int) -> Iterator[dict[str, Any]]:
    """The rounds of one group: each round's targets are what the round before has made of them."""
    choose = random.Random(f"share/{seed}")
    topics = {name: choose.choice((1, 2, 3, 5, 8, 17, 40)) for name in choose.sample(_NAMES, choose.randint(1, 5))}
    alike = choose.random() < 0.5
    members: dict[str, list[str]] = {}
    targets: Targets = {}
    for _ in range(ROUNDS):
        _change(choose, topics, members)
        if alike:
            common = choose.sample([*topics, "gone"], choose.randint(1, len(topics)))
            members = dict.fromkeys(members, common)
        document = {
            "topics": dict(topics),
            "members": {member: {"topics": names, "owned": targets.get(member, {})} for member, names in members.items()},
            "assignable": {name: _some(choose, count) for name, count in topics.items()},
            "assignors": ["simple"],
        }
        yield document
        answer = own_answer(document)
        targets = {} if isinstance(answer, str) else answer


def _some(choose: random.Random, count: int) -> list[int]:
    return list(range(count)) if choose.random() < 0.7 else sorted(choose.sample(range(count), choose.randint(0, count)))


def _change(choose: random.Random, topics: dict[str, int], members: dict[str, list[str]]) -> None:
    for member in choose.sample(sorted(members), choose.randint(0, len(members) // 2)):
        del members[member]
    for member in choose.sample(_IDS, choose.choice((1, 1, 2, 3, 8, 20))):
        members[member] = choose.sample([*topics, "gone"], choose.randint(0, len(topics)))
    grown = choose.choice(sorted(topics))
    topics[grown] += choose.choice((0, 0, 1, 4))


def own_answer(document: Mapping[str, Any]) -> Targets | str:
    """What kgctl's assignor answers, names in the place of ids, in its order."""
    topics: Mapping[str, int] = document["topics"]
    names: dict[UUID, str] = {topic_id_of_name(name): name for name in (*topics, *_NAMES)}
    ids = {name: topic_id for topic_id, name in names.items()}
    members = document["members"]
    spec = TargetSpec(
        [_member(member, members[member], ids, topics) for member in hash_map_order(members)],
        {ids[name]: count for name, count in topics.items()},
        len({frozenset(member["topics"]) for member in members.values()}) == 1,
        len(set(next(iter([members[member]["topics"] for member in hash_map_order(members)]), ()))),
        {ids[name]: frozenset(numbers) for name, numbers in document["assignable"].items()},
    )
    try:
        answer = SimpleAssignor().assign_targets(spec)
    except IndexError:
        return FAILS
    return {
        member: {names[topic]: list(numbers) for topic, numbers in answer.get(member, {}).items()} for member in sorted(members)
    }


def _member(member_id: str, member: Mapping[str, Any], ids: Mapping[str, UUID], topics: Mapping[str, int]) -> TargetMember:
    subscribed = [ids[name] for name in copied_set_order(member["topics"]) if name in topics]
    target = {ids[name]: tuple(numbers) for name, numbers in member["owned"].items() if numbers}
    return TargetMember(member_id, subscribed, target)


def kafkas_answer(java: JavaAssignors, document: Mapping[str, Any]) -> Targets | str:
    """What Kafka's answers, in its order."""
    answer: Any = java.answer(document)["simple"]
    return FAILS if "error" in answer else {member: answer[member] for member in sorted(answer)}


def differences(java: JavaAssignors, seed: int) -> list[str]:
    """The rounds of a group in which the two do not agree, order included."""
    found = []
    for number, document in enumerate(group_documents(seed)):
        ours, theirs = own_answer(document), kafkas_answer(java, document)
        if repr(ours) != repr(theirs):
            found.append(f"group {seed}, round {number}: {ours}, expected {theirs}; {document}")
    return found


def main() -> int:
    """So many groups."""
    java = JavaAssignors(compile_java(SOURCES / "pom.xml", sorted(SOURCES.glob("*.java"))))
    count = int(sys.argv[1])
    found = [difference for seed in range(count) for difference in differences(java, seed)]
    java.close()
    print(*found[:3], f"{count} groups of {ROUNDS} rounds; {len(found)} differ", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
