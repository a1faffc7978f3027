"""The coordinator in real time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import Heartbeat, JoinGroup, JoinGroupResult, JoinProtocol, OffsetCommit, OffsetCommitPartition
from kgctl.server.runtime import CoordinatorRuntime, Later, LogWriter, base64_uuid, new_member_id, steady_clock
from tests.support.patience import PATIENCE_S


class Log:
    def __init__(self) -> None:
        self.records: list[AppendRecord] = []

    def append(self, effects: Sequence[AppendRecord], now_ms: int) -> None:
        self.records += effects

    def groups_of_transaction(self, producer_id: int) -> tuple[str, ...]:
        raise AssertionError(producer_id)


def runtime(log: Log, **config: str) -> CoordinatorRuntime:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    core = GroupCoordinator(CoordinatorConfig.from_properties(settings), new_member_id, start_ms=steady_clock()())
    made = CoordinatorRuntime(
        core, LogWriter(log, steady_clock(), lambda _: None, in_thread=False, read=lambda _: core), steady_clock()
    )
    made.start()
    return made


def join(made: CoordinatorRuntime, **settings: Any) -> Any:
    request = JoinGroup(
        request_id=made.next_request_id(), api_version=3, group_id="g", protocols=(JoinProtocol(name="range"),), **settings
    )
    return made.ask(request, lambda result: {"result": result})


def test_an_answer_without_records_is_there_at_once() -> None:
    async def scenario() -> Any:
        made = runtime(Log())
        request = Heartbeat(request_id=made.next_request_id(), group_id="g", generation_id=1, member_id="m")
        answer = made.ask(request, lambda result: {"error": result.error})  # type: ignore[union-attr]
        await made.stop()
        return answer

    assert asyncio.run(scenario()) == {"error": ErrorCode.UNKNOWN_MEMBER_ID}


def test_an_answer_that_depends_on_records_comes_after_them() -> None:
    async def scenario() -> int:
        log = Log()
        made = runtime(log)
        partitions = (OffsetCommitPartition(topic="t", partition=0, offset=5),)
        request = OffsetCommit(request_id=made.next_request_id(), group_id="g", partitions=partitions)
        answer = made.ask(request, lambda _: {"records": len(log.records)})

        assert isinstance(answer, Later)
        assert log.records == []

        values = await answer
        await made.stop()
        return int(values["records"])

    assert asyncio.run(scenario()) == 1


def test_timers_of_the_core_fire_by_themselves() -> None:
    async def scenario() -> JoinGroupResult:
        made = runtime(Log(), group_initial_rebalance_delay_ms="20")
        values = await asyncio.wait_for(join(made), PATIENCE_S)
        await made.stop()
        result = values["result"]
        assert isinstance(result, JoinGroupResult)
        return result

    result = asyncio.run(scenario())

    assert (result.error, result.generation_id, len(result.members)) == (ErrorCode.NONE, 1, 1)


def test_stopping_answers_what_is_parked() -> None:
    async def scenario() -> JoinGroupResult:
        made = runtime(Log(), group_initial_rebalance_delay_ms="60000")
        parked = asyncio.ensure_future(join(made))
        await asyncio.sleep(0)
        await made.stop()
        values = await asyncio.wait_for(parked, PATIENCE_S)
        result = values["result"]
        assert isinstance(result, JoinGroupResult)
        return result

    assert asyncio.run(scenario()).error is ErrorCode.NOT_COORDINATOR


def test_group_ids_are_sorted() -> None:
    async def scenario() -> list[str]:
        made = runtime(Log())
        for group_id in ("b", "a"):
            request = JoinGroup(request_id=made.next_request_id(), group_id=group_id, protocols=(JoinProtocol(name="range"),))
            answer = made.ask(request, lambda _: {})
            if asyncio.iscoroutine(answer):
                await answer
        ids = made.group_ids()
        await made.stop()
        return ids

    assert asyncio.run(scenario()) == ["a", "b"]


def test_member_ids_have_kafkas_forms() -> None:
    assert re.fullmatch(r"client-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", new_member_id("client"))
    assert all(re.fullmatch(r"[\w][\w-]{21}", base64_uuid()) for _ in range(200))
    assert re.fullmatch(r"[\w-]{22}", new_member_id(""))


def test_the_clock_is_the_wall_clock_and_does_not_go_back() -> None:
    clock = steady_clock()
    first = clock()

    assert first > 1_700_000_000_000
    assert clock() >= first
