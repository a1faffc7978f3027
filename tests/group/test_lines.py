"""The line to a coordinator: a heartbeat's answer is taken at once where it comes at once, and waited for elsewhere where not."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kgctl.errors import UnreachableError
from kgctl.group.lines import CoordinatorConnection
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Node
from kgctl.model.requests import Heartbeat, HeartbeatResult
from kgctl.server.background import BackgroundServer
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
