"""Why generations came about, told from the log of a coordinator that was asked step by step."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.coordinator_records import ConsumerGroupMetadataKey, CoordinatorRecord
from kgctl.model.groups import ConsumerAssignment, TopicPartition
from kgctl.model.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResult
from kgctl.pipeline.tables.membership import ASSIGNMENTS, GROUP_GENERATIONS, MEMBERS, member_changes
from kgctl.pipeline.tables.replay import spans
from kgctl.serde.consumer_protocol import encode_assignment
from tests.support.coordinator_harness import CoordinatorHarness
from tests.support.pipeline.histories import TimedLog, inputs_of

Row = dict[str, Any]
CONFIG = {"group.initial.rebalance.delay.ms": "0"}


def assigned(*partitions: int, topic: str = "t") -> bytes:
    return encode_assignment(ConsumerAssignment(tuple(TopicPartition(topic, number) for number in partitions)))


class Driven:
    """A coordinator whose log is kept with its times."""

    def __init__(self, topics: dict[str, int] | None = None) -> None:
        self.harness = CoordinatorHarness(CONFIG, topics=topics or {"t": 4, "u": 1})
        self.log = TimedLog(self.harness)

    def settle(self, *member_ids: str, generation: int, partitions: dict[str, bytes]) -> None:
        """The leader syncs."""
        self.harness.sync(member_ids[0], generation, partitions)
        for member_id in member_ids[1:]:
            self.harness.sync(member_id, generation)

    def come(
        self, member_id: str, epoch: int = 0, topics: tuple[str, ...] = ("t",), **fields: Any
    ) -> ConsumerGroupHeartbeatResult:
        """A heartbeat of the consumer protocol."""
        given = {"rebalance_timeout_ms": 5_000, "subscribed_topic_names": topics, "topic_partitions": ()} | fields
        call = self.harness.send(
            ConsumerGroupHeartbeat, api_version=1, group_id="g", member_id=member_id, member_epoch=epoch, **given
        )
        return call.result(ConsumerGroupHeartbeatResult)

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """These columns of the generations."""
        return [tuple(row[column] for column in columns) for row in self.table()]

    def table(self) -> list[Row]:
        """The generations."""
        found: list[Row] = GROUP_GENERATIONS.build(inputs_of(self.log.raw())).to_pylist()
        return found


def _is_epoch(entry: AppendRecord) -> bool:
    return isinstance(entry.record, CoordinatorRecord) and isinstance(entry.record.key, ConsumerGroupMetadataKey)


@pytest.fixture
def driven() -> Driven:
    return Driven()


def test_a_classic_life(driven: Driven) -> None:
    harness = driven.harness
    first = harness.join(version=3).join
    harness.sleep_ms(40)
    driven.settle("c-1", generation=1, partitions={"c-1": assigned(0, 1, 2, 3)})
    harness.sleep_ms(1000)
    second = harness.join(version=3)
    harness.sleep_ms(500)
    harness.join(first.member_id)
    harness.sleep_ms(20)
    driven.settle("c-1", "c-2", generation=2, partitions={"c-1": assigned(0, 1), "c-2": assigned(2, 3)})
    harness.sleep_ms(1000)
    harness.join("c-1")
    harness.join("c-2")
    driven.settle("c-1", "c-2", generation=3, partitions={"c-1": assigned(0, 1), "c-2": assigned(2, 3)})
    harness.join("c-1", topics=("t", "u"))
    harness.join("c-2", topics=("t", "u"))
    driven.settle("c-1", "c-2", generation=4, partitions={"c-1": assigned(0, 1), "c-2": assigned(2, 3)})
    harness.join("c-1", topics=("t", "u"))
    harness.join("c-2", topics=("t", "u"))
    driven.settle("c-1", "c-2", generation=5, partitions={"c-1": assigned(0, 1, 4), "c-2": assigned(2, 3)})
    harness.leave("c-2", "c-1")
    harness.delete_groups("g")

    assert second.join.member_id == "c-2"
    assert driven.rows("generation_id", "cause", "members", "members_joined", "members_left", "leader", "assignor") == [
        (1, "member_joined", 1, ["c-1"], [], "c-1", "range"),
        (2, "member_joined", 2, ["c-2"], [], "c-1", "range"),
        (3, "leader_rejoined", 2, [], [], "c-1", "range"),
        (4, "subscription_changed", 2, [], [], "c-1", "range"),
        (5, "partitions_changed", 2, [], [], "c-1", "range"),
        (6, "group_emptied", 0, [], ["c-1", "c-2"], None, None),
        (6, "group_deleted", 0, [], [], None, None),
    ]
    assert driven.rows("started_ms", "stable_ms", "duration_ms", "started_by")[:3] == [
        (0, 40, 40, "group_created"),
        (1540, 1560, 20, "join_phase_ended"),
        (2560, 2560, 0, "join_phase_ended"),
    ]


def test_cooperative_members_hand_over_in_a_second_rebalance(driven: Driven) -> None:
    harness = driven.harness
    harness.join(version=3)
    driven.settle("c-1", generation=1, partitions={"c-1": assigned(0, 1)})
    harness.join(version=3)
    harness.join("c-1")
    driven.settle("c-1", "c-2", generation=2, partitions={"c-1": assigned(0), "c-2": assigned()})
    harness.join("c-1")
    harness.join("c-2")
    driven.settle("c-1", "c-2", generation=3, partitions={"c-1": assigned(0), "c-2": assigned(1)})

    assert driven.rows("generation_id", "cause") == [(1, "member_joined"), (2, "member_joined"), (3, "partitions_handed_over")]


def test_a_static_member_that_returns_is_no_rebalance(driven: Driven) -> None:
    harness = driven.harness
    harness.join(instance="i")
    driven.settle("i-1", generation=1, partitions={"i-1": assigned(0)})
    harness.sleep_ms(5000)
    harness.join(instance="i")

    assert driven.rows("generation_id", "cause", "members_joined", "members_left", "started_ms", "stable_ms", "duration_ms") == [
        (1, "member_joined", ["i-1"], [], 0, 0, 0),
        (1, "static_member_returned", ["i-2"], ["i-1"], 5000, 5000, 0),
    ]
    spans = MEMBERS.build(inputs_of(driven.log.raw())).to_pylist()
    assert [(row["member_id"], row["group_instance_id"], row["from_ms"], row["to_ms"]) for row in spans] == [
        ("i-1", "i", 0, 5000),
        ("i-2", "i", 5000, None),
    ]


def test_a_static_member_that_returns_does_not_date_the_rebalance_that_was_compacted_away(driven: Driven) -> None:
    harness = driven.harness
    harness.join(instance="i")
    driven.settle("i-1", generation=1, partitions={"i-1": assigned(0)})
    harness.sleep_ms(5000)
    harness.join(instance="i")
    raw = driven.log.raw()

    for kept in ([raw.num_rows - 1], [0, raw.num_rows - 1]):
        rows = GROUP_GENERATIONS.build(inputs_of(raw.take(kept))).to_pylist()
        assert [(row["started_ms"], row["started_by"], row["stable_ms"], row["duration_ms"]) for row in rows] == [
            (None, None, 5000, None)
        ], kept


def test_epochs_of_the_consumer_protocol(driven: Driven) -> None:
    harness = driven.harness
    driven.come("m1")
    harness.sleep_ms(3000)
    driven.come("m2")
    harness.sleep_ms(2000)
    owned = driven.come("m1", 2, topic_partitions=None).assignment
    harness.sleep_ms(500)
    driven.come("m1", 2, topic_partitions=owned)
    harness.sleep_ms(500)
    driven.come("m2", 3, topic_partitions=None)
    harness.sleep_ms(2000)
    driven.come("m2", 3, topics=("t", "u"), topic_partitions=None)
    harness.sleep_ms(2000)
    harness.change_topics({"t": 6, "u": 1})
    driven.come("m1", 3, topic_partitions=None)
    harness.sleep_ms(2000)
    driven.come("m2", -1)
    driven.come("m1", -1)
    harness.delete_groups("g")

    assert driven.rows("type", "generation_id", "cause", "members", "members_joined", "members_left") == [
        ("consumer", 2, "member_joined", 1, ["m1"], []),
        ("consumer", 3, "member_joined", 2, ["m2"], []),
        ("consumer", 4, "subscription_changed", 2, [], []),
        ("consumer", 5, "partitions_changed", 2, [], []),
        ("consumer", 6, "member_left", 1, [], ["m2"]),
        ("consumer", 7, "group_emptied", 0, [], ["m1"]),
        ("consumer", 7, "group_deleted", 0, [], []),
    ]
    assert driven.rows("started_ms", "stable_ms", "duration_ms", "started_by")[:2] == [
        (0, 0, 0, "epoch_bump"),
        (3000, 6000, 3000, "epoch_bump"),
    ]
    assert driven.rows("stable_ms", "duration_ms")[4] == (None, None), "overtaken by the next epoch"


def test_members_of_an_epoch_that_was_not_collected(driven: Driven) -> None:
    driven.come("m1")
    driven.come("m2")
    kept = [offset for offset, entry in enumerate(driven.log) if not _is_epoch(entry)]
    inputs = inputs_of(driven.log.raw().take(kept))

    assert GROUP_GENERATIONS.build(inputs).num_rows == 0, "no epoch, no row"
    spans = MEMBERS.build(inputs).to_pylist()
    assert [(row["member_id"], row["first_generation"], row["last_generation"]) for row in spans] == [("m1", 1, 1), ("m2", 1, 1)]
    assert ASSIGNMENTS.build(inputs).num_rows > 0


def test_an_upgrade_and_a_downgrade_interrupt_nobody(driven: Driven) -> None:
    harness = driven.harness
    old = harness.join(version=3).join.member_id
    driven.settle(old, generation=1, partitions={old: assigned(0, 1, 2, 3)})
    harness.sleep_ms(1000)
    driven.come("m")
    harness.sleep_ms(1000)
    driven.come("m", -1)

    assert driven.rows("type", "generation_id", "cause", "members_joined", "members_left") == [
        ("classic", 1, "member_joined", [old], []),
        ("consumer", 1, "upgraded", [], []),
        ("consumer", 2, "member_joined", ["m"], []),
        ("classic", 2, "downgraded", [], ["m"]),
    ]
    spans = MEMBERS.build(inputs_of(driven.log.raw())).to_pylist()
    assert [(row["member_id"], row["from_ms"], row["to_ms"]) for row in spans] == [(old, 0, None), ("m", 1000, 2000)]
    owned = ASSIGNMENTS.build(inputs_of(driven.log.raw())).to_pylist()
    assert {(row["partition"], row["from_ms"]) for row in owned if row["member_id"] == old and row["to_ms"] is None} >= {(0, 0)}


def test_what_came_before_a_hole_is_not_compared(driven: Driven) -> None:
    harness = driven.harness
    harness.join(version=3)
    driven.settle("c-1", generation=1, partitions={"c-1": assigned(0)})
    for generation in (2, 3, 4):
        harness.join("c-1")
        driven.settle("c-1", generation=generation, partitions={"c-1": assigned(0)})
    raw = driven.log.raw()

    def causes(offsets: list[int]) -> list[tuple[int, str, Any]]:
        rows = GROUP_GENERATIONS.build(inputs_of(raw.take(offsets))).to_pylist()
        return [(row["generation_id"], row["cause"], row["members_joined"]) for row in rows]

    assert causes([0, 1, 2, 3, 4])[-1] == (4, "leader_rejoined", [])
    assert causes([0, 1, 4])[-1] == (4, "unknown", []), "two generations are missing"
    assert causes([4]) == [(4, "unknown", None)], "there is nothing to compare with"
    assert causes([1])[0] == (1, "member_joined", ["c-1"]), "the first generation is the first"


def test_other_protocol_types_have_no_assignments(driven: Driven) -> None:
    harness = driven.harness
    harness.join(version=3, protocol_type="connect", protocols=("sessioned",))
    driven.settle("c-1", generation=1, partitions={"c-1": b"\x00\x01 whatever Connect writes"})
    inputs = inputs_of(driven.log.raw())

    assert ASSIGNMENTS.build(inputs).num_rows == 0
    assert inputs.counts == {"assignments_undecoded": 1}
    assert [(row["protocol_type"], row["assignor"]) for row in driven.table()] == [("connect", "sessioned")]


def test_ids_have_the_names_that_the_log_tells() -> None:
    driven = Driven({"t": 2, "u": 2})
    driven.come("m1", topics=("t", "u"))
    nameless = {row["topic"] for row in ASSIGNMENTS.build(inputs_of(driven.log.raw())).to_pylist()}
    assert all(len(name) == 22 for name in nameless), "two topics, and nothing says which is which"

    driven.come("m1", -1)
    driven.come("m2", topics=("u",))
    named = {row["topic"] for row in ASSIGNMENTS.build(inputs_of(driven.log.raw())).to_pylist()}
    assert named & {"u"}, "one subscribes to u alone"


def test_a_static_member_of_the_consumer_protocol_that_closes_says_so() -> None:
    driven = Driven()
    epoch = driven.come("one", instance_id="i").member_epoch
    driven.harness.sleep_ms(5_000)
    driven.come("one", -2, instance_id="i")
    driven.harness.sleep_ms(7_000)
    again = driven.come("two", instance_id="i").member_epoch

    settled, open_ = member_changes(spans(inputs_of(driven.log.raw())))

    assert (epoch, again) == (2, 2)
    rows = [(row["member_id"], row["change"]) for row in [*settled.to_pylist(), *open_.to_pylist()]]
    assert rows == [("one", "joined"), ("one", "closed"), ("two", "joined"), ("one", "left")]
