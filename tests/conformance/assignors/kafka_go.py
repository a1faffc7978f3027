"""Groups, and what kafka-go's balancers answer: the generator, the oracle, and the file of cases that the oracle has made.

``python -m tests.conformance.assignors.kafka_go`` writes the file anew. kafka-go goes through maps, whose order Go leaves open:
a topic of rack-affinity may have several answers, and all that the oracle gave in ``REPEAT`` calls are kept.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kgctl.assignors import get_assignor
from kgctl.assignors.spec import GroupSpec, MemberSpec, TopicSpec
from tests.support.members import built_kafka_go

CASES_FILE = Path(__file__).parent / "kafka_go_cases.jsonl.gz"
BALANCERS = ("rack-affinity", "rack-affinity", "kafka-go:range", "kafka-go:roundrobin")
REPEAT = 3_000
ZONES = ("", "a", "b", "c", "d")

Group = dict[str, Any]
Answers = dict[str, list[dict[str, list[int]]]]
"""Topic -> the answers that kafka-go may give; of each member that gets something, its partitions, ascending."""


def groups(seed: int, count: int) -> Iterator[Group]:
    """Yield groups of up to 7 members, topics of up to 24 partitions, with racks that some members and leaders lack."""
    rng = random.Random(seed)
    for number in range(count):
        topics = [f"t{index}" for index in range(rng.randint(1, 3))]
        zones = rng.sample(ZONES, rng.randint(1, len(ZONES)))
        members = [
            {"id": f"m{index}", "topics": rng.sample(topics, rng.randint(1, len(topics))), "rack": rng.choice(zones)}
            for index in range(rng.randint(1, 7))
        ]
        rng.shuffle(members)
        racks = {topic: [rng.choice(zones) for _ in range(rng.randint(1, 24))] for topic in topics}
        yield {"balancer": BALANCERS[number % len(BALANCERS)], "members": members, "racks": racks, "repeat": REPEAT}


def ask_kafka_go(asked: Iterable[Group]) -> list[Answers]:
    """Return the balancers' own answers."""
    lines = "".join(json.dumps(group) + "\n" for group in asked)
    done = subprocess.run([built_kafka_go("./balancers")], input=lines, check=True, capture_output=True, text=True, timeout=600)
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask_kgctl(group: Group) -> dict[str, dict[str, list[int]]]:
    """Return kgctl's answer in the oracle's form."""
    topics = {topic: TopicSpec(len(racks), tuple((rack,) for rack in racks)) for topic, racks in group["racks"].items()}
    members = [MemberSpec(each["id"], tuple(each["topics"]), rack=each["rack"]) for each in group["members"]]
    found: dict[str, dict[str, list[int]]] = {topic: {} for topic in topics}
    for member, assigned in get_assignor(group["balancer"]).assign(GroupSpec(topics, members)).items():
        for topic, partitions in assigned.items():
            if partitions:
                found[topic][member] = sorted(partitions)
    return found


def answered_otherwise(group: Group, answers: Answers) -> list[str]:
    """Return the topics that kgctl answers in a way that kafka-go never did."""
    return [topic for topic, answer in ask_kgctl(group).items() if answer not in answers[topic]]


def main() -> None:
    asked = list(groups(seed=1, count=600))
    with gzip.GzipFile(CASES_FILE, "wb", mtime=0) as file:
        for group, answers in zip(asked, ask_kafka_go(asked), strict=True):
            file.write(json.dumps({**group, "answers": answers}, separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    main()
