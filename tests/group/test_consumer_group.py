"""A live member against kgctl's own server: generations, their functions, commits, and what misuse gets."""

from __future__ import annotations

import asyncio
import gc
import itertools
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, cast

import pytest

import kgctl
from kgctl.assignors.spec import GroupSpec, MemberSpec
from kgctl.errors import BrokerError, ClosedError, CommitError, GenerationEnded, MisuseError, TimedOutError, UsageError
from kgctl.group.consumer_group import ConsumerGroup
from kgctl.group.generation import Generation
from kgctl.group.lines import Errands
from kgctl.model.groups import MetadataImage, OffsetAndMetadata
from kgctl.server.background import BackgroundServer
from kgctl.testing import EmbeddedServer
from kgctl.wire.connection import FIND_COORDINATOR
from tests.support.fake_broker import FakeBroker, coordinator_of
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS, PATIENCE_S
from tests.support.wire.raw_client import RawClient

TOPIC = "orders"
ALL = {TOPIC: (0, 1, 2, 3)}
CLASSIC = {"protocol": "classic", "assignors": ["range"]}
COOPERATIVE = {"protocol": "classic", "assignors": ["cooperative-sticky"]}
CONSUMER = {"protocol": "consumer"}
KINDS = pytest.mark.parametrize("kind", [CLASSIC, COOPERATIVE, CONSUMER], ids=["eager", "cooperative", "consumer"])


@pytest.fixture(scope="module")
def server() -> Iterator[BackgroundServer]:
    config = {"group.initial.rebalance.delay.ms": "0", "group.consumer.min.heartbeat.interval.ms": "100",
              "group.consumer.heartbeat.interval.ms": "100"}  # fmt: skip
    with BackgroundServer(topics={TOPIC: 4}, config=config) as running:
        yield running


@pytest.fixture
def group_id(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def member(server: BackgroundServer, group_id: str, **settings: Any) -> ConsumerGroup:
    quick = {} if settings.get("protocol") == "consumer" else {"heartbeat_interval_ms": 50}
    given = {**quick, "auto_offset_reset": "earliest", "retry_backoff_ms": 10, **settings}
    return ConsumerGroup(server.bootstrap, group_id, [TOPIC], **given)


def committed(server: BackgroundServer, group_id: str) -> dict[int, tuple[int, str]]:
    with RawClient(server.bootstrap) as raw:
        group = raw.call(9, 8, {"groups": [{"group_id": group_id, "topics": None}]}).groups[0]
    return {each.partition_index: (each.committed_offset, each.metadata) for topic in group.topics for each in topic.partitions}


@KINDS
def test_the_first_generation_has_everything_from_the_start(
    server: BackgroundServer, group_id: str, kind: dict[str, Any]
) -> None:
    with member(server, group_id, **kind) as group:
        generation = group.next(timeout_ms=PATIENCE_MS)
        assert (generation.topics, set(generation.assignments.values())) == (ALL, {0})
        assert generation.member_id == group.member_id != ""
        assert generation.group_id == group_id


@KINDS
def test_a_second_member_gets_half_and_gives_it_back(server: BackgroundServer, group_id: str, kind: dict[str, Any]) -> None:
    with member(server, group_id, **kind) as first:
        alone = first.next(timeout_ms=PATIENCE_MS)
        with member(server, group_id, **kind) as second:
            mine, theirs = settled(first, 2), settled(second, 2)
            assert sorted(mine.topics[TOPIC] + theirs.topics[TOPIC]) == [0, 1, 2, 3]
            assert alone.ended.is_set()
        assert settled(first, 4).topics == ALL


def settled(group: ConsumerGroup, partitions: int) -> Generation:
    """The first generation with so many partitions."""
    while True:
        generation = group.next(timeout_ms=PATIENCE_MS)
        if len(generation.assignments) == partitions:
            return generation


@KINDS
def test_a_commit_is_where_the_next_generation_begins(server: BackgroundServer, group_id: str, kind: dict[str, Any]) -> None:
    with member(server, group_id, **kind) as group:
        generation = group.next(timeout_ms=PATIENCE_MS)
        generation.commit({})
        generation.commit({(TOPIC, 0): 7, (TOPIC, 1): OffsetAndMetadata(5, "note")})
        generation.commit({(TOPIC, 0): 3})  # offsets may go back
        assert committed(server, group_id) == {0: (3, ""), 1: (5, "note")}
        generation.start(lambda _: None)
        assert dict(group.next(timeout_ms=PATIENCE_MS).assignments) == {
            (TOPIC, 0): 3,
            (TOPIC, 1): 5,
            (TOPIC, 2): 0,
            (TOPIC, 3): 0,
        }
    with member(server, group_id, **kind) as later:
        assert dict(settled(later, 4).assignments) == {(TOPIC, 0): 3, (TOPIC, 1): 5, (TOPIC, 2): 0, (TOPIC, 3): 0}


@KINDS
def test_one_function_that_returns_ends_the_generation_for_all(
    server: BackgroundServer, group_id: str, kind: dict[str, Any]
) -> None:
    with member(server, group_id, **kind) as group:
        generation = group.next(timeout_ms=PATIENCE_MS)
        waited: list[bool] = []
        generation.start(lambda g: waited.append(g.wait(timeout_ms=PATIENCE_MS)))
        generation.start(lambda _: None)
        after = group.next(timeout_ms=PATIENCE_MS)
        assert waited == [True]
        assert generation.reason == "a function returned"
        assert after.topics == ALL
        assert after.generation_id > generation.generation_id or kind is CONSUMER
        assert after.member_id == generation.member_id


@KINDS
def test_partitions_are_given_away_only_when_functions_have_returned(
    server: BackgroundServer, group_id: str, kind: dict[str, Any]
) -> None:
    may_end = threading.Event()
    with member(server, group_id, **kind) as first:
        generation = first.next(timeout_ms=PATIENCE_MS)

        def work(g: Generation) -> None:
            g.wait(timeout_ms=PATIENCE_MS)
            g.commit({(TOPIC, partition): 11 for partition in range(4)})  # what was read last
            may_end.wait(PATIENCE_S)

        generation.start(work)
        with member(server, group_id, **kind) as second:
            assert generation.wait(timeout_ms=PATIENCE_MS)
            with pytest.raises(TimedOutError, match="no generation within"):
                settled_within(second, 0.3)
            may_end.set()
            assert set(settled(second, 2).assignments.values()) == {11}
            with pytest.raises(GenerationEnded, match="commit before its functions return"):
                generation.commit({(TOPIC, 0): 12})


def settled_within(group: ConsumerGroup, timeout_s: float) -> None:
    while not group.next(timeout_ms=round(timeout_s * 1000)).assignments:
        pass


def test_an_exception_of_a_function_comes_out_of_next(server: BackgroundServer, group_id: str) -> None:
    def fail(_: Generation) -> None:
        raise ValueError("a broken record")

    with member(server, group_id) as group:
        group.next(timeout_ms=PATIENCE_MS).start(fail)
        with pytest.raises(ValueError, match="a broken record"):
            group.next(timeout_ms=PATIENCE_MS)
        assert group.next(timeout_ms=PATIENCE_MS).topics == ALL


def test_an_exception_of_a_function_is_not_lost_where_nobody_asks_for_the_next(server: BackgroundServer, group_id: str) -> None:
    def fail(generation: Generation) -> None:
        raise AssertionError(f"a test's own, in generation {generation.id}")

    def leave(*, by: Exception | None) -> None:
        with member(server, group_id) as group:
            generation = group.next(timeout_ms=PATIENCE_MS)
            generation.start(fail)
            generation.ended.wait(PATIENCE_MS / 1000)
            if by is not None:
                raise by

    with pytest.raises(AssertionError, match="a test's own"):
        leave(by=None)
    with pytest.raises(KeyError):
        leave(by=KeyError("nearer"))


def test_an_exception_after_the_end_of_the_generation_is_not_lost(server: BackgroundServer, group_id: str) -> None:
    def fail(generation: Generation) -> None:
        generation.ended.wait(PATIENCE_MS / 1000)
        raise AssertionError("read too few")

    def leave() -> None:
        with member(server, group_id) as group:
            group.next(timeout_ms=PATIENCE_MS).start(fail)

    with pytest.raises(AssertionError, match="read too few"):
        leave()
    with member(server, group_id) as group:
        generation = group.next(timeout_ms=PATIENCE_MS)
        generation.start(fail)
        generation.start(lambda _: None)
        with pytest.raises(AssertionError, match="read too few"):
            group.next(timeout_ms=PATIENCE_MS)
        assert group.next(timeout_ms=PATIENCE_MS).topics == ALL


def test_a_function_started_too_late_sees_the_end(server: BackgroundServer, group_id: str) -> None:
    with member(server, group_id) as group:
        generation = group.next(timeout_ms=PATIENCE_MS)
        generation.start(lambda _: None)
        group.next(timeout_ms=PATIENCE_MS)
        seen: list[bool] = []
        done = threading.Event()

        def late(g: Generation) -> None:
            seen.append(g.ended.is_set())
            done.set()

        generation.start(late)
        assert done.wait(PATIENCE_S)
        assert seen == [True]


def test_the_body_of_a_loop_counts_as_a_function(server: BackgroundServer, group_id: str) -> None:
    bodies: list[tuple[int, ...]] = []
    with member(server, group_id) as group, member(server, group_id) as other:
        for generation in group:
            bodies.append(generation.topics.get(TOPIC, ()))
            if len(bodies[-1]) == 2:
                break
            generation.wait(timeout_ms=PATIENCE_MS)
        assert sorted(bodies[-1] + settled(other, 2).topics[TOPIC]) == [0, 1, 2, 3]


def test_coroutines_are_cancelled_at_the_end(server: BackgroundServer, group_id: str) -> None:
    async def run() -> tuple[list[str], list[int]]:
        story: list[str] = []

        async def forever(_: Generation) -> None:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                story.append("cancelled")
                raise

        async def short(_: Generation) -> None:
            story.append("short")

        counts: list[int] = []
        async with member(server, group_id) as group:
            async for generation in group:
                counts.append(len(generation.assignments))
                if len(counts) == 2:
                    break
                generation.start(forever)
                generation.start(short)
                await generation.wait_async()
        return story, counts

    assert asyncio.run(run()) == (["short", "cancelled"], [4, 4])


@KINDS
def test_closing_leaves_at_once_and_says_so_afterwards(server: BackgroundServer, group_id: str, kind: dict[str, Any]) -> None:
    group = member(server, group_id, **kind)
    generation = group.next(timeout_ms=PATIENCE_MS)
    group.close()
    group.close()
    assert generation.ended.is_set()
    assert "closed" in generation.reason
    assert (repr(group), repr(generation)) == (
        f"<ConsumerGroup '{group_id}': closed>",
        f"<Generation {generation.id} of group '{group_id}': ended: {generation.reason}>",
    )
    with pytest.raises(ClosedError, match="make a new ConsumerGroup"):
        group.next()
    assert list(group) == []
    with member(server, group_id, **kind) as other:
        assert settled(other, 4).topics == ALL  # no session had to run out


def test_closing_while_the_coordinator_holds_the_join_back(server: BackgroundServer, group_id: str) -> None:
    """The second member's JoinGroup waits for the first, whose function does not return."""
    may_end = threading.Event()
    with member(server, group_id) as first:
        first.next(timeout_ms=PATIENCE_MS).start(lambda _: may_end.wait(PATIENCE_S))
        second = member(server, group_id)
        with pytest.raises(TimedOutError):
            second.next(timeout_ms=300)
        second.close()
        may_end.set()
        assert settled(first, 4).topics == ALL


def test_a_static_member_comes_back_to_its_partitions(server: BackgroundServer, group_id: str) -> None:
    with member(server, group_id, group_instance_id="pod-0") as group:
        before = group.next(timeout_ms=PATIENCE_MS)
    with member(server, group_id, group_instance_id="pod-0") as again:
        after = again.next(timeout_ms=PATIENCE_MS)
    assert (after.generation_id, after.topics) == (before.generation_id, before.topics)


def test_new_partitions_are_noticed(group_id: str) -> None:
    config = {"group.initial.rebalance.delay.ms": "0"}
    with (
        BackgroundServer(topics={TOPIC: 1}, config=config) as server,
        member(server, group_id, partition_watch_interval_ms=50) as group,
    ):
        assert group.next(timeout_ms=PATIENCE_MS).topics == {TOPIC: (0,)}
        with RawClient(server.bootstrap) as raw:
            raw.call(37, 3, {"topics": [{"name": TOPIC, "count": 3, "assignments": None}], "timeout_ms": 1000})
        assert settled(group, 3).topics == {TOPIC: (0, 1, 2)}


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({TOPIC: 1}, r"offsets are of a \(topic, partition\), not of 'orders'"),
        ({(TOPIC, -1): 1}, r"not of \('orders', -1\)"),
        ({(TOPIC, 0): -1}, "orders-0: an offset is a number from 0 on, not -1"),
        ({(TOPIC, 0): "1"}, "orders-0: an offset is a number from 0 on, not '1'"),
        ({(TOPIC, 0): OffsetAndMetadata(-5)}, "not -5"),
    ],
)
def test_offsets_that_cannot_be(server: BackgroundServer, group_id: str, offsets: Any, message: str) -> None:
    with member(server, group_id) as group, pytest.raises(UsageError, match=message):
        group.next(timeout_ms=PATIENCE_MS).commit(offsets)


def test_a_fenced_member_cannot_commit(server: BackgroundServer, group_id: str) -> None:
    with member(server, group_id, group_instance_id="pod-0") as group:
        generation = group.next(timeout_ms=PATIENCE_MS)
        with member(server, group_id, group_instance_id="pod-0") as usurper:
            usurper.next(timeout_ms=PATIENCE_MS)
            with pytest.raises((CommitError, GenerationEnded)) as caught:
                generation.commit({(TOPIC, 0): 1})
            assert caught.value.code in ("FENCED_INSTANCE_ID", "GENERATION_ENDED")


def test_a_member_that_knows_that_it_is_fenced_does_not_look_for_the_coordinator(server: BackgroundServer, group_id: str) -> None:
    with member(server, group_id, group_instance_id="pod-0") as group:
        generation = group.next(timeout_ms=PATIENCE_MS)
        with member(server, group_id, group_instance_id="pod-0") as usurper:
            usurper.next(timeout_ms=PATIENCE_MS)
            assert group._driver.has_ended.wait(PATIENCE_S)
            with pytest.raises((CommitError, GenerationEnded)) as caught:
                generation.commit({(TOPIC, 0): 1})
            assert caught.value.code in ("FENCED_INSTANCE_ID", "GENERATION_ENDED")


def test_nobody_there() -> None:
    with BackgroundServer() as gone:
        bootstrap = gone.bootstrap
    group = ConsumerGroup(bootstrap, "group", [TOPIC], timeout_ms=500)
    with group, pytest.raises(TimedOutError, match=r"no generation within 0\.2 s: .*refused"):
        group.next(timeout_ms=200)


def test_what_keeps_it_from_joining_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with BackgroundServer() as gone:
        bootstrap = gone.bootstrap
    group = ConsumerGroup(bootstrap, "group", [TOPIC], timeout_ms=500, retry_backoff_ms=10)
    with group, pytest.raises(TimedOutError):
        group.next(timeout_ms=300)

    warnings = [record.getMessage() for record in caplog.records if record.name == "kgctl.group"]
    assert (len(warnings), "group 'group': " in warnings[0], "refused" in warnings[0]) == (1, True, True)


@pytest.mark.parametrize("call", ["close", "next"])
def test_a_function_of_the_generation_does_not_wait_for_itself(server: BackgroundServer, group_id: str, call: str) -> None:
    with member(server, group_id) as group:
        group.next(timeout_ms=PATIENCE_MS).start(lambda _: getattr(group, call)())
        with pytest.raises(MisuseError, match=rf"{call}\(\) waits until .* and was called by one: return from the function"):
            group.next(timeout_ms=PATIENCE_MS)


def test_what_cannot_be_started(server: BackgroundServer, group_id: str) -> None:
    async def nobody_runs(_: Generation) -> None: ...

    with member(server, group_id) as group:
        generation = group.next(timeout_ms=PATIENCE_MS)
        with pytest.raises(MisuseError, match="started inside a coroutine"):
            generation.start(nobody_runs)
        with pytest.raises(UsageError, match="takes a function of the generation, not 'no'"):
            generation.start(cast("Any", "no"))
        assert not generation.ended.is_set()


def test_a_task_of_the_generation_does_not_wait_for_itself(server: BackgroundServer, group_id: str) -> None:
    async def live() -> None:
        async with member(server, group_id) as group:

            async def ask(_: Generation) -> None:
                await group.next_async()

            (await group.next_async(timeout_ms=PATIENCE_MS)).start(ask)
            with pytest.raises(MisuseError, match=r"next_async\(\) waits until"):
                await group.next_async(timeout_ms=PATIENCE_MS)

    asyncio.run(live())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"topics": ()}, "name the topics, or a pattern"),
        ({"topics": ("a",), "pattern": "a.*"}, "name the topics, or a pattern"),
        ({"group_id": "", "topics": ("a",)}, "group_id must not be empty"),
        ({"topics": ("a",), "assignors": ("stickyish",)}, "assignors: unknown assignor 'stickyish'"),
        (
            {"topics": ("a",), "heartbeat_interval_ms": 50_000},
            r"heartbeat_interval_ms \(50000\) must be lower than session_timeout_ms",
        ),
        ({"topics": ("a",), "timeout_ms": 0}, "must be more than 0"),
        ({"topics": ("a",), "partition_watch_interval_ms": -1}, r"must be 0 \(never\) or more, not -1"),
        ({"topics": ("a b",)}, "Topic name is invalid: 'a b'"),
        ({"topics": ("a",), "assignors": ("range", "sticky", "range")}, "assignors names one twice: range, sticky, range"),
        ({"topics": ("a",), "assignors": ("sticky",), "protocol": "consumer"}, 'assignors are for protocol="classic"'),
        ({"topics": "orders"}, r"topics is a list of names: \['orders'\], not 'orders'"),
        ({"topics": ("a", 1)}, "topics has an element that must be a text, not 1"),
        ({"topics": ("a",), "assignors": "range"}, "assignors is a list of names"),
        ({"topics": ("a",), "protocol": "klassic"}, "protocol must be one of classic, consumer, not 'klassic'"),
        ({"topics": ("a",), "auto_offset_reset": "first"}, "auto_offset_reset must be one of earliest, latest, none"),
        ({"topics": ("a",), "session_timeout_ms": "45s"}, "session_timeout_ms must be a number of milliseconds, not '45s'"),
        ({"topics": ("a",), "properties": {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}}, "GSSAPI"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ConsumerGroup(**{"bootstrap": "127.0.0.1:1", "group_id": "group", **settings})


def test_a_leader_asks_for_the_topics_that_it_assigns_and_for_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str] | None] = []
    real = Errands.metadata

    def metadata(errands: Errands, since_s: float, own: Sequence[str] | None = None, others: Iterable[str] = ()) -> MetadataImage:
        asked.append(None if own is None else {*own, *others})
        return real(errands, since_s, own, others)

    monkeypatch.setattr(Errands, "metadata", metadata)
    with EmbeddedServer({"orders": 2, "refunds": 3, "unrelated": 1}) as cluster:
        with cluster.consumer_group("g", "orders") as leader:
            leader.next(timeout_ms=PATIENCE_MS)
            assert asked
            assert {frozenset(each or ()) for each in asked} == {frozenset({"orders"})}
            asked.clear()
            with cluster.consumer_group("g", "refunds", "not-there") as other:
                assert leader.next(timeout_ms=PATIENCE_MS).topics == {"orders": (0, 1)}
                assert other.next(timeout_ms=PATIENCE_MS).topics == {"refunds": (0, 1, 2)}
        assert {"orders", "refunds", "not-there"} in asked
        assert all(each is not None and "unrelated" not in each for each in asked)


class Weighted:
    """An assignor whose members say how much they can take."""

    name = "weighted"
    weights: ClassVar[Iterator[int]] = iter(())

    def user_data(self, member: MemberSpec) -> bytes:
        assert (member.member_id, member.topics, member.rack) == ("", (TOPIC,), "a")
        return str(next(Weighted.weights)).encode()

    def assign(self, group: GroupSpec) -> dict[str, dict[str, list[int]]]:
        strongest = max(group.members, key=lambda member: int(cast("bytes", member.user_data)))
        return {each.member_id: {TOPIC: [0, 1, 2, 3]} if each is strongest else {} for each in group.members}


def test_what_members_tell_an_assignor_of_ones_own(server: BackgroundServer, group_id: str) -> None:
    Weighted.weights = itertools.count()
    given: dict[str, Any] = {"assignors": [f"{__name__}:Weighted"], "rack": "a"}
    with member(server, group_id, **given) as first:
        first.next(timeout_ms=PATIENCE_MS)
        with RawClient(server.bootstrap) as raw:
            (described,) = raw.call(15, 5, {"groups": [group_id]}).groups
            assert described.protocol_data == "weighted"  # as aiokafka and kafka-python offer it
        with member(server, group_id, **given) as second:
            totals = {len(settled_together.assignments) for settled_together in together(first, second)}
            assert totals == {0, 4}


def together(*groups: ConsumerGroup) -> list[Generation]:
    """The first generation that all of them are in."""
    found = [group.next(timeout_ms=PATIENCE_MS) for group in groups]
    while len({each.generation_id for each in found}) > 1:
        oldest = min(range(len(found)), key=lambda at: found[at].generation_id)
        found[oldest] = groups[oldest].next(timeout_ms=PATIENCE_MS)
    return found


def test_a_commit_leaves_the_event_loop_free() -> None:
    """With the broker away for a second, a coroutine beside it goes on."""

    async def run(cluster: EmbeddedServer, generation: Generation) -> float:
        longest_s, ended = 0.0, asyncio.Event()

        async def beat() -> None:
            nonlocal longest_s
            last_s = time.monotonic()
            while not ended.is_set():
                await asyncio.sleep(0.01)
                last_s, now_s = time.monotonic(), last_s
                longest_s = max(longest_s, last_s - now_s)

        beside = asyncio.create_task(beat())
        with cluster.lose_broker():
            commit = asyncio.create_task(generation.commit_async({(TOPIC, 0): 7}))
            await asyncio.sleep(1.0)
            assert not commit.done()
        await commit
        ended.set()
        await beside
        return longest_s

    with EmbeddedServer({TOPIC: 1}) as cluster, cluster.consumer_group("g", TOPIC) as group:
        assert asyncio.run(run(cluster, group.next(timeout_ms=PATIENCE_MS))) < 0.8
        assert cluster.committed("g") == {(TOPIC, 0): 7}


def test_a_commit_that_is_cancelled_leaves_nothing_behind() -> None:
    async def run(cluster: EmbeddedServer, generation: Generation) -> float:
        with cluster.lose_broker():
            begun_s = time.monotonic()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(generation.commit_async({(TOPIC, 0): 7}), 0.3)
            await asyncio.get_running_loop().shutdown_default_executor()
            return time.monotonic() - begun_s

    with EmbeddedServer({TOPIC: 1}) as cluster, cluster.consumer_group("g", TOPIC) as group:
        assert asyncio.run(run(cluster, group.next(timeout_ms=PATIENCE_MS))) < 10


def test_a_commit_on_the_event_loop_says_so(server: BackgroundServer, group_id: str) -> None:
    async def run(generation: Generation) -> None:
        with pytest.warns(RuntimeWarning, match="await generation.commit_async") as caught:
            generation.commit({(TOPIC, 0): 1})
        assert [entry.filename for entry in caught] == [__file__]

    with member(server, group_id) as group:
        asyncio.run(run(group.next(timeout_ms=PATIENCE_MS)))


def drop(held: list[Any]) -> None:
    held.clear()
    gc.collect()


@KINDS
def test_a_group_that_is_dropped_says_so_and_leaves(server: BackgroundServer, group_id: str, kind: dict[str, Any]) -> None:
    held = [member(server, group_id, **kind)]
    held[0].next(timeout_ms=PATIENCE_MS)
    threads = {thread for thread in threading.enumerate() if thread.name == f"kgctl-group-{group_id}"}
    with pytest.warns(ResourceWarning, match=re.escape(f"unclosed <ConsumerGroup '{group_id}'")):
        drop(held)
    wait_until(lambda: not any(thread.is_alive() for thread in threads), "its thread has ended")
    with kgctl.connect(server.bootstrap) as admin:
        assert admin.describe_groups([group_id]).values[group_id].members == ()


def test_brokers_without_the_consumer_protocol_end_the_group_at_once() -> None:
    """Kafka before 3.7 has no such request: another try would find nothing else."""
    with FakeBroker() as broker:
        broker.handlers[FIND_COORDINATOR] = coordinator_of(broker)
        group = ConsumerGroup(broker.address, "g", [TOPIC], protocol="consumer")
        with pytest.raises(BrokerError, match='protocol="classic"') as caught:
            group.next(timeout_ms=PATIENCE_MS)
        group.close()

    assert caught.value.code == "UNSUPPORTED_VERSION"
