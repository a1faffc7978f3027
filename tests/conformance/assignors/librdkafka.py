"""Groups, and what librdkafka's leader answers: the generator, the oracle, and the file of cases that the oracle has made.

``python -m tests.conformance.assignors.librdkafka`` writes the file anew. A real consumer joins at a broker that says who else is
there, and leads: its SyncGroup is the answer. It joins once a second at the most, so many of them ask beside each other.
"""

from __future__ import annotations

import gzip
import json
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from confluent_kafka import Consumer

from kgctl.assignors import get_assignor
from kgctl.assignors.spec import AssignorError, GroupSpec, MemberSpec, TopicSpec
from kgctl.assignors.sticky_state import PartitionMovements
from kgctl.model.error_codes import ErrorCode
from kgctl.serde.consumer_protocol import decode_assignment
from kgctl.serde.messages import DecodedRequest
from kgctl.wire.connection import FIND_COORDINATOR, HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, METADATA, SYNC_GROUP
from tests.support.assignor_leader import encode_subscription
from tests.support.fake_broker import FakeBroker, coordinator_of
from tests.support.patience import PATIENCE_S

CASES_FILE = Path(__file__).parent / "librdkafka_cases.jsonl.gz"
NAME = "librdkafka:cooperative-sticky"
LEADERS = 4
RACKS = ("a", "b", "c")

Group = dict[str, Any]
Answer = dict[str, dict[str, list[int]]]


def groups(seed: int, count: int) -> list[Group]:
    """Groups of up to 8 members and topics of up to 16 partitions, as many as librdkafka has an answer to.

    Half of them subscribe alike. What members own is what a group before had, in which somebody more or less was; some are late,
    and say what an older generation had.
    """
    return list(islice(filter(_has_answer, _all_groups(random.Random(seed))), count))


def _all_groups(rng: random.Random) -> Iterator[Group]:
    while True:
        counts = {f"t{index}": rng.randint(1, 16) for index in range(rng.randint(1, 3))}
        alike = rng.random() < 0.5
        racks = rng.random() < 0.3
        members = [
            {
                "id": f"m{index}",
                "topics": sorted(counts) if alike else sorted(rng.sample(sorted(counts), rng.randint(1, len(counts)))),
                "rack": rng.choice((*RACKS, None)) if racks else None,
            }
            for index in rng.sample(range(9), rng.randint(1, 8))
        ]
        _own(rng, counts, members)
        replicas = {
            t: [sorted(rng.sample(RACKS, rng.randint(1, 2))) if racks else [] for _ in range(n)] for t, n in counts.items()
        }
        yield {"topics": replicas, "members": members}


def _has_answer(group: Group) -> bool:
    """Not where a partition moves twice: librdkafka then goes on with memory that it has given back."""
    moved: list[int] = []
    move = PartitionMovements.move

    def noted(moves: PartitionMovements, number: int, source: int, target: int) -> None:
        moved.append(number)
        move(moves, number, source, target)

    with patch.object(PartitionMovements, "move", noted):
        return ask_kgctl(group) is not None and len(set(moved)) == len(moved)


def _own(rng: random.Random, counts: dict[str, int], members: list[dict[str, Any]]) -> None:
    before = rng.sample(members, rng.randint(0, len(members)))
    for member in members:
        member["owned"], member["generation"] = {}, rng.choice((5, 5, 5, 4)) if member in before else -1
    for topic, count in counts.items():
        for partition in range(count + rng.choice((0, 0, 0, 1))):
            takers = [member for member in before if topic in member["topics"] or rng.random() < 0.05]
            for member in rng.sample(takers, min(len(takers), rng.choice((0, 1, 1, 1, 1, 1, 1, 2)))):
                member["owned"].setdefault(topic, []).append(partition)


class _Leader:
    """One consumer's group: what it is asked next, and what it has answered."""

    def __init__(self, asked: Sequence[Group]) -> None:
        self.asked = asked
        self.answers: list[Answer] = []
        self.is_done = threading.Event()

    @property
    def group(self) -> Group:
        return self.asked[min(len(self.answers), len(self.asked) - 1)]

    def join(self, request: DecodedRequest) -> dict[str, Any]:
        me = self.group["members"][0]["id"]
        members = [
            {"member_id": each["id"], "group_instance_id": None, "metadata": _said(each)} for each in self.group["members"]
        ]
        return {
            "generation_id": 6,
            "protocol_type": "consumer",
            "protocol_name": "cooperative-sticky",
            "leader": me,
            "member_id": me,
            "members": members,
        }

    def sync(self, request: DecodedRequest) -> dict[str, Any]:
        if not self.is_done.is_set():
            self.answers.append({each.member_id: _assigned(each.assignment) for each in request.body.assignments})
        if len(self.answers) == len(self.asked):
            self.is_done.set()
        return {"error_code": ErrorCode.REBALANCE_IN_PROGRESS.value, "assignment": b""}


def _said(member: dict[str, Any]) -> bytes:
    owned, rack = member["owned"], member["rack"]
    return encode_subscription(member["topics"], owned=owned, generation=member["generation"], rack=rack)


def _assigned(data: bytes) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(decode_assignment(data).partitions):
        found.setdefault(topic, []).append(partition)
    return found


def _metadata(broker: FakeBroker, leaders: Sequence[_Leader], request: DecodedRequest) -> dict[str, Any]:
    """Each leader's topics have names of their own, which its consumer knows them by: the number of the leader and the name."""
    racks = [
        {"node_id": 10 + number, "host": "127.0.0.1", "port": broker.port, "rack": rack} for number, rack in enumerate(RACKS)
    ]
    topics = []
    for asked in request.body.topics or ():
        leader, _, _ = asked.name.partition("-")
        replicas = leaders[int(leader)].group["topics"].get(asked.name)
        partitions = [
            {
                "partition_index": number,
                "leader_id": broker.node_id,
                "leader_epoch": 0,
                "replica_nodes": [10 + RACKS.index(rack) for rack in racks_of],
                "isr_nodes": [],
            }
            for number, racks_of in enumerate(replicas or ())
        ]
        topics.append({"error_code": 0 if partitions else 3, "name": asked.name, "partitions": partitions})
    own = {"node_id": broker.node_id, "host": "127.0.0.1", "port": broker.port}
    return {"brokers": [own, *racks], "topics": topics, "controller_id": broker.node_id}


def ask_librdkafka(asked: Sequence[Group]) -> list[Answer]:
    """The answers of real leaders, several beside each other."""
    shares = [_named(share, number) for number, share in enumerate(asked[start::LEADERS] for start in range(LEADERS)) if share]
    leaders = [_Leader(share) for share in shares]
    with FakeBroker() as broker:
        broker.handlers |= {
            METADATA: lambda request: _metadata(broker, leaders, request),
            FIND_COORDINATOR: coordinator_of(broker),
            JOIN_GROUP: lambda request: leaders[int(request.body.group_id)].join(request),
            SYNC_GROUP: lambda request: leaders[int(request.body.group_id)].sync(request),
            HEARTBEAT: lambda _: {"error_code": ErrorCode.REBALANCE_IN_PROGRESS.value},
            LEAVE_GROUP: lambda _: {"members": []},
        }
        for number, leader in enumerate(leaders):
            threading.Thread(target=_lead, args=(broker.address, number, leader), daemon=True).start()
        for leader in leaders:
            assert leader.is_done.wait(PATIENCE_S + 2 * len(leader.asked)), "librdkafka has not answered"
    found: list[Answer] = [{} for _ in asked]
    for start, leader in enumerate(leaders):
        found[start::LEADERS] = [_unnamed(answer) for answer in leader.answers]
    return found


def _named(share: Sequence[Group], number: int) -> list[Group]:
    def named(topics: dict[str, Any]) -> dict[str, Any]:
        return {f"{number}-{name}": value for name, value in topics.items()}

    return [
        {
            "topics": named(group["topics"]),
            "members": [
                {**each, "topics": [f"{number}-{name}" for name in each["topics"]], "owned": named(each["owned"])}
                for each in group["members"]
            ],
        }
        for group in share
    ]


def _unnamed(answer: Answer) -> Answer:
    return {
        member: {name.partition("-")[2]: partitions for name, partitions in topics.items()} for member, topics in answer.items()
    }


def _lead(address: str, number: int, leader: _Leader) -> None:
    names = sorted({name for group in leader.asked for name in group["topics"]})
    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    settings = {"bootstrap.servers": address, "group.id": str(number), "log_level": 0, **strategy}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(names)
        while not leader.is_done.is_set():
            consumer.poll(0.1)


def ask_kgctl(group: Group) -> Answer | None:
    """kgctl's answer in the oracle's form; None where librdkafka would read what is not there."""
    topics = {
        name: TopicSpec(len(replicas), tuple(map(tuple, replicas)) if any(replicas) else ())
        for name, replicas in group["topics"].items()
    }
    members = [
        MemberSpec(each["id"], tuple(each["topics"]), each["owned"], each["generation"], each["rack"])
        for each in group["members"]
    ]
    try:
        found = get_assignor(NAME).assign(GroupSpec(topics, members))
    except AssignorError:
        return None
    return {member_id: {name: list(partitions) for name, partitions in found[member_id].items()} for member_id in found}


def main() -> None:
    asked = groups(seed=1, count=600)
    with gzip.GzipFile(CASES_FILE, "wb", mtime=0) as file:
        for group, answer in zip(asked, ask_librdkafka(asked), strict=True):
            file.write(json.dumps({**group, "answer": answer}, separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    main()
