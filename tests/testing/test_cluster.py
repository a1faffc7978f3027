"""What users of `kgctl.testing` are promised: quick starts, sessions that expire, rebalances and brokers that go."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient as Admin
from confluent_kafka.admin import ConfigResource, NewTopic

from kgctl.errors import BrokerError, MisuseError, NotFoundError, UnsupportedError, UsageError
from kgctl.group.consumer_group import ConsumerGroup
from kgctl.group.generation import Generation
from kgctl.model.error_codes import ErrorCode
from kgctl.testing import EmbeddedServer
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS, PATIENCE_S
from tests.support.wire.raw_client import RawClient

Start = Callable[..., ConsumerGroup]


def test_the_plugin_imports_nothing_before_a_test_asks() -> None:
    """Every run of pytest pays for it, wherever kgctl is installed."""
    program = "import sys, kgctl.testing.plugin; print(*sorted(name for name in sys.modules if name.startswith('kgctl.')))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert ran.stdout.split() == ["kgctl.testing", "kgctl.testing.plugin"]


def test_a_cluster_starts_with_what_it_needs() -> None:
    """Members and the admin client come when a test wants one."""
    later = ("kgctl.admin", "kgctl.group", "kgctl.wire", "kgctl.yaml_files", "importlib.metadata", "confluent_kafka")
    program = f"""if True:
        import sys
        from kgctl.testing import EmbeddedServer
        with EmbeddedServer({{"orders": 1}}):
            print([name for name in {later!r} if name in sys.modules])"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert ran.stdout.strip() == "[]"


def test_topics_groups_and_offsets(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    kafka_cluster.create_topic("orders", 2)
    kafka_cluster.commit("payments", {("orders", 0): 4})
    generation = consumer_group("payments", "orders").next(timeout_ms=PATIENCE_MS)
    assert dict(generation.assignments) == {("orders", 0): 4, ("orders", 1): 0}
    generation.commit({("orders", 1): 7})
    assert kafka_cluster.committed("payments") == {("orders", 0): 4, ("orders", 1): 7}
    assert [member.client_id for member in kafka_cluster.describe("payments").members] == ["kgctl"]
    with pytest.raises(BrokerError) as caught:
        kafka_cluster.commit("payments", {("orders", 0): 1})
    assert caught.value.code == "NON_EMPTY_GROUP"


@pytest.mark.parametrize(("version", "epoch"), [("4.2", 1), (None, 2)])
def test_a_cluster_is_of_the_version_that_is_asked_for(version: str | None, epoch: int) -> None:
    """The first member of a group is at epoch 1 before 4.3, and at 2 since."""
    with EmbeddedServer({"orders": 1}, broker_version=version) as cluster:
        group = cluster.consumer_group("payments", "orders", protocol="consumer")
        group.next(timeout_ms=PATIENCE_MS)
        assert cluster.describe("payments").group_epoch == epoch
        group.close()


def test_the_consumer_protocol_is_off_before_4_0() -> None:
    with EmbeddedServer({"orders": 1}, broker_version="3.9.1") as cluster, RawClient(cluster.bootstrap) as raw:
        heartbeat = {"group_id": "g", "member_id": "", "member_epoch": 0, "subscribed_topic_names": ["orders"]}
        assert raw.call(68, 0, heartbeat).error_code is ErrorCode.UNSUPPORTED_VERSION
        (described,) = raw.call(69, 0, {"group_ids": ["g"]}).groups
        assert described.error_code is ErrorCode.UNSUPPORTED_VERSION
        assert list(raw.call(18, 3, {"client_software_name": "a", "client_software_version": "1"}).finalized_features) == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_expired_session_ends_the_generation(kafka_cluster: EmbeddedServer, consumer_group: Start, protocol: str) -> None:
    kafka_cluster.create_topic("orders", 2)
    group = consumer_group("payments", "orders", protocol=protocol, client_id="pod-0")
    before = all_of(group)
    kafka_cluster.expire_session("payments", "pod-0")
    assert before.wait(timeout_ms=PATIENCE_MS)
    assert before.reason == "the member is no longer in the group"
    all_of(group)


def all_of(group: ConsumerGroup) -> Generation:
    """The first generation with both partitions."""
    while True:
        generation = group.next(timeout_ms=PATIENCE_MS)
        if len(generation.assignments) == 2:
            return generation


def test_a_forced_rebalance_is_a_new_generation(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    kafka_cluster.create_topic("orders")
    group = consumer_group("payments", "orders")
    before = group.next(timeout_ms=PATIENCE_MS)
    kafka_cluster.force_rebalance("payments")
    after = group.next(timeout_ms=PATIENCE_MS)
    assert (after.generation_id, after.member_id) == (before.generation_id + 1, before.member_id)


def test_a_lost_broker_comes_back(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    kafka_cluster.create_topic("orders")
    group = consumer_group("payments", "orders")
    generation = group.next(timeout_ms=PATIENCE_MS)
    with kafka_cluster.lose_broker():
        wait_until(lambda: group.last_error is not None, "the member notices")
    generation.commit({("orders", 0): 3})
    assert kafka_cluster.committed("payments") == {("orders", 0): 3}
    assert not generation.ended.is_set()


def test_what_is_not_there_is_named(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    kafka_cluster.create_topic("orders")
    with pytest.raises(NotFoundError, match="group 'nobody' does not exist"):
        kafka_cluster.describe("nobody")
    consumer_group("payments", "orders", protocol="consumer").next(timeout_ms=PATIENCE_MS)
    with pytest.raises(NotFoundError, match="has no member 'ghost'"):
        kafka_cluster.expire_session("payments", "ghost")
    with pytest.raises(UnsupportedError, match="use expire_session"):
        kafka_cluster.force_rebalance("payments")


def test_real_clients_produce_and_read() -> None:
    with EmbeddedServer({"orders": 1}) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("orders", b"one")
        assert producer.flush(PATIENCE_S) == 0


def test_outside_of_its_block() -> None:
    cluster = EmbeddedServer()
    with pytest.raises(MisuseError, match="runs inside its `with` block"):
        cluster.create_topic("orders")
    calls: tuple[Callable[[], object], ...] = (
        lambda: cluster.advance(1),
        lambda: cluster.expire_session("g", "m"),
        lambda: cluster.force_rebalance("g"),
        lambda: cluster.lose_broker().__enter__(),
        lambda: cluster.freeze().__enter__(),
        lambda: cluster.deny("read topic:orders").__enter__(),
    )
    for call in calls:
        with pytest.raises(MisuseError, match="runs inside its `with` block"):
            call()
    with cluster:
        cluster.create_topic("orders")
    with pytest.raises(MisuseError, match="runs inside its `with` block"):
        _ = cluster.bootstrap
    with pytest.raises(MisuseError, match="runs once: make another one"):
        cluster.__enter__()


@pytest.mark.parametrize(("quick", "error"), [(False, "INVALID_SESSION_TIMEOUT"), (True, None)])
def test_sessions_are_as_long_as_a_broker_wants_them(quick: bool, error: str | None) -> None:
    """A service that asks for three seconds is refused by every broker that has Kafka's own bounds."""
    with (
        EmbeddedServer({"orders": 1}, quick=quick) as cluster,
        cluster.consumer_group("payments", "orders", session_timeout_ms=3_000) as group,
    ):
        if error is None:
            assert dict(group.next(timeout_ms=PATIENCE_MS).assignments) == {("orders", 0): 0}
            return
        with pytest.raises(BrokerError) as caught:
            group.next(timeout_ms=PATIENCE_MS)
        assert caught.value.code == error


def test_its_settings_are_kafkas_but_that_groups_begin_at_once() -> None:
    with EmbeddedServer() as cluster:
        admin = Admin({"bootstrap.servers": cluster.bootstrap})
        configs = admin.describe_configs([ConfigResource("broker", "1")])
        given = {entry.name: entry.value for each in configs.values() for entry in each.result().values() if not entry.is_default}
    itself = ("node.id", "broker.id", "process.roles", "listeners", "advertised.listeners", "min.insync.replicas")
    assert {name: value for name, value in given.items() if name not in itself} == {
        "group.initial.rebalance.delay.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
    }


def test_topics_come_when_a_client_asks_for_one() -> None:
    with EmbeddedServer() as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("orders", b"one")
        assert producer.flush(PATIENCE_S) == 0
        assert cluster.admin.list_topics(["orders"]) == {"orders": 1}
        assert cluster.admin.list_topics(["refunds"]) == {}


def config_of(admin: Admin, topic: str, name: str) -> str:
    (described,) = admin.describe_configs([ConfigResource("topic", topic)]).values()
    return str(described.result()[name].value)


def test_configs_of_topics_are_kept(tmp_path: Path) -> None:
    """Also by the next server on the folder; a topic that comes again begins anew."""
    with EmbeddedServer(data=tmp_path) as cluster:
        admin = Admin({"bootstrap.servers": cluster.bootstrap})
        for future in admin.create_topics([NewTopic("orders", 1, 1, config={"cleanup.policy": "compact"})]).values():
            future.result()
    with EmbeddedServer(data=tmp_path) as cluster:
        admin = Admin({"bootstrap.servers": cluster.bootstrap})
        assert config_of(admin, "orders", "cleanup.policy") == "compact"
        admin.delete_topics(["orders"])["orders"].result()
        cluster.create_topic("orders")
        assert config_of(admin, "orders", "cleanup.policy") == "delete"


def test_what_has_no_effect_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedServer(config={"num.io.threads": "3", "log.retention.ms": "5000", "group.max.size": "9"}) as cluster:
        admin = Admin({"bootstrap.servers": cluster.bootstrap})
        for name in ("orders", "refunds"):
            config = {"segment.ms": "70000", "cleanup.policy": "compact", "delete.retention.ms": "5"}
            admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result()
    assert [line.getMessage() for line in caplog.records if "without effect" in line.getMessage()] == [
        "brokers: kept and shown, and without effect here: num.io.threads",
        "topic orders: kept and shown, and without effect here: segment.ms",
    ]


@pytest.mark.parametrize("first", ["0", "7"])
def test_brokers_are_counted_from_1_whatever_their_ids_are(first: str) -> None:
    with EmbeddedServer(brokers=2, config={"node.id": first}) as cluster:
        everyone = cluster.bootstrap
        with cluster.lose_broker(2):
            assert cluster.bootstrap == everyone.split(",")[0]
        with cluster.freeze(1) as fault, pytest.raises(KafkaException):
            Admin({"bootstrap.servers": everyone.split(",")[0]}).list_topics(timeout=0.5)
        assert fault.hits > 0


def test_topics_that_a_broker_would_not_make_beside_each_other() -> None:
    with EmbeddedServer({"orders.eu": 1}) as cluster, pytest.raises(UsageError, match=r"'orders_eu' collides with 'orders\.eu'"):
        cluster.create_topic("orders_eu")
    with pytest.raises(UsageError, match="collides"), EmbeddedServer({"a.b": 1, "a_b": 1}):
        pass
