"""The fetching half of a share consumer: a buffer, a session with each broker, acknowledgements that travel with fetches.

One request at a time to each broker. A fetch is sent when poll() finds the buffer empty, to the leaders of all partitions, and
again until one of them gives records; the others' answers are buffered, and their records' locks run. Acknowledgements go with
the next fetch to their broker, or by themselves where poll() finds records in the buffer. Kafka: ShareConsumeRequestManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kgctl.share.partition import AcknowledgementBatch, AcquireMode
from kgctl.simulate.engine.share.leaders import ShareBrokers
from kgctl.simulate.engine.share.requests import Grant, ShareRequest
from kgctl.simulate.scenario.vocabulary import GivenBack

if TYPE_CHECKING:
    from kgctl.simulate.engine.share.process import ShareProcess

Batches = dict[int, list[AcknowledgementBatch]]
"""Number of a partition -> what is said of its records."""


@dataclass(slots=True)
class _Session:
    """What the client has with one broker. ``turn``: of its partitions the next fetch begins elsewhere, as the broker has it."""

    pending: ShareRequest | None = None
    with_fetch: Batches = field(default_factory=dict)
    alone: Batches = field(default_factory=dict)
    is_open: bool = False
    turn: int = 0


class ShareClient:
    """See `kgctl.simulate.engine.share.requests.ShareRequester`. ``on_records`` is called when the buffer is no longer empty."""

    def __init__(self, process: ShareProcess, leaders: ShareBrokers, leader_of: Callable[[int], int]) -> None:
        self._process = process
        self._loop = process.loop
        self._leaders = leaders
        self._leader_of = leader_of
        self._sessions: dict[int, _Session] = {}
        self._buffer: deque[tuple[int, Grant]] = deque()
        self._wants_more = False
        self._had_enough_us = -1
        self._on_closed: Callable[[], None] | None = None
        self._closing: list[_Session] = []
        self._looks_us = -1
        self.on_records: Callable[[], None] = lambda: None
        self.on_acknowledged: Callable[[], None] | None = None
        settings = process.pod.settings
        self._max_wait_us = int(settings.get("fetch.max.wait.ms", "500")) * 1000
        self._max_records = process.config.max_poll_records
        is_limited = process.config.share_acquire_mode == "record_limit"
        self._mode = AcquireMode.RECORD_LIMIT if is_limited else AcquireMode.BATCH_OPTIMIZED

    @property
    def member_id(self) -> str:
        """The id that the coordinator knows the consumer by."""
        return "" if self._process.member is None else self._process.member.member_id

    @property
    def pod_number(self) -> int:
        """The number of its pod."""
        return self._process.pod.number

    def wants_more_at(self, time_us: int) -> bool:
        """Whether an empty answer at this time, which is past, was followed by another fetch."""
        return self._wants_more or time_us < self._had_enough_us

    # --- what the application does

    def poll(self, acknowledgements: Batches) -> list[tuple[int, Grant]]:
        """Records for the application, with the broker that gave them; without any in the buffer, they are fetched."""
        for node, batches in self._by_node(acknowledgements).items():
            _merge(self._sessions[node].alone if self._buffer else self._sessions[node].with_fetch, batches)
        found = self._take()
        if not found and not self._wants_more:
            for session in self._sessions.values():
                self._is_free(session)
            self._wants_more = True
        self.pump()
        return found

    def commit(self, acknowledgements: Batches, then: Callable[[], None]) -> None:
        """commitSync(): acknowledge, and wait for the answers."""
        for node, batches in self._by_node(acknowledgements).items():
            _merge(self._sessions[node].alone, batches)
        self.on_acknowledged = then
        self.pump()
        self._look_whether_acknowledged()

    def close(self, acknowledgements: Batches, then: Callable[[], None]) -> None:
        """Acknowledge what is to be, then end all sessions: what the consumer still has is given back."""
        for node, batches in self._by_node(acknowledgements).items():
            _merge(self._sessions[node].alone, batches)
        for session in self._sessions.values():
            _merge(session.alone, session.with_fetch)
            session.with_fetch = {}
        self._wants_more, self._had_enough_us = False, self._loop.now_us
        self._buffer.clear()
        self._on_closed = then
        self._closing = [session for session in self._sessions.values() if session.is_open]
        self.pump()

    def _take(self) -> list[tuple[int, Grant]]:
        """As many as poll() returns at most."""
        found, left = [], self._max_records
        while self._buffer and left > 0:
            node, grant = self._buffer.popleft()
            size = grant.amount
            if size > left:
                self._buffer.appendleft((node, grant._replace(first=grant.first + left)))
                grant = grant._replace(last=grant.first + left - 1)
            found.append((node, grant))
            left -= size
        return found

    def _by_node(self, acknowledgements: Batches) -> dict[int, Batches]:
        """They go to who gave the records; a partition that another broker leads by now has no such records any more."""
        found: dict[int, Batches] = {}
        for number, batches in acknowledgements.items():
            if (node := self._leader_of(number)) in self._sessions:
                found.setdefault(node, {})[number] = batches
        return found

    # --- requests

    def pump(self) -> None:
        """What the client's own thread does: first acknowledge, then fetch, each broker that has answered."""
        if self._process.member is None:
            return
        is_acknowledging = False
        for node, session in self._sessions.items():
            is_acknowledging = self._acknowledge(node, session) or is_acknowledging
        if self._wants_more and not is_acknowledging and self._on_closed is None:
            self._fetch()
        if self._on_closed is not None and not self._closing:
            closed, self._on_closed = self._on_closed, None
            closed()

    def _acknowledge(self, node: int, session: _Session) -> bool:
        """Send what is to be said to this broker; whether something is still to be said, or to be answered."""
        ends = session in self._closing
        if not session.alone and not ends:
            return session.pending is not None and session.pending.numbers is None
        if self._is_free(session):
            said, session.alone = session.alone, {}
            self._send(session, ShareRequest(self, node, said, ends_session=ends), "ShareAcknowledge")
        return True

    def _fetch(self) -> None:
        wanted: dict[int, list[int]] = {node: [] for node, session in self._sessions.items() if session.with_fetch}
        for number in self._process.consuming:
            wanted.setdefault(self._leader_of(number), []).append(number)
        for node, numbers in wanted.items():
            session = self._sessions.setdefault(node, _Session())
            if not self._is_free(session):
                continue
            said, session.with_fetch = session.with_fetch, {}
            at = session.turn % len(numbers) if numbers else 0
            session.turn += 1
            request = ShareRequest(self, node, said, [*numbers[at:], *numbers[:at]])
            request.max_records, request.mode, request.max_wait_us = self._max_records, self._mode, self._max_wait_us
            self._send(session, request, "ShareFetch")

    def _is_free(self, session: _Session) -> bool:
        """Whether it has answered everything; a fetch that waits and is not wanted any more is over when its time is."""
        request, now_us = session.pending, self._loop.now_us
        if request is None:
            return True
        if request.numbers is None or request.granted:
            return False
        until_us = self._leaders.expires_us(request) if request.until_us else now_us + self._max_wait_us
        if until_us >= now_us and not request.is_over:
            self._look_at(until_us + 1, session)
            return False
        self._leaders.give_up(request)
        session.pending = None
        return True

    def _look_at(self, at_us: int, session: _Session) -> None:
        """Look again when a fetch that waits is over, where something waits for that."""
        is_needed = session.alone or session.with_fetch or session in self._closing
        if is_needed and not self._loop.now_us < self._looks_us <= at_us:
            self._looks_us = at_us
            self._loop.at(at_us, self._look_again)

    def connections_end(self) -> None:
        """Its process has ended: each broker that hears of it gives back what the member had."""
        self._leaders.release(self, GivenBack.CRASHED)

    def _look_again(self, _: object) -> None:
        self.pump()

    def _send(self, session: _Session, request: ShareRequest, api: str) -> None:
        pod = self._process.pod
        pod.context.event_log.skipped(api, 1)
        session.pending, session.is_open = request, True
        arrival_us = pod.link.arrival_us(self._loop.now_us, 0)
        if arrival_us is None:
            self._loop.at(self._loop.now_us + self._process.config.request_timeout_ms * 1000, self._lost, request)
        else:
            self._loop.at(arrival_us, self._arrived, request)

    def _arrived(self, request: ShareRequest) -> None:
        if self._process.gone_us < 0:
            self._leaders.receive(request)

    def answered(self, request: ShareRequest) -> None:
        """A broker answers: on its way back, the answer takes its time."""
        arrival_us = self._process.pod.link.arrival_us(self._loop.now_us, 1)
        if arrival_us is None:
            self._loop.at(self._loop.now_us + self._process.config.request_timeout_ms * 1000, self._lost, request)
        else:
            self._loop.at(arrival_us, self._answered, request)

    def disconnected(self, request: ShareRequest) -> None:
        """The broker has died: the client asks who leads now, and tries again."""
        self._loop.at(self._loop.now_us + self._process.config.retry_backoff_max_ms * 1000, self._lost, request)

    def _lost(self, request: ShareRequest) -> None:
        """Nobody has answered in time: the session is over, and what was to be said with it."""
        session = self._sessions.get(request.node)
        if session is None or session.pending is not request:
            return
        self._leaders.give_up(request)
        session.pending = None
        session.with_fetch, session.alone = {}, {}
        self._ended(session)
        self.pump()

    def _ended(self, session: _Session) -> None:
        if session in self._closing:
            self._closing.remove(session)

    def _answered(self, request: ShareRequest) -> None:
        session = self._sessions.get(request.node)
        if session is None or session.pending is not request:
            return
        if self._process.holds(self._answered, request):
            return
        session.pending = None
        if request.ends_session:
            self._ended(session)
        if request.granted:
            self._buffer.extend((request.node, grant) for grant in request.granted)
            if self._wants_more:
                self._wants_more, self._had_enough_us = False, self._loop.now_us
        self._look_whether_acknowledged()
        self.pump()
        if request.granted and self._on_closed is None:
            self.on_records()

    def _look_whether_acknowledged(self) -> None:
        then = self.on_acknowledged
        if then is None:
            return
        for session in self._sessions.values():
            if session.alone or (session.pending is not None and session.pending.numbers is None):
                return
        self.on_acknowledged = None
        then()


def _merge(into: Batches, batches: Mapping[int, Sequence[AcknowledgementBatch]]) -> None:
    for number, found in batches.items():
        into.setdefault(number, []).extend(found)
