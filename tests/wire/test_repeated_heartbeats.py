"""Heartbeats that a connection repeats are looked up, and nobody can tell by the answers.

Groups of the same name live through the same on two servers: on one the first member beats over one connection, where what comes
again is looked up, on the other over a new connection each time, where nothing ever comes twice.
"""

from __future__ import annotations

import itertools
import logging
import select
import struct
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgctl.model.error_codes import ErrorCode
from kgctl.serde.messages import decode_response, encode_request
from kgctl.server import cluster, service
from kgctl.server.api import consumer_group_heartbeat, heartbeat
from kgctl.server.background import BackgroundServer
from kgctl.server.request_context import MAX_REPEATED_BYTES, ClientSession, Login
from kgctl.server.responses import HeartbeatHandler, Repeated
from kgctl.server.security import Conversation, Credentials
from tests.support.members import wait_until
from tests.support.wire.classic_member import ClassicMember
from tests.support.wire.raw_client import ConnectionClosed, RawClient

JOIN_GROUP, HEARTBEAT, API_VERSIONS, CONSUMER_GROUP_HEARTBEAT = 11, 12, 18, 68
CORRELATION_ID = 77
"""What the request behind each frame bears: its answer is the last that is read."""
ALONE_S = 0.05
"""How long an answer is waited for before the next request is sent; few have none."""


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[BackgroundServer, BackgroundServer]]:
    """Two that give the same ids."""
    with pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        patched.setattr(cluster, "new_topic_id", lambda: UUID(int=1))
        found = []
        for _ in range(2):
            numbers = itertools.count()
            patched.setattr(service, "new_member_id", lambda prefix, numbers=numbers: f"{prefix}-{next(numbers):036}")
            config = {"group.initial.rebalance.delay.ms": "0"}
            found.append(stack.enter_context(BackgroundServer(topics={"t": 4}, config=config)))
        yield found[0], found[1]


@pytest.fixture(scope="module")
def server(servers: tuple[BackgroundServer, BackgroundServer]) -> BackgroundServer:
    return servers[0]


@pytest.fixture
def raw(server: BackgroundServer) -> Iterator[RawClient]:
    with RawClient(server.bootstrap) as client:
        yield client


class Party(ABC):
    """A group whose first member beats."""

    def __init__(self, server: BackgroundServer, group: str) -> None:
        self.server = server
        self.group = group
        self._clients: list[RawClient] = []
        self.raw, self.other = self.connect(), self.connect()

    def connect(self) -> RawClient:
        self._clients.append(RawClient(self.server.bootstrap))
        return self._clients[-1]

    @abstractmethod
    def beat(self) -> bytes:
        """Return the member's heartbeat."""

    @abstractmethod
    def disturb(self) -> None:
        """Let something happen in the group that the member's next heartbeat is told."""

    @abstractmethod
    def follow(self) -> None:
        """Let the member do what it was told."""

    def close(self) -> None:
        for client in self._clients:
            client.close()


class ClassicParty(Party):
    def __init__(self, server: BackgroundServer, group: str) -> None:
        super().__init__(server, group)
        self._member = ClassicMember(self.raw, group, ["t"])
        self._member.join()
        self._second = ClassicMember(self.other, group, ["t"])
        self._is_waiting = False

    def beat(self) -> bytes:
        return encode_request(HEARTBEAT, 4, 5, "party", vars_of(self._member))

    def disturb(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._second.send_join(version=3)
            wait_until(lambda: self._member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "the second member's join")

    def follow(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._member.join()
            joined = decode_response(JOIN_GROUP, 3, self.other.receive())[1]
            self._second.member_id, self._second.generation_id = joined.member_id, joined.generation_id
            self._second.leave()
            self._member.join()
            self._second.member_id = ""


class ConsumerParty(Party):
    def __init__(self, server: BackgroundServer, group: str) -> None:
        super().__init__(server, group)
        self._numbers = itertools.count()
        self._epoch = 0
        self._epoch = self._join("first")

    def _join(self, member_id: str) -> int:
        values = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
        answer = self.other.call(CONSUMER_GROUP_HEARTBEAT, 1, self._values(member_id, 0) | values)
        assert int(answer.error_code) == 0
        return int(answer.member_epoch)

    def _values(self, member_id: str, epoch: int) -> dict[str, Any]:
        return {"group_id": self.group, "member_id": member_id, "member_epoch": epoch, "topic_partitions": None}

    def beat(self) -> bytes:
        return encode_request(CONSUMER_GROUP_HEARTBEAT, 1, 5, "party", self._values("first", self._epoch))

    def disturb(self) -> None:
        self._join(f"other-{next(self._numbers)}")

    def follow(self) -> None:
        self._epoch = self._join("first")


def answered(client: RawClient, data: bytes) -> tuple[list[bytes], bool]:
    """What comes back for these bytes, which are read alone, and whether the connection is closed then."""
    client.socket.sendall(data)
    select.select([client.socket], [], [], ALONE_S)
    answers: list[bytes] = []
    try:
        client.send_payload(encode_request(API_VERSIONS, 0, CORRELATION_ID, "end", {}))
        while (answer := client.receive())[:4] != CORRELATION_ID.to_bytes(4, "big"):
            answers.append(answer)
    except (ConnectionClosed, ConnectionError):
        return answers, True
    return answers, False


def vars_of(member: ClassicMember) -> dict[str, Any]:
    return {"group_id": member.group, "generation_id": member.generation_id, "member_id": member.member_id}


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


Mutation = tuple[str, float, int]
Step = str | Mutation
MUTATIONS = st.one_of(
    st.tuples(st.just("change"), st.floats(0, 1, exclude_max=True), st.integers(1, 255)),
    st.tuples(st.just("cut"), st.floats(0, 1, exclude_max=True), st.just(0)),
    st.tuples(st.just("longer"), st.just(0.0), st.integers(0, 255)),
    st.tuples(st.just("id"), st.just(0.0), st.integers(-(2**31), 2**31 - 1)),
)
STEPS = st.lists(
    st.one_of(
        st.just("beat"),
        st.just("beat"),
        st.just("three at once"),
        st.just("in parts"),
        st.just("disturb"),
        st.just("follow"),
        MUTATIONS,
    ),
    min_size=3,
    max_size=14,
)


def mutated(payload: bytes, mutation: Mutation) -> bytes:
    what, where, value = mutation
    data, position = bytearray(payload), int(where * len(payload))
    match what:
        case "bit":
            data[int(where)] ^= value
        case "change":
            data[position] ^= value
        case "cut":
            del data[position]
        case "longer":
            data.append(value)
        case _:
            data[4:8] = value.to_bytes(4, "big", signed=True)
    return bytes(data)


def lived(party: Party, steps: Sequence[Step], *, over_one_connection: bool) -> list[object]:
    """Return what the member is answered."""
    told: list[object] = []
    client = party.connect()
    for step in ["beat", "beat", "beat", *steps, "beat", "beat"]:
        if step in ("disturb", "follow"):
            party.disturb() if step == "disturb" else party.follow()
            continue
        data = framed(mutated(party.beat(), step) if isinstance(step, tuple) else party.beat())
        if step == "three at once":
            data *= 3
        elif step == "in parts":
            client.socket.sendall(data[:9])
            data = data[9:]
        answers, is_closed = answered(client, data)
        told.append((step, answers, is_closed))
        if is_closed or not over_one_connection:
            client.close()
            client = party.connect()
    return told


NAMES = itertools.count(100)


@pytest.mark.parametrize("kind", [ClassicParty, ConsumerParty])
def test_answers_are_the_same_with_and_without(kind: type[Party], servers: tuple[BackgroundServer, BackgroundServer]) -> None:
    @settings(max_examples=40, deadline=None)
    @given(STEPS)
    def scenario(steps: list[Step]) -> None:
        group = f"group-{next(NAMES)}"
        told = []
        for server, over_one_connection in zip(servers, (True, False), strict=True):
            with closing(kind(server, group)) as party:
                told.append(lived(party, steps, over_one_connection=over_one_connection))
        assert told[0] == told[1]

    scenario()
    for server in servers:
        server.run(check(server))


async def check(server: BackgroundServer) -> None:
    server.server.services.runtime.core.check()


@pytest.mark.parametrize("kind", [ClassicParty, ConsumerParty])
def test_a_frame_that_differs_by_one_byte_takes_the_long_way(
    kind: type[Party], servers: tuple[BackgroundServer, BackgroundServer]
) -> None:
    told = []
    for server, over_one_connection in zip(servers, (True, False), strict=True):
        with closing(kind(server, f"bytes-{kind.__name__}")) as party:
            steps = [step for place in range(len(party.beat())) for step in (("bit", place, 1), "beat", "beat", "beat")]
            told.append(lived(party, steps, over_one_connection=over_one_connection))

    assert told[0] == told[1]


BEATS = 10


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often a heartbeat was read and made a question to the coordinator, by API."""
    counted: Counter[int] = Counter()
    for spec in (heartbeat.SPEC, consumer_group_heartbeat.SPEC):
        handler = spec.handler
        assert isinstance(handler, HeartbeatHandler)

        def question(context: Any, body: Any, key: int = spec.key, made: Any = handler.question) -> Any:
            counted[key] += 1
            return made(context, body)

        monkeypatch.setattr(handler, "question", question)
    return counted


def beaten(client: RawClient, payload: bytes, times: int = BEATS) -> list[bytes]:
    answers = []
    for _ in range(times):
        client.send_payload(payload)
        answers.append(client.receive())
    return answers


@pytest.mark.parametrize("kind", [ClassicParty, ConsumerParty])
def test_what_comes_again_is_read_twice_and_counted_and_logged_each_time(
    kind: type[Party], server: BackgroundServer, read: Counter[int], caplog: pytest.LogCaptureFixture
) -> None:
    party = kind(server, f"counted-{kind.__name__}")
    payload = party.beat()
    key = int.from_bytes(payload[:2], "big")
    requests = server.server.host.watch.requests
    read.clear()
    before = requests[key]
    with RawClient(server.bootstrap) as client, caplog.at_level(logging.DEBUG, "kgctl.server"):
        answers = beaten(client, payload)
        beaten(client, encode_request(API_VERSIONS, 0, 1, "party", {}), 1)
    party.close()

    assert len(answers) == BEATS
    assert len(set(answers)) == 1
    assert read == {key: 2}
    assert requests[key] - before == BEATS
    assert sum("Heartbeat v" in line and "(party)" in line for line in caplog.messages) == BEATS


def test_every_answer_bears_the_id_of_its_request(server: BackgroundServer) -> None:
    party = ClassicParty(server, "ids")
    with RawClient(server.bootstrap) as client:
        for number in (7, 7, 7, -1, 2**31 - 1, 0):
            client.send_payload(mutated(party.beat(), ("id", 0, number)))

            assert client.receive()[:4] == number.to_bytes(4, "big", signed=True)
    party.close()


def test_a_heartbeat_inside_another_request_is_none(server: BackgroundServer, raw: RawClient) -> None:
    party = ClassicParty(server, "inside")
    with closing(party), RawClient(server.bootstrap) as client:
        beaten(client, party.beat())
        outer = struct.pack(">hhih", 999, 0, 1, -1)
        client.socket.sendall(framed(outer + framed(party.beat()))[: 4 + len(outer)])
        raw.call(API_VERSIONS, 0)  # the first part is read by now
        client.socket.sendall(framed(party.beat()))

        assert client.is_closed()


def test_a_heartbeat_waits_for_the_request_before_it(server: BackgroundServer, raw: RawClient) -> None:
    with RawClient(server.bootstrap) as client, RawClient(server.bootstrap) as beating:
        member, other = ClassicMember(beating, "waiting", ["t"]), ClassicMember(client, "waiting", ["t"])
        member.join()
        other.send_join(version=3)
        wait_until(lambda: member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "the second member's join")
        beaten(beating, beat := encode_request(HEARTBEAT, 3, 500, "c", vars_of(member)), 3)
        join_id = member.send_join()
        raw.call(API_VERSIONS, 0)
        beating.send_payload(beat)
        answers = [beating.receive()[:4] for _ in range(2)]

    assert answers == [join_id.to_bytes(4, "big"), (500).to_bytes(4, "big")]


def test_a_long_heartbeat_is_not_kept(server: BackgroundServer, read: Counter[int]) -> None:
    values = {"group_id": "g" * MAX_REPEATED_BYTES, "generation_id": 1, "member_id": "m"}
    with RawClient(server.bootstrap) as client:
        beaten(client, encode_request(HEARTBEAT, 3, 1, "party", values))

    assert read[HEARTBEAT] == BEATS


def test_an_error_of_the_core_is_answered_as_any_other(
    server: BackgroundServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    party = ClassicParty(server, "failing")
    with RawClient(server.bootstrap) as client:
        before = beaten(client, party.beat())[-1]
        with monkeypatch.context() as patched:
            patched.setattr(server.server.services.runtime.core, "handle", fail)
            during = beaten(client, party.beat(), 2)
        after = beaten(client, party.beat(), 1)
    party.close()

    assert [int(decode_response(HEARTBEAT, 4, answer)[1].error_code) for answer in during] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert after == [before]
    assert "a Heartbeat failed: a bug" in caplog.text


def test_an_error_behind_the_core_closes_the_connection(
    server: BackgroundServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    party = ClassicParty(server, "failing-behind")
    with RawClient(server.bootstrap) as client:
        beaten(client, party.beat())
        with monkeypatch.context() as patched:
            patched.setattr(server.server.services.runtime, "result", fail)
            client.send_payload(party.beat())

            assert client.is_closed()
    party.close()

    assert "closing the connection of 127.0.0.1:" in caplog.text


def test_a_broker_that_does_not_have_the_group_says_so_again_and_again() -> None:
    found = []
    with BackgroundServer(brokers=2) as two:
        for address in two.bootstrap.split(","):
            with RawClient(address) as client:
                answers = beaten(client, encode_request(HEARTBEAT, 3, 1, "party", {"group_id": "g", "member_id": "m"}))
                found.append({int(decode_response(HEARTBEAT, 3, answer)[1].error_code) for answer in answers})

    assert sorted(found, key=min) == [{ErrorCode.NOT_COORDINATOR}, {ErrorCode.UNKNOWN_MEMBER_ID}]


def test_a_login_forgets_what_was_heard() -> None:
    def conversation() -> Conversation:
        yield b"", ""
        yield b"", "alice"

    login = Login((), cast("Credentials", None), lambda *_: False)
    session = ClientSession(login=login, repeated=cast("Repeated", object()))
    assert [session.hears_again(b"0000----heartbeat"), session.hears_again(b"0000++++heartbeat")] == [False, True]

    login.begin(conversation(), is_raw=False)
    login.answer(b"token", session)

    assert session.repeated is None
    assert not session.hears_again(b"0000----heartbeat")
