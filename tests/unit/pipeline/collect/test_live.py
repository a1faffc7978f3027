"""Live collection, with a cluster made of lists and a clock that moves when it is asked to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kgctl.errors import AuthError, BrokerError, KgctlError, RefusedError, UnreachableError
from kgctl.pipeline.collect.at_rest import collect_at_rest
from kgctl.pipeline.collect.collection import Collection, TopicsSeen
from kgctl.pipeline.collect.live import CollectPlan, LiveCollection, World
from kgctl.pipeline.engines import LocalEngine
from kgctl.pipeline.sources.at_rest import parquet
from kgctl.pipeline.sources.batches import Damage
from kgctl.pipeline.sources.live import OFFSETS_TOPIC, LivePart, LogOffsetRow, LogState
from kgctl.pipeline.store.tables import RAW, rows_of
from kgctl.pipeline.store.warehouse import Known, OvertakenError, Warehouse, commit_records, next_offset, stage_records
from tests.support.pipeline.segments import commit_like
from tests.support.pipeline.warehouses import add, offsets_in
from tests.support.pipeline.warehouses import rows_of as rows_of_table


@dataclass
class FakeCluster:
    """Logs as lists of offsets; each fetch gives at most two records of a partition. ``troubles`` are raised, one a fetch."""

    logs: dict[int, list[int]]
    log_id: str | None = "id-1"
    own_id: str | None = "cluster-1"
    start: int = 0
    troubles: list[Exception | None] = field(default_factory=list)
    broken: dict[int, KgctlError] = field(default_factory=dict)
    away: set[int] = field(default_factory=set)
    damaged: dict[int, Damage] = field(default_factory=dict)
    asked: list[Mapping[int, int]] = field(default_factory=list)
    sampled: list[Sequence[str] | None] = field(default_factory=list)
    on_fetch: Any = None
    sampling: Exception | list[LogOffsetRow] | None = None

    def log_state(self) -> LogState:
        bounds = {number: (self.start, self._end(number)) for number in self.logs if number not in self.away}
        return LogState(self.own_id, self.log_id, bounds, {number: BrokerError(f"{number}: no leader") for number in self.away})

    def fetch(self, positions: Mapping[int, int], max_wait_ms: int) -> tuple[Mapping[int, LivePart], Mapping[int, KgctlError]]:
        self.asked.append(dict(positions))
        if self.on_fetch:
            self.on_fetch(len(self.asked))
        if self.troubles and (trouble := self.troubles.pop(0)) is not None:
            raise trouble
        parts = {number: self._part(number, offset) for number, offset in positions.items() if number not in self.broken}
        return parts, {number: error for number, error in self.broken.items() if number in positions}

    def log_offsets(self, topics: Sequence[str] | None) -> tuple[list[LogOffsetRow], list[KgctlError]]:
        self.sampled.append(topics)
        if isinstance(self.sampling, Exception):
            raise self.sampling
        if self.sampling is not None:
            return self.sampling, []
        return [LogOffsetRow(topic, 0, 0, 10) for topic in topics or ()], [BrokerError("t-1: X", topic="t", partition=1)]

    def close(self) -> None:
        pass

    def _end(self, number: int) -> int:
        return max(self.logs[number], default=self.start - 1) + 1

    def _part(self, number: int, position: int) -> LivePart:
        found = [offset for offset in self.logs[number] if offset >= position][:2]
        records = [commit_like(offset) for offset in found]
        columns: dict[str, list[Any]] = {
            "partition": [number] * len(found),
            **{name: [getattr(record, name) for record in records] for name in ("offset", "timestamp_ms", "key", "value")},
        }
        damaged = [self.damaged.pop(number)] if number in self.damaged else []
        return LivePart(rows_of(columns, RAW), damaged, found[-1] + 1 if found else position)


class FakeWorld:
    """A second passes whenever the time is looked at; a pause lasts as long as it says."""

    def __init__(self) -> None:
        self.s = 0.0
        self.notices: list[str] = []
        self.world = World(lambda: 1_000_000 + int(self.s * 1_000), self._seconds, self._pause, self.notices.append, str)

    def _seconds(self) -> float:
        self.s += 1
        return self.s

    def _pause(self, seconds: float) -> None:
        self.s += seconds


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(tmp_path / "warehouse")


def run(warehouse: Warehouse, cluster: FakeCluster, plan: CollectPlan, fake: FakeWorld | None = None) -> Collection:
    world = (fake or FakeWorld()).world
    return LiveCollection(warehouse, "c", cluster, source="a:1", plan=plan, world=world).run(cluster.log_state())


def test_the_clusters_own_id_is_kept_and_another_one_refused(warehouse: Warehouse) -> None:
    run(warehouse, FakeCluster({0: [0]}), CollectPlan(once=True))
    assert warehouse.cluster_id("c") == "cluster-1"

    other = FakeCluster({0: [0]}, own_id="cluster-2")
    with pytest.raises(
        RefusedError, match="the cluster's id is cluster-2, but what was collected as 'c' is of the one with the id"
    ):
        run(warehouse, other, CollectPlan(once=True))


def stored(warehouse: Warehouse, partition: int) -> list[int]:
    return offsets_in(warehouse, partition, "c")


ONCE = CollectPlan(once=True)


def test_once_goes_to_the_end_and_the_next_one_goes_on(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0, 1, 4, 7, 8], 1: [], 2: [3]})
    found = run(warehouse, cluster, ONCE)
    assert [stored(warehouse, number) for number in range(3)] == [[0, 1, 4, 7, 8], [], [3]]
    assert {number: (each.read, each.added) for number, each in found.partitions.items() if each.read} == {0: (5, 5), 2: (1, 1)}
    assert [next_offset(warehouse, "c", number) for number in range(3)] == [9, None, 4]
    assert cluster.sampled == [[OFFSETS_TOPIC, "orders"]]
    cluster.logs[1] = [0]
    cluster.asked.clear()
    again = run(warehouse, cluster, ONCE)
    assert (cluster.asked, again.added, stored(warehouse, 1)) == ([{1: 0}], 1, [0])
    assert cluster.sampled == [[OFFSETS_TOPIC, "orders"]] * 2  # known from the first run
    assert [error.message for error in again.errors] == ["t-1: X"]


def test_a_log_that_ends_in_what_no_client_is_given_ends(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0, 1]})
    state = cluster.log_state()
    longer = LogState(state.cluster_id, state.log_id, {0: (0, 9)})
    found = LiveCollection(warehouse, "c", cluster, source="a:1", plan=ONCE, world=FakeWorld().world).run(longer)
    assert (found.added, next_offset(warehouse, "c", 0)) == (2, 2)


def test_a_topic_that_was_made_anew_is_refused(warehouse: Warehouse) -> None:
    run(warehouse, FakeCluster({0: [0, 1]}), ONCE)
    with pytest.raises(RefusedError, match="its id is id-2, the warehouse has records of id-1 for cluster 'c'"):
        run(warehouse, FakeCluster({0: [0, 1, 2]}, log_id="id-2"), ONCE)
    assert stored(warehouse, 0) == [0, 1]


def test_a_log_that_was_cut_is_named_and_the_others_go_on(warehouse: Warehouse) -> None:
    run(warehouse, FakeCluster({0: [0, 1, 2], 1: [0]}, log_id=None), ONCE)
    found = run(warehouse, FakeCluster({0: [0, 1], 1: [0, 1]}, log_id=None), ONCE)
    assert [type(error) for error in found.errors] == [RefusedError, BrokerError]
    assert "partition 0 of cluster 'c' ends at offset 2, but records up to 2 were collected" in found.errors[0].message
    assert (stored(warehouse, 0), stored(warehouse, 1)) == ([0, 1, 2], [0, 1])


def test_records_that_were_deleted_before_they_were_collected(warehouse: Warehouse) -> None:
    run(warehouse, FakeCluster({0: [0, 1]}), ONCE)
    found = run(warehouse, FakeCluster({0: [7, 8]}, start=7), ONCE)
    assert found.notices == ["offsets 2 to 6 of partition 0 were deleted before they were collected"]
    assert stored(warehouse, 0) == [0, 1, 7, 8]


def test_for_a_time_it_samples_and_follows(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0]})
    cluster.on_fetch = cluster.logs[0].append
    fake = FakeWorld()
    found = run(warehouse, cluster, CollectPlan(for_s=60, sample_every_s=10), fake)
    assert stored(warehouse, 0) == list(range(len(stored(warehouse, 0))))
    assert len(stored(warehouse, 0)) > 10
    times = sorted(row["timestamp_ms"] for row in rows_of_table(warehouse, "samples", "c"))
    assert 5 <= len(set(times)) <= 8
    assert found.samples == len(times)
    assert [error.message for error in found.errors] == ["t-1: X"]  # as the last sample has it
    assert fake.notices == ["no sample: t-1: X"]  # said once, not at each sample


def test_all_topics(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0]})
    run(warehouse, cluster, CollectPlan(once=True, all_topics=True))
    assert cluster.sampled == [None]


def test_a_cluster_that_goes_away_is_waited_for(warehouse: Warehouse) -> None:
    away = UnreachableError("a:1 closed the connection")
    cluster = FakeCluster({0: [0, 1, 2, 3]}, troubles=[None, away, away, None])
    fake = FakeWorld()
    run(warehouse, cluster, CollectPlan(for_s=60), fake)
    assert stored(warehouse, 0) == [0, 1, 2, 3]
    assert fake.notices[:2] == [
        "a:1 closed the connection; trying again in 0.5 s",
        "a:1 closed the connection; trying again in 1 s",
    ]


def test_a_cluster_that_is_away_at_the_end_of_its_time_is_an_error(warehouse: Warehouse) -> None:
    """What came last is not known; where it was told to stop, it had no time to keep."""
    gone = UnreachableError("gone")
    cluster = FakeCluster({0: [0]}, sampling=gone)
    found = run(warehouse, cluster, CollectPlan(for_s=60))
    assert (found.errors, found.away, found.notices) == ([gone], gone, [])
    endless = LiveCollection(warehouse, "c", cluster, source="a:1", plan=CollectPlan(), world=FakeWorld().world)
    cluster.on_fetch = lambda asked: endless.stop() if asked > 9 else None
    found = endless.run(cluster.log_state())
    assert (found.errors, found.notices) == ([], ["no last sample of log offsets: gone"])


def test_once_does_not_wait_but_keeps_what_came(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0, 1, 2, 3]}, troubles=[None, UnreachableError("away")])
    with pytest.raises(UnreachableError):
        run(warehouse, cluster, ONCE)
    assert (stored(warehouse, 0), next_offset(warehouse, "c", 0)) == ([0, 1], 2)
    with pytest.raises(AuthError):
        run(warehouse, FakeCluster({0: [0, 1, 2]}, troubles=[AuthError("no")]), CollectPlan(for_s=9))


def test_an_error_of_one_partition_is_its_own(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0], 1: [0]}, broken={1: BrokerError("p1: KAFKA_STORAGE_ERROR")})
    found = run(warehouse, cluster, ONCE)
    assert ([error.message for error in found.errors], stored(warehouse, 0)) == (["p1: KAFKA_STORAGE_ERROR", "t-1: X"], [0])


def test_a_partition_whose_leader_is_away_is_followed_when_it_is_back(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0], 1: [0, 1]}, broken={1: BrokerError("p1: LEADER_NOT_AVAILABLE", code="LEADER_NOT_AVAILABLE")})
    cluster.on_fetch = lambda count: cluster.broken.clear() if count == 6 else None
    fake = FakeWorld()
    found = run(warehouse, cluster, CollectPlan(for_s=60), fake)
    assert (stored(warehouse, 0), stored(warehouse, 1)) == ([0], [0, 1])
    assert fake.notices == ["p1: LEADER_NOT_AVAILABLE; trying again", "no sample: t-1: X"]
    assert [error.message for error in found.errors] == ["t-1: X"]


def test_a_partition_without_a_leader_is_taken_up_when_it_has_one(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0], 1: [0, 1]}, away={1})
    fake = FakeWorld()
    cluster.on_fetch = lambda count: cluster.away.clear() if count == 5 else None
    found = run(warehouse, cluster, CollectPlan(for_s=60, sample_every_s=5), fake)
    assert (stored(warehouse, 1), fake.notices) == ([0, 1], ["1: no leader", "no sample: t-1: X"])
    assert [error.message for error in found.errors] == ["t-1: X"]


def test_a_partition_without_a_leader_is_an_error_of_once(warehouse: Warehouse) -> None:
    found = run(warehouse, FakeCluster({0: [0], 1: [0, 1]}, away={1}), ONCE)
    assert [error.message for error in found.errors] == ["1: no leader", "t-1: X"]


def test_a_topic_that_is_made_anew_meanwhile_ends_it(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0]})
    cluster.on_fetch = lambda count: setattr(cluster, "log_id", "id-9") if count == 5 else None
    with pytest.raises(RefusedError, match="its id is id-9"):
        run(warehouse, cluster, CollectPlan(for_s=60, sample_every_s=5))
    assert stored(warehouse, 0) == [0]


def test_it_ends_when_no_partition_is_left_to_follow(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0]}, broken={0: RefusedError("p0: OFFSET_OUT_OF_RANGE")})
    found = run(warehouse, cluster, CollectPlan())
    assert found.errors[0].message == "p0: OFFSET_OUT_OF_RANGE"


def test_damage_is_kept_aside(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: [0]}, damaged={0: Damage(61, 80, "wrong checksum", 5, 2, b"data")})
    found = run(warehouse, cluster, ONCE)
    assert found.errors[0].message == (
        "a:1 __consumer_offsets-0 from offset 0 at byte 61: wrong checksum (80 bytes, 2 records from offset 5)"
    )
    assert len(rows_of_table(warehouse, "damaged", "c")) == 1


def test_records_of_another_cluster_refuse_everything(warehouse: Warehouse) -> None:
    other = rows_of({"partition": [0], "offset": [1], "timestamp_ms": [5], "key": [b"x"], "value": [b"y"]}, RAW)
    add(warehouse, "c", other, "segments")
    with pytest.raises(RefusedError, match="offset 1 is in the warehouse with another record"):
        run(warehouse, FakeCluster({0: [0, 1], 1: [0]}), ONCE)
    assert (stored(warehouse, 0), stored(warehouse, 1)) == ([1], [])


def test_the_slower_of_two_collections_adds_nothing_and_says_so(warehouse: Warehouse) -> None:
    record = commit_like(0)
    columns: dict[str, list[Any]] = {
        "partition": [0], "offset": [0], "timestamp_ms": [5], "key": [record.key], "value": [record.value]
    }  # fmt: skip
    known = Known.of(warehouse, "c")  # both look before either commits
    first, second = (stage_records(known, rows_of(columns, RAW), source) for source in ("a:1", "b:1"))
    assert first is not None
    assert second is not None
    commit_records(warehouse, known, [first])
    with pytest.raises(OvertakenError, match="another collection has added records of 1 partition"):
        commit_records(warehouse, known, [second])
    assert stored(warehouse, 0) == [0]


def test_topics_are_known_after_a_crash_before_the_first_sample(warehouse: Warehouse) -> None:
    record = commit_like(0)
    table = rows_of({"partition": [0], "offset": [0], "timestamp_ms": [5], "key": [record.key], "value": [record.value]}, RAW)
    warehouse.tell("c", 0, topics=["orders"])
    known = Known.of(warehouse, "c")
    staged = stage_records(known, table, "a:1")
    assert staged is not None
    commit_records(warehouse, known, [staged], positions={0: 1})
    cluster = FakeCluster({0: [0]})
    run(warehouse, cluster, ONCE)
    assert cluster.sampled == [[OFFSETS_TOPIC, "orders"]]


def test_topics_are_known_after_a_sample_that_failed_and_one_without_them(warehouse: Warehouse) -> None:
    silent = FakeCluster({0: [0]}, sampling=[LogOffsetRow("other", 0, 0, 1)])
    run(warehouse, silent, CollectPlan(once=True, all_topics=True))
    away = FakeCluster({0: [0], 1: [0]}, sampling=UnreachableError("away"))
    with pytest.raises(UnreachableError):
        run(warehouse, away, ONCE)
    cluster = FakeCluster({0: [0]})
    run(warehouse, cluster, ONCE)
    assert (silent.sampled, away.sampled, cluster.sampled) == ([None], *[[[OFFSETS_TOPIC, "orders"]]] * 2)


def test_topics_of_records_that_were_collected_at_rest_are_known(warehouse: Warehouse) -> None:
    run(warehouse, FakeCluster({0: [0]}), ONCE)
    key = b"\0\1\0\1g\0\6copied\0\0\0\0"
    file = Path(warehouse.location.uri).with_name("copied.parquet")
    pq.write_table(rows_of({"partition": [1], "offset": [0], "timestamp_ms": [5], "key": [key], "value": [b"v"]}, RAW), file)
    collect_at_rest(warehouse, "c", [parquet(file)], LocalEngine(), str)
    cluster = FakeCluster({0: [0]})
    run(warehouse, cluster, ONCE)
    assert cluster.sampled == [[OFFSETS_TOPIC, "copied", "orders"]]


def test_it_ends_when_it_is_told_to(warehouse: Warehouse) -> None:
    cluster = FakeCluster({0: list(range(100))})
    collection = LiveCollection(warehouse, "c", cluster, source="a:1", plan=CollectPlan(), world=FakeWorld().world)
    cluster.on_fetch = lambda count: collection.stop() if count == 3 else None
    found = collection.run(cluster.log_state())
    assert (found.added, stored(warehouse, 0), next_offset(warehouse, "c", 0)) == (6, list(range(6)), 6)


def test_topics_are_told_by_the_keys_of_commits() -> None:
    import pyarrow as pa

    seen = TopicsSeen(["known"])
    commit = b"\0\1\0\1g\0\3\xc3\xa4b\0\0\0\7"
    others = [
        None,
        b"",
        b"\0",
        b"\0\2\0\1g",
        b"\0\1\0\x09g",
        commit[:-1],
        b"\0\1\xff\xffg\0\1t\0\0\0\0",
        b"\0\1\0\1g\0\1\xff\0\0\0\0",
    ]
    seen.see(pa.array([commit, *others, commit], pa.binary()))
    assert seen.topics == {"known", "äb"}
