"""Waiting for data."""

from __future__ import annotations

import asyncio

from kgctl.model.groups import TopicPartition
from kgctl.server.partition_data import DataSignal

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_waiter_wakes_for_any_of_its_partitions_and_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        signal = DataSignal()
        waiter = asyncio.create_task(signal.wait([T0, T1], 60))
        await asyncio.sleep(0)

        assert signal.is_watched

        signal.notify(T1)
        await waiter

        assert not signal.is_watched

    asyncio.run(scenario())


def test_time_runs_out_quietly() -> None:
    async def scenario() -> None:
        signal = DataSignal()
        await signal.wait([T0], 0.001)

        assert not signal.is_watched

    asyncio.run(scenario())


def test_a_cancelled_waiter_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        signal = DataSignal()
        waiter = asyncio.create_task(signal.wait([T0], 60))
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)

        assert not signal.is_watched

    asyncio.run(scenario())


def test_everyone_can_be_woken_at_once() -> None:
    async def scenario() -> None:
        signal = DataSignal()
        waiters = [asyncio.create_task(signal.wait([partition], 60)) for partition in (T0, T0, T1)]
        await asyncio.sleep(0)
        signal.notify_all()
        await asyncio.gather(*waiters)

    asyncio.run(scenario())
