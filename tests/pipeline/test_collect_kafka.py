"""``kgctl history collect`` from Apache Kafka: live and from its segment files, every codec, transactions, logins."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from kgctl.pipeline.store.tables import RAW, conform, from_stored
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.serde.coordinator_records import decode_record
from kgctl.serde.record_batch import iterate_batches
from tests.support.kafka import KafkaBroker, KafkaCluster, SecureKafkaBroker, commit, create_topic, produce, unique
from tests.support.kafka.config import CLUSTER_ID, NodePorts, combined_node
from tests.support.kafka.consumers import consumer, joined
from tests.support.kafka.data import TIMEOUT_S, wait_until_coordinating
from tests.support.kafka.kgctl import KgctlRun, run_kgctl
from tests.support.profiles import is_deep

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

PARTITIONS = 3
TOPIC = "__consumer_offsets"
CODECS = {"none": "0", "gzip": "1", "snappy": "2", "lz4": "3", "zstd": "4"}
USUAL = ("zstd",)
"""The codec of every run; a deep one has them all, with a new start of the broker for each."""


@dataclass
class Node:
    """A broker whose offsets topic is written with another codec after each restart."""

    broker: KafkaBroker
    codecs: Sequence[str]
    codec: dict[str, str] = field(default_factory=dict)

    def restart(self, codec: str) -> None:
        self.broker.stop()
        self.codec["offsets.topic.compression.codec"] = CODECS[codec]
        self.broker.start()
        wait_until_coordinating(self.broker.bootstrap, PARTITIONS)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Node]:
    codec: dict[str, str] = {}

    def config(folder: Path, ports: NodePorts) -> Mapping[str, str]:
        return {**combined_node(folder, ports), "offsets.topic.num.partitions": str(PARTITIONS), **codec}

    codecs = tuple(CODECS) if is_deep(pytestconfig) else USUAL
    node = Node(KafkaBroker(tmp_path_factory.mktemp("kafka"), config=config), codecs, codec)
    try:
        node.restart(codecs[0])
        bootstrap = node.broker.bootstrap
        create_topic(bootstrap, "t", 3)
        produce(bootstrap, "t", dict.fromkeys(range(3), 20))
        for name in codecs:
            if name != codecs[0]:
                node.restart(name)
            commit(bootstrap, f"simple-{name}", {("t", 0): 3, ("t", 1): 4}, metadata="m" * 300)
            with joined(bootstrap, f"classic-{name}", "t", {"c1": 2, "c2": 1}):
                commit(bootstrap, f"other-{name}", {("t", 2): 5})
        with joined(bootstrap, "modern", "t", {"m1": 3}, group_protocol="consumer"):
            transaction(bootstrap, "done", 11, commits=True)
            transaction(bootstrap, "undone", 12, commits=False)
        yield node
    finally:
        node.broker.stop()


def transaction(bootstrap: str, name: str, offset: int, *, commits: bool) -> None:
    """One that commits an offset of the group ``txn``."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("t", b"in a transaction", partition=2)
    member = consumer(bootstrap, "txn", "reader")
    member.poll(0)
    producer.send_offsets_to_transaction([TopicPartition("t", 0, offset)], member.consumer_group_metadata(), TIMEOUT_S)
    member.close()
    (producer.commit_transaction if commits else producer.abort_transaction)(TIMEOUT_S)


def collect(node: Node, warehouse: Path, *arguments: str, code: int = 0) -> KgctlRun:
    return run_kgctl(node.broker.bootstrap, "history", "collect", "--warehouse", str(warehouse), *arguments, code=code)


def records(warehouse: Path) -> Any:
    """All records that were collected, by place."""
    table = conform(from_stored("records", Warehouse.open(warehouse).table("records").rows()), RAW)
    return table.sort_by([("partition", "ascending"), ("offset", "ascending")])


def read_by_librdkafka(bootstrap: str, isolation: str) -> list[tuple[Any, ...]]:
    """(partition, offset, timestamp, key, value) of all that a consumer is given."""
    settings = {"isolation.level": isolation, "enable.partition.eof": True}
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, **settings})
    reader.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    found: list[tuple[Any, ...]] = []
    ends: set[Any] = set()
    while len(ends) < PARTITIONS:
        for message in reader.consume(1_000, 1.0):
            if message.error():
                ends.add(message.partition())
            else:
                place = (message.partition(), message.offset(), message.timestamp()[1])
                found.append((*place, message.key(), message.value()))
    reader.close()
    return sorted(found)


def plain(table: Any) -> list[tuple[Any, ...]]:
    """The same of what was collected, without markers."""
    return [tuple(row.values())[:5] for row in table.to_pylist() if row["commits"] is None]


def test_live_is_what_the_segments_hold_and_what_a_consumer_sees(node: Node, tmp_path: Path) -> None:
    live = collect(node, tmp_path / "live", "--once")
    shutil.copytree(node.broker.folder / "log", tmp_path / "log")
    files = collect(node, tmp_path / "files", "--segments", str(tmp_path / "log"))
    found = records(tmp_path / "live")
    assert found.equals(records(tmp_path / "files"))
    assert plain(found) == read_by_librdkafka(node.broker.bootstrap, "read_uncommitted")
    used = {
        header.compression
        for file in (tmp_path / "log").glob(f"{TOPIC}-*/*.log")
        for _, header in iterate_batches(file.read_bytes())
    }
    assert used >= set(node.codecs)
    markers = [row for row in found.to_pylist() if row["commits"] is not None]
    assert sorted(row["commits"] for row in markers) == [False, True]
    assert {row["producer_id"] for row in found.to_pylist()} > {row["producer_id"] for row in markers}
    for row in found.to_pylist():
        if row["commits"] is None:
            decode_record(row["key"], row["value"])
    assert {row["cluster"] for row in live.data} == {CLUSTER_ID}
    assert {row["cluster"] for row in files.data} == {"default"}
    assert sum(row["records"] for row in live.data) == sum(row["records"] for row in files.data) == found.num_rows


def test_samples_are_of_the_topics_with_commits(node: Node, tmp_path: Path) -> None:
    create_topic(node.broker.bootstrap, "nobody-reads", 1)
    collect(node, tmp_path / "w", "--once")
    rows = Warehouse.open(tmp_path / "w").table("samples").rows().to_pylist()
    assert {row["topic"] for row in rows} == {"t", TOPIC}, "and the log's own, which tells up to when it was collected"
    own = [row for row in rows if row["topic"] == "t"]
    assert [(row["partition"], row["log_start_offset"]) for row in own] == [(n, 0) for n in range(3)]
    assert [row["log_end_offset"] for row in own][:2] == [20, 20]
    collect(node, tmp_path / "all", "--once", "--all-topics")
    every = Warehouse.open(tmp_path / "all").table("samples").rows().to_pylist()
    assert {row["topic"] for row in every} >= {"t", "nobody-reads", TOPIC}


@pytest.mark.parametrize("reader", ["wire", "confluent"])
def test_the_next_collection_goes_on_where_the_last_one_ended(node: Node, tmp_path: Path, reader: str) -> None:
    first = collect(node, tmp_path / "w", "--once", "--reader", reader)
    group = unique("later")
    commit(node.broker.bootstrap, group, {("t", 0): 7})
    second = collect(node, tmp_path / "w", "--once", "--reader", reader)
    new = sum(row["records"] for row in second.data)
    assert 1 <= new <= 3
    assert all(row["known"] == 0 for row in second.data)
    assert sum(row["records"] for row in first.data) + new == records(tmp_path / "w").num_rows
    third = collect(node, tmp_path / "w", "--once", "--reader", reader)
    assert third.data == []


def test_confluent_sees_what_transactions_committed(node: Node, tmp_path: Path) -> None:
    collect(node, tmp_path / "w", "--once", "--reader", "confluent")
    found = records(tmp_path / "w")
    assert plain(found) == read_by_librdkafka(node.broker.bootstrap, "read_committed")
    assert found.column("commits").null_count == found.column("producer_id").null_count == found.num_rows


def test_another_cluster_under_the_same_name_is_refused(node: Node, tmp_path: Path, kafka_broker: KafkaBroker) -> None:
    """Both fixtures' clusters have the same id, as a cluster that was made anew from the same disk image has."""
    commit(kafka_broker.bootstrap, unique("g"), {(create_topic(kafka_broker.bootstrap, unique("topic")), 0): 1})
    collect(node, tmp_path / "w", "--once")
    other = ("history", "collect", "--once", "--warehouse", str(tmp_path / "w"))
    refused = run_kgctl(kafka_broker.bootstrap, *other, code=5)
    assert "__consumer_offsets was made anew" in refused.err
    kept_apart = run_kgctl(kafka_broker.bootstrap, *other, "--cluster", "other")
    assert {row["cluster"] for row in kept_apart.data} == {"other"}


def test_logins_and_rights(secure_kafka_broker: SecureKafkaBroker, tmp_path: Path) -> None:
    plaintext = secure_kafka_broker.bootstrap
    wait_until_coordinating(plaintext)
    topic = create_topic(plaintext, unique("topic"))
    commit(plaintext, unique("g"), {(topic, 0): 1})
    counts = []
    for protocol, mechanism in (("SSL", "PLAIN"), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512")):
        properties = secure_kafka_broker.client_properties(protocol, mechanism)
        address = properties.pop("bootstrap.servers")
        options = [word for name, value in properties.items() for word in ("-X", f"{name}={value}")]
        for reader in ("wire", "confluent"):
            folder = tmp_path / f"{protocol}-{reader}"
            words = ("history", "collect", "--once", "--warehouse", str(folder), "--reader", reader, *options)
            counts.append(len(run_kgctl(address, *words).data))
    assert set(counts) == {1}
    wrong = secure_kafka_broker.client_properties("SASL_PLAINTEXT") | {"sasl.password": "not it"}
    address = wrong.pop("bootstrap.servers")
    options = [word for name, value in wrong.items() for word in ("-X", f"{name}={value}")]
    for reader in ("wire", "confluent"):
        words = ("history", "collect", "--once", "--warehouse", str(tmp_path / "wrong"), "--reader", reader, *options)
        refused = run_kgctl(address, *words, code=8)
        assert "not it" not in refused.out + refused.err
    bob = secure_kafka_broker.client_properties("SASL_PLAINTEXT", user="bob")
    address = bob.pop("bootstrap.servers")
    options = [word for name, value in bob.items() for word in ("-X", f"{name}={value}")]
    words = ("history", "collect", "--once", "--warehouse", str(tmp_path / "bob"), *options)
    assert run_kgctl(address, *words, code=None).code in (4, 8)
    secure_kafka_broker.allow("bob", ResourceType.TOPIC, TOPIC, [AclOperation.DESCRIBE])
    refused = run_kgctl(address, *words, code=8)
    assert "TOPIC_AUTHORIZATION_FAILED" in refused.err
    secure_kafka_broker.allow("bob", ResourceType.TOPIC, TOPIC, [AclOperation.READ])
    unsampled = run_kgctl(address, *words, code=3)
    assert (len(unsampled.data), f"{topic}: TOPIC_AUTHORIZATION_FAILED" in unsampled.err) == (1, True)
    secure_kafka_broker.allow("bob", ResourceType.TOPIC, topic, [AclOperation.DESCRIBE])
    sampled = run_kgctl(address, *words, code=None)
    assert (topic in sampled.err, json.loads(sampled.out)["summary"]["samples"] > 0) == (False, True)


@pytest.mark.deep
def test_three_brokers_of_which_one_goes_away(three_kafka_brokers: KafkaCluster, tmp_path: Path) -> None:
    bootstrap = three_kafka_brokers.bootstrap
    topic = create_topic(bootstrap, unique("topic"), 1, replication=3)
    words = ("history", "collect", "--once", "--warehouse", str(tmp_path / "w"))

    def commit_everywhere() -> None:
        name = unique("spread")
        for number in range(9):
            commit(bootstrap, f"{name}-{number}", {(topic, 0): 1})

    commit_everywhere()
    assert len(run_kgctl(bootstrap, *words).data) == 3
    assert plain(records(tmp_path / "w")) == read_by_librdkafka(bootstrap, "read_uncommitted")
    lost = three_kafka_brokers.brokers[2]
    lost.stop(kill=True)
    try:
        commit_everywhere()
        after = run_kgctl(bootstrap, *words)
        assert sum(row["records"] for row in after.data) >= 9
        assert plain(records(tmp_path / "w")) == read_by_librdkafka(bootstrap, "read_uncommitted")
    finally:
        lost.start()
        three_kafka_brokers.recover()
