"""The live member in the event loop of its caller: no thread of its own, nothing left behind by what is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

import kgctl
from kgctl.errors import AuthError, BrokerError, ClosedError, MisuseError, TimedOutError, UnreachableError, UserCodeError
from kgctl.server.background import BackgroundServer
from kgctl.testing import EmbeddedServer
from tests.support.patience import PATIENCE_MS, PATIENCE_S

T = TypeVar("T")
TOPIC = "orders"


@pytest.fixture
def cluster() -> Any:
    with EmbeddedServer({TOPIC: 2}, quick=True) as running:
        yield running


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it, and hold that neither a task nor a thread of kgctl's is left: other tests may have some."""
    before = set(threading.enumerate())

    async def watched() -> T:
        found = await asyncio.wait_for(work, PATIENCE_S)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

    found = asyncio.run(watched())
    new = set(threading.enumerate()) - before
    assert [thread.name for thread in new if thread.name.startswith("kgctl-group")] == []
    return found


@asynccontextmanager
async def group_on(cluster: EmbeddedServer, **settings: Any) -> AsyncIterator[kgctl.AsyncConsumerGroup]:
    quick = {} if settings.get("protocol") == "consumer" else {"heartbeat_interval_ms": 30}
    given: dict[str, Any] = {"topics": [TOPIC], "auto_offset_reset": "earliest", "retry_backoff_ms": 10, **quick, **settings}
    async with kgctl.AsyncConsumerGroup(cluster.bootstrap, "g", **given) as group:
        yield group


@pytest.mark.parametrize(
    "settings", [{}, {"protocol": "consumer"}, {"assignors": ["cooperative-sticky"]}, {"topics": (), "pattern": "o.*"}]
)
def test_two_members_share_and_inherit(cluster: EmbeddedServer, settings: dict[str, Any]) -> None:
    async def all_of(group: kgctl.AsyncConsumerGroup, count: int) -> kgctl.Generation:
        while len((generation := await group.next(timeout_ms=PATIENCE_MS)).assignments) != count:
            pass
        return generation

    async def live() -> dict[tuple[str, int], int]:
        async with group_on(cluster, **settings) as first:
            await (await all_of(first, 2)).commit_async({(TOPIC, 0): 4, (TOPIC, 1): 5})
            async with group_on(cluster, **settings) as second:
                mine, theirs = await asyncio.gather(all_of(first, 1), all_of(second, 1))
                assert {**mine.assignments, **theirs.assignments} == {(TOPIC, 0): 4, (TOPIC, 1): 5}
            return dict((await all_of(first, 2)).assignments)

    assert run(live()) == {(TOPIC, 0): 4, (TOPIC, 1): 5}
    assert (str(cluster.describe("g").state), len(cluster.describe("g").members)) == ("Empty", 0)


def test_the_loop_goes_on_and_beats_while_a_broker_is_away(cluster: EmbeddedServer) -> None:
    async def live() -> tuple[bool, str]:
        async with group_on(cluster) as group:
            generation = await group.next(timeout_ms=PATIENCE_MS)
            with cluster.lose_broker():
                commit = asyncio.create_task(generation.commit_async({(TOPIC, 0): 3}))
                while group.last_error is None:
                    await asyncio.sleep(0.01)
                error = group.last_error.message
                assert not commit.done()
            await commit
            return generation.ended.is_set(), error

    has_ended, error = run(live())
    assert (has_ended, cluster.committed("g")) == (False, {(TOPIC, 0): 3})
    assert "cannot connect" in error or "closed the connection" in error


def test_an_expired_session_is_a_new_member(cluster: EmbeddedServer) -> None:
    async def live() -> tuple[str, str, str]:
        async with group_on(cluster, client_id="pod-0") as group:
            before = await group.next(timeout_ms=PATIENCE_MS)
            await asyncio.to_thread(cluster.expire_session, "g", "pod-0")
            after = await group.next(timeout_ms=PATIENCE_MS)
            return before.reason, before.member_id, after.member_id

    reason, before, after = run(live())
    assert (reason, before != after) == ("the member is no longer in the group", True)


def test_functions_of_a_generation_are_tasks(cluster: EmbeddedServer) -> None:
    async def live() -> list[str]:
        told: list[str] = []

        async def waits(generation: kgctl.Generation) -> None:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                told.append("cancelled")
                await generation.commit_async({(TOPIC, 0): 7})
                raise

        async def returns(_: kgctl.Generation) -> None:
            told.append("returned")

        async with group_on(cluster) as group:
            generation = await group.next(timeout_ms=PATIENCE_MS)
            generation.start(waits)
            generation.start(returns)
            assert (await group.next(timeout_ms=PATIENCE_MS)).assignments[TOPIC, 0] == 7
        return told

    assert run(live()) == ["returned", "cancelled"]


def test_cancelling_leaves_nothing_behind(cluster: EmbeddedServer) -> None:
    async def live() -> None:
        async with group_on(cluster, client_id="one") as group:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(group.next(), 0.0001)
            generation = await group.next(timeout_ms=PATIENCE_MS)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(group.next(), 0.05)
            with pytest.raises(TimedOutError, match=r"^group 'g': no generation within 0.05 s$"):
                await group.next(timeout_ms=50)
            with cluster.freeze(requests=["OffsetCommit"]) as fault:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(generation.commit_async({(TOPIC, 0): 3}), 0.3)
                assert fault.hits == 1
            await generation.commit_async({(TOPIC, 0): 5})
            assert not generation.ended.is_set()

    run(live())
    assert cluster.committed("g") == {(TOPIC, 0): 5}


def test_a_group_that_cannot_join_is_closed_at_once(cluster: EmbeddedServer) -> None:
    async def live() -> None:
        with cluster.freeze():
            async with group_on(cluster) as group:
                with pytest.raises(TimedOutError):
                    await group.next(timeout_ms=100)
                assert "member" in repr(group)

    run(live())


def test_after_the_end(cluster: EmbeddedServer) -> None:
    async def live() -> None:
        async with group_on(cluster) as group:
            generation = await group.next(timeout_ms=PATIENCE_MS)
            with pytest.raises(MisuseError, match=r"await generation.commit_async"):
                generation.commit({(TOPIC, 0): 1})
        await group.close()
        with pytest.raises(ClosedError, match="make a new AsyncConsumerGroup"):
            await group.next()
        assert [each async for each in group] == []
        with pytest.raises(kgctl.errors.GenerationEnded):
            await generation.commit_async({(TOPIC, 0): 1})

    run(live())


def test_an_error_for_good_comes_out_and_the_member_leaves(cluster: EmbeddedServer) -> None:
    async def live() -> None:
        async with group_on(cluster, assignors=[f"{__name__}:Failing"]) as group:
            with pytest.raises(UserCodeError, match="KeyError"):
                await group.next(timeout_ms=PATIENCE_MS)
            assert cluster.describe("g").members == ()
        async with group_on(cluster, session_timeout_ms=50) as group:
            with pytest.raises(BrokerError, match="INVALID_SESSION_TIMEOUT"):
                await group.next(timeout_ms=PATIENCE_MS)

    run(live())


def test_what_a_function_raised_is_not_lost_where_nobody_asks_for_the_next(cluster: EmbeddedServer) -> None:
    async def fail(_: kgctl.Generation) -> None:
        raise AssertionError("a test's own")

    async def live() -> None:
        async with kgctl.AsyncConsumerGroup(cluster.bootstrap, "g", [TOPIC], heartbeat_interval_ms=30) as group:
            generation = await group.next(timeout_ms=PATIENCE_MS)
            generation.start(fail)
            await asyncio.to_thread(generation.ended.wait, PATIENCE_S)

    with pytest.raises(AssertionError, match="a test's own"):
        run(live())


class Failing:
    """An assignor that raises."""

    name = "failing"

    def assign(self, group: kgctl.GroupSpec) -> Any:
        raise KeyError(len(group.members))


def test_it_is_made_inside_a_coroutine() -> None:
    with pytest.raises(MisuseError, match="made inside a coroutine"):
        kgctl.AsyncConsumerGroup("127.0.0.1:1", "g", ["t"])


def test_one_that_was_never_closed_says_so(cluster: EmbeddedServer) -> None:
    async def live() -> None:
        groups = [kgctl.AsyncConsumerGroup(cluster.bootstrap, "g", [TOPIC], heartbeat_interval_ms=30)]
        await groups[0].next(timeout_ms=PATIENCE_MS)
        driver = groups[0]._driver
        with pytest.warns(ResourceWarning, match=r"unclosed <AsyncConsumerGroup 'g': member .*use `async with`"):
            groups.clear()
        assert await driver.join(PATIENCE_S)
        assert cluster.describe("g").members == ()

    run(live())


JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required user_ann="secret";'


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login(mechanism: str) -> None:
    jaas = JAAS if mechanism != "PLAIN" else JAAS.replace("scram.Scram", "plain.Plain")
    config = {"sasl.enabled.mechanisms": mechanism, "sasl.jaas.config": jaas, "group.initial.rebalance.delay.ms": "0"}

    async def live(bootstrap: str, password: str) -> kgctl.Generation:
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "ann",
            "sasl.password": password,
        }
        async with kgctl.AsyncConsumerGroup(bootstrap, "g", [TOPIC], properties=properties) as group:
            return await group.next(timeout_ms=PATIENCE_MS)

    with BackgroundServer({TOPIC: 1}, config, protocol="SASL_PLAINTEXT") as server:
        assert run(live(server.bootstrap, "secret")).topics == {TOPIC: (0,)}
        with pytest.raises(AuthError, match="refused the login of 'ann'"):
            asyncio.run(live(server.bootstrap, "wrong"))


def test_no_broker_is_told() -> None:
    async def live() -> None:
        async with kgctl.AsyncConsumerGroup("127.0.0.1:1", "g", [TOPIC], timeout_ms=20_000) as group:
            with pytest.raises(TimedOutError, match=r"no generation within 0.5 s: cannot connect to 127.0.0.1:1"):
                await group.next(timeout_ms=500)
            assert isinstance(group.last_error, UnreachableError)

    run(live())
