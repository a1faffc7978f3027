"""States of batches and offsets: transitions that are kept, rolled back, or overtaken by a lock or by the log's beginning."""

from __future__ import annotations

import pytest

from kgctl.model.share import DeliveryState
from kgctl.share.partition.in_flight import InFlightBatch, InFlightState
from kgctl.share.partition.locks import AcquisitionLocks
from kgctl.share.partition.results import NotDoneError

AVAILABLE, ACQUIRED = DeliveryState.AVAILABLE, DeliveryState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED


def shown(state: InFlightState) -> tuple[DeliveryState, int, str, bool, int | None]:
    deadline = None if state.lock is None else state.lock.deadline_ms
    return state.state, state.delivery_count, state.member_id, state.in_transition, deadline


def acquired(locks: AcquisitionLocks, count: int = 1) -> InFlightState:
    return InFlightState(ACQUIRED, count, "A", locks.arm(0, 0, 100))


def test_acquiring_is_one_delivery_more() -> None:
    state = InFlightState(AVAILABLE, 1)
    assert state.is_free
    state.acquire("A")

    assert shown(state) == (ACQUIRED, 2, "A", False, None)
    assert not state.is_free


@pytest.mark.parametrize(
    ("count", "to", "becomes"),
    [(1, AVAILABLE, AVAILABLE), (2, AVAILABLE, ARCHIVED), (2, ACKNOWLEDGED, ACKNOWLEDGED), (1, ARCHIVED, ARCHIVED)],
)
def test_what_was_delivered_as_often_as_allowed_is_archived_in_place_of_available(
    count: int, to: DeliveryState, becomes: DeliveryState
) -> None:
    state = InFlightState(ACQUIRED, count, "A")
    state.leave(to, delivery_count_limit=2)

    assert shown(state) == (becomes, count, "", False, None)


def test_a_transition_that_is_kept_ends_the_lock() -> None:
    locks = AcquisitionLocks()
    state = acquired(locks)
    state.begin(ACKNOWLEDGED, 5)
    assert shown(state) == (ACKNOWLEDGED, 1, "", True, 100)
    assert not state.is_settled
    state.complete(commit=True, locks=locks)

    assert (shown(state), locks.next_deadline_ms(), state.is_settled) == ((ACKNOWLEDGED, 1, "", False, None), None, True)


def test_a_transition_that_is_rolled_back_leaves_the_record_with_its_member() -> None:
    locks = AcquisitionLocks()
    state = acquired(locks)
    state.begin(AVAILABLE, 5)
    assert not state.is_free
    state.complete(commit=False, locks=locks)

    assert shown(state) == (ACQUIRED, 1, "A", False, 100)


@pytest.mark.parametrize(("count", "becomes"), [(1, AVAILABLE), (3, ARCHIVED)])
def test_rolled_back_after_its_lock_has_timed_out_a_record_is_nobodys(count: int, becomes: DeliveryState) -> None:
    locks = AcquisitionLocks()
    state = acquired(locks, count)
    state.begin(ACKNOWLEDGED, 3)
    assert locks.pop_due(100) is state.lock
    state.complete(commit=False, locks=locks)

    assert shown(state) == (becomes, count, "", False, None)


@pytest.mark.parametrize("commit", [True, False])
def test_no_transition_brings_back_what_was_archived(commit: bool) -> None:
    locks = AcquisitionLocks()
    state = acquired(locks)
    state.begin(AVAILABLE, 5)
    state.archive(locks)
    state.complete(commit=commit, locks=locks)

    assert (shown(state), locks.next_deadline_ms()) == ((ARCHIVED, 1, "", False, None), None)


def test_a_second_lock_is_an_error_as_in_kafka() -> None:
    locks = AcquisitionLocks()
    state = acquired(locks)

    with pytest.raises(NotDoneError, match="Existing acquisition lock timeout exists") as caught:
        state.lock_with(locks.arm(0, 0, 200))
    assert caught.value.failure.whole_request


def test_a_batch_splits_into_offsets_with_a_lock_each() -> None:
    locks = AcquisitionLocks()
    batch = InFlightBatch(5, 7, InFlightState(ACQUIRED, 2, "A", locks.arm(5, 7, 100)))
    states = batch.split(locks)

    assert [shown(state) for state in states] == [(ACQUIRED, 2, "A", False, 100)] * 3
    assert (batch.whole, batch.split(locks) is states, batch.size) == (None, True, 3)
    assert [(lock.first_offset, lock.last_offset) for lock in iter(lambda: locks.pop_due(100), None)] == [(5, 5), (6, 6), (7, 7)]


def test_a_batch_of_which_a_part_is_acquired_has_the_rest_as_never_delivered() -> None:
    locks = AcquisitionLocks()
    batch = InFlightBatch(5, 8, InFlightState(ACQUIRED, 1, "A"))
    batch.split_at(6, locks, 100)

    assert [shown(state) for _, state in batch.between(0, 99)] == [
        *([(ACQUIRED, 1, "A", False, 100)] * 2),
        *([(AVAILABLE, 0, "", False, None)] * 2),
    ]
    assert batch.first_free() == 7


def test_offsets_of_a_split_batch_by_bounds_and_by_number() -> None:
    batch = InFlightBatch(5, 8, InFlightState(AVAILABLE, 1))
    whole = batch.whole
    assert (batch.first_free(), batch.state_of(5), batch.state_of(99)) == (5, whole, whole)
    states = batch.split(AcquisitionLocks())
    states[0].acquire("A")

    bounds = ((0, 4), (0, 6), (6, 7), (8, 99), (9, 99))
    assert [[offset for offset, _ in batch.between(*each)] for each in bounds] == [[], [5, 6], [6, 7], [8], []]
    assert (batch.first_free(), batch.state_of(8), batch.state_of(9), batch.state_of(4)) == (6, states[3], None, None)
