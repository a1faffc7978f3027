"""The store of committed and pending offsets."""

from __future__ import annotations

from kgctl.coordinator.offset_store import OffsetStore
from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue
from kgctl.model.groups import TopicPartition
from kgctl.model.values import integer_hash, timeline_hash_map_order

T0, T1 = OffsetCommitKey("g", "t", 0), OffsetCommitKey("g", "t", 1)
ONE, TWO, THREE = (OffsetCommitValue(offset) for offset in (1, 2, 3))


def test_the_newest_offset_counts() -> None:
    store = OffsetStore()
    store.put(T0, ONE)
    store.put(T0, TWO)

    assert store.get("g", "t", 0) == TWO
    assert (store.get("g", "t", 1), store.get("g", "u", 0), store.get("h", "t", 0)) == (None, None, None)
    assert len(store) == 1


def test_a_tombstone_takes_everything_of_the_partition() -> None:
    store = OffsetStore()
    store.put(T0, ONE)
    store.put_pending(7, T0, TWO)
    store.put_pending(7, T1, TWO)
    store.put_pending(8, T0, TWO)
    store.remove(T0)

    assert store.durable() == ({}, {(7, "g", "t", 1): TWO})
    assert not store.is_pending("g", "t", 0)
    store.remove(T0)
    assert (len(store), store.group_ids(), store.has_open_transactions("g")) == (0, [], True)


def test_a_committed_transaction_counts_unless_something_newer_is_there() -> None:
    store = OffsetStore()
    store.put(T0, ONE)
    store.put_pending(7, T0, TWO)
    store.put_pending(7, T1, TWO)
    store.put(T1, THREE)
    store.end_transaction(7, committed=True)

    assert store.durable() == ({("g", "t", 0): TWO, ("g", "t", 1): THREE}, {})
    assert not store.has_open_transactions("g")


def test_an_aborted_transaction_leaves_nothing() -> None:
    store = OffsetStore()
    store.put_pending(7, T0, TWO)
    store.end_transaction(7, committed=False)
    store.end_transaction(9, committed=True)

    assert store.durable() == ({}, {})
    assert not store.is_pending("g", "t", 0)


def test_two_producers_hold_back_one_partition_until_both_have_ended() -> None:
    store = OffsetStore()
    store.put_pending(7, T0, TWO)
    store.put_pending(8, T0, THREE)
    store.end_transaction(7, committed=True)

    assert store.is_pending("g", "t", 0)
    assert store.pending_partitions("g") == [TopicPartition("t", 0)]
    store.end_transaction(8, committed=True)
    assert store.get("g", "t", 0) == THREE
    assert not store.is_pending("g", "t", 0)


def test_offsets_come_in_kafkas_order() -> None:
    store = OffsetStore()
    for topic in ("b", "a"):
        for partition in (0, 1, 2, 3):
            store.put(OffsetCommitKey("g", topic, partition), ONE)

    found = [partition for partition, _ in store.of_group("g")]

    partitions = timeline_hash_map_order([0, 1, 2, 3], hash_of=integer_hash)
    assert found == [TopicPartition(topic, n) for topic in timeline_hash_map_order(["b", "a"]) for n in partitions]
    assert list(store.of_group("h")) == []
