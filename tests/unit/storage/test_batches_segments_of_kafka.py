"""A log that Apache Kafka wrote: copied, read record by record, loaded, and carried on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka import Producer, TopicPartition

from kgctl.admin.embedded import EmbeddedGroupAdmin
from kgctl.coordinator.config import CoordinatorConfig
from kgctl.model.coordinator_records import CoordinatorRecord, OffsetCommitValue
from kgctl.model.groups import GroupState, GroupType, TopicMetadata
from kgctl.serde.coordinator_records import encode_record
from kgctl.storage.batches import import_segments
from kgctl.storage.folder import DataFolder, load_coordinator, memory_folder, open_folder
from tests.support.kafka import KafkaBroker, commit, create_topic, produce
from tests.support.kafka.consumers import consumer, joined
from tests.support.kafka.data import wait_until_coordinating
from tests.support.kafka.kgctl import run_kgctl
from tests.support.serve import ServeFactory

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PARTITIONS = 4
TIMEOUT_S = 30
GROUPS = {
    "classic": (GroupType.CLASSIC, GroupState.STABLE),
    "modern": (GroupType.CONSUMER, GroupState.STABLE),
    **dict.fromkeys(("simple-1", "simple-2", "simple-3", "txn-a", "txn-b"), (GroupType.CLASSIC, GroupState.EMPTY)),
}
OFFSETS = {
    "classic": {0: 7},
    **{name: {0: 5, 1: 4} for name in ("simple-1", "simple-2", "simple-3")},
    **{name: {0: 11, 1: 11} for name in ("txn-a", "txn-b")},
}


@pytest.fixture(scope="module")
def copied_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A broker's log directory, copied while it ran, with every kind of group and transaction in it."""
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka"), overrides={"offsets.topic.num.partitions": str(PARTITIONS)})
    try:
        broker.start()
        wait_until_coordinating(broker.bootstrap)
        create_topic(broker.bootstrap, "t", 3)
        produce(broker.bootstrap, "t", dict.fromkeys(range(3), 20))
        copy = tmp_path_factory.mktemp("copy") / "log"
        with (
            joined(broker.bootstrap, "classic", "t", {"c1": 2, "c2": 1}) as members,
            joined(broker.bootstrap, "modern", "t", {"m1": 3}, group_protocol="consumer"),
        ):
            members["c1"].commit(offsets=[TopicPartition("t", 0, 7, metadata="meta")], asynchronous=False)
            for group in ("simple-1", "simple-2", "simple-3"):
                commit(broker.bootstrap, group, {("t", 0): 3, ("t", 1): 4})
                commit(broker.bootstrap, group, {("t", 0): 5})
            transactions(broker.bootstrap)
            shutil.copytree(broker.folder / "log", copy)
            _still_open.clear()
        yield copy
    finally:
        broker.stop()


def transactions(bootstrap: str) -> None:
    """One committed, one aborted, one open when the log is copied; each over two groups, on partitions of their own."""
    for transaction, offset in (("done", 11), ("undone", 12), ("open", 13)):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transaction})
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        producer.produce("t", b"in a transaction", partition=2)
        for group in ("txn-a", "txn-b"):
            member = consumer(bootstrap, group, "reader")
            member.poll(0)
            offsets = [
                TopicPartition("t", 0, offset),
                TopicPartition("t", {"done": 1, "undone": 1, "open": 2}[transaction], offset),
            ]
            producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), TIMEOUT_S)
            member.close()
        if transaction == "done":
            producer.commit_transaction(TIMEOUT_S)
        elif transaction == "undone":
            producer.abort_transaction(TIMEOUT_S)
        else:
            _still_open.append(producer)


_still_open: list[Producer] = []
"""Kept until the log is copied, so that nothing ends their transactions."""


def test_every_record_that_is_interpreted_encodes_to_kafkas_bytes(copied_log: Path) -> None:
    folder = memory_folder(PARTITIONS)
    summary = import_segments(copied_log, folder.record_log)
    stored = list(folder.record_log.read())
    decoded = [(record, record.decode()) for record in stored]
    again = [(record, encode_record(found)) for record, found in decoded if isinstance(found, CoordinatorRecord)]

    assert summary.records == len(stored) > 20
    assert [(record.key, record.value) for record, _ in again] == [encoded for _, encoded in again]
    assert {int.from_bytes((record.key or b"")[:2], "big") for record, _ in again} == {1, 2, 3, 5, 6, 7, 8}
    assert sorted({(record.partition > -1, record.commits) for record in stored if record.is_marker}) == [
        (True, False),
        (True, True),
    ]


def test_the_loaded_coordinator_has_kafkas_groups_offsets_and_open_transactions(copied_log: Path, tmp_path: Path) -> None:
    with open_folder(tmp_path, create=True, offsets_partitions=PARTITIONS) as folder:
        import_segments(copied_log, folder.record_log)
        now_ms = max(record.timestamp_ms for record in folder.record_log.read())
        folder.topics.create_topics([TopicMetadata("t", topic_id_of(folder), 3)])
        load_coordinator(folder, CoordinatorConfig(), str, now_ms).check()
        admin = EmbeddedGroupAdmin(folder, lambda: now_ms)
        listed = admin.list_groups().values
        assert {name: (listed[name].type, listed[name].state) for name in GROUPS} == GROUPS
        committed = admin.list_committed_offsets(list(OFFSETS)).values
        assert {name: {p.partition: found.offset for p, found in committed[name].items()} for name in OFFSETS} == OFFSETS
        assert list(admin.list_committed_offsets(["txn-a"], require_stable=True).errors) == ["txn-a"]
        classic, modern = (admin.describe_groups([name]).values[name] for name in ("classic", "modern"))
        assert sorted(sum(len(owned) for owned in (m.assignment or {}).values()) for m in classic.members) == [1, 2]
        assert [member.assignment for member in modern.members] == [{"t": (0, 1, 2)}]
        before = [folder.record_log.end_offset(partition) for partition in range(PARTITIONS)]
        assert admin.delete_groups(["simple-1"]).errors == {}
        after = [folder.record_log.end_offset(partition) for partition in range(PARTITIONS)]

        assert sum(after) > sum(before)


def test_a_server_begins_with_the_log_and_only_once(copied_log: Path, tmp_path: Path, kgctl_serve: ServeFactory) -> None:
    data, config = tmp_path / "data", {"offsets.topic.num.partitions": str(PARTITIONS)}
    with kgctl_serve({"t": 3}, config, data, options=["--import-log", str(copied_log)]) as server:
        listed = run_kgctl(server.bootstrap, "list", "groups").data
    assert {row["group"]: (row["type"], row["state"]) for row in listed} == GROUPS

    with pytest.raises(AssertionError, match="of this data folder has records already; import into a new folder"):
        kgctl_serve({}, config, data, options=["--import-log", str(copied_log)])


def topic_id_of(folder: DataFolder) -> UUID:
    """The id under which Kafka had the topic: each committed offset has it."""
    for record in folder.record_log.read():
        found = record.decode()
        if isinstance(found, CoordinatorRecord) and isinstance(found.value, OffsetCommitValue) and found.value.topic_id.int:
            return found.value.topic_id
    raise AssertionError("no offset with a topic id")
