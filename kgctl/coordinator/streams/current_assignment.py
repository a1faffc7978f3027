"""One step of a member towards its target: what it keeps, what it has to give up first, what it gets, what it waits for.

Tables of Java's maps and sets are imitated as far as they decide the order of partitions in an answer about endpoints.
Kafka: streams' CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.streams.member import (
    NO_TASKS,
    Epochs,
    HeldTasks,
    Numbers,
    StreamsMember,
    StreamsMemberState,
    StreamsTarget,
)
from kgctl.coordinator.streams.processes import TaskProcesses
from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import (
    copied_map_capacity,
    copied_set_capacity,
    copied_set_order,
    frozen_in_order,
    grown_capacity,
    hash_map_order,
    integer_hash,
)

STABLE, UNREVOKED, UNRELEASED = (
    StreamsMemberState.STABLE,
    StreamsMemberState.UNREVOKED_TASKS,
    StreamsMemberState.UNRELEASED_TASKS,
)


@frozen_in_order
class StreamsReconciliation:
    """The target and its epoch, what the member says that it has (None: nothing new), and who runs which task."""

    epoch: int
    target: StreamsTarget
    owned: StreamsTarget | None
    processes: TaskProcesses


def reconcile(member: StreamsMember, towards: StreamsReconciliation) -> StreamsMember:
    """Return the member after this step; the same object if it stays where it is. Raises `Refusal`."""
    return _STEPS[member.state](member, towards)


def _from_stable(member: StreamsMember, towards: StreamsReconciliation) -> StreamsMember:
    return member if member.member_epoch == towards.epoch else _next(member, member.member_epoch, towards)


def _from_unrevoked(member: StreamsMember, towards: StreamsReconciliation) -> StreamsMember:
    """A task counts as given up when the member no longer names it among those it has."""
    if towards.owned is None or towards.owned.contains_any(member.pending_revocation):
        return member
    return _next(member, member.member_epoch + 1, towards)


def _from_unreleased(member: StreamsMember, towards: StreamsReconciliation) -> StreamsMember:
    return _next(member, member.member_epoch, towards)


def _from_unknown(member: StreamsMember, towards: StreamsReconciliation) -> StreamsMember:
    """A state of a newer broker: the member has to begin anew."""
    if towards.owned is None or any(towards.owned):
        message = "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
        raise Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)
    return _next(member, towards.epoch, towards)


_STEPS: Mapping[StreamsMemberState, Callable[[StreamsMember, StreamsReconciliation], StreamsMember]] = {
    STABLE: _from_stable,
    UNREVOKED: _from_unrevoked,
    UNRELEASED: _from_unreleased,
    StreamsMemberState.UNKNOWN: _from_unknown,
}


@dataclass(slots=True)
class _Difference:
    """Between the tasks of one kind that a member has and those of its target."""

    kept: dict[str, dict[int, int]] = field(default_factory=dict)
    revoked: dict[str, dict[int, int]] = field(default_factory=dict)
    added: dict[str, dict[int, int]] = field(default_factory=dict)
    waits: bool = False


def _next(member: StreamsMember, epoch: int, towards: StreamsReconciliation) -> StreamsMember:
    differences = _differences(member, towards)
    revoked = HeldTasks(*(each.revoked for each in differences))
    waits = any(each.waits for each in differences)
    if any(revoked) and (towards.owned is None or towards.owned.contains_any(revoked)):
        # Somebody else waits for them: until they are given up the member stays at its epoch.
        state, assigned = UNREVOKED, HeldTasks(*(_in_order(each.kept) for each in differences))
    else:
        epoch, revoked, state = towards.epoch, NO_TASKS, UNRELEASED if waits else STABLE
        adds = any(each.added for each in differences)
        assigned = HeldTasks(
            *(_merged(each, is_map=not place) if adds else _in_order(each.kept) for place, each in enumerate(differences))
        )
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=revoked,
    )


def _in_order(tasks: Epochs) -> Epochs:
    return {key: tasks[key] for key in hash_map_order(tasks)}


def _differences(member: StreamsMember, towards: StreamsReconciliation) -> list[_Difference]:
    """Of active, standby and warm-up tasks. A process has a task in one place only, whatever it has it as."""
    processes, process_id = towards.processes, member.process_id

    def is_elsewhere(key: str, number: int) -> bool:
        return processes.is_processed(key, number) or processes.is_copied_by(process_id, key, number)

    def is_here(key: str, number: int) -> bool:
        return processes.is_processed_by(process_id, key, number) or processes.is_copied_by(process_id, key, number)

    (active, *copies), (target, *targets) = member.assigned, towards.target
    return [
        _difference(active, target, towards.epoch, is_elsewhere, is_map=True),
        *(_difference(has, gets, 0, is_here, is_map=False) for has, gets in zip(copies, targets, strict=True)),
    ]


def _difference(
    current: Epochs, target: Numbers, epoch: int, is_unreleased: Callable[[str, int], bool], *, is_map: bool
) -> _Difference:
    found = _Difference()
    for key in _all_keys(target, current):
        has, wanted = current.get(key, {}), target.get(key, ())
        if kept := _kept(has, wanted, is_map=is_map):
            found.kept[key] = kept
        if revoked := {number: since for number, since in has.items() if number not in kept}:
            found.revoked[key] = revoked
        missing = [number for number in wanted if number not in kept]
        free = [number for number in missing if not is_unreleased(key, number)]
        found.waits |= len(free) < len(missing)
        if free:
            order = _map_order(free, grown_capacity(len(missing))) if is_map else _copied(wanted, free)
            found.added[key] = dict.fromkeys(order, epoch)
    return found


def _all_keys(target: Numbers, current: Epochs) -> list[str]:
    """As the ``HashSet`` has them into which both maps' keys are put."""
    keys = dict.fromkeys([*copied_set_order(target), *current])
    return hash_map_order(keys, capacity=grown_capacity(len(keys), copied_set_capacity(len(target))))


def _copied(wanted: tuple[int, ...], free: list[int]) -> list[int]:
    left = set(free)
    return [number for number in copied_set_order(wanted, hash_of=integer_hash) if number in left]


def _kept(has: Mapping[int, int], wanted: tuple[int, ...], *, is_map: bool) -> dict[int, int]:
    kept = has.keys() & wanted
    numbers = [number for number in has if number in kept]
    capacity = grown_capacity(len(numbers)) if is_map else copied_set_capacity(len(has))
    return {number: has[number] for number in _map_order(numbers, capacity)}


def _map_order(numbers: list[int], capacity: int) -> list[int]:
    return hash_map_order(numbers, capacity=capacity, hash_of=integer_hash)


def _merged(difference: _Difference, *, is_map: bool) -> Epochs:
    """Kafka: TasksTupleWithEpochs#merge, which puts a subtopology of which nothing is kept in front of its bucket.

    Each that is added, new or not, first enlarges the table if it is too full by then.
    """
    merged, names = {}, hash_map_order(difference.added)
    new = [key for key in names if key not in difference.kept]
    is_last_new = bool(new) and new[-1] == names[-1]
    capacity = grown_capacity(len(difference.kept) + len(new) - is_last_new)
    for key in hash_map_order([*reversed(new), *difference.kept], capacity=capacity):
        kept, added = difference.kept.get(key, {}), difference.added.get(key, {})
        both = {**kept, **added}
        table = _map_capacity(len(kept), len(added)) if is_map else _set_capacity(len(kept), len(added))
        merged[key] = {number: both[number] for number in _map_order(list(both), table)}
    return merged


def _map_capacity(kept: int, added: int) -> int:
    """The table of a copy of a ``HashMap`` into which another one is put: what comes in at once may enlarge it too far."""
    if not kept or not added:
        return copied_map_capacity(kept or added)
    return grown_capacity(kept + added, grown_capacity(added, copied_map_capacity(kept)))


def _set_capacity(kept: int, added: int) -> int:
    return grown_capacity(kept + added, copied_set_capacity(kept))
