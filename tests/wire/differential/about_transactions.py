"""Conversations about transactions."""

from __future__ import annotations

import struct
import time
from typing import Any

from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    LIST_TRANSACTIONS,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
    batch,
    create_topic,
    fetch_all,
    produce,
    resealed,
)

TOPIC_PRODUCE = 9
TRANSACTIONAL = b"\x00\x10"
NOW_MS = time.time_ns() // 1_000_000
"""Older records than a marker by a week would make a real broker begin a new segment, where a fetch ends."""


class Producer:
    """A transactional producer, one request at a time; ``version`` is EndTxn's, and of the others as far as they go."""

    def __init__(self, probe: Probe, version: int, name: str) -> None:
        self.probe = probe
        self.version = version
        self.name = name
        self.sequence = 0
        self.topic_id = create_topic(probe, name)
        probe.until(FIND_COORDINATOR, 2, {"key": name, "key_type": 1}, lambda body: body.error_code == 0)
        values = {"transactional_id": name, "transaction_timeout_ms": 300_000, "producer_id": -1, "producer_epoch": -1}
        body = probe.until(INIT_PRODUCER_ID, 4, values, lambda body: body.error_code == 0)
        self.identity = {"transactional_id": name, "producer_id": body.producer_id, "producer_epoch": body.producer_epoch}

    def add_partition(self, partition: int = 0, topic: str | None = None, **identity: Any) -> None:
        merged = {**self.identity, **identity}
        topics = [{"name": topic or self.name, "partitions": [partition]}]
        values = {f"v3_and_below_{key}": value for key, value in merged.items()} | {"v3_and_below_topics": topics}
        self.probe.call(ADD_PARTITIONS_TO_TXN, min(self.version, 3), values)

    def write(self, count: int = 2, **settings: Any) -> None:
        data = batch(
            count, timestamp_ms=NOW_MS, producer_id=self.identity["producer_id"], producer_epoch=self.identity["producer_epoch"]
        )
        data = resealed(resealed(data, 21, TRANSACTIONAL), 53, struct.pack(">i", self.sequence))
        given = {"transactional_id": self.name, **settings}
        body = produce(self.probe, TOPIC_PRODUCE, self.name, self.topic_id, data, **given)
        if body is not None and int(body.responses[0].partition_responses[0].error_code) == 0:
            self.sequence += count

    def add_group(self, group: str | None = None, **identity: Any) -> None:
        values = {**self.identity, "group_id": self.name if group is None else group, **identity}
        self.probe.call(ADD_OFFSETS_TO_TXN, min(self.version, 4), values)

    def commit_offset(self, offset: int, *, topic: str | None = None, partition: int = 0, **settings: Any) -> None:
        entry = {"partition_index": partition, "committed_offset": offset, "committed_metadata": "m"}
        topics = [{"name": topic or self.name, "partitions": [entry]}]
        values = {**self.identity, "group_id": self.name, "generation_id": -1, "member_id": "", **settings, "topics": topics}
        self.probe.call(TXN_OFFSET_COMMIT, min(self.version, 4), values)

    def end(self, *, committed: bool, **identity: Any) -> None:
        body = self.probe.call(END_TXN, self.version, {**self.identity, "committed": committed, **identity})
        if not identity and self.version >= 5 and int(body.error_code) == 0:
            self.identity |= {"producer_id": body.producer_id, "producer_epoch": body.producer_epoch}
            self.sequence = 0
        self.settle()

    def settle(self) -> None:
        """A real broker writes its markers after the answer."""
        values = {**self.identity, "group_id": self.name, "topics": None, "groups": [{"group_id": self.name, "topics": None}]}
        self.probe.until(
            OFFSET_FETCH, 8, {**values, "require_stable": True}, lambda body: all(_is_stable(group) for group in body.groups)
        )
        self.probe.until(LIST_OFFSETS, 7, self._latest(1), lambda body: _end(body) == _end(self._ask_end()))

    def _ask_end(self) -> Any:
        return self.probe.call(LIST_OFFSETS, 7, self._latest(0), note=False)

    def _latest(self, isolation_level: int) -> dict[str, Any]:
        partitions = [{"partition_index": 0, "timestamp": -1}]
        return {"replica_id": -1, "isolation_level": isolation_level, "topics": [{"name": self.name, "partitions": partitions}]}

    def _fetch(self, offset: int, isolation_level: int) -> dict[str, Any]:
        partitions = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1_000_000}]
        topics = [{"topic": self.name, "partitions": partitions}]
        values = {"max_wait_ms": 0, "min_bytes": 0, "isolation_level": isolation_level, "topics": topics}
        return {**values, "forgotten_topics_data": []}

    def look(self) -> None:
        """What the two kinds of readers see."""
        for isolation_level in (0, 1):
            self.probe.call(LIST_OFFSETS, 7, self._latest(isolation_level))
            for offset in (0, 3):
                self.probe.call(FETCH, 11, self._fetch(offset, isolation_level))
        for stable in (False, True):
            groups = [{"group_id": self.name, "topics": [{"name": self.name, "partition_indexes": [0, 1]}]}]
            self.probe.call(OFFSET_FETCH, 8, {"groups": groups, "require_stable": stable})


def _is_stable(group: Any) -> bool:
    return all(int(partition.error_code) == 0 for topic in group.topics for partition in topic.partitions)


def _end(body: Any) -> int:
    return int(body.topics[0].partitions[0].offset)


def transactions(probe: Probe, version: int, name: str) -> None:
    producer = Producer(probe, version, name)
    producer.add_partition()
    producer.write()
    producer.write(3)
    producer.add_group()
    producer.commit_offset(5)
    producer.look()
    producer.end(committed=True)
    producer.look()
    producer.add_partition()
    producer.write()
    producer.add_group()
    producer.commit_offset(7)
    producer.commit_offset(8, partition=1)
    producer.look()
    producer.end(committed=False)
    producer.look()
    fetch_all(probe, 7, name)


def wrong_transactions(probe: Probe, version: int, name: str) -> None:
    producer = Producer(probe, version, name)
    identity = producer.identity
    producer.end(committed=True)
    for wrong in (
        {"transactional_id": "nosuch"},
        {"transactional_id": ""},
        {"producer_id": identity["producer_id"] + 1_000},
        {"producer_epoch": identity["producer_epoch"] + 1},
    ):
        producer.add_partition(**wrong)
        producer.add_group(**wrong)
        producer.end(committed=True, **wrong)
        producer.commit_offset(3, **wrong)
    producer.add_partition(9)
    producer.add_partition(topic="nosuch")
    producer.add_partition(topic="__consumer_offsets")
    producer.add_group("")
    producer.add_partition()
    producer.commit_offset(3)
    producer.add_group()
    producer.commit_offset(3, topic="nosuch")
    producer.commit_offset(3, partition=9)
    producer.commit_offset(3, group_id="")
    producer.commit_offset(3, generation_id=4, member_id="nosuch")
    producer.commit_offset(3, member_id="nosuch")
    producer.write(transactional_id=None)
    producer.write(partition=1)
    producer.write()
    producer.end(committed=True)


def fencing(probe: Probe, version: int, name: str) -> None:
    first = Producer(probe, version, name)
    first.add_partition()
    first.write()
    values = {"transactional_id": name, "transaction_timeout_ms": 300_000, "producer_id": -1, "producer_epoch": -1}
    probe.until(INIT_PRODUCER_ID, 4, values, lambda body: body.error_code == 0)
    first.settle()
    first.add_partition()
    first.write()
    first.end(committed=True)
    first.look()


def transactional_ids(probe: Probe, version: int, name: str) -> None:
    producer = Producer(probe, 3, name)
    for settings in (
        {},
        {"transaction_timeout_ms": 0},
        {"transaction_timeout_ms": -1},
        {"transaction_timeout_ms": 900_001},
        {"producer_id": 77_777, "producer_epoch": 0},
        {"producer_id": producer.identity["producer_id"], "producer_epoch": 0},
        {"producer_id": producer.identity["producer_id"], "producer_epoch": 1},
        {"producer_id": producer.identity["producer_id"], "producer_epoch": 9},
    ):
        values = {
            "transactional_id": name,
            "transaction_timeout_ms": 300_000,
            "producer_id": -1,
            "producer_epoch": -1,
            **settings,
        }
        probe.call(INIT_PRODUCER_ID, version, values)


def telling_of_transactions(probe: Probe, version: int, name: str) -> None:
    nobody = {"transactional_id": None, "transaction_timeout_ms": 1, "producer_id": -1, "producer_epoch": -1}
    probe.until(INIT_PRODUCER_ID, 4, nobody, lambda body: body.producer_id > 0)  # the very first has the id that stands for none
    producer = Producer(probe, 4, name)
    own = producer.identity["producer_id"]

    def tell(**filters: Any) -> None:
        values = {"state_filters": [], "producer_id_filters": [own], "duration_filter": -1, **filters}
        probe.call(LIST_TRANSACTIONS, version, values)
        probe.call(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [name]})

    tell()
    producer.add_partition()
    producer.write()
    for filters in (
        {},
        {"state_filters": ["Ongoing"]},
        {"state_filters": ["Empty", "CompleteCommit"]},
        {"state_filters": ["Ongoing", "nosuch", "ongoing", ""]},
        {"producer_id_filters": [own, 77_777_777]},
        {"producer_id_filters": [77_777_777]},
    ):
        tell(**filters)
    if version >= 1:
        for duration in (0, 3_600_000, -5):
            tell(duration_filter=duration)
    if version >= 2:
        for pattern in (None, "", name, f"{name}.*", f"{name[:-1]}", ".*", "nosuch", "(", "a**", "(?=x)"):
            tell(transactional_id_pattern=pattern)
    producer.end(committed=True)
    probe.until(
        DESCRIBE_TRANSACTIONS,
        0,
        {"transactional_ids": [name]},
        lambda body: "Prepare" not in body.transaction_states[0].transaction_state,
    )
    tell()
    probe.call(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["nosuch", "", "nosuch"]})
