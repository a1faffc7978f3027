"""Requests about streams groups that come in any order and are half wrong: each is answered, and what is kept is on disk."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kgctl.server.background import BackgroundServer
from tests.support.wire.party import Party, play
from tests.support.wire.raw_client import RawClient

METADATA, OFFSET_COMMIT, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS, DELETE_GROUPS = 3, 8, 19, 20, 37, 42
INCREMENTAL_ALTER_CONFIGS, CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, DESCRIBE = 44, 68, 88, 89
GROUPS, TOPICS = ("g", "h"), ("t", "u")
CONFIG = {
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.session.timeout.ms": "500",
    "group.streams.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "5",
    "group.streams.assignment.interval.ms": "0",
}


def info(name: str, partitions: int = 0, replicas: int = 0) -> dict[str, Any]:
    return {"name": name, "partitions": partitions, "replication_factor": replicas, "topic_configs": []}


def subtopology(number: str, **fields: Any) -> dict[str, Any]:
    names = ("source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics")
    empty: dict[str, Any] = {name: [] for name in (*names, "repartition_source_topics", "copartition_groups")}
    return {"subtopology_id": number, **empty, **fields}


TOPOLOGIES: tuple[list[dict[str, Any]], ...] = (
    [subtopology("0", source_topics=["t"])],
    [
        subtopology("0", source_topics=["t"], repartition_sink_topics=["g-r"]),
        subtopology("1", repartition_source_topics=[info("g-r")], state_changelog_topics=[info("g-c")]),
    ],
    [subtopology("0", source_topics=["t", "u"], state_changelog_topics=[info("g-many", 0, 3)])],
    [subtopology("0", repartition_source_topics=[info("g-r")], repartition_sink_topics=["g-r"])],
    [subtopology("0", source_topics=["__consumer_offsets", "?"])],
    [],
)
WEIGHTS = (10, 30, 3, 0.5, 0.5, 0.5)


class StreamsParty(Party):
    """Members of three instances' applications."""

    partitions, config, is_right = {"t": 2, "u": 2}, CONFIG, 0.97
    reached = (
        *(("heartbeat", code) for code in (0, 25, 42, 110)),
        *(("describe", code) for code in (0, 24)),
        *(("commit", code) for code in (0, 25)),
        *(("change_topics", 0), ("configure", 0), ("consume", 69), ("delete_group", 68)),
    )

    def __init__(self, server: BackgroundServer, rng: random.Random) -> None:
        super().__init__(server, rng)
        self.statuses: Counter[int] = Counter()
        self.epochs: dict[tuple[str, int], int] = {}
        self.owned: dict[tuple[str, int], Any] = {}
        self.operations = [
            *((30, self.heartbeat), (3, self.describe), (3, self.commit), (0.2, self.change_topics), (0.1, self.grow)),
            *((0.3, self.configure), (0.3, self.delete_group), (0.3, self.consume)),
        ]

    def heartbeat(self) -> int:
        group = self.mostly("g", "h", "k", "")
        whose = group, self.who
        epoch = self.mostly(self.epochs.get(whose, 0), 0, -1, -2, 7, of=0.9)
        answer = self.call(HEARTBEAT, 0, **self.said(group, epoch))
        if answer.error_code:
            self.epochs.pop(whose, None)
            self.owned.pop(whose, None)
        else:
            self.epochs[whose] = max(answer.member_epoch, 0)
            self.statuses.update(int(each.status_code) for each in answer.status or ())
            if answer.active_tasks is not None:
                self.owned[whose] = [self.ids(tasks) for tasks in (answer.active_tasks, answer.standby_tasks)]
        return int(answer.error_code)

    def ids(self, tasks: Any) -> list[dict[str, Any]]:
        return [{"subtopology_id": each.subtopology_id, "partitions": list(each.partitions)} for each in tasks or ()]

    def said(self, group: str, epoch: int) -> dict[str, Any]:
        joins = epoch == 0
        chosen = TOPOLOGIES[1] if group == "g" else self.rng.choices(TOPOLOGIES, WEIGHTS)[0]
        active, standby = self.owned.get((group, self.who), ([], []))
        none = self.rng.random() < 0.5 and not joins
        wrong = [{"subtopology_id": "9", "partitions": [0]}]
        return {
            "group_id": group,
            "member_id": self.mostly(f"m{self.who}", "", "x"),
            "member_epoch": epoch,
            "endpoint_information_epoch": self.rng.choice((-1, 0, 1)),
            "instance_id": self.mostly(None, "i", of=0.99),
            "rack_id": self.rng.choice((None, "a")),
            "rebalance_timeout_ms": self.mostly(300 if joins else -1, -1),
            "topology": {"epoch": self.mostly(0, 1, -1), "subtopologies": chosen} if self.mostly(joins, not joins) else None,
            "active_tasks": None if none else self.mostly([] if joins else active, wrong, active),
            "standby_tasks": None if none else self.mostly([] if joins else standby, None),
            "warmup_tasks": None if none else self.mostly([], wrong, of=0.99),
            "process_id": f"p{self.who % 2}" if joins else None,
            "user_endpoint": self.mostly(None, {"host": "h", "port": 1}, of=0.995),
            "client_tags": [] if joins else None,
            "task_offsets": self.mostly(None, [], of=0.99),
            "task_end_offsets": None,
            "shutdown_application": self.mostly(False, True, of=0.995),
        }

    def describe(self) -> int:
        groups = [self.rng.choice((*GROUPS, "x", ""))]
        return int(self.call(DESCRIBE, 0, group_ids=groups, include_authorized_operations=True).groups[0].error_code)

    def commit(self) -> int:
        entry = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "", "committed_leader_epoch": -1}
        group = self.rng.choice(GROUPS)
        whose = {"member_id": f"m{self.who}", "generation_id_or_member_epoch": self.epochs.get((group, self.who), -1)}
        topics = [{"name": "t", "partitions": [entry]}]
        answer = self.call(OFFSET_COMMIT, 9, group_id=group, group_instance_id=None, **whose, topics=topics)
        return int(answer.topics[0].partitions[0].error_code)

    def change_topics(self) -> int:
        name = self.rng.choice(("t", "u", "u", "g-r", "g-c", "g-many"))
        known = {topic.name for topic in self.call(METADATA, 12, topics=None).topics}
        if name in known:
            return int(self.call(DELETE_TOPICS, 4, topic_names=[name], timeout_ms=1_000).responses[0].error_code)
        topic = {"name": name, "num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": []}
        answer = self.call(CREATE_TOPICS, 5, topics=[topic], timeout_ms=1_000, validate_only=False)
        return int(answer.topics[0].error_code)

    def grow(self) -> int:
        topics = [{"name": self.rng.choice(TOPICS), "count": self.rng.randrange(2, 6), "assignments": None}]
        return int(self.call(CREATE_PARTITIONS, 3, topics=topics, timeout_ms=1_000, validate_only=False).results[0].error_code)

    def configure(self) -> int:
        entry = {"name": "streams.num.standby.replicas", "config_operation": 0, "value": self.rng.choice(("0", "1", "2", "9"))}
        resources = [{"resource_type": 32, "resource_name": self.rng.choice(GROUPS), "configs": [entry]}]
        answer = self.call(INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=False)
        return int(answer.responses[0].error_code)

    def delete_group(self) -> int:
        return int(self.call(DELETE_GROUPS, 2, groups_names=[self.rng.choice((*GROUPS, "n"))]).results[0].error_code)

    def consume(self) -> int:
        whose = {"group_id": self.rng.choice((*GROUPS, "k")), "member_id": "k" * 22, "member_epoch": 0}
        rest = {"instance_id": None, "rack_id": None, "rebalance_timeout_ms": 300, "subscribed_topic_names": ["t"]}
        more: dict[str, Any] = {"subscribed_topic_regex": None, "server_assignor": None, "topic_partitions": []}
        return int(self.call(CONSUMER_GROUP_HEARTBEAT, 1, **whose, **rest, **more).error_code)


def told(server: BackgroundServer) -> Any:
    """The groups without what time changes: who is still there."""
    with RawClient(server.bootstrap) as client:
        groups = client.call(DESCRIBE, 0, {"group_ids": list(GROUPS), "include_authorized_operations": False}).groups
    return [(group.group_id, group.error_code, str(group.topology)) for group in groups]


@pytest.mark.parametrize("steps", [2_000, pytest.param(100_000, marks=[pytest.mark.deep, pytest.mark.timeout(3_600)])])
def test_requests_at_random_are_answered_and_what_is_kept_comes_back(
    steps: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    party, _ = play(StreamsParty, 11, steps, told, tmp_path, caplog)
    assert isinstance(party, StreamsParty)
    assert {1, 3, 4} <= {*party.statuses}
