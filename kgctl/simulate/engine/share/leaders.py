"""The brokers' side: who has which record of each partition, and the fetches that wait for some.

`kgctl.share.partition.SharePartition` decides; here its effects are done in virtual time. What is kept of it outlives a leader.
Kafka: SharePartitionManager, DelayedShareFetch, Persister.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count

from kgctl.coordinator.config import GroupConfig
from kgctl.member.runtime import draw
from kgctl.model.error_codes import ErrorCode
from kgctl.model.share import FROM_EARLIEST, FROM_LATEST, NO_START_OFFSET, PartitionState, SharePartitionKey, reset_age_ms
from kgctl.share.partition import (
    Effect,
    FetchedBatch,
    FetchesMayComplete,
    PartitionStatus,
    ReadState,
    ShareDone,
    ShareFailure,
    SharePartition,
    ShareSettings,
    WriteState,
)
from kgctl.share.state.config import ShareCoordinatorConfig
from kgctl.share.state.shard import ShareCoordinatorShard, StateAnswer, StateRefusal
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.share.accounts import ShareAccounts
from kgctl.simulate.engine.share.requests import Grant, ShareRequest, ShareRequester
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.recording.recording import EPOCH_MS
from kgctl.simulate.scenario.quantities import UNIT_PR
from kgctl.simulate.scenario.vocabulary import GivenBack

_LOOK_AHEAD = 2
"""A fetch is given so many times what it may acquire, behind what is in flight: more is never acquired."""
_AGAIN_US = 1_000_000


class ShareBrokers:
    """All share partitions of one group, wherever they are led. ``persist_us``: how long it takes until something is kept."""

    def __init__(
        self, context: RunContext, accounts: ShareAccounts, settings: Callable[[], GroupConfig], persist_us: Callable[[], int]
    ) -> None:
        self._context = context
        self._loop = context.loop
        self._accounts = accounts
        self._settings = settings
        self._persist_us = persist_us
        self._rng = context.randomness.stream("share arrivals")
        self._phase_pr: list[int] = []
        self._ends: dict[int, int] = {}
        self._known: dict[int, SharePartition] = {}
        self.kept = ShareCoordinatorShard(ShareCoordinatorConfig())
        self._waiting: dict[int, dict[ShareRequest, None]] = {}
        self._gone: dict[int, None] = {}
        """Partitions whose leader has died, until there is another one."""
        self._tickets = count(1)
        self._done: dict[int, Callable[[ShareFailure | None], None]] = {}
        self._armed_ms: dict[int, int] = {}
        self._arrival: dict[int, object] = {}
        self.respond: Callable[[ShareRequest], None] = lambda request: request.who.answered(request)

    # --- what is written

    def end_offset(self, number: int) -> int:
        """How many records of a partition are written by now. Partitions get theirs at moments of their own."""
        arrivals = self._context.ledger.arrivals
        phase_pr = self._phase_of(number) if arrivals.rate_uhz[number] else 0  # nobody waits for the rest of a record
        written = max(arrivals.total_pr(number, self._loop.now_us) - phase_pr, 0) // UNIT_PR
        self._ends[number] = end = max(written, self._ends.get(number, 0))
        return end

    def _phase_of(self, number: int) -> int:
        while number >= len(self._phase_pr):
            self._phase_pr.append(draw(self._rng, UNIT_PR))
        return self._phase_pr[number]

    def partitions(self) -> Iterable[tuple[int, SharePartition]]:
        """The share partitions that some member has fetched from."""
        return self._known.items()

    # --- requests

    def receive(self, request: ShareRequest) -> None:
        """A request has come: first what it acknowledges, then what it fetches. It is answered by `respond`."""
        request.open = 1
        for number, batches in request.acknowledgements.items():
            share_partition = self._known.get(number)
            if share_partition is None:
                self._refuse(request, number, ErrorCode.NOT_LEADER_OR_FOLLOWER.name)
                continue
            request.open += 1
            said = partial(share_partition.acknowledge, member_id=request.who.member_id, batches=batches, now_ms=self._now_ms)
            self._begin(number, said, partial(self._acknowledged, request, number), request.who.pod_number, GivenBack.RELEASED)
        if request.numbers is None or request.max_records <= 0:
            self._finish(request)
            return
        if request.numbers and all(number in self._gone for number in request.numbers):
            request.who.disconnected(request)
            return
        for number in request.numbers:
            self._open(number)
        if not self._attempt(request):
            request.until_us = self._loop.now_us + request.max_wait_us
            for number in request.numbers:
                self._waiting.setdefault(number, {})[request] = None
                self._arm_arrival(number)

    def release(self, who: ShareRequester, why: GivenBack) -> None:
        """The member's session is over: what it has can be acquired again."""
        for number, share_partition in list(self._known.items()):
            released = partial(share_partition.release_acquired_records, member_id=who.member_id, now_ms=self._now_ms)
            self._begin(number, released, lambda _: None, who.pod_number, why)
        for waiting in self._waiting.values():
            for request in [each for each in waiting if each.who is who]:
                del waiting[request]

    def _acknowledged(self, request: ShareRequest, number: int, failure: ShareFailure | None) -> None:
        if failure is not None:
            self._refuse(request, number, failure.error.name)
        self._finish(request)

    def _refuse(self, request: ShareRequest, number: int, error: str) -> None:
        request.refused[number] = error
        amount = sum(each.last_offset - each.first_offset + 1 for each in request.acknowledgements[number])
        self._accounts.refused(number, amount, request.who.pod_number, error)

    def _finish(self, request: ShareRequest) -> None:
        request.open -= 1
        if request.open:
            return
        if request.ends_session:
            self.release(request.who, GivenBack.CLOSED)
        self.respond(request)

    # --- fetches

    def expires_us(self, request: ShareRequest) -> int:
        """Until when a fetch waits: the client sends another one as soon as it is answered, as long as it wants records."""
        while request.until_us < self._loop.now_us and request.who.wants_more_at(request.until_us):
            request.until_us += request.max_wait_us
        return request.until_us

    def give_up(self, request: ShareRequest) -> None:
        """A fetch was answered without records, or nobody waits for its answer any more."""
        request.is_over = True
        for number in request.numbers or ():
            self._waiting.get(number, {}).pop(request, None)

    def _attempt(self, request: ShareRequest) -> bool:
        """Acquire what there is; whether there was something."""
        left = request.max_records
        for number in request.numbers or ():
            share_partition = self._known.get(number)
            if left <= 0 or share_partition is None or number in self._context.owners.dark:
                continue
            if share_partition.status is PartitionStatus.ACTIVE and share_partition.can_acquire_records():
                left -= self._acquire(request, number, share_partition, left)
        if not request.granted:
            return False
        self.give_up(request)
        self._finish(request)
        return True

    def _acquire(self, request: ShareRequest, number: int, share_partition: SharePartition, left: int) -> int:
        offset, end = share_partition.next_fetch_offset(), self.end_offset(number)
        if offset >= end:
            return 0
        share_partition.settings = ShareSettings.of(self._settings())
        reach = max(share_partition.end_offset + 1, offset) + _LOOK_AHEAD * left
        found = share_partition.acquire(
            request.who.member_id,
            request.mode,
            batch_size=request.max_records,
            max_fetch_records=left,
            fetch_offset=offset,
            batches=[FetchedBatch(record, record) for record in range(offset, min(end, reach))],
            now_ms=self._now_ms,
        )
        for each in found.records:
            grant = Grant(number, each.first_offset, each.last_offset, each.delivery_count)
            request.granted.append(grant)
            self._accounts.delivered(grant, request.who.pod_number, self._phase_of(number))
        self._watch(number)
        return found.count

    def _wake(self, number: int) -> None:
        """Records may be there to be had: those who wait longest are first."""
        now_us = self._loop.now_us
        for request in list(self._waiting.get(number, ())):
            if self.expires_us(request) < now_us:
                self.give_up(request)
            else:
                self._attempt(request)
        self._arm_arrival(number)

    def _arm_arrival(self, number: int) -> None:
        """Look again when the next record is written, if somebody waits."""
        rate_uhz = self._context.ledger.arrivals.rate_uhz[number]
        if not self._waiting.get(number) or number in self._arrival or not rate_uhz:
            return
        written_pr = self._context.ledger.arrivals.total_pr(number, self._loop.now_us)
        missing_pr = (self.end_offset(number) + 1) * UNIT_PR + self._phase_of(number) - written_pr
        self._arrival[number] = call = object()
        self._loop.at(self._loop.now_us - (-missing_pr // rate_uhz), self._arrived, (number, call))

    def _arrived(self, arrival: tuple[int, object]) -> None:
        number, call = arrival
        if self._arrival.get(number) is call:
            del self._arrival[number]
            self._wake(number)

    def rates_changed(self) -> None:
        """Records come at other times from now on."""
        self._arrival.clear()
        for number in list(self._waiting):
            self._wake(number)

    # --- leaders

    def lead(self, numbers: Iterable[int]) -> None:
        """These have a leader again, which begins with what is kept."""
        for number in numbers:
            self._gone.pop(number, None)
            if self._waiting.get(number):
                self._open(number)
                self._wake(number)

    def lose(self, numbers: Iterable[int]) -> None:
        """The leader of these is gone, and with it who has which record: what was not acknowledged can be had again."""
        for number in numbers:
            share_partition = self._known.pop(number, None)
            if share_partition is not None:
                share_partition.mark_fenced()
                self._armed_ms.pop(number, None)
                self._accounts.forgot(number, share_partition, GivenBack.BROKER)
            self._gone[number] = None
            for request in list(self._waiting.get(number, ())):
                self.give_up(request)
                request.who.disconnected(request)

    def forget(self, numbers: Iterable[int]) -> None:
        """The topic of these is gone."""
        for number in numbers:
            self._known.pop(number, None)
            for request in list(self._waiting.pop(number, ())):
                request.numbers = [each for each in request.numbers or () if each != number]

    # --- the machine's effects

    @property
    def _now_ms(self) -> int:
        return EPOCH_MS + self._loop.now_us // 1000

    def _key(self, number: int) -> SharePartitionKey:
        topic, partition = self._context.partitions.names[number]
        return SharePartitionKey(self._context.group_id, self._context.image.topics[topic].topic_id, partition)

    def _open(self, number: int) -> None:
        """See to it that somebody leads the share partition."""
        if number not in self._known and number not in self._context.owners.dark:
            topic = self._context.partitions.names[number].topic
            self._known[number] = share_partition = SharePartition(
                self._key(number), topic, 0, ShareSettings.of(self._settings())
            )
            ticket = next(self._tickets)
            self._done[ticket] = partial(self._opened, number)
            self._perform(number, share_partition, share_partition.maybe_initialize(ticket))

    def _opened(self, number: int, failure: ShareFailure | None) -> None:
        """One whose state cannot be read is forgotten, and tried again."""
        if failure is not None:
            self._known.pop(number, None)
            self._loop.at(self._loop.now_us + _AGAIN_US, lambda _: self.lead([number]))

    def _begin(
        self,
        number: int,
        act: Callable[[int], list[Effect]],
        done: Callable[[ShareFailure | None], None],
        pod: int,
        why: GivenBack,
    ) -> None:
        ticket, share_partition = next(self._tickets), self._known[number]
        self._done[ticket] = done
        share_partition.settings = ShareSettings.of(self._settings())
        effects = act(ticket)
        self._note(number, effects, pod, why)
        self._perform(number, share_partition, effects)

    def _note(self, number: int, effects: Iterable[Effect], pod: int, why: GivenBack) -> None:
        for effect in effects:
            if isinstance(effect, WriteState):
                for batch in effect.batches:
                    self._accounts.changed(number, batch, pod, why)

    def _perform(self, number: int, share_partition: SharePartition, effects: Iterable[Effect]) -> None:
        for effect in effects:
            _EFFECTS[type(effect)](self, number, share_partition, effect)
        self._watch(number)

    def _read(self, number: int, share_partition: SharePartition, effect: ReadState) -> None:
        answer = self.kept.read(share_partition.key, effect.leader_epoch, self._now_ms)
        self._later(number, share_partition, answer, partial(self._was_read, number, share_partition, answer))

    def _was_read(self, number: int, share_partition: SharePartition, answer: StateAnswer[PartitionState]) -> list[Effect]:
        if isinstance(answer.value, StateRefusal):
            return share_partition.read(answer.value.error, answer.value.message)
        reset = self._reset_offset(number) if answer.value.start_offset == NO_START_OFFSET else None
        effects = share_partition.read(answer.value, reset_offset=reset)
        self._accounts.began(number, share_partition.start_offset, share_partition.delivery_complete_count)
        return effects

    def _reset_offset(self, number: int) -> int:
        """Where the group's settings say that it is to begin."""
        how, end = self._settings().share_auto_offset_reset, self.end_offset(number)
        if how in (FROM_EARLIEST, FROM_LATEST):
            return 0 if how == FROM_EARLIEST else end
        at_us = max(self._loop.now_us - reset_age_ms(how) * 1000, 0)
        return min(max(self._context.ledger.arrivals.total_pr(number, at_us) - self._phase_of(number), 0) // UNIT_PR, end)

    def _write(self, number: int, share_partition: SharePartition, effect: WriteState) -> None:
        answer = self.kept.write(share_partition.key, effect.change, self._now_ms)

        def written() -> list[Effect]:
            refusal = answer.value
            return share_partition.written(effect.token, *(() if refusal is None else (refusal.error, refusal.message)))

        self._later(number, share_partition, answer, written)

    def _later(
        self, number: int, share_partition: SharePartition, answer: StateAnswer[object], then: Callable[[], list[Effect]]
    ) -> None:
        """Keep what was answered; go on when it is replicated, unless another leads by then."""
        for record in answer.records:
            self.kept.replay(0, record)

        def kept(_: object) -> None:
            if self._known.get(number) is share_partition:
                self._perform(number, share_partition, then())

        self._loop.at(self._loop.now_us + self._persist_us(), kept)

    def _ended(self, number: int, _: SharePartition, effect: ShareDone) -> None:
        self._done.pop(effect.ticket)(effect.failure)
        self._wake(number)

    def _watch(self, number: int) -> None:
        """See to it that the locks of this share partition end in time."""
        share_partition = self._known.get(number)
        deadline_ms = None if share_partition is None else share_partition.next_deadline_ms()
        if deadline_ms is not None and deadline_ms < self._armed_ms.get(number, deadline_ms + 1):
            self._armed_ms[number] = deadline_ms
            self._loop.at((deadline_ms - EPOCH_MS) * 1000, self._locks_due, (number, deadline_ms))

    def _locks_due(self, due: tuple[int, int]) -> None:
        number, deadline_ms = due
        share_partition = self._known.get(number)
        if share_partition is None or self._armed_ms.get(number) != deadline_ms:
            return
        del self._armed_ms[number]
        effects = share_partition.expire(self._now_ms)
        self._note(number, effects, NOBODY, GivenBack.TIMED_OUT)
        self._perform(number, share_partition, effects)


_EFFECTS: Mapping[type, Callable[..., None]] = {
    ReadState: ShareBrokers._read,
    WriteState: ShareBrokers._write,
    ShareDone: ShareBrokers._ended,
    FetchesMayComplete: lambda leaders, number, _, __: leaders._wake(number),
}
"""What a share partition wants done -> how."""
