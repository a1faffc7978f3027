"""Who leads and who coordinates."""

from __future__ import annotations

from kgctl.model.groups import TopicPartition
from kgctl.server.cluster import OFFSETS_TOPIC, Broker, Cluster
from kgctl.server.listeners import BrokerListener


def cluster(count: int) -> Cluster:
    return Cluster(
        [Broker(number, [BrokerListener(port=9_001).of_broker(number - 1)]) for number in range(1, count + 1)], 50, "id"
    )


def test_one_broker_has_everything() -> None:
    alone = cluster(1)
    (broker,) = alone.brokers

    assert alone.leader("t", 7) is broker
    assert alone.coordinator("g") is broker
    assert alone.is_coordinator(broker, "g")


def test_partitions_go_round_the_brokers() -> None:
    three = cluster(3)

    assert {three.leader("orders", partition).node_id for partition in range(3)} == {1, 2, 3}


def test_a_group_belongs_to_the_leader_of_its_offsets_partition() -> None:
    three = cluster(3)

    assert three.coordinator("my-group") is three.leader(OFFSETS_TOPIC, 12)
    assert [three.is_coordinator(broker, "my-group") for broker in three.brokers].count(True) == 1


def test_the_controller_is_the_first_broker_that_is_up() -> None:
    three = cluster(3)
    three.brokers[0].is_up = False

    assert three.controller.node_id == 2
    assert [broker.node_id for broker in three.live_brokers()] == [2, 3]


def test_a_moved_partition_is_led_by_its_first_replica_that_is_up() -> None:
    three = cluster(3)
    here, elsewhere = TopicPartition("orders", 0), TopicPartition("orders", 1)
    before = three.leader(*elsewhere)

    three.place(here, [3, 2])
    three.brokers[2].is_up = False

    assert (three.leader(*here).node_id, three.replicas(*here), three.leader(*elsewhere)) == (2, (3, 2), before)


def test_a_topic_that_is_gone_leaves_no_place() -> None:
    three = cluster(3)
    home = three.replicas("orders", 0)
    three.place(TopicPartition("orders", 0), [3, 2])

    three.forget("orders")

    assert (three.replicas("orders", 0), three.has_moved) == (home, False)
