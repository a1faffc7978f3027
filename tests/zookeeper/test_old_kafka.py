"""Groups that Apache Kafka 1.1.1's own high-level consumers made, beside its own tool; and the way out of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kgctl.zookeeper import ConsumerGroup
from tests.support.kafka import KafkaBroker, create_topic, kcg_rows, produce, run_kcg, unique
from tests.support.zookeeper.old_kafka import OldConsumer, OldKafka, wait_until
from tests.zookeeper.conftest import ZooKeeperCli, commits, rows, topic

pytestmark = [pytest.mark.zookeeper, pytest.mark.kafka]

RECORDS = 20


@pytest.fixture
def cli(tmp_path: Path, old_kafka: OldKafka) -> ZooKeeperCli:
    made = ZooKeeperCli(tmp_path, old_kafka.zookeeper)
    made.variables["KGCTL_BOOTSTRAP_SERVER"] = old_kafka.bootstrap
    return made


@pytest.fixture
def consumers() -> Iterator[list[OldConsumer]]:
    """Stopped at the end of the test."""
    started: list[OldConsumer] = []
    yield started
    for each in started:
        each.stop(kill=True)


def as_kafka_shows_it(kafka: OldKafka, group: str) -> dict[int, tuple[str, ...]]:
    """Partition -> offset, log end, lag and owner."""
    columns = ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID")
    return {number: tuple(row[name] for name in columns) for (_, number), row in kafka.describe(group).items()}


def as_kgctl_shows_it(cli: ZooKeeperCli, group: str) -> dict[int, tuple[str, ...]]:
    """The same of kgctl."""
    keys = ("current_offset", "log_end_offset", "lag", "consumer_id")
    found = cli(f"describe group {group} -o json").data
    return {row["partition"]: tuple("-" if row[key] is None else str(row[key]) for key in keys) for row in found}


def test_a_group_of_kafkas_own_consumers_through_its_life(
    cli: ZooKeeperCli, old_kafka: OldKafka, consumers: list[OldConsumer]
) -> None:
    old_kafka.create_topic("orders", 4)
    old_kafka.produce("orders", dict.fromkeys(range(4), RECORDS))
    consumers += [old_kafka.consumer("payments", "orders", name) for name in ("one", "two")]
    wait_until("both run", lambda: [row["members"] for row in cli("describe group payments --state -o json").data] == [2])
    wait_until("all is committed", lambda: {row["lag"] for row in cli("describe group payments -o json").data} == {0})
    wait_until("all is claimed", lambda: None not in {row["consumer_id"] for row in cli("describe group payments -o json").data})
    assert as_kgctl_shows_it(cli, "payments") == as_kafka_shows_it(old_kafka, "payments")
    assert rows(cli("list groups --match ^payments$ --lag -o json"), "group", "state", "lag") == [("payments", "Stable", 0)]
    assert set(old_kafka.list_groups()) == {row["group"] for row in cli("list groups -o json").data}
    members = rows(cli("describe group payments --members -o json"), "subscribed_topics", "partitions")
    assert members == [(["orders"], 2), (["orders"], 2)]

    refused = cli("reset-offsets payments --all-topics --to-earliest --execute -o json")
    assert (refused.code, refused.json["errors"][0]["code"]) == (5, "NON_EMPTY_GROUP")
    assert cli("delete-groups payments --yes").code == 5

    consumers[0].stop(kill=True)
    wait_until("one is left", lambda: [row["members"] for row in cli("describe group payments --state -o json").data] == [1])
    wait_until("it has all", lambda: rows(cli("describe group payments --members -o json"), "partitions") == [(4,)])
    consumers[1].stop()
    wait_until("none is left", lambda: cli("list groups --match ^payments$ -o json").data[0]["state"] == "Empty")

    done = cli("reset-offsets payments --topic orders:0-2 --to-offset 15 --execute -o json")
    assert rows(done, "partition", "old_offset", "new_offset", "lag_after", "result") == [
        (number, RECORDS, 15, 5, "reset") for number in range(3)
    ]
    assert as_kgctl_shows_it(cli, "payments") == as_kafka_shows_it(old_kafka, "payments")
    consumers.append(old_kafka.consumer("payments", "orders", "three", goes_on=True))
    expected = {f"{partition}:{number}" for partition in range(3) for number in range(15, RECORDS)}
    wait_until("it goes on from there", lambda: set(consumers[2].records) == expected)


@pytest.fixture(scope="module")
def targets(old_kafka: OldKafka) -> str:
    """A group at rest, on a topic with records."""
    old_kafka.create_topic("targets", 2)
    old_kafka.produce("targets", dict.fromkeys(range(2), RECORDS))
    client = KazooClient(old_kafka.zookeeper)
    client.start()
    commits(client, "targets", {("targets", 0): 10, ("targets", 1): 5})
    client.stop()
    client.close()
    return "targets"


@pytest.mark.parametrize(
    ("target", "offsets"),
    [
        ("--to-earliest", [0, 0]),
        ("--to-latest", [RECORDS, RECORDS]),
        ("--shift-by -3", [7, 2]),
        ("--to-offset 100", [RECORDS, RECORDS]),
        ("--to-current", [10, 5]),
        ("--to-datetime 2020-01-01", [0, 0]),
    ],
)
def test_every_target_is_planned_with_the_logs_of_the_brokers(
    cli: ZooKeeperCli, targets: str, target: str, offsets: list[int]
) -> None:
    ran = cli(f"reset-offsets {targets} --all-topics {target} -o json")
    assert [row["new_offset"] for row in ran.data] == offsets


@pytest.mark.deep
def test_kafkas_consumer_and_kgctls_share_a_group(cli: ZooKeeperCli, old_kafka: OldKafka, consumers: list[OldConsumer]) -> None:
    old_kafka.create_topic("shared", 4)
    old_kafka.produce("shared", dict.fromkeys(range(4), 1))
    with ConsumerGroup(old_kafka.zookeeper, "sharing", ["shared"], instance="zz") as ours:
        wait_until("kgctl's has all", lambda: len(ours.assignment) == 4)
        ours.commit(dict.fromkeys(ours.assignment, 0))
        consumers.append(old_kafka.consumer("sharing", "shared", "sharing", goes_on=True))
        wait_until("each has two", lambda: sorted(each.partition for each in ours.assignment) == [2, 3])
        wait_until("Kafka's reads its own", lambda: sorted(consumers[0].records) == ["0:0", "1:0"])
        ours.commit(dict.fromkeys(ours.assignment, 1))
    wait_until("Kafka's has all", lambda: rows(cli("describe group sharing --members -o json"), "partitions") == [(4,)])


@pytest.mark.needs("javac")
def test_ten_groups_are_migrated_to_apache_kafka_and_back_again(
    tmp_path: Path, zookeeper: str, kazoo: KazooClient, kafka_broker: KafkaBroker
) -> None:
    orders = create_topic(kafka_broker.bootstrap, unique("orders"), 3)
    produce(kafka_broker.bootstrap, orders, dict.fromkeys(range(3), 50))
    topic(kazoo, orders, 3)
    prefix = unique("legacy")
    groups = [f"{prefix}-{number}" for number in range(10)]
    for number, group in enumerate(groups):
        commits(kazoo, group, {(orders, partition): number + partition for partition in range(3)})
    cli = ZooKeeperCli(tmp_path, zookeeper)
    cli.variables["KGCTL_BOOTSTRAP_SERVER"] = kafka_broker.bootstrap
    line = f"migrate-offsets --match ^{prefix} --to-group {{group}}-new"
    dry = cli(f"{line} -o json")
    assert (dry.code, {row["result"] for row in dry.data}, len(dry.data)) == (0, {"planned"}, 30)
    done = cli(f"{line} --execute --yes -o json")
    assert (done.code, {row["result"] for row in done.data}) == (0, {"reset"})
    assert "Read back: 30 partitions of 10 groups as copied." in done.err
    shown = run_kcg(["--bootstrap-server", kafka_broker.bootstrap, "--describe", "--all-groups"]).stdout
    found = {
        (row["GROUP"], int(row["PARTITION"])): int(row["CURRENT-OFFSET"])
        for row in kcg_rows(shown)
        if row["GROUP"].startswith(prefix)
    }
    assert found == {
        (f"{group}-new", partition): number + partition for number, group in enumerate(groups) for partition in range(3)
    }
    assert cli(f"{line} --execute --yes -o json").data[0]["result"] == "unchanged"
    on_kafka = ["--bootstrap-server", kafka_broker.bootstrap]
    listed = cli.run(["undo", *on_kafka, "-o", "json"])
    undone = cli.run(["undo", listed.data[0]["id"], *on_kafka, "--execute", "-o", "json"])
    assert (undone.code, {row["result"] for row in undone.data}) == (0, {"deleted"})
    assert [row["current_offset"] for row in cli(f"describe group {groups[3]} -o json").data] == [3, 4, 5]
