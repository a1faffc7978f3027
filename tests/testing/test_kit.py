"""What makes tests short: records without a client, waiting for a group, a clock that is moved, faults that say whom they met."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition

from kgctl.errors import CommitError, NotFoundError, TimedOutError, UnreachableError, UnsupportedError, UsageError
from kgctl.group.consumer_group import ConsumerGroup
from kgctl.testing import EmbeddedServer, Fault
from tests.support.patience import PATIENCE_MS, PATIENCE_S

Start = Callable[..., ConsumerGroup]


@pytest.mark.kafka(topics={"orders": 3})
def test_values_take_turns_and_keys_have_their_place(kafka_cluster: EmbeddedServer) -> None:
    assert kafka_cluster.produce("orders", "a", "b", "c", "d") == [("orders", 0), ("orders", 1), ("orders", 2), ("orders", 0)]
    (of_key,) = set(kafka_cluster.produce("orders", b"e", None, key="customer-7", headers={"trace": "1"}, timestamp_ms=17))
    found = kafka_cluster.records("orders", count=6)
    assert [each.text for each in found if each.key is None] == ["a", "d", "b", "c"]
    keyed = [each for each in found if each.key == b"customer-7"]
    assert [(each.topic, each.partition) for each in keyed] == [of_key, of_key]
    assert [(each.value, each.headers, each.timestamp_ms) for each in keyed] == [
        (b"e", (("trace", b"1"),), 17),
        (None, (("trace", b"1"),), 17),
    ]


def test_a_key_is_where_a_java_producer_writes_it(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.create_topic("orders", 7)
    producer = Producer({"bootstrap.servers": kafka_cluster.bootstrap, "partitioner": "murmur2_random"})
    for number in range(40):
        producer.produce("orders", b"theirs", key=f"k{number}")
    producer.flush(PATIENCE_S)
    theirs = {each.key: each.partition for each in kafka_cluster.records("orders", count=40)}
    ours = {f"k{number}".encode(): kafka_cluster.produce("orders", "ours", key=f"k{number}")[0].partition for number in range(40)}
    assert ours == theirs


def test_what_clients_read_is_what_was_produced(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.produce("orders", "one", "two")
    consumer = Consumer({"bootstrap.servers": kafka_cluster.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert [message.value() for message in consumer.consume(2, PATIENCE_S)] == [b"one", b"two"]
    consumer.close()


def test_records_of_transactions(kafka_cluster: EmbeddedServer) -> None:
    for name, is_committed in (("kept", True), ("dropped", False)):
        producer = Producer({"bootstrap.servers": kafka_cluster.bootstrap, "transactional.id": name})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("orders", name)
        producer.flush(PATIENCE_S)
        if is_committed:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
    kafka_cluster.produce("orders", "plain")
    assert [each.text for each in kafka_cluster.records("orders")] == ["kept", "plain"]
    assert [each.text for each in kafka_cluster.records("orders", read_committed=False)] == ["kept", "dropped", "plain"]


def test_records_that_are_not_there(kafka_cluster: EmbeddedServer) -> None:
    with pytest.raises(NotFoundError, match="there is no topic 'orders'"):
        kafka_cluster.records("orders")
    kafka_cluster.produce("orders", "one")
    with pytest.raises(TimedOutError, match=r"^topic 'orders' has 1 of 2 records after 0.05 s$"):
        kafka_cluster.records("orders", count=2, timeout_ms=50)
    with pytest.raises(UsageError, match="partitions 0 to 0, not 3"):
        kafka_cluster.produce("orders", "one", partition=3)
    producer = Producer({"bootstrap.servers": kafka_cluster.bootstrap, "compression.type": "lz4"})
    producer.produce("orders", b"a" * 2_000)
    producer.flush(PATIENCE_S)
    with pytest.raises(UnsupportedError, match="compressed with lz4"):
        kafka_cluster.records("orders")


@pytest.mark.kafka(topics={"orders": 2}, quick=True)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_waiting_for_a_group(kafka_cluster: EmbeddedServer, consumer_group: Start, protocol: str) -> None:
    with pytest.raises(TimedOutError, match=r"^group 'payments' does not exist after 0.03 s$"):
        kafka_cluster.wait_for_group("payments", timeout_ms=30)
    with pytest.raises(UsageError, match="state names 'Stabel', which is none; did you mean Stable"):
        kafka_cluster.wait_for_group("payments", state="Stabel")
    groups = [consumer_group("payments", "orders", protocol=protocol) for _ in range(2)]
    reader = threading.Thread(target=lambda: [groups[0].next(timeout_ms=PATIENCE_MS).commit({("orders", 0): 3})])
    reader.start()
    found = kafka_cluster.wait_for_group("payments", members=2, committed={("orders", 0): 2}, timeout_ms=PATIENCE_MS)
    assert len(found.members) == 2
    reader.join()
    with pytest.raises(TimedOutError, match=r"^group 'payments' is Stable with 2 members, and has committed orders-0 at 3 after"):
        kafka_cluster.wait_for_group("payments", committed={("orders", 0): 4}, timeout_ms=30)
    with pytest.raises(TimedOutError, match="is Stable with 2 members after"):
        kafka_cluster.wait_for_group("payments", state="Empty", timeout_ms=30)


@pytest.mark.kafka(topics={"orders": 2})
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_clock_that_is_moved_ends_sessions(kafka_cluster: EmbeddedServer, consumer_group: Start, protocol: str) -> None:
    silent, kept = (consumer_group("payments", "orders", protocol=protocol, client_id=name) for name in ("silent", "kept"))
    for group in (silent, kept):
        group.next(timeout_ms=PATIENCE_MS)
    kafka_cluster.wait_for_group("payments", members=2, timeout_ms=PATIENCE_MS)
    kept_id, silent_id = kept.member_id, silent.member_id
    with kafka_cluster.freeze(client_id="silent"):
        kafka_cluster.advance(60_000, keep=["kept"])
        found = kafka_cluster.wait_for_group("payments", state=None, members=1, timeout_ms=PATIENCE_MS)
        assert [member.member_id for member in found.members] == [kept_id]
    assert silent_id != kept_id
    with pytest.raises(NotFoundError, match="no group has a member 'nobody'"):
        kafka_cluster.advance(1, keep=["nobody"])
    with pytest.raises(UsageError, match="does not go back"):
        kafka_cluster.advance(-1)


def test_a_transaction_whose_time_has_passed_is_aborted(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.create_topic("orders")
    late = {"bootstrap.servers": kafka_cluster.bootstrap, "transactional.id": "late", "transaction.timeout.ms": 30_000}
    producer = Producer(late)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("orders", "a")
    producer.flush(PATIENCE_S)
    kafka_cluster.advance(31_000)
    with pytest.raises(KafkaException, match=r"_FENCED|INVALID_PRODUCER_EPOCH"):
        producer.commit_transaction(PATIENCE_S)
    assert kafka_cluster.records("orders") == []


def test_offsets_are_forgotten_when_their_time_has_passed(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.create_topic("orders")
    kafka_cluster.commit("payments", {("orders", 0): 4})
    week_ms = 7 * 24 * 60 * 60 * 1000
    kafka_cluster.advance(week_ms - 3_600_000)
    assert kafka_cluster.committed("payments") == {("orders", 0): 4}
    kafka_cluster.advance(7_200_000)
    assert kafka_cluster.committed("payments") == {}


COMPACTED = {"cleanup.policy": "compact"}


def rows_of(cluster: EmbeddedServer, topic: str = "prices") -> list[tuple[int, bytes | None, str | None]]:
    return [(each.offset, each.key, each.text if each.value is not None else None) for each in cluster.records(topic)]


@pytest.mark.parametrize("folder", [None, "data"])
def test_a_topic_is_compacted_when_the_test_says(tmp_path: Path, folder: str | None) -> None:
    with EmbeddedServer(data=tmp_path / folder if folder else None) as cluster:
        cluster.create_topic("prices", config=COMPACTED)
        for key, value in (("a", "1"), ("b", "1"), ("a", "2"), ("b", None), ("c", "1")):
            cluster.produce("prices", value, key=key)

        assert cluster.compact("prices") == 2
        assert rows_of(cluster) == [(2, b"a", "2"), (3, b"b", None), (4, b"c", "1")]
        assert cluster.compact("prices") == 0
        cluster.advance(86_000_000)
        assert cluster.compact("prices") == 0
        cluster.advance(400_000)
        assert cluster.compact("prices") == 1
        assert rows_of(cluster) == [(2, b"a", "2"), (4, b"c", "1")]
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["prices"])
        assert [message.offset() for message in consumer.consume(2, PATIENCE_S)] == [2, 4]
        assert consumer.get_watermark_offsets(ConfluentPartition("prices", 0)) == (0, 5)
        consumer.close()


def test_a_batch_of_a_client_is_compacted_inside(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.create_topic("prices", config=COMPACTED)
    producer = Producer({"bootstrap.servers": kafka_cluster.bootstrap, "linger.ms": 200, "compression.type": "gzip"})
    for key, value in (("a", "1"), ("b", "1"), ("a", "2")):
        producer.produce("prices", value, key=key, headers={"of": key})
    producer.flush(PATIENCE_S)
    assert kafka_cluster.compact("prices") == 1
    assert [(each.offset, each.text, each.headers) for each in kafka_cluster.records("prices")] == [
        (1, "1", (("of", b"b"),)),
        (2, "2", (("of", b"a"),)),
    ]


def test_what_is_aborted_is_compacted_away_and_what_is_open_is_left_alone(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.create_topic("prices", config=COMPACTED)
    producer = Producer({"bootstrap.servers": kafka_cluster.bootstrap, "transactional.id": "t"})
    producer.init_transactions(PATIENCE_S)
    for value, end in (("1", producer.commit_transaction), ("aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("prices", value, key="a")
        producer.flush(PATIENCE_S)
        end(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("prices", "open", key="a")
    producer.flush(PATIENCE_S)

    assert kafka_cluster.compact("prices") == 1
    assert [each.text for each in kafka_cluster.records("prices", read_committed=False)] == ["1", "open"]
    producer.commit_transaction(PATIENCE_S)
    assert kafka_cluster.compact("prices") == 1
    assert rows_of(kafka_cluster) == [(4, b"a", "open")]
    kafka_cluster.advance(86_400_000)
    kafka_cluster.compact("prices")  # the markers of what is gone had their day
    consumer = Consumer({"bootstrap.servers": kafka_cluster.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["prices"])
    assert [message.value() for message in consumer.consume(1, PATIENCE_S)] == [b"open"]
    consumer.close()


def test_records_that_are_young_are_not_compacted(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.create_topic("prices", config={**COMPACTED, "min.compaction.lag.ms": "60000"})
    kafka_cluster.produce("prices", "1", "2", key="a")
    assert kafka_cluster.compact("prices") == 0
    kafka_cluster.advance(60_001)
    kafka_cluster.produce("prices", "3", key="a")
    assert kafka_cluster.compact("prices") == 1
    assert [each.text for each in kafka_cluster.records("prices")] == ["2", "3"]


def test_records_expire_when_the_test_says(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.produce("orders", "a", "b")
    kafka_cluster.advance(4 * 86_400_000)
    kafka_cluster.produce("orders", "c", "d")
    assert kafka_cluster.expire("orders") == 0
    kafka_cluster.advance(4 * 86_400_000)
    assert kafka_cluster.expire("orders") == 2
    assert [each.text for each in kafka_cluster.records("orders")] == ["c", "d"]
    consumer = Consumer({"bootstrap.servers": kafka_cluster.bootstrap, "group.id": "g", "auto.offset.reset": "error"})
    consumer.assign([ConfluentPartition("orders", 0, 1)])
    (gone,) = consumer.consume(1, PATIENCE_S)
    assert "offset out of range" in str(gone.error()).lower()
    consumer.close()


def test_as_much_is_kept_as_retention_bytes_says(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.create_topic("orders", config={"retention.bytes": "1000", "retention.ms": "-1"})
    kafka_cluster.produce("orders", *(bytes(400) for _ in range(5)))
    assert kafka_cluster.expire("orders") == 2  # a batch that the bound goes through stays
    assert kafka_cluster.expire("orders", retention_bytes=0) == 3
    kafka_cluster.produce("orders", "next")
    assert [(each.offset, each.text) for each in kafka_cluster.records("orders")] == [(5, "next")]
    kafka_cluster.advance(10)
    assert kafka_cluster.expire("orders", retention_ms=0) == 1


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_nobody_writes_to_the_brokers_own_topics(kafka_cluster: EmbeddedServer, topic: str) -> None:
    with pytest.raises(UsageError, match=f"topic '{topic}' is the brokers' own: no client writes to it"):
        kafka_cluster.produce(topic, "a", key="k")


def test_what_is_too_large_for_a_broker_is_refused(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.create_topic("small", config={"max.message.bytes": "1000"})
    overhead = 70  # of a batch of one record of this size
    kafka_cluster.produce("small", "a" * (1000 - overhead))
    with pytest.raises(UsageError, match=r"topic 'small' takes 1000 bytes at most \(max.message.bytes\), not 1001"):
        kafka_cluster.produce("small", "a" * (1001 - overhead))
    with pytest.raises(UsageError, match="topic 'orders' takes 1048588 bytes at most"):
        kafka_cluster.produce("orders", "a" * 1_048_588)


def test_what_no_broker_would_clean_is_refused(kafka_cluster: EmbeddedServer) -> None:
    kafka_cluster.create_topic("orders")
    kafka_cluster.create_topic("prices", config=COMPACTED)
    with pytest.raises(UsageError, match=r"topic 'orders' has cleanup.policy=delete, without compact: no broker would do it"):
        kafka_cluster.compact("orders")
    with pytest.raises(UsageError, match=r"topic 'prices' has cleanup.policy=compact, without delete"):
        kafka_cluster.expire("prices")
    with pytest.raises(NotFoundError, match="there is no topic 'nothing'"):
        kafka_cluster.compact("nothing")
    with pytest.raises(UsageError, match=r"topic 'prices' is compacted \(cleanup.policy\): its records need a key"):
        kafka_cluster.produce("prices", "1")
    with pytest.raises(UsageError, match="Unknown topic config name: cleanup"):
        kafka_cluster.create_topic("prices", config={"cleanup": "compact"})
    producer = Producer({"bootstrap.servers": kafka_cluster.bootstrap, "compression.type": "lz4"})
    producer.produce("prices", b"a" * 2_000, key="a")
    producer.flush(PATIENCE_S)
    with pytest.raises(UnsupportedError, match="topic 'prices': records compressed with lz4"):
        kafka_cluster.compact("prices")


def commit_of(group: ConsumerGroup) -> tuple[threading.Thread, list[BaseException | None]]:
    """A commit that is under way in a thread, and what became of it: None for stored."""
    generation, ended = group.next(timeout_ms=PATIENCE_MS), list[BaseException | None]()

    def run() -> None:
        try:
            generation.commit({("orders", 0): 3})
            ended.append(None)
        except (CommitError, UnreachableError) as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, ended


def met(fault: Fault) -> bool:
    """Wait until it has met a request."""
    waited = threading.Event()
    return any(fault.hits or waited.wait(0.01) for _ in range(PATIENCE_MS // 10)) and fault.hits > 0


@pytest.mark.kafka(topics={"orders": 1})
def test_a_frozen_request_is_answered_later(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    group = consumer_group("payments", "orders")
    with kafka_cluster.freeze(requests=["OffsetCommit"]) as fault:
        thread, ended = commit_of(group)
        assert met(fault)
        assert (ended, kafka_cluster.committed("payments")) == ([], {})
    thread.join(PATIENCE_S)
    assert (ended, kafka_cluster.committed("payments")) == ([None], {("orders", 0): 3})


@pytest.mark.kafka(topics={"orders": 1})
def test_an_answer_that_waits_does_not_leave_a_frozen_broker(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    """A JoinGroup that was held back by the coordinator when the fault began."""
    first = consumer_group("payments", "orders", client_id="first", heartbeat_interval_ms=20)
    generation = first.next(timeout_ms=PATIENCE_MS)
    generation._hold()  # it reads on, so that the second member waits for it
    second = consumer_group("payments", "orders", client_id="second")
    assert generation.wait(timeout_ms=PATIENCE_MS)
    with kafka_cluster.freeze(client_id="second") as fault:
        generation._release()
        assert met(fault)
        with pytest.raises(TimedOutError):
            second.next(timeout_ms=50)
    second.next(timeout_ms=PATIENCE_MS)


@pytest.mark.kafka(topics={"orders": 1})
@pytest.mark.parametrize("is_done_first", [False, True])
def test_a_cut_connection_is_used_no_more(kafka_cluster: EmbeddedServer, consumer_group: Start, is_done_first: bool) -> None:
    group = consumer_group("payments", "orders")
    with kafka_cluster.cut(requests=["OffsetCommit"], is_done_first=is_done_first) as fault:
        thread, ended = commit_of(group)
        assert met(fault)
        if is_done_first:
            kafka_cluster.wait_for_group("payments", state=None, committed={("orders", 0): 3}, timeout_ms=PATIENCE_MS)
        else:
            assert kafka_cluster.committed("payments") == {}
    thread.join(PATIENCE_S)
    assert (ended, kafka_cluster.committed("payments")) == ([None], {("orders", 0): 3})


@pytest.mark.kafka(topics={"orders": 1}, brokers=2)
def test_a_slow_broker_is_one_of_several(kafka_cluster: EmbeddedServer) -> None:
    with kafka_cluster.slow(50, 2) as fault:
        kafka_cluster.commit("payments", {("orders", 0): 3})
        for group_id in "abcdef":
            kafka_cluster.commit(group_id, {("orders", 0): 3})
    assert fault.hits
    assert kafka_cluster.committed("f") == {("orders", 0): 3}


def test_faults_that_cannot_be(kafka_cluster: EmbeddedServer) -> None:
    with pytest.raises(UsageError, match="there is no broker 2"), kafka_cluster.freeze(2):
        pass
    near = "requests names 'OffsetComit', which is none; did you mean OffsetCommit?"
    with pytest.raises(UsageError, match=re.escape(near)), kafka_cluster.cut(requests=["OffsetComit"]):
        pass
    with pytest.raises(UsageError, match="delay_ms must be a number of milliseconds"), kafka_cluster.slow("1 s"):  # type: ignore[arg-type]
        pass


class InUnittest(unittest.TestCase):
    """Without pytest's fixtures."""

    def setUp(self) -> None:
        self.cluster = self.enterContext(EmbeddedServer({"orders": 1}))

    def test_it(self) -> None:
        self.cluster.produce("orders", "one")
        assert [each.text for each in self.cluster.records("orders")] == ["one"]


TESTS = """
import pytest
from kgctl.testing import EmbeddedServer

pytestmark = pytest.mark.kafka(topics={"orders": 2})


@pytest.mark.kafka(brokers=3)
def test_marks_add_up(kafka_cluster):
    assert len(kafka_cluster.bootstrap.split(",")) == 3
    assert kafka_cluster.admin.list_topics(["orders"]) == {"orders": 2}


@pytest.mark.parametrize("number", range(4))
def test_one_server(kafka_server, number):
    kafka_server.produce("shared", "x")
    seen.append(kafka_server.bootstrap)
    assert len(kafka_server.records("shared")) == len(seen)
    assert len(set(seen)) == 1
    assert kafka_server.admin.list_topics(["settings"]) == {"settings": 1}


@pytest.mark.kafka(topic="orders")
def test_wrong_settings(kafka_cluster):
    pass


seen = []
"""
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def kafka_server_settings():
    return {"topics": {"settings": 1}}
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_marker_and_session_server(tmp_path: Path, workers: str) -> None:
    """As a user's project has them; processes of pytest-xdist have a server each."""
    (tmp_path / "test_users.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-n", workers, str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S * 3)
    assert "5 passed, 1 error" in ran.stdout, ran.stdout + ran.stderr
    assert "the settings of kafka: EmbeddedServer.__init__() got an unexpected keyword argument 'topic'" in ran.stdout


@pytest.mark.parametrize("value", [5, b"pod-\xff".decode(errors="surrogateescape"), ["a"]])
def test_what_is_no_value_is_refused_before_anything_is_written(kafka_cluster: EmbeddedServer, value: Any) -> None:
    with pytest.raises(UsageError, match="a value must be "):
        kafka_cluster.produce("orders", "a", value)
    with pytest.raises(NotFoundError):
        kafka_cluster.records("orders")
