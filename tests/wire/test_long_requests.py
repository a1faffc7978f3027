"""However much one request names, the event loop is given back in between: counted in function calls a turn, not in seconds.

Every API is asked with each of its lists in turn as long as `ENTRIES`; whatever loops over a list in one go makes a call or
more for each entry, and is found by that.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.model.requests import OffsetCommit, OffsetCommitPartition
from kgctl.serde.messages import decode_response, encode_request
from kgctl.serde.schemas import EntityPlan, FieldPlan, load_plan
from kgctl.server.background import BackgroundServer
from kgctl.server.request_context import ApiSpec
from kgctl.server.runtime import EVENT_ID
from kgctl.server.service import default_registry
from kgctl.server.traffic import (
    MAX_UNITS,
    LoopTurns,
    LoopWatch,
    Pieces,
    TooMuchWorkError,
    each,
    run_in_loop,
    turns_of_running_loop,
)
from tests.support.members import wait_until
from tests.support.wire.raw_client import ConnectionClosed, RawClient

CREATE_TOPICS, DELETE_TOPICS, LIST_GROUPS = 19, 20, 16
ENTRIES = 6_000
CALLS_A_TURN = 15_000
"""Some ten milliseconds of Python."""
TOPIC = "n0"
LOGIN = ("SaslHandshake", "SaslAuthenticate")
QUICK = ("OffsetFetch", "OffsetCommit", "DescribeGroups", "ConsumerGroupHeartbeat", "Produce", "Metadata", "DeleteGroups")
"""The APIs of every run; a deep one has them all."""
SPECS = [
    pytest.param(spec, id=spec.name, marks=[] if spec.name in QUICK else pytest.mark.deep)
    for spec in default_registry().specs()
    if spec.name not in LOGIN
]


class CallCounter:
    """Counts the function calls of the loop's thread in each turn of the loop."""

    def __init__(self, turns: LoopTurns) -> None:
        self.most = 0
        self._calls = 0
        self._select = turns.select
        turns.select = self._counted  # type: ignore[method-assign]

    def start(self) -> None:
        """In the loop's thread."""
        self.most = self._calls = 0
        sys.setprofile(self._called)

    def stop(self) -> None:
        """In the loop's thread."""
        sys.setprofile(None)

    def _called(self, _frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self._calls += 1

    def _counted(self, timeout: float | None = None) -> Any:
        self.most, self._calls = max(self.most, self._calls), 0
        return self._select(timeout)


class Subject:
    """A server with a topic of many partitions, and what counts its calls."""

    def __init__(self, server: BackgroundServer) -> None:
        self.server = server
        self.counter: CallCounter = server.run(self._counter())

    async def _counter(self) -> CallCounter:
        turns = turns_of_running_loop()
        assert turns is not None
        return CallCounter(turns)

    def calls(self, payload: bytes) -> tuple[int, bytes | None]:
        """The most calls in one turn while this is answered, and the answer; None where the connection was closed."""
        self.server.run(self.switch(on=True))
        with RawClient(self.server.bootstrap) as raw:
            raw.send_payload(payload)
            try:
                answer: bytes | None = raw.receive()
            except ConnectionClosed:
                answer = None
        self.server.run(self.switch(on=False))
        return self.counter.most, answer

    async def switch(self, *, on: bool) -> None:
        """Count from now on, or no more."""
        if on:
            self.counter.start()
        else:
            self.counter.stop()


@pytest.fixture(scope="module")
def subject() -> Iterator[Subject]:
    config = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1"}
    with BackgroundServer(topics={TOPIC: ENTRIES}, config=config) as running:
        yield Subject(running)


def numbered(plan: EntityPlan, index: int, longest: str, path: str = "") -> dict[str, Any]:
    """Values for a message: one entry in every list, but `ENTRIES` in the one at this path."""
    return {field.name: _value(field, index, longest, f"{path}/{field.name}") for field in (*plan.fields, *plan.tagged)}


def _value(field: FieldPlan, index: int, longest: str, path: str) -> Any:
    if field.is_array:
        return [_one(field, number, longest, path) for number in range(ENTRIES if path == longest else 1)]
    return _one(field, index, longest, path)


def _one(field: FieldPlan, index: int, longest: str, path: str) -> Any:
    if field.entity is not None:
        return numbered(field.entity, index, longest, path)
    is_inside = path.count("/") > 1 or field.is_array
    kind = field.kafka_type
    if kind.startswith("int"):
        return min(index, 100) if kind == "int8" else index if is_inside else -1
    values: dict[str, Any] = {"string": f"n{index}", "bytes": b"", "records": b"", "bool": False, "float64": 0.0}
    return values[kind] if kind in values else {"uuid": uuid.UUID(int=index + 1), "uint16": 0, "error_code": 0}.get(kind, 1)


def lists(plan: EntityPlan, path: str = "") -> Iterator[str]:
    """Where the lists of a message stand."""
    for field in (*plan.fields, *plan.tagged):
        if field.is_array:
            yield f"{path}/{field.name}"
        if field.entity is not None:
            yield from lists(field.entity, f"{path}/{field.name}")


@pytest.mark.parametrize("spec", SPECS)
def test_no_list_of_a_request_is_gone_through_in_one_turn(spec: ApiSpec, subject: Subject) -> None:
    version = spec.max_version
    plan = load_plan(spec.key, version, "request")
    found = {}
    for longest in lists(plan):
        payload = encode_request(spec.key, version, 7, "c", numbered(plan, 0, longest))
        most, answer = subject.calls(payload)
        if answer is not None:
            assert decode_response(spec.key, version, answer)[0] == 7
        found[longest] = most

    assert {longest: most for longest, most in found.items() if most > CALLS_A_TURN} == {}


def test_no_state_is_gone_through_in_one_turn(subject: Subject) -> None:
    """Requests of some bytes about many groups: the list of all, and the end of a topic that each has an offset of."""
    with RawClient(subject.server.bootstrap) as raw:
        topic = {"name": "doomed", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        assert raw.call(CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 1}).topics[0].error_code == 0
    subject.server.run(committed(subject, "doomed"))
    core = subject.server.server.services.runtime.core

    listed, answer = subject.calls(encode_request(LIST_GROUPS, 4, 7, "c", {"states_filter": []}))
    assert answer is not None
    assert len(decode_response(LIST_GROUPS, 4, answer)[1].groups) >= ENTRIES
    deleted, _ = subject.calls(encode_request(DELETE_TOPICS, 5, 7, "c", {"topic_names": ["doomed"], "timeout_ms": 1}))
    subject.server.run(subject.switch(on=True))
    wait_until(lambda: not len(core.shard.offsets), "the offsets of the topic are gone")
    subject.server.run(subject.switch(on=False))

    assert max(listed, deleted, subject.counter.most) <= 2 * CALLS_A_TURN


async def committed(subject: Subject, topic: str) -> None:
    """Let as many groups as `ENTRIES` have an offset of the topic."""
    runtime = subject.server.server.services.runtime
    for number in range(ENTRIES):
        partitions = (OffsetCommitPartition(topic=topic, partition=0, offset=number),)
        runtime.tell(OffsetCommit(request_id=EVENT_ID, group_id=f"of-many-{number}", partitions=partitions))


def test_work_of_one_piece_is_done_at_once_and_more_is_awaited() -> None:
    pieces = Pieces(LoopWatch())

    async def run() -> tuple[Any, list[int]]:
        later = pieces.begin(each(range(10_000), int))
        return pieces.begin(each(range(100), int)), await later  # type: ignore[misc]

    at_once, later = run_in_loop(run())
    assert at_once == list(range(100))
    assert later == list(range(10_000))


def test_a_request_for_more_than_is_answered_is_refused() -> None:
    pieces = Pieces(LoopWatch())

    async def run() -> None:
        await pieces.begin(each(range(2 * MAX_UNITS), int))  # type: ignore[misc]

    with pytest.raises(TooMuchWorkError):
        run_in_loop(run())
