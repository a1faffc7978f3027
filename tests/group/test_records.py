"""Records of a generation: in batches, committed when the next one is asked for, handed over when the group rebalances."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

import kgctl
from kgctl.errors import BrokerError, CommitError, KgctlError, UnreachableError, UsageError
from kgctl.group.commits import Commits
from kgctl.group.driver import MemberDriver
from kgctl.member.api import MemberState
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import OffsetCommit, OffsetCommitPartition, PartitionErrors
from kgctl.testing import EmbeddedServer
from kgctl.wire.settings import WireSettings
from tests.support.patience import PATIENCE_MS, PATIENCE_S

Start = Callable[..., kgctl.ConsumerGroup]
TOPIC = "orders"


@pytest.mark.kafka(topics={TOPIC: 2})
def test_batches_are_committed_when_the_next_is_asked_for(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    kafka_cluster.produce(TOPIC, *map(str, range(10)))
    group = consumer_group("g", TOPIC)
    seen: list[str] = []
    before: list[int] = []
    for generation in group:
        for batch in generation.records(max_records=4):
            before.append(sum(kafka_cluster.committed("g").values()))
            assert len(batch) <= 4
            assert before[-1] == len(seen)
            seen += [record.text for record in batch]
            if len(seen) == 10:
                kafka_cluster.force_rebalance("g")
        break
    assert sorted(seen, key=int) == [str(number) for number in range(10)]
    assert kafka_cluster.committed("g") == {(TOPIC, 0): 5, (TOPIC, 1): 5}


def fail_at(batches: kgctl.results.Records) -> None:
    for batch in batches:
        raise ValueError("a bill that cannot be", batch)


def drain(batches: kgctl.results.Records) -> None:
    for _ in batches:
        pass


@pytest.mark.kafka(topics={TOPIC: 1})
def test_what_was_not_dealt_with_is_read_again(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    kafka_cluster.produce(TOPIC, "a", key="k", headers={"h": "1"}, timestamp_ms=5)
    generation = consumer_group("g", TOPIC).next(timeout_ms=PATIENCE_MS)
    for batch in generation.records():
        assert batch == kafka_cluster.records(TOPIC)
        break
    with pytest.raises(ValueError, match="a bill that cannot be"):
        fail_at(generation.records())
    assert kafka_cluster.committed("g") == {}
    for batch in (records := generation.records(commit=False)):
        if [record.text for record in batch] == ["a"]:
            kafka_cluster.produce(TOPIC, "b")
        else:
            assert [record.text for record in batch] == ["b"]
            break
    assert (records.positions, kafka_cluster.committed("g")) == ({(TOPIC, 0): 1}, {})


@pytest.mark.kafka(topics={TOPIC: 4}, quick=True)
@pytest.mark.parametrize("settings", [{}, {"assignors": ["cooperative-sticky"]}, {"protocol": "consumer"}])
def test_members_come_and_go_and_every_record_is_read(kafka_cluster: EmbeddedServer, settings: dict[str, Any]) -> None:
    """Nothing fails, so nothing is read twice."""
    seen: list[str] = []
    quick: dict[str, Any] = {} if "protocol" in settings else {"heartbeat_interval_ms": 30}

    async def worker() -> None:
        async with kgctl.AsyncConsumerGroup(
            kafka_cluster.bootstrap, "g", [TOPIC], auto_offset_reset="earliest", retry_backoff_ms=10, **quick, **settings
        ) as group:
            async for generation in group:
                async for batch in generation.records(max_records=5):
                    seen.extend(record.text for record in batch)
                    await asyncio.sleep(0.01)

    async def until(count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(seen) < count:
                await asyncio.sleep(0.02)

    async def until_committed(count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while sum(await asyncio.to_thread(lambda: kafka_cluster.committed("g").values())) < count:
                await asyncio.sleep(0.02)

    async def live() -> None:
        workers: list[asyncio.Task[None]] = []
        for round_ in range(4):
            workers.append(asyncio.create_task(worker()))
            kafka_cluster.produce(TOPIC, *(f"{round_}-{number}" for number in range(40)))
            await until(40 * (round_ + 1))
        await asyncio.to_thread(kafka_cluster.wait_for_group, "g", members=4, timeout_ms=PATIENCE_MS)
        await until_committed(160)  # a worker that ends in the middle of a batch has not done it
        workers[0].cancel()
        await asyncio.wait(workers[:1])
        await asyncio.to_thread(kafka_cluster.wait_for_group, "g", members=3, timeout_ms=PATIENCE_MS)
        kafka_cluster.produce(TOPIC, *(f"4-{number}" for number in range(40)))
        await until(200)
        for each in workers:
            each.cancel()
        await asyncio.wait(workers)

    asyncio.run(live())
    assert sorted(seen) == sorted({f"{round_}-{number}" for round_ in range(5) for number in range(40)})


def rules(state: MemberState, generation_id: int, owned: Sequence[int], *, is_classic: bool) -> Commits:
    """Those of a member as it stands when its commit is refused."""
    partitions = tuple(kgctl.TopicPartition(TOPIC, number) for number in owned)
    identity = SimpleNamespace(group_id="g", group_instance_id=None)
    member = SimpleNamespace(state=state, generation_id=generation_id, owned_partitions=partitions, identity=identity)
    driver = SimpleNamespace(member=member, is_classic=is_classic)
    return Commits(cast("MemberDriver", driver), WireSettings.from_properties({"bootstrap.servers": "h:1"}), 1000)


@pytest.mark.parametrize(
    ("error", "state", "generation_id", "owned", "is_classic", "is_tried_again"),
    [
        ("ILLEGAL_GENERATION", MemberState.JOINING, 4, [0, 1], True, True),  # JoinGroup's answer is on its way
        ("ILLEGAL_GENERATION", MemberState.JOINING, 4, [1], True, False),  # another's already
        ("ILLEGAL_GENERATION", MemberState.STABLE, 4, [0, 1], True, False),
        ("ILLEGAL_GENERATION", MemberState.STABLE, 5, [0], True, True),
        ("UNKNOWN_MEMBER_ID", MemberState.JOINING, 4, [0], True, False),
        ("STALE_MEMBER_EPOCH", MemberState.STABLE, 4, [0], False, True),  # the heartbeat's answer is on its way
    ],
)
def test_a_commit_that_hears_first_that_the_group_has_gone_on_is_tried_again(
    error: str, state: MemberState, generation_id: int, owned: Sequence[int], is_classic: bool, is_tried_again: bool
) -> None:
    commits = rules(state, generation_id, owned, is_classic=is_classic)
    partition = OffsetCommitPartition(topic=TOPIC, partition=0, offset=1)
    request = OffsetCommit(request_id=0, group_id="g", generation_id=4, member_id="m", partitions=(partition,))
    answer = PartitionErrors(partitions=((kgctl.TopicPartition(TOPIC, 0), ErrorCode[error]),))
    if is_tried_again:
        assert commits._outcome(request, answer) is not None
    else:
        with pytest.raises(CommitError, match=error):
            commits._outcome(request, answer)


@pytest.mark.kafka(topics={TOPIC: 1})
def test_a_member_that_has_lost_its_session_says_what_is_read_again(
    kafka_cluster: EmbeddedServer, consumer_group: Start, caplog: pytest.LogCaptureFixture
) -> None:
    kafka_cluster.produce(TOPIC, "a")
    group = consumer_group("g", TOPIC, client_id="pod", heartbeat_interval_ms=40_000)
    with caplog.at_level(logging.WARNING, "kgctl.group"):
        for _ in group.next(timeout_ms=PATIENCE_MS).records():
            kafka_cluster.expire_session("g", "pod")
            group._driver.post(lambda: group._driver.member.enforce_rebalance(group._driver.now_us()))
    assert any("was dealt with and not committed, and is read again" in line.getMessage() for line in caplog.records)
    assert kafka_cluster.committed("g") == {}


@pytest.mark.kafka(topics={TOPIC: 1})
def test_a_commit_that_fails_comes_out(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    kafka_cluster.produce(TOPIC, "a")
    generation = consumer_group("g", TOPIC, timeout_ms=300).next(timeout_ms=PATIENCE_MS)
    with kafka_cluster.cut(requests=["OffsetCommit"]), pytest.raises(UnreachableError):
        drain(generation.records())


@pytest.mark.kafka(topics={TOPIC: 1})
def test_an_offset_that_is_not_there(kafka_cluster: EmbeddedServer, consumer_group: Start) -> None:
    kafka_cluster.produce(TOPIC, "a")
    kafka_cluster.commit("g", {(TOPIC, 0): 9})
    generation = consumer_group("g", TOPIC, auto_offset_reset="none").next(timeout_ms=PATIENCE_MS)
    with pytest.raises((BrokerError, KgctlError), match="cannot be read"):
        drain(generation.records())
    with pytest.raises(UsageError, match="max_records must be 1 or more, not 0"):
        generation.records(0)
