"""What must hold for a share partition whatever its members, the persister and the log do."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share import DeliveryState, PartitionState, SharePartitionKey
from kgctl.share.partition import (
    AcknowledgementBatch,
    AcquireMode,
    Effect,
    FetchedBatch,
    ShareDone,
    SharePartition,
    ShareSettings,
    WriteState,
)
from kgctl.share.partition.in_flight import TERMINAL, InFlightState

MEMBERS = st.sampled_from(["A", "B", "C"])


class SharePartitionMachine(RuleBasedStateMachine):
    """A log without gaps, members that say what they like, and a persister that may refuse."""

    @initialize(limit=st.integers(2, 6), locks=st.sampled_from([5, 20, 100]), start=st.integers(0, 5), loses=st.booleans())
    def begin(self, limit: int, locks: int, start: int, *, loses: bool) -> None:
        self.settings = ShareSettings(delivery_count_limit=limit, max_record_locks=locks, record_lock_duration_ms=1_000)
        self.partition = SharePartition(SharePartitionKey("g", UUID(int=1), 0), "t", 0, self.settings)
        self.now = 0
        self.last_start = start
        self.loses = loses
        self.lost = False
        """The log's beginning: from then on Kafka itself keeps less (tests/unit/share/partition/test_partition_log_start.py)."""
        self.asked = 0
        self.answered: list[int] = []
        self.writes: list[int] = []
        self.partition.maybe_initialize(0)
        self.partition.read(PartitionState(0, start))

    def states(self) -> dict[int, InFlightState]:
        """How each offset in flight stands."""
        return {
            offset: state
            for batch in self.partition.records.batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
            if (state := batch.state_of(offset)) is not None
        }

    def perform(self, effects: list[Effect]) -> None:
        self.writes += [effect.token for effect in effects if isinstance(effect, WriteState)]
        self.answered += [effect.ticket for effect in effects if isinstance(effect, ShareDone)]

    def ticket(self) -> int:
        self.asked += 1
        return self.asked

    @rule(member=MEMBERS, mode=st.sampled_from(AcquireMode), size=st.integers(1, 9), most=st.integers(1, 20), data=st.data())
    def fetch(self, member: str, mode: AcquireMode, size: int, most: int, data: Any) -> None:
        offset = self.partition.next_fetch_offset()
        held = {number for number, state in self.states().items() if state.state is DeliveryState.ACQUIRED}
        batches = [
            FetchedBatch(first, first + size - 1) for first in range(offset, offset + data.draw(st.integers(1, 4)) * size, size)
        ]
        wish = {"batch_size": data.draw(st.integers(1, 10)), "max_fetch_records": most}
        found = self.partition.acquire(member, mode, **wish, fetch_offset=offset, batches=batches, now_ms=self.now)

        if self.lost and found.failure is not None:
            return
        given = [number for each in found.records for number in range(each.first_offset, each.last_offset + 1)]
        assert found.failure is None
        assert (len(given), sorted(given)) == (found.count, given)
        assert not held & set(given)
        after = self.states()
        assert {after[number].member_id for number in given} <= {member}
        assert mode is AcquireMode.BATCH_OPTIMIZED or found.count <= most

    @rule(member=MEMBERS, data=st.data())
    def acknowledge(self, member: str, data: Any) -> None:
        own = [number for number, state in self.states().items() if state.member_id == member] or [0]
        first = data.draw(st.sampled_from(own))
        last = data.draw(st.integers(first, first + 6))
        types = data.draw(st.sampled_from([1, last - first + 1]).flatmap(lambda many: st.tuples(*[st.integers(0, 4)] * many)))
        batches = [AcknowledgementBatch(first, last, types)]
        before = {number: (state.state, state.member_id) for number, state in self.states().items()}
        effects = self.partition.acknowledge(self.ticket(), member, batches, self.now)
        if isinstance(effects[0], ShareDone) and effects[0].failure is not None:
            assert before == {number: (state.state, state.member_id) for number, state in self.states().items()}
        self.perform(effects)

    @rule(member=MEMBERS)
    def release(self, member: str) -> None:
        self.perform(self.partition.release_acquired_records(self.ticket(), member, self.now))
        assert member not in {state.member_id for state in self.states().values()}

    @precondition(lambda self: self.writes)
    @rule(data=st.data(), error=st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.FENCED_STATE_EPOCH]))
    def written(self, data: Any, error: ErrorCode) -> None:
        token = data.draw(st.sampled_from(self.writes))
        self.writes.remove(token)
        self.perform(self.partition.written(token, error))

    @rule(later=st.integers(0, 1_500))
    def expire(self, later: int) -> None:
        self.now += later
        self.perform(self.partition.expire(self.now))
        deadline = self.partition.next_deadline_ms()
        assert deadline is None or deadline > self.now

    @precondition(lambda self: self.loses)
    @rule(further=st.integers(1, 8))
    def lose_the_beginning_of_the_log(self, further: int) -> None:
        self.lost = True
        self.partition.update_cache_and_offsets(self.partition.start_offset + further)

    @invariant()
    def start_offset_never_goes_back(self) -> None:
        assert self.partition.start_offset >= self.last_start or self.lost
        self.last_start = self.partition.start_offset

    @invariant()
    def batches_do_not_overlap(self) -> None:
        batches = list(self.partition.records.batches)
        assert all(before.last_offset < after.first_offset for before, after in pairwise(batches))
        assert not batches or batches[-1].last_offset <= self.partition.end_offset

    @invariant()
    def no_record_is_delivered_too_often(self) -> None:
        assert all(state.delivery_count <= self.settings.delivery_count_limit for state in self.states().values())

    @invariant()
    def who_holds_a_record_has_a_lock_that_times_out(self) -> None:
        for state in self.states().values():
            is_held = state.state is DeliveryState.ACQUIRED
            assert is_held == bool(state.member_id)
            assert self.lost or not is_held or (state.lock is not None and not state.lock.expired)

    @invariant()
    def what_is_complete_is_counted(self) -> None:
        complete = sum(
            state.state in TERMINAL for number, state in self.states().items() if number >= self.partition.start_offset
        )
        assert self.partition.delivery_complete_count == complete

    @invariant()
    def every_request_is_answered_once(self) -> None:
        assert len(set(self.answered)) == len(self.answered) <= self.asked

    def teardown(self) -> None:
        """Once the persister has answered and all locks have timed out, whoever fetches and accepts comes to the end."""
        self.perform(self.partition.expire(self.now + 10_000))
        for token in self.writes:
            self.answered += [effect.ticket for effect in self.partition.written(token) if isinstance(effect, ShareDone)]
        assert len(self.answered) == self.asked
        for _ in range(0 if self.lost else 100):
            if not self.partition.records.batches:
                break
            self.accept_all(self.now + 20_000)
        assert self.lost or self.partition.start_offset == self.partition.end_offset

    def accept_all(self, now_ms: int) -> None:
        offset = self.partition.next_fetch_offset()
        batches = [FetchedBatch(offset, max(offset, self.partition.end_offset))]
        found = self.partition.acquire(
            "Z",
            AcquireMode.BATCH_OPTIMIZED,
            batch_size=50,
            max_fetch_records=500,
            fetch_offset=offset,
            batches=batches,
            now_ms=now_ms,
        )
        said = [AcknowledgementBatch(each.first_offset, each.last_offset, (1,)) for each in found.records]
        for effect in self.partition.acknowledge(0, "Z", said, now_ms):
            if isinstance(effect, WriteState):
                self.partition.written(effect.token)


TestSharePartition = SharePartitionMachine.TestCase
