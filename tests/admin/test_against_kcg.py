"""kgctl beside ``kafka-consumer-groups.sh`` on the same groups of Apache Kafka: what both show is the same, value by value.

The group ``idle`` of the fixture has no members; its topic has three partitions of 100 records, one an hour, and the first ten of
partition 1 are deleted:

    partition   log      commit
    0           0-100    40
    1           10-100   100
    2           0-100    none
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from tests.support.kafka import (
    KafkaBroker,
    admin_client,
    commit,
    committed,
    create_topic,
    delete_topic,
    kcg_rows,
    produce,
    run_kcg,
    unique,
)
from tests.support.kafka.consumers import joined
from tests.support.kafka.data import result_of
from tests.support.kafka.kgctl import run_kgctl
from tests.support.patience import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]

HOUR_MS = 3_600_000
RECORDS = 100


@dataclass(frozen=True)
class Idle:
    """The cluster, the topic and the group without members."""

    bootstrap: str
    topic: str
    group: str
    first_ms: int

    def kcg(self, *arguments: str) -> str:
        return run_kcg(["--bootstrap-server", self.bootstrap, "--group", self.group, *arguments]).stdout

    def kgctl(self, *arguments: str, code: int = 0) -> Any:
        return run_kgctl(self.bootstrap, *arguments, code=code).data


@pytest.fixture(scope="module")
def records(kafka_broker: KafkaBroker) -> tuple[str, int]:
    """(topic, time of its first records): nothing of these tests writes to it."""
    bootstrap = kafka_broker.bootstrap
    topic = create_topic(bootstrap, unique("orders"), 3)
    first_ms = (time.time_ns() // 1_000_000 // HOUR_MS - RECORDS) * HOUR_MS
    produce(bootstrap, topic, dict.fromkeys(range(3), RECORDS), timestamp_ms=first_ms, step_ms=HOUR_MS)
    admin = admin_client(bootstrap)
    result_of(admin.delete_records([TopicPartition(topic, 1, 10)]))
    return topic, first_ms


@pytest.fixture
def idle(kafka_broker: KafkaBroker, records: tuple[str, int]) -> Idle:
    topic, first_ms = records
    group = unique("payments")
    commit(kafka_broker.bootstrap, group, {(topic, 0): 40, (topic, 1): 100})
    return Idle(kafka_broker.bootstrap, topic, group, first_ms)


def number(cell: str) -> int | None:
    return None if cell == "-" else int(cell)


def text(cell: str) -> str | None:
    return None if cell in ("-", "") else cell


def kcg_offsets(output: str) -> list[tuple[object, ...]]:
    """The rows of ``--describe --offsets``, in the order of kgctl."""
    return sorted(map(kcg_offset, kcg_rows(output)), key=str)


def kcg_offset(row: dict[str, str]) -> tuple[object, ...]:
    offsets = (number(row["CURRENT-OFFSET"]), number(row["LOG-END-OFFSET"]), number(row["LAG"]))
    owner = (text(row["CONSUMER-ID"]), text(row["HOST"]), text(row["CLIENT-ID"]))
    return (row["GROUP"], row["TOPIC"], int(row["PARTITION"]), *offsets, *owner)


def kgctl_offsets(data: Any) -> list[tuple[object, ...]]:
    """The same of kgctl."""
    keys = ("group", "topic", "partition", "current_offset", "log_end_offset", "lag", "consumer_id", "host", "client_id")
    return sorted((tuple(row[key] for key in keys) for row in data), key=str)


def test_describe_of_an_empty_group_is_the_same(idle: Idle) -> None:
    theirs = kcg_offsets(idle.kcg("--describe"))
    ours = kgctl_offsets(idle.kgctl("describe", "group", idle.group))
    uncommitted = (idle.group, idle.topic, 2, None, 100, None, None, None, None)  # kgctl shows it too: nobody reads it yet
    assert len(theirs) == 2
    assert ours == [*theirs, uncommitted]


def test_a_commit_outside_the_log_has_the_same_row_but_no_lag(idle: Idle) -> None:
    """Kafka's tool subtracts: -50, and records that nobody can read any more. No consumer goes on from either commit."""
    commit(idle.bootstrap, idle.group, {(idle.topic, 0): 150, (idle.topic, 1): 5, (idle.topic, 2): 0})
    theirs = kcg_offsets(idle.kcg("--describe"))
    rows = idle.kgctl("describe", "group", idle.group)
    assert [row[5] for row in theirs] == [-50, 95, 100]
    assert kgctl_offsets(rows) == [(*row[:5], lag, *row[6:]) for row, lag in zip(theirs, (None, None, 100), strict=True)]
    assert [row["flags"] for row in rows] == [["past-log-end"], ["below-log-start"], []]


@pytest.mark.parametrize(("protocol", "group_type"), [("classic", "Classic"), ("consumer", "Consumer")])
def test_a_group_with_members_is_the_same_in_every_view(idle: Idle, protocol: str, group_type: str) -> None:
    with live_group(idle, protocol):
        described = kgctl_offsets(idle.kgctl("describe", "group", idle.group))
        assert described == kcg_offsets(idle.kcg("--describe"))
        assert len(described) == 3

        members = idle.kgctl("describe", "group", idle.group, "--members", "--verbose")
        assert sorted(map(kgctl_member, members), key=str) == sorted(
            map(kcg_member, kcg_rows(idle.kcg("--describe", "--members", "--verbose"))), key=str
        )

        (state,) = idle.kgctl("describe", "group", idle.group, "--state", "--verbose")
        (row,) = kcg_rows(idle.kcg("--describe", "--state", "--verbose"))
        assert kgctl_state(state) == kcg_state(row)

        listed = idle.kgctl("list", "groups", "--match", f"^{idle.group}$")
        theirs = [row for row in kcg_list(idle.bootstrap) if row["GROUP"] == idle.group]
        assert [(row["group"], row["type"].capitalize(), row["state"]) for row in listed] == [(idle.group, group_type, "Stable")]
        assert theirs == [{"GROUP": idle.group, "TYPE": group_type, "STATE": "Stable"}]


def live_group(idle: Idle, protocol: str) -> Any:
    strategy = {"partition_assignment_strategy": "range"} if protocol == "classic" else {}
    shares = {"alpha": 2, "beta": 1} if protocol == "classic" else {"alpha": 3}
    return joined(idle.bootstrap, idle.group, idle.topic, shares, group_protocol=protocol, **strategy)


def kcg_member(row: dict[str, str]) -> tuple[object, ...]:
    return (
        row["CONSUMER-ID"], text(row.get("GROUP-INSTANCE-ID", "-")), row["HOST"], row["CLIENT-ID"], int(row["#PARTITIONS"]),
        number(row["CURRENT-EPOCH"]), row["CURRENT-ASSIGNMENT"], number(row["TARGET-EPOCH"]), text(row["TARGET-ASSIGNMENT"]),
    )  # fmt: skip


def kgctl_member(row: dict[str, Any]) -> tuple[object, ...]:
    keys = ("consumer_id", "group_instance_id", "host", "client_id", "partitions", "member_epoch", "assignment",
            "target_assignment_epoch", "target_assignment")  # fmt: skip
    return tuple(row[key] for key in keys)


def kcg_state(row: dict[str, str]) -> tuple[object, ...]:
    address, broker = row["COORDINATOR (ID)"].split()
    epochs = (number(row["GROUP-EPOCH"]), number(row["TARGET-ASSIGNMENT-EPOCH"]))
    return (
        row["GROUP"],
        address,
        int(broker.strip("()")),
        row["ASSIGNMENT-STRATEGY"],
        row["STATE"],
        *epochs,
        int(row["#MEMBERS"]),
    )


def kgctl_state(row: dict[str, Any]) -> tuple[object, ...]:
    keys = ("group", "coordinator", "coordinator_id", "assignor", "state", "group_epoch", "target_assignment_epoch", "members")
    return tuple(row[key] for key in keys)


def kcg_list(bootstrap: str) -> list[dict[str, str]]:
    return kcg_rows(run_kcg(["--bootstrap-server", bootstrap, "--list", "--state", "--type"]).stdout)


def at(first_ms: int, hours: float) -> str:
    """A time ``hours`` after the first record, as both tools read it."""
    moment = datetime.fromtimestamp((first_ms + hours * HOUR_MS) / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000")


STRATEGIES: dict[str, Callable[[int], list[str]]] = {
    "earliest": lambda _: ["--to-earliest"],
    "latest": lambda _: ["--to-latest"],
    "offset inside the log": lambda _: ["--to-offset", "30"],
    "offset past the end": lambda _: ["--to-offset", "1010"],
    "offset before the start of one partition": lambda _: ["--to-offset", "3"],
    "time of a record": lambda first: ["--to-datetime", at(first, 50)],
    "time between two records": lambda first: ["--to-datetime", at(first, 50.5)],
    "time before the first": lambda first: ["--to-datetime", at(first, -5)],
    "time past the last": lambda first: ["--to-datetime", at(first, RECORDS - 0.5)],
    "duration": lambda first: ["--by-duration", f"PT{minutes_since(first, 70.5)}M"],
    "longer than the log": lambda _: ["--by-duration", "P30D"],
    "no duration at all": lambda _: ["--by-duration", "PT0S"],
    "current": lambda _: ["--to-current"],
}


def minutes_since(first_ms: int, hours: float) -> int:
    """So that half an hour may pass on either side before another record is the first."""
    return round((time.time_ns() // 1_000_000 - first_ms - hours * HOUR_MS) / 60_000)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_reset_plans_the_same_offsets(idle: Idle, strategy: str) -> None:
    asked = STRATEGIES[strategy](idle.first_ms)
    theirs = kcg_plan(idle.kcg("--reset-offsets", "--topic", idle.topic, "--dry-run", *asked))
    assert len(theirs) == 3
    assert kgctl_plan(idle.kgctl("reset-offsets", idle.group, "--topic", idle.topic, *asked)) == theirs


@pytest.mark.parametrize("shift", ["-7", "1000", *(pytest.param(shift, marks=pytest.mark.deep) for shift in ("7", "-1000"))])
def test_a_shift_plans_the_same_offsets(idle: Idle, shift: str) -> None:
    theirs = kcg_plan(idle.kcg("--reset-offsets", "--topic", f"{idle.topic}:0,1", "--dry-run", "--shift-by", shift))
    assert len(theirs) == 2
    assert kgctl_plan(idle.kgctl("reset-offsets", idle.group, "--topic", f"{idle.topic}:0,1", "--shift-by", shift)) == theirs


def test_all_topics_are_the_ones_with_a_commit(idle: Idle) -> None:
    theirs = kcg_plan(idle.kcg("--reset-offsets", "--all-topics", "--dry-run", "--to-earliest"))
    assert len(theirs) == 2
    assert kgctl_plan(idle.kgctl("reset-offsets", idle.group, "--all-topics", "--to-earliest")) == theirs


def kcg_plan(output: str) -> dict[tuple[str, str, int], int]:
    return {(row["GROUP"], row["TOPIC"], int(row["PARTITION"])): int(row["NEW-OFFSET"]) for row in kcg_rows(output)}


def kgctl_plan(data: Any) -> dict[tuple[str, str, int], int]:
    return {(row["group"], row["topic"], row["partition"]): row["new_offset"] for row in data}


def test_an_executed_reset_is_what_kafkas_tool_then_shows(idle: Idle, tmp_path: Path) -> None:
    backup = tmp_path / "backup.json"
    asked = [
        "reset-offsets",
        idle.group,
        "--topic",
        idle.topic,
        "--to-offset",
        "30",
        "--execute",
        "--yes",
        "--backup",
        str(backup),
    ]
    rows = idle.kgctl(*asked)
    assert [row["result"] for row in rows] == ["reset"] * 3
    assert {row[2]: (row[3], row[5]) for row in kcg_offsets(idle.kcg("--describe"))} == {0: (30, 70), 1: (30, 70), 2: (30, 70)}
    idle.kgctl("reset-offsets", "--from-file", str(backup), "--execute", "--yes", "--no-backup")
    assert {row[2]: (row[3], row[5]) for row in kcg_offsets(idle.kcg("--describe"))} == {0: (40, 60), 1: (100, 0)}


def test_a_dry_run_changes_nothing(idle: Idle) -> None:
    idle.kgctl("reset-offsets", idle.group, "--topic", idle.topic, "--to-earliest")
    assert committed(idle.bootstrap, idle.group) == {(idle.topic, 0): 40, (idle.topic, 1): 100}


def test_an_export_of_kafkas_tool_is_read(idle: Idle, tmp_path: Path) -> None:
    exported = tmp_path / "plan.csv"
    exported.write_text(idle.kcg("--reset-offsets", "--topic", idle.topic, "--to-offset", "55", "--dry-run", "--export"))
    rows = idle.kgctl("reset-offsets", idle.group, "--from-file", str(exported))
    assert kgctl_plan(rows) == {(idle.group, idle.topic, partition): 55 for partition in range(3)}


def test_a_reset_of_a_group_with_members_is_refused_by_both(idle: Idle) -> None:
    with live_group(idle, "classic"):
        asked = ["--topic", idle.topic, "--to-earliest", "--execute"]
        assert "current state is Stable" in idle.kcg("--reset-offsets", *asked)
        refused = run_kgctl(idle.bootstrap, "reset-offsets", idle.group, *asked, "--yes", "--no-backup", code=5)
        assert idle.group in refused.err + refused.out
        assert committed(idle.bootstrap, idle.group) == {(idle.topic, 0): 40, (idle.topic, 1): 100}


def test_a_deleted_group_is_gone_for_kafkas_tool(idle: Idle) -> None:
    idle.kgctl("delete-groups", idle.group, "--yes")
    assert idle.group not in {row["GROUP"] for row in kcg_list(idle.bootstrap)}
    assert f"Group {idle.group} not found" in idle.kcg("--describe")
    run_kgctl(idle.bootstrap, "describe", "group", idle.group, code=4)


def test_a_group_with_members_is_deleted_by_neither(idle: Idle) -> None:
    with live_group(idle, "classic"):
        assert "GroupNotEmptyException" in idle.kcg("--delete")
        (row,) = run_kgctl(idle.bootstrap, "delete-groups", idle.group, "--yes", code=5).data
        assert (row["group"], "NON_EMPTY_GROUP" in str(row["error"])) == (idle.group, True)


def test_deleted_offsets_are_gone_for_kafkas_tool(idle: Idle) -> None:
    idle.kgctl("delete-offsets", idle.group, "--topic", f"{idle.topic}:1", "--yes")
    assert [row[2:4] for row in kcg_offsets(idle.kcg("--describe"))] == [(0, 40)]


def test_offsets_of_a_topic_that_is_read_are_deleted_by_neither(idle: Idle) -> None:
    with live_group(idle, "classic"):
        assert "GroupSubscribedToTopicException" in idle.kcg("--delete-offsets", "--topic", idle.topic)
        answer = run_kgctl(idle.bootstrap, "delete-offsets", idle.group, "--topic", idle.topic, "--yes", code=5)
        assert {"GROUP_SUBSCRIBED_TO_TOPIC" in str(row["error"]) for row in answer.data} == {True}
        assert committed(idle.bootstrap, idle.group) == {(idle.topic, 0): 40, (idle.topic, 1): 100}


def test_removed_members_are_gone_for_kafkas_tool(idle: Idle) -> None:
    with live_group(idle, "classic"):
        for row in idle.kgctl("describe", "group", idle.group, "--members"):
            idle.kgctl("remove-members", idle.group, "--member", row["consumer_id"], "--yes")
        assert kcg_rows(idle.kcg("--describe", "--members")) == []


def test_a_missing_group_is_an_error_only_for_kgctl(idle: Idle) -> None:
    done = run_kcg(["--bootstrap-server", idle.bootstrap, "--describe", "--group", "nosuch"])
    assert done.returncode == 0
    assert "Group nosuch not found" in done.stdout
    missing = run_kgctl(idle.bootstrap, "describe", "group", "nosuch", code=4)
    assert "nosuch" in missing.err


@pytest.fixture
def short_lived(kafka_broker: KafkaBroker) -> Idle:
    topic, group = create_topic(kafka_broker.bootstrap, unique("gone"), 1), unique("reader")
    commit(kafka_broker.bootstrap, group, {(topic, 0): 0})
    return Idle(kafka_broker.bootstrap, topic, group, 0)


def test_commits_of_a_deleted_topic_are_gone_for_both(short_lived: Idle) -> None:
    delete_topic(short_lived.bootstrap, short_lived.topic)
    deadline = time.monotonic() + PATIENCE_S
    while committed(short_lived.bootstrap, short_lived.group):
        assert time.monotonic() < deadline
    assert kcg_rows(short_lived.kcg("--describe")) == []
    shown = run_kgctl(short_lived.bootstrap, "describe", "group", short_lived.group, code=None)
    assert (shown.code, shown.data) == (0, [])


def test_kafkas_tool_reads_what_kgctl_exports(idle: Idle, tmp_path: Path) -> None:
    exported = tmp_path / "plan.csv"
    asked = ["reset-offsets", idle.group, "--topic", idle.topic, "--to-offset", "55", "--export", "-o", "table"]
    exported.write_text(run_kgctl(idle.bootstrap, *asked).out)
    theirs = kcg_plan(idle.kcg("--reset-offsets", "--from-file", str(exported), "--dry-run"))
    assert theirs == {(idle.group, idle.topic, partition): 55 for partition in range(3)}
