"""Share fetches: what they acquire, what they wait for, and who gets what somebody else has left."""

from __future__ import annotations

import asyncio

import pytest

from kgctl.coordinator.config import GroupConfig
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.share import SharePartitionKey
from kgctl.server.share.fetching import Granted, _uniform
from kgctl.share.partition import Effect, ShareFailure, SharePartition
from tests.unit.server.share.around import ACCEPT, ANNA, BERT, GROUP, RELEASE, TOPIC, Around, play

SOON_MS = 60_000
"""Longer than a test has: each wait is ended by what it waits for."""


def test_records_are_acquired_once_and_again_when_they_are_released() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(3)
        assert await around.got(max_wait_ms=SOON_MS) == [(0, 0, 2, 1)]
        assert await around.got(BERT) == []
        assert await around.acknowledge(ANNA, 0, 0, ACCEPT) is None
        assert await around.acknowledge(ANNA, 1, 2, RELEASE) is None
        assert await around.got(BERT) == [(0, 1, 2, 2)]

    play(story)


def test_a_fetch_waits_for_new_records() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(1)
        await around.got(max_wait_ms=SOON_MS)
        waiting = asyncio.ensure_future(around.got(max_wait_ms=SOON_MS))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        around.produce(1, index=1)
        assert await waiting == [(1, 0, 0, 1)]

    play(story)


def test_a_fetch_waits_for_what_another_member_leaves() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(2)
        connection = around.open()
        around.open(BERT)
        assert await around.got(max_wait_ms=SOON_MS) == [(0, 0, 1, 1)]
        waiting = asyncio.ensure_future(around.got(BERT, max_wait_ms=SOON_MS))
        await asyncio.sleep(0)
        connection.gone()
        assert await waiting == [(0, 0, 1, 2)]

    play(story)


def test_a_fetch_waits_for_locks_to_end() -> None:
    async def story() -> None:
        around = Around(share_record_lock_duration_ms=1_000)
        around.begin()
        around.produce(2)
        assert await around.got(max_wait_ms=SOON_MS) == [(0, 0, 1, 1)]
        waiting = asyncio.ensure_future(around.got(BERT, max_wait_ms=SOON_MS))
        await asyncio.sleep(0)
        around.now_ms += 999
        around.manager.fire_due()
        await asyncio.sleep(0)
        assert not waiting.done()
        around.now_ms += 1
        around.manager.fire_due()
        assert await waiting == [(0, 0, 1, 2)]
        around.manager.stop()

    play(story)


def test_without_time_it_takes_what_there_is_however_little() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(1)
        await around.got(max_wait_ms=SOON_MS, max_records=-1)
        assert await around.got(min_bytes=1 << 20) == [(0, 0, 0, 1)]

    play(story)


def test_each_partition_has_its_part_of_the_bytes() -> None:
    assert _uniform(10, 3, 0) == [4, 3, 3]
    assert _uniform(10, 3, 4) == [3, 4, 3]
    assert _uniform(2, 3, 2) == [1, 0, 1]
    assert _uniform(5, 0, 1) == []


def test_a_batch_beyond_the_room_goes_alone() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        for index in (0, 1):
            around.produce(5, index)
        await around.got(max_wait_ms=SOON_MS, max_records=-1)
        found = await around.fetch(max_bytes=2)
        assert sorted(len(granted.acquired.records) for granted in found.values()) == [0, 1]

    play(story)


def test_records_are_cut_at_the_batches_that_were_acquired() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        for _ in range(3):
            around.produce(2)
        found = await around.fetch(max_wait_ms=SOON_MS, max_records=3)
        granted = found[around.partition()]
        whole = around.data.read(TopicPartition(TOPIC, 0), 0, 1 << 20)
        assert [(each.first_offset, each.last_offset) for each in granted.acquired.records] == [(0, 3)]
        assert granted.records == whole[: 2 * len(whole) // 3]

    play(story)


def test_a_log_that_begins_later_moves_the_group_on() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(2)
        around.produce(2)
        await around.got(max_wait_ms=SOON_MS, max_records=-1)
        around.data.delete_records(TopicPartition(TOPIC, 0), 2)
        assert (await around.fetch())[around.partition()] == Granted()
        assert await around.got() == [(0, 2, 3, 1)]

    play(story)


def test_who_does_not_lead_says_so() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.leads = False
        found = await around.fetch(max_wait_ms=SOON_MS)
        assert {granted.error for granted in found.values()} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}

    play(story)


def test_bytes_below_nothing_are_an_error_of_each_partition() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(1)
        await around.got(max_wait_ms=SOON_MS, max_records=-1)
        found = await around.fetch(max_bytes=-1)
        assert {granted.error for granted in found.values()} == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert await around.got() == [(0, 0, 0, 1)]

    play(story)


def test_a_group_whose_state_was_never_made_is_told_so() -> None:
    async def story() -> None:
        around = Around()
        around.produce(1)
        found = await around.fetch(max_wait_ms=SOON_MS)
        assert {granted.error for granted in found.values()} == {ErrorCode.UNKNOWN_SERVER_ERROR}

    play(story)


def test_the_state_is_there_for_another_manager() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(3)
        await around.got(max_wait_ms=SOON_MS)
        await around.acknowledge(ANNA, 0, 1, ACCEPT)
        around.manager.drop_all()
        assert await around.got(max_wait_ms=SOON_MS) == [(0, 2, 2, 1)]

    play(story)


def test_a_share_partition_that_fails_takes_nobody_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(*_: object) -> list[Effect]:
        raise RuntimeError("no")

    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(2)
        await around.got(max_wait_ms=SOON_MS)
        monkeypatch.setattr(SharePartition, "written", written)
        failure = await around.acknowledge(ANNA, 0, 0, ACCEPT)
        assert failure.error is ErrorCode.UNKNOWN_SERVER_ERROR
        monkeypatch.undo()
        assert await around.got(max_wait_ms=SOON_MS) == [(0, 1, 1, 1)]  # what was written is so

    play(story)


def test_settings_of_the_group_hold_from_the_next_request_on() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(1)
        await around.got(max_wait_ms=SOON_MS)
        await around.acknowledge(ANNA, 0, 0, RELEASE)
        around.config = GroupConfig(share_record_lock_duration_ms=1_000)
        assert await around.got(max_wait_ms=SOON_MS) == [(0, 0, 0, 2)]
        around.now_ms += 1_000
        around.manager.fire_due()
        assert await around.got(BERT, max_wait_ms=SOON_MS) == [(0, 0, 0, 3)]
        around.manager.stop()

    play(story)


def test_a_manager_that_has_stopped_gives_nothing() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(1)
        assert await around.got(max_wait_ms=SOON_MS) == [(0, 0, 0, 1)]
        around.manager.stop()
        assert (await around.acknowledge(ANNA, 0, 0, ACCEPT)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        found = await around.fetch(max_wait_ms=SOON_MS)
        assert {granted.error for granted in found.values()} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}

    play(story)


def test_what_the_share_coordinator_does_not_keep_is_told_in_the_words_of_a_broker() -> None:
    async def story() -> None:
        around = Around()
        around.begin()
        around.produce(2)
        await around.got(max_wait_ms=SOON_MS)
        around.persister.delete([SharePartitionKey(GROUP, *around.partition())])
        message = "Error in write state RPC. Write operation on uninitialized share partition not allowed."
        assert await around.acknowledge(ANNA, 0, 0, ACCEPT) == ShareFailure(ErrorCode.UNKNOWN_SERVER_ERROR, message)

    play(story)
