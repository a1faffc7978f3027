"""What the server has acknowledged outlives it, however it ends."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kgctl.model.error_codes import ErrorCode
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.serve import ServeFactory, ServeProcess
from tests.support.wire.classic_member import ClassicMember
from tests.support.wire.raw_client import RawClient
from tests.wire.differential.about_streams_groups import beat, counting
from tests.wire.differential.talk import METADATA, STREAMS_GROUP_DESCRIBE, STREAMS_GROUP_HEARTBEAT

pytestmark = pytest.mark.interop

TOPIC, GROUP, SHARE_GROUP = "orders", "g", "s"
OFFSET_COMMIT, HEARTBEAT, LIST_GROUPS = 8, 12, 16


def produce(server: ServeProcess, count: int) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode(), partition=number % 2)

    assert producer.flush(PATIENCE_S) == 0


def consume_and_commit(server: ServeProcess, count: int) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    taken: list[Any] = []

    def take() -> bool:
        taken.extend(consumer.consume(count, 0.1))
        return len(taken) == count

    wait_until(take, f"{count} records")
    consumer.commit(asynchronous=False)
    consumer.close()


def committed(server: ServeProcess) -> dict[tuple[str, int], int]:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)]).values()
    return {(entry.topic, entry.partition): entry.offset for entry in future.result().topic_partitions}


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_commits_records_and_topics_survive_the_end_of_the_server(
    end: signal.Signals, kgctl_serve: ServeFactory, tmp_path: Path
) -> None:
    server = kgctl_serve(topics={TOPIC: 2}, data=tmp_path / "data")
    produce(server, 10)
    consume_and_commit(server, 10)
    server.process.send_signal(end)
    server.process.communicate(timeout=PATIENCE_S)

    assert server.process.returncode == (-signal.SIGKILL if end is signal.SIGKILL else 0)

    again = kgctl_serve(data=tmp_path / "data")
    metadata = AdminClient({"bootstrap.servers": again.bootstrap}).list_topics(timeout=PATIENCE_S)

    assert committed(again) == {(TOPIC, 0): 5, (TOPIC, 1): 5}
    assert len(metadata.topics[TOPIC].partitions) == 2

    consumer = Consumer({"bootstrap.servers": again.bootstrap, "group.id": "other"})

    assert consumer.get_watermark_offsets(TopicPartition(TOPIC, 1), timeout=PATIENCE_S) == (0, 5)

    consumer.close()


def test_every_acknowledged_commit_is_there_after_a_kill(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    """Killed in the middle of a stream of commits: what was answered is there, in order, and nothing later is lost before it."""
    server = kgctl_serve(topics={TOPIC: 2}, data=tmp_path / "data")
    acknowledged = 0
    with RawClient(server.bootstrap) as raw:
        for offset in range(1, 400):
            partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
            raw.send(OFFSET_COMMIT, 8, {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": [partition]}]})
            if offset == 300:
                server.kill()
                break
            raw.receive()
            acknowledged = offset
    again = kgctl_serve(data=tmp_path / "data")

    assert committed(again)[TOPIC, 0] in (acknowledged, acknowledged + 1)


def test_a_member_keeps_its_place_over_a_restart(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    """The generation is in the log, so that a heartbeat to the new server is answered as if nothing had been."""
    server = kgctl_serve(topics={TOPIC: 2}, data=tmp_path / "data")
    with RawClient(server.bootstrap) as raw:
        member = ClassicMember(raw, GROUP, [TOPIC])
        member.join()
    server.kill()
    again = kgctl_serve(data=tmp_path / "data")
    with RawClient(again.bootstrap) as raw:
        member.raw = raw

        assert member.heartbeat() == 0
        assert [group.group_id for group in raw.call(LIST_GROUPS, 4).groups] == [GROUP]


def test_what_is_looked_up_is_what_the_log_says_after_a_kill(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    """Members whose heartbeats had been looked up, one of which left, and one that had a heartbeat under way at the kill."""
    server = kgctl_serve(topics={TOPIC: 2}, data=tmp_path / "data")
    with RawClient(server.bootstrap) as raw, RawClient(server.bootstrap) as other:
        stays, leaves = ClassicMember(raw, GROUP, [TOPIC]), ClassicMember(other, "left", [TOPIC])
        for member in (stays, leaves):
            member.join()
            assert [member.heartbeat() for _ in range(5)] == [0] * 5
        leaves.leave()
        raw.send(HEARTBEAT, 3, {"group_id": GROUP, "generation_id": stays.generation_id, "member_id": stays.member_id})
        server.kill()
    again = kgctl_serve(data=tmp_path / "data")
    with RawClient(again.bootstrap) as stays.raw, RawClient(again.bootstrap) as leaves.raw:
        assert [stays.heartbeat() for _ in range(5)] == [0] * 5
        assert [leaves.heartbeat() for _ in range(5)] == [ErrorCode.UNKNOWN_MEMBER_ID] * 5


def test_a_folder_in_use_is_refused(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    kgctl_serve(data=tmp_path / "data")

    with pytest.raises(AssertionError, match="did not start"):
        kgctl_serve(data=tmp_path / "data")


def share(server: ServeProcess, wanted: int) -> list[int]:
    """The values of so many records, all acknowledged."""
    consumer = ShareConsumer({"bootstrap.servers": server.bootstrap, "group.id": SHARE_GROUP, "log_level": 0})
    consumer.subscribe([TOPIC])
    taken: list[int] = []

    def take() -> bool:
        taken.extend(int(message.value() or b"") for message in consumer.poll(0.1) or ())
        return len(taken) >= wanted

    wait_until(take, f"{wanted} records")
    consumer.commit_sync()
    consumer.close()
    return sorted(taken)


def test_what_a_share_group_has_acknowledged_survives_the_death_of_the_server(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    quick = {"group.share.min.heartbeat.interval.ms": "200", "group.share.heartbeat.interval.ms": "200"}
    server = kgctl_serve(topics={TOPIC: 2}, data=tmp_path / "data", config=quick)
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, SHARE_GROUP, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for altered in admin.incremental_alter_configs([group]).values():
        altered.result()
    produce(server, 10)
    assert share(server, 10) == list(range(10))
    server.process.kill()
    server.process.communicate(timeout=PATIENCE_S)

    again = kgctl_serve(data=tmp_path / "data", config=quick)
    produce(again, 4)

    assert share(again, 4) == list(range(4))


def told_of_streams(server: ServeProcess) -> list[str]:
    """The group without its topology, which a coordinator lays out anew, and the topics that were made for it."""
    with RawClient(server.bootstrap) as raw:
        group = raw.call(STREAMS_GROUP_DESCRIBE, 0, {"group_ids": [TOPIC], "include_authorized_operations": False}).groups[0]
        topics = raw.call(METADATA, 12, {"topics": None}).topics
    made = sorted((topic.name, len(topic.partitions)) for topic in topics if topic.name.startswith(f"{TOPIC}-"))
    return [group.group_state, str(group.group_epoch), str(group.assignment_epoch), str(group.members), str(made)]


def test_a_streams_group_goes_on_where_it_was_when_the_server_was_killed(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    """Tasks, epochs, the topology and the topics that were made for it: a member's next heartbeat is answered as any other."""
    at_once = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}
    server = kgctl_serve(topics={TOPIC: 2}, data=tmp_path / "data", config=at_once)
    with RawClient(server.bootstrap) as raw:
        answer = raw.call(STREAMS_GROUP_HEARTBEAT, 0, beat(TOPIC, topology=counting(TOPIC)))
        assert [int(each.status_code) for each in answer.status] == [3]

        def is_well() -> bool:
            nonlocal answer
            answer = raw.call(STREAMS_GROUP_HEARTBEAT, 0, beat(TOPIC, epoch=answer.member_epoch))
            return not answer.error_code and not answer.status

        wait_until(is_well, "the topics are made")
    before = told_of_streams(server)
    assert f"[('{TOPIC}-counts-changelog', 2), ('{TOPIC}-words-repartition', 2)]" in before
    server.kill()

    again = kgctl_serve(data=tmp_path / "data", config=at_once)
    with RawClient(again.bootstrap) as raw:
        epoch = answer.member_epoch
        answer = raw.call(STREAMS_GROUP_HEARTBEAT, 0, beat(TOPIC, epoch=epoch))
        assert (int(answer.error_code), answer.member_epoch, answer.status) == (0, epoch, ())
    assert told_of_streams(again) == before
