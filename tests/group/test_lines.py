"""The line to a coordinator, where an answer is taken at once if it comes at once; and the lines that members share."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from kgctl.errors import AuthError, UnreachableError
from kgctl.group import lines
from kgctl.group.lines import ClusterLine, CoordinatorConnection, Desk, Errands
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Node, TopicPartition
from kgctl.model.requests import Heartbeat, HeartbeatResult
from kgctl.server.background import BackgroundServer
from kgctl.wire import Deadline
from kgctl.wire.cluster import ClusterClient, ClusterLayout
from kgctl.wire.settings import WireSettings
from tests.support.patience import PATIENCE_S

BEAT = Heartbeat(request_id=0, group_id="g", generation_id=1, member_id="nobody")
ANSWER = HeartbeatResult(error=ErrorCode.UNKNOWN_MEMBER_ID)


@pytest.fixture
def server() -> Iterator[BackgroundServer]:
    with BackgroundServer() as running:
        yield running


@pytest.fixture
def connection(server: BackgroundServer) -> Iterator[CoordinatorConnection]:
    host, _, port = server.bootstrap.rpartition(":")
    made = CoordinatorConnection(Node(1, host, int(port)), WireSettings.from_properties({"bootstrap.servers": server.bootstrap}))
    yield made
    made.close()


def test_an_answer_that_is_there_is_taken_at_once(connection: CoordinatorConnection) -> None:
    assert connection.ask_at_once(BEAT, PATIENCE_S) is None  # no connection yet: opening one takes its time
    assert connection.ask(BEAT) == ANSWER
    assert connection.ask_at_once(BEAT, PATIENCE_S) == ANSWER


def test_an_answer_that_is_late_is_waited_for_by_another(server: BackgroundServer, connection: CoordinatorConnection) -> None:
    assert connection.ask(BEAT) == ANSWER
    stands, goes_on = threading.Event(), threading.Event()

    async def stand_still() -> None:
        stands.set()
        goes_on.wait(PATIENCE_S)

    stopped = threading.Thread(target=server.run, args=(stand_still(),))
    stopped.start()
    assert stands.wait(PATIENCE_S)
    late = connection.ask_at_once(BEAT, 0.01)
    goes_on.set()
    stopped.join()
    assert callable(late)
    assert late() == ANSWER


def test_a_connection_that_was_given_up_sends_nothing(connection: CoordinatorConnection) -> None:
    assert connection.ask(BEAT) == ANSWER
    connection.abort()
    assert connection.ask_at_once(BEAT, PATIENCE_S) is None
    with pytest.raises(UnreachableError):
        connection.ask(BEAT)


@pytest.fixture
def settings(server: BackgroundServer) -> WireSettings:
    return WireSettings.from_properties({"bootstrap.servers": server.bootstrap})


@pytest.fixture
def line(settings: WireSettings) -> Iterator[ClusterLine]:
    made = ClusterLine("test", settings)
    yield made
    made.close()


class Question:
    """Counts how often it is asked; raises errors where it has some."""

    def __init__(self, *errors: Exception) -> None:
        self.asked = 0
        self._errors = list(errors)

    def __call__(self, _: ClusterClient) -> int:
        self.asked += 1
        if self._errors:
            raise self._errors.pop(0)
        return self.asked


def test_an_answer_is_for_all_who_had_asked_before_the_request(line: ClusterLine) -> None:
    question, before = Question(), time.monotonic()
    assert [line.ask("who", before, question), line.ask("who", before, question)] == [1, 1]
    assert line.ask("who else", before, question) == 2
    assert line.ask("who", time.monotonic(), question) == 3


def test_that_nobody_answers_is_told_to_all_who_had_asked_before_and_to_nobody_else(line: ClusterLine) -> None:
    before = time.monotonic()
    with pytest.raises(UnreachableError, match="silent"):
        line.ask("who", before, Question(UnreachableError("silent")))
    with pytest.raises(UnreachableError, match="silent"):
        line.ask("who else", before, Question())
    assert line.ask("who else", time.monotonic(), Question()) == 1


def test_a_right_that_lacks_is_told_to_those_with_the_same_question(line: ClusterLine) -> None:
    before = time.monotonic()
    with pytest.raises(AuthError, match="not yours"):
        line.ask("who", before, Question(AuthError("not yours")))
    with pytest.raises(AuthError, match="not yours"):
        line.ask("who", before, Question())
    assert line.ask("who else", before, Question()) == 1


def test_members_with_the_same_settings_share_a_desk_until_the_last_has_left(settings: WireSettings) -> None:
    first, second = Desk.enter(settings), Desk.enter(settings)
    assert first is second
    first.leave()
    third = Desk.enter(settings)
    assert third is first
    second.leave()
    third.leave()
    fresh = Desk.enter(settings)
    assert fresh is not first
    fresh.leave()


def test_members_that_ask_leaders_at_the_same_time_share_a_line(settings: WireSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines, of which one is forgotten, would leave its connections open."""
    both, made = threading.Barrier(2), list[str]()
    desk = Desk.enter(settings)

    def slowly(name: str, _: WireSettings) -> ClusterLine:
        made.append(name)
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return desk.any_broker

    monkeypatch.setattr(lines, "ClusterLine", slowly)
    asking = [threading.Thread(target=lambda: desk.leaders) for _ in range(2)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(PATIENCE_S)
    assert made == ["kgctl-group-offsets"]
    desk.leave()


def test_leaders_are_asked_where_the_members_metadata_says(
    server: BackgroundServer, settings: WireSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.server.services.catalog.create({"a": 2})
    looked_up: list[object] = []
    real = ClusterClient.layout

    def layout(cluster: ClusterClient, topics: list[str] | None, deadline: Deadline) -> ClusterLayout:
        looked_up.append(topics)
        return real(cluster, topics, deadline)

    monkeypatch.setattr(ClusterClient, "layout", layout)
    both = [TopicPartition("a", 0), TopicPartition("a", 1)]
    with closing(Errands("g", settings, 5_000)) as errands:
        image = errands.metadata(time.monotonic(), ["a", "not-there"])
        assert {name: topic.partition_count for name, topic in image.topics.items()} == {"a": 2}
        assert errands.list_offsets(time.monotonic(), both, "latest") == dict.fromkeys(both, 0)
        assert looked_up == []
        server.server.services.catalog.grow({"a": 3})
        added = TopicPartition("a", 2)
        assert errands.list_offsets(time.monotonic(), [added], "earliest") == {added: 0}  # the metadata did not name it
        assert looked_up == [["a"]]


def test_a_leader_that_is_gone_is_looked_up_again(settings: WireSettings, server: BackgroundServer) -> None:
    server.server.services.catalog.create({"a": 1})
    place = TopicPartition("a", 0)
    with closing(Errands("g", settings, 5_000)) as errands:
        errands.metadata(time.monotonic(), ["a"])
        seen = errands._desk.metadata
        assert seen is not None
        (node,) = seen.layout.nodes
        seen.layout = replace(seen.layout, nodes={node: Node(node, "127.0.0.1", 1)})
        assert errands.list_offsets(time.monotonic(), [place], "latest") == {place: 0}
