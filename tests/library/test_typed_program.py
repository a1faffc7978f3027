"""A user's program under ``mypy --strict``: public names alone, and nothing that they give is ``Any``. It runs as well."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import assert_type

import pytest
from confluent_kafka import Producer

import kgctl
from kgctl.results import ByPartition
from kgctl.testing import EmbeddedServer
from tests.support.patience import PATIENCE_S

Stored = Mapping[kgctl.TopicPartition, kgctl.StoredOffset]


class DictStorage:
    """An `kgctl.OffsetStorage` by its methods alone."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[kgctl.TopicPartition, kgctl.StoredOffset]] = {}

    def save(self, group_id: str, offsets: Stored) -> None:
        self.kept.setdefault(group_id, {}).update(offsets)

    def load(self, group_id: str) -> Stored:
        return self.kept.get(group_id, {})

    def delete(self, group_id: str, partitions: Iterable[kgctl.TopicPartition] | None = None) -> None:
        for partition in list(self.kept.get(group_id, {}) if partitions is None else partitions):
            del self.kept[group_id][partition]

    def list(self) -> Iterable[str]:
        return sorted(self.kept)


class OneForAll(kgctl.Assignor):
    """The first member reads everything."""

    name = "one-for-all"

    def assign(self, group: kgctl.GroupSpec) -> dict[str, dict[str, list[int]]]:
        found: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in group.members}
        found[group.members[0].member_id] = {name: list(range(spec.partition_count)) for name, spec in group.topics.items()}
        return found


def read(generation: kgctl.Generation) -> None:
    for partition, offset in generation.assignments.items():
        generation.commit({partition: offset + 1})
        generation.commit({(partition.topic, partition.partition): kgctl.OffsetAndMetadata(offset + 2, metadata="two")})


def test_a_member_and_an_admin() -> None:
    with EmbeddedServer({"orders": 1}) as cluster:
        with kgctl.ConsumerGroup(cluster.bootstrap, "payments", ["orders"], auto_offset_reset="earliest") as group:
            for generation in group:
                assert_type(generation.assignments, ByPartition[int])
                read(generation)
                break
        with kgctl.connect(cluster.bootstrap) as admin:
            offsets = admin.list_committed_offsets(["payments"])["payments"]
            assert_type(offsets, ByPartition[kgctl.OffsetAndMetadata])
            plan = admin.plan_reset("payments", to=0, topics=["orders"], clamp=False)
            assert_type(plan, kgctl.Plan)

    assert offsets == {kgctl.TopicPartition("orders", 0): kgctl.OffsetAndMetadata(2, metadata="two")}
    assert [(row.old, row.new) for row in plan.rows] == [(offsets[kgctl.TopicPartition("orders", 0)], kgctl.OffsetAndMetadata(0))]


async def plan_and_undo(bootstrap: str) -> kgctl.AsyncPlan:
    async with kgctl.AsyncAdmin(kgctl.connect(bootstrap)) as admin:
        offsets = (await admin.list_committed_offsets(["payments"])).values["payments"]
        assert_type(offsets, ByPartition[kgctl.OffsetAndMetadata])
        assert_type(await admin.list_topics(["orders"]), Mapping[str, int])
        plan = await admin.plan_reset("payments", to="latest")
        assert_type([row.old for row in await plan.execute()], list[kgctl.OffsetAndMetadata | None])
        undo = await plan.undo()
        await undo.execute()
        with pytest.raises(TypeError, match="positional argument"):
            await admin.list_groups("payments")  # type: ignore[call-arg, arg-type]
    return undo


def test_an_admin_for_coroutines() -> None:
    with EmbeddedServer({"orders": 1}) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("orders", b"one")
        assert producer.flush(PATIENCE_S) == 0
        cluster.commit("payments", {("orders", 0): 0})
        undo = asyncio.run(plan_and_undo(cluster.bootstrap))
        committed = cluster.committed("payments")

    assert (undo.errors, [(row.old and row.old.offset, row.new and row.new.offset) for row in undo.rows]) == ((), [(1, 0)])
    assert committed == {kgctl.TopicPartition("orders", 0): 0}


def test_a_coordinator_with_a_storage_of_ones_own() -> None:
    storage: kgctl.OffsetStorage = DictStorage()
    with kgctl.Coordinator(storage=storage, topics={"orders": 2}) as coordinator:
        joined = coordinator.join("payments", ["orders"], client_id="app")
        coordinator.sync("payments", joined, coordinator.assign("payments"))
        assert_type(coordinator.group("payments"), kgctl.GroupInfo)
        assert_type(coordinator.group("payments").members, tuple[kgctl.MemberInfo, ...])
        coordinator.commit("payments", {("orders", 0): 7}, generation_id=joined.generation_id, member_id=joined.member_id)
        assert_type(coordinator.fetch("payments"), ByPartition[kgctl.OffsetAndMetadata])
        assert coordinator.fetch("payments")["orders", 0].offset == 7

    assert storage.load("payments")[kgctl.TopicPartition("orders", 0)].offset == 7


def test_an_assignor_of_ones_own() -> None:
    found = kgctl.assign(f"{__name__}:OneForAll", topics={"orders": 2}, members=["a", "b"])
    assert_type(found.assignment, Mapping[str, Mapping[str, tuple[int, ...]]])

    assert found.assignment == {"a": {"orders": (0, 1)}, "b": {}}
