"""Requests about share groups that come in any order and are half wrong: each is answered, and what is kept is on disk."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

import pytest

from kgctl.serde.record_batch import Record, build_batch
from kgctl.server.background import BackgroundServer
from tests.support.wire.party import Party, play
from tests.support.wire.raw_client import RawClient

PRODUCE, METADATA, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, DELETE_GROUPS = 0, 3, 19, 20, 21, 42
HEARTBEAT, DESCRIBE, FETCH, ACKNOWLEDGE = 76, 77, 78, 79
DESCRIBE_OFFSETS, ALTER_OFFSETS, DELETE_OFFSETS = 90, 91, 92
GROUPS, TOPICS = ("g", "h"), ("t", "u")
CONFIG = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "500",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}


class ShareParty(Party):
    """Members that fetch and acknowledge."""

    partitions, config = {"t": 1, "u": 1, "kept": 1}, CONFIG
    reached = (
        *(("heartbeat", code) for code in (0, 25, 42, 110)),
        *(("fetch", code) for code in (0, 42, 122, 123)),
        *(("acknowledge", code) for code in (0, 122, 123)),
        *((name, 0) for name in ("produce", "describe", "describe_offsets", "change_topics", "delete_records", "come_again")),
    )

    def __init__(self, server: BackgroundServer, rng: random.Random) -> None:
        super().__init__(server, rng)
        self.members = [f"{letter * 21}A" for letter in "ABC"]
        self.epochs, self.sessions = [0, 0, 0], [0, 0, 0]
        self.ids: dict[str, uuid.UUID] = {}
        self.learn()
        self.keep("kept", 3)
        self.operations = [
            *((8, self.heartbeat), (14, self.fetch), (8, self.acknowledge), (6, self.produce), (1, self.describe)),
            *((2, self.describe_offsets), (0.3, self.alter_offsets), (0.1, self.delete_offsets), (0.05, self.delete_group)),
            *((0.05, self.change_topics), (0.2, self.delete_records), (0.1, self.come_again)),
        ]

    def learn(self) -> None:
        topics = self.call(METADATA, 12, topics=None).topics
        self.ids = {topic.name: topic.topic_id for topic in topics if topic.name in TOPICS}

    def topic_id(self) -> uuid.UUID:
        nobodys = uuid.UUID(int=5)
        known = [*self.ids.values()] or [nobodys]
        return nobodys if self.rng.random() < 0.05 else self.rng.choice(known)

    def heartbeat(self) -> int:
        epoch = self.mostly(self.epochs[self.who], 0, -1, 7)
        topics = self.rng.choice((None, ["t"], ["t", "u"], [], ["nope"])) if epoch else ["t", "u"]
        group = self.mostly("g", "h", "")
        whose = {"group_id": group, "member_id": self.members[self.who], "member_epoch": epoch, "rack_id": None}
        answer = self.call(HEARTBEAT, 1, **whose, subscribed_topic_names=topics)
        if answer.error_code in (0, 25, 110):
            self.epochs[self.who] = 0 if answer.error_code else max(answer.member_epoch, 0)
        return int(answer.error_code)

    def session(self) -> dict[str, Any]:
        member = self.members[self.who]
        epoch = self.mostly(self.sessions[self.who], 0, -1, 3)
        return {
            "group_id": self.mostly("g", "h", None),
            "member_id": self.mostly(member, None, "x"),
            "share_session_epoch": epoch,
        }

    def is_over(self, session: dict[str, Any], answer: Any) -> int:
        if not answer.error_code:
            self.sessions[self.who] = session["share_session_epoch"] + 1
        elif answer.error_code in (122, 123):
            self.sessions[self.who] = 0
        return int(answer.error_code)

    def topics(self, **more: Any) -> list[dict[str, Any]]:
        found: dict[uuid.UUID, list[dict[str, Any]]] = {}
        for _ in range(self.rng.randrange(3)):
            partition = {"partition_index": self.mostly(0, 1, 2, -1), "acknowledgement_batches": self.batches(), **more}
            found.setdefault(self.topic_id(), []).append(partition)
        return [{"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in found.items()]

    def batches(self) -> list[dict[str, Any]]:
        found, at = [], self.mostly(self.rng.randrange(12), -1)
        for _ in range(self.rng.randrange(3)):
            last = at + self.rng.randrange(6)
            types = self.rng.choices((0, 1, 2, 3, 4, 5), (1, 10, 3, 2, 1, 0.1), k=self.rng.choice((1, last - at + 1)))
            found.append({"first_offset": at, "last_offset": last, "acknowledge_types": types})
            at = last + self.mostly(1, 0, 2)
        return found

    def fetch(self) -> int:
        session, is_renewal = self.session(), self.mostly(False, True)
        sizes = {"max_wait_ms": self.rng.choice((0, 5)), "min_bytes": self.rng.choice((0, 1)), "max_bytes": 1 << 20}
        records = {"max_records": self.rng.choice((0, 1, 5, 500)), "batch_size": self.rng.choice((0, 1, 10, 500))}
        mode = {"share_acquire_mode": self.rng.choice((0, 1)), "is_renew_ack": is_renewal, "forgotten_topics_data": []}
        version = self.rng.choice((1, 2))
        topics = self.topics(partition_max_bytes=1 << 20)
        return self.is_over(session, self.call(FETCH, version, **session, **sizes, **records, **mode, topics=topics))

    def acknowledge(self) -> int:
        session = self.session()
        return self.is_over(session, self.call(ACKNOWLEDGE, 2, **session, is_renew_ack=False, topics=self.topics()))

    def produce(self) -> int:
        batch = build_batch([Record(number, 0, None, b"v") for number in range(self.rng.randrange(1, 4))])
        topics = [{"name": self.rng.choice(TOPICS), "partition_data": [{"index": 0, "records": batch}]}]
        answer = self.call(PRODUCE, 9, transactional_id=None, acks=-1, timeout_ms=1_000, topic_data=topics)
        return int(answer.responses[0].partition_responses[0].error_code)

    def describe(self) -> int:
        groups = [self.rng.choice((*GROUPS, "x", ""))]
        return int(self.call(DESCRIBE, 1, group_ids=groups, include_authorized_operations=True).groups[0].error_code)

    def describe_offsets(self) -> int:
        partitions = [0, self.rng.choice((0, 1, 5, -1))]
        topics = self.rng.choice((None, [{"topic_name": self.rng.choice((*TOPICS, "zz")), "partitions": partitions}]))
        groups = [{"group_id": self.rng.choice((*GROUPS, "x", "")), "topics": topics}]
        return int(self.call(DESCRIBE_OFFSETS, 1, groups=groups).groups[0].error_code)

    def alter_offsets(self) -> int:
        partitions = [{"partition_index": self.mostly(0, 1, 5, -1), "start_offset": self.rng.choice((0, 1, 5, -1, 99))}]
        topics = [{"topic_name": self.rng.choice((*TOPICS, "zz")), "partitions": partitions}]
        return int(self.call(ALTER_OFFSETS, 0, group_id=self.rng.choice((*GROUPS, "n", "")), topics=topics).error_code)

    def keep(self, name: str, start_offset: int) -> None:
        """A group and a topic of this name are nobody else's."""
        topics = [{"topic_name": name, "partitions": [{"partition_index": 0, "start_offset": start_offset}]}]
        self.call(ALTER_OFFSETS, 0, group_id=name, topics=topics)

    def delete_offsets(self) -> int:
        topics = [{"topic_name": self.rng.choice((*TOPICS, "zz"))}]
        return int(self.call(DELETE_OFFSETS, 0, group_id=self.rng.choice((*GROUPS, "n", "")), topics=topics).error_code)

    def delete_group(self) -> int:
        return int(self.call(DELETE_GROUPS, 2, groups_names=[self.rng.choice((*GROUPS, "n"))]).results[0].error_code)

    def change_topics(self) -> int:
        name = self.rng.choice(TOPICS)
        if name in self.ids:
            answer = self.call(DELETE_TOPICS, 4, topic_names=[name], timeout_ms=1_000).responses[0]
        else:
            topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
            answer = self.call(CREATE_TOPICS, 5, topics=[topic], timeout_ms=1_000, validate_only=False).topics[0]
        self.learn()
        return int(answer.error_code)

    def delete_records(self) -> int:
        partitions = [{"partition_index": 0, "offset": self.rng.choice((1, 3, -1))}]
        topics = [{"name": self.rng.choice(TOPICS), "partitions": partitions}]
        return int(self.call(DELETE_RECORDS, 1, topics=topics, timeout_ms=1_000).topics[0].partitions[0].error_code)

    def come_again(self) -> int:
        address = self.clients[self.who].socket.getpeername()
        self.clients[self.who].close()
        self.clients[self.who] = RawClient(f"{address[0]}:{address[1]}", client_id=f"c{self.who}")
        self.sessions[self.who] = 0
        return 0


def told(server: BackgroundServer) -> Any:
    """Where the groups begin to read."""
    with RawClient(server.bootstrap) as client:
        groups = client.call(
            DESCRIBE_OFFSETS, 1, {"groups": [{"group_id": group, "topics": None} for group in (*GROUPS, "kept")]}
        ).groups
    return [
        (group.group_id, topic.topic_name, each.partition_index, each.start_offset, each.lag, each.error_code)
        for group in groups
        for topic in group.topics
        for each in topic.partitions
    ]


@pytest.mark.parametrize("steps", [2_000, pytest.param(100_000, marks=[pytest.mark.deep, pytest.mark.timeout(3_600)])])
def test_requests_at_random_are_answered_and_what_is_kept_comes_back(
    steps: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, before = play(ShareParty, 9, steps, told, tmp_path, caplog)
    assert ("kept", "kept", 0, 3) in [each[:4] for each in before]
