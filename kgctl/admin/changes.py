"""Changes of groups are carried out in steps; groups are deleted.

A change is carried out in steps, so that whatever ends it early leaves an account of each item: done, failed, unknown, not tried.
A step is one request to the cluster, or several that are under way at once. Between two steps the change can be stopped without
any doubt; of a step that is cut short (a lost connection, a time-out, a second signal) the items that were not answered for are
unknown, and these are read back where the cluster answers again; what was lost with a connection is then sent again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Protocol, Self, TypeVar

from kgctl.admin import AltersManyGroups, Committed, GroupAdmin, GroupResults, ItemError, LimitsTime, Results, item_error
from kgctl.admin.offset_reset import LEFT_ALONE
from kgctl.errors import Interrupted, KgctlError, TimedOutError, UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import NO_OFFSET, GroupListing, GroupState, OffsetAndMetadata, TopicPartition, listing_of
from kgctl.model.values import frozen_in_order
from kgctl.wire import LOOKS_SHARE, Deadline
from kgctl.wire.settings import RECONNECT

K = TypeVar("K", bound=Hashable)

MOST_LOST_IN_A_ROW = 3
"""Steps that may fail in a row for want of a broker, before the rest is not tried: one of several brokers may be away."""

LAST_LOOK_S = 2.0
"""How long the cluster may be asked, after a signal, what became of the items that it has not answered for."""

LAST_SHARE = 0.2
"""How much of a change's time is kept for the look at what became of the items that the cluster has not answered for."""

AT_ONCE_S = 1.0
"""A step that loses nothing and takes no longer than this takes nothing of the change's time."""

_UNANSWERED = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors that do not tell whether it was done: a client sends a request again when a coordinator is lost, and the answer to the
second says nothing of the first."""


_INTERRUPTED = ItemError(ErrorCode.REQUEST_TIMED_OUT, "interrupted before the answer came", own_code="INTERRUPTED")


def may_be_done(error: ItemError | None) -> bool:
    """Whether an item is, or may be, done: it did not fail, or what was answered does not tell whether it did."""
    if error is None:
        return True
    return error.code in _UNANSWERED | {ErrorCode.UNKNOWN_SERVER_ERROR} and not error.nothing_sent


class StopRequest(Protocol):
    """Whether the change shall end. ``signal`` is the number of the signal that asked for it, None as long as none did."""

    @property
    def signal(self) -> int | None: ...

    def allow(self, seconds: float) -> None:
        """Raise `Interrupted` in the main thread after this time, for a last look at the cluster; 0: never again."""

    def went_through(self, items: Sequence[Any]) -> None:
        """Hear that it is settled what became of these items."""


class NeverStop:
    """A stop signal for callers that no signal ends."""

    signal: int | None = None

    def allow(self, seconds: float) -> None:
        """Do nothing: there is no deadline."""

    def went_through(self, items: Sequence[Any]) -> None:
        """Do nothing: nobody waits."""


class ItemOutcome(StrEnum):
    """What became of one item of a change."""

    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    MOVED = "moved"
    UNKNOWN = "unknown"
    NOT_TRIED = "not-tried"


@frozen_in_order
class StepAnswer(Generic[K]):
    """Items that were answered for, and the errors of those that failed."""

    items: Sequence[K]
    errors: Mapping[K, ItemError]


@frozen_in_order
class ChangeStep(Generic[K]):
    """The items that it changes, and what sends the requests for them, or for some, and yields their answers as they come."""

    items: Sequence[K]
    act: Callable[[Sequence[K]], Iterator[StepAnswer[K]]]

    @classmethod
    def of_one_request(cls, items: Sequence[K], act: Callable[[Sequence[K]], Mapping[K, ItemError]]) -> Self:
        """A step of one request: ``act`` sends it and answers the errors of the items that failed."""
        return cls(items, lambda wanted: iter([StepAnswer(wanted, act(wanted))]))


class ChangeWatch(Protocol[K]):
    """Looks at the cluster right before and right after each step: at what others did since the change was planned."""

    def before(self, items: Sequence[K]) -> Mapping[K, str | ItemError]:
        """Of items that are not to be touched, what has moved, or why nobody can tell; the others are as planned."""

    def after(self, items: Sequence[K]) -> Mapping[K, str]:
        """Of items that were done and are already something else again, what they are."""


@dataclass(slots=True)
class Account(Generic[K]):
    """What became of every item, kept up to date while the change is carried out.

    ``errors`` has the reason for items that failed or are unknown, ``notes`` what others did to those that were refused or have
    moved. ``ended_by`` is the error that ended the change early, None
    where none did; ``signal`` is the signal that did.
    """

    outcomes: dict[K, ItemOutcome] = field(default_factory=dict)
    errors: dict[K, ItemError] = field(default_factory=dict)
    notes: dict[K, str] = field(default_factory=dict)
    ended_by: KgctlError | None = None
    signal: int | None = None

    def having(self, outcome: ItemOutcome) -> list[K]:
        """Return the items with this outcome."""
        return [item for item, found in self.outcomes.items() if found is outcome]

    @property
    def may_have_changed(self) -> bool:
        """Whether the cluster is, or may be, no longer as it was."""
        return any(outcome in (ItemOutcome.DONE, ItemOutcome.MOVED, ItemOutcome.UNKNOWN) for outcome in self.outcomes.values())


def carry_out(
    steps: Iterable[ChangeStep[K]],
    read_back: Callable[[Sequence[K]], Mapping[K, bool]],
    stop: StopRequest | None = None,
    watch: ChangeWatch[K] | None = None,
    *,
    admin: object = None,
) -> Account[K]:
    """Do the steps in order, and answer what became of every item. Raises nothing that a cluster or a user can cause.

    ``read_back`` tells of items whether they are done now; one that is not, or is left out, stays unknown: the request may still
    be on its way. ``watch`` looks before each step, whose items it may refuse, and after it. Items of a step that were lost with
    a connection are read back, and those that are not done sent again, looked at by ``watch`` as at first.

    Steps of which anything was lost have the time limit of ``admin`` together, with `LAST_SHARE` of it kept for a look at what
    nobody knows: what is left over then is not tried. Steps that go through at once (`AT_ONCE_S`) do not count, however many
    there are, nor does a look before the change that went well; of one that did not what it has left over is the change's. What
    the change leaves over is the limit of what follows.

    A time-out in a step of which nothing was answered ends the change, as the next would not fare better: else one of several
    brokers is away, and the others' groups are gone on with. So do `MOST_LOST_IN_A_ROW` steps that were cut short one after the
    other, and a signal.
    """
    return _Carrying(list(steps), read_back, stop or NeverStop(), watch, admin).through()


class _Carrying(Generic[K]):
    """One change on its way."""

    def __init__(
        self,
        steps: Sequence[ChangeStep[K]],
        read_back: Callable[[Sequence[K]], Mapping[K, bool]],
        stop: StopRequest,
        watch: ChangeWatch[K] | None,
        admin: object,
    ) -> None:
        self._steps = steps
        self._read_back = read_back
        self._stop = stop
        self._watch = watch
        self._admin: LimitsTime | None = admin if isinstance(admin, LimitsTime) else None
        self._before = self._admin.limit if self._admin else None
        self._steps_limit = self._new_limit()
        self._last_look_s = LAST_SHARE * self._time_s()
        self._patience_s = self._time_left_s() - self._last_look_s
        self._account: Account[K] = Account({item: ItemOutcome.NOT_TRIED for step in steps for item in step.items})

    def through(self) -> Account[K]:
        """A second signal may cut in between any two lines: whatever it cuts short, what is settled by then is told."""
        with suppress(Interrupted):
            self._through_steps()
        self._account.signal = self._stop.signal
        with suppress(Interrupted):
            self._look_for_the_last_time()
        self._stop.allow(0)
        self._limit(None if self._before is None else max(0.0, self._patience_s) + self._last_look_s)
        return self._account

    def _through_steps(self) -> None:
        account, lost_in_a_row = self._account, 0
        for step in self._steps:
            if self._stop.signal is not None:
                break
            if self._admin is not None and self._patience_s <= 0:
                account.ended_by = TimedOutError(
                    f"too much was lost for the change to be done in {self._time_s():g} s (--timeout)"
                )
                break
            try:
                error = self._step(step)
            except KgctlError as error:
                account.ended_by = error
                break
            self._stop.went_through(step.items)
            lost_in_a_row = lost_in_a_row + 1 if error else 0
            if error is not None:
                is_hopeless = isinstance(error, TimedOutError) and all(map(self._is_unanswered, step.items))
                if is_hopeless or lost_in_a_row == MOST_LOST_IN_A_ROW or len(self._steps) == 1:
                    account.ended_by = error
                    break

    def _time_s(self) -> float:
        return self._admin.timeout_ms / 1000 if self._admin else 0.0

    def _new_limit(self) -> Deadline:
        return Deadline(round(1000 * self._time_s()), LOOKS_SHARE)

    def _time_left_s(self) -> float:
        """Of the whole time; all of it where the look before went well."""
        return self._before.left_s if self._before is not None and self._before.is_troubled else self._time_s()

    def _step(self, step: ChangeStep[K]) -> UnreachableError | None:
        """Send what the step has, and again what was lost on the way; None where that came through in the end.

        Raises:
            Interrupted: a signal has cut it short.
            KgctlError: nothing more can come of the change.
        """
        begun_s = time.monotonic()
        self._limit(self._patience_s)
        error = self._send(step, step.items)
        was_lost = error is not None or any(map(self._is_unanswered, step.items))
        error = self._again(step, begun_s) or error
        is_answered = not any(map(self._is_unanswered, step.items))
        if is_answered:
            self._look_again(step.items)
        free_s = 0.0 if was_lost else AT_ONCE_S
        self._patience_s -= max(0.0, time.monotonic() - begun_s - free_s)
        return None if is_answered else error

    def _again(self, step: ChangeStep[K], begun_s: float) -> UnreachableError | None:
        """Send once more what was lost, as long as the step, which began then, has time; as `_send`."""
        error, waits, most = None, RECONNECT.waits_s(), len(step.items)
        while lost := list(filter(self._is_lost, step.items)):
            if self._stop.signal is not None or time.monotonic() - begun_s > self._patience_s:
                break
            time.sleep(next(waits))
            self._limit(self._patience_s - (time.monotonic() - begun_s))
            readable = self._read(lost)
            again = [item for item in lost if item in readable and self._is_lost(item)][:most]
            error = self._send(step, again) or error
            self._read([item for item in again if self._account.outcomes[item] in (ItemOutcome.FAILED, ItemOutcome.REFUSED)])
            # All that is under way on a connection is lost with it: the fewer, the more comes through.
            most = max(1, len(again) // 2) if any(map(self._is_lost, again)) else 2 * most
            waits = waits if all(map(self._is_lost, again)) else RECONNECT.waits_s()
        return error

    def _limit(self, seconds: float | None) -> None:
        """What is asked from here on ends within so long; None: each request has a limit of its own."""
        if self._admin:
            self._admin.limit = None if seconds is None else self._steps_limit.renewed(seconds)

    def _send(self, step: ChangeStep[K], items: Sequence[K]) -> UnreachableError | None:
        """One try; what it was cut short by, where it was."""
        unanswered, is_sent = dict.fromkeys(items), False
        try:
            wanted = self._looked_at(items)
            if self._stop.signal is not None:
                return None
            unanswered, is_sent = dict.fromkeys(wanted), True
            self._mark(wanted, ItemOutcome.UNKNOWN, _INTERRUPTED)  # until it is answered: signals may come one after the other
            for answer in step.act(wanted) if wanted else ():
                self._note(answer)
                for item in answer.items:
                    unanswered.pop(item, None)
        except Interrupted:
            self._stop.allow(LAST_LOOK_S)
            raise
        except UnreachableError as error:
            may_be_done = is_sent and not error.nothing_sent
            self._mark(unanswered, ItemOutcome.UNKNOWN if may_be_done else ItemOutcome.FAILED, _item_error(error))
            return error
        except KgctlError as error:
            self._mark(unanswered, ItemOutcome.FAILED, _item_error(error))
            raise
        return None

    def _is_unanswered(self, item: K) -> bool:
        error = self._account.errors.get(item)
        return error is not None and error.code in _UNANSWERED

    def _is_doubtful(self, item: K) -> bool:
        """Whether what failed did so for a reason that may have come after the deed."""
        error = self._account.errors[item]
        return error.code is ErrorCode.UNKNOWN_SERVER_ERROR and not error.nothing_sent

    def _is_lost(self, item: K) -> bool:
        """Whether it failed for want of a connection, or nobody knows whether it did, and another try may fare better."""
        error = self._account.errors.get(item)
        return error is not None and error.code in _UNANSWERED - {ErrorCode.REQUEST_TIMED_OUT}

    def _looked_at(self, items: Sequence[K]) -> Sequence[K]:
        """The items that are as planned; the others are refused, or failed where nobody can tell. Whatever is raised, nothing was
        sent for any of them."""
        found = self._watch.before(items) if self._watch else {}
        for item, why in found.items():
            if isinstance(why, ItemError):
                self._mark([item], ItemOutcome.FAILED, replace(why, nothing_sent=True))
            else:
                self._settle(item, ItemOutcome.REFUSED)
                self._account.notes[item] = why
        return [item for item in items if item not in found] if found else items

    def _look_again(self, items: Sequence[K]) -> None:
        """Where the cluster does not answer, what it said of the step holds."""
        done = [item for item in items if self._account.outcomes[item] is ItemOutcome.DONE]
        if self._watch is None:
            return
        with suppress(KgctlError, Interrupted):
            for item, note in self._watch.after(done).items():
                self._account.outcomes[item], self._account.notes[item] = ItemOutcome.MOVED, note

    def _note(self, answer: StepAnswer[K]) -> None:
        for item in answer.items:
            error = answer.errors.get(item)
            if error is None:
                self._settle(item, ItemOutcome.DONE)
            else:
                is_unknown = error.code in _UNANSWERED and not error.nothing_sent
                self._mark([item], ItemOutcome.UNKNOWN if is_unknown else ItemOutcome.FAILED, error)

    def _settle(self, item: K, outcome: ItemOutcome) -> None:
        self._account.outcomes[item] = outcome
        self._account.errors.pop(item, None)
        self._account.notes.pop(item, None)

    def _mark(self, items: Iterable[K], outcome: ItemOutcome, error: ItemError) -> None:
        for item in items:
            self._account.outcomes[item], self._account.errors[item] = outcome, error

    def _read(self, items: Sequence[K]) -> Mapping[K, bool]:
        """Look whether items are done after all, and answer of which that could be told."""
        if not items:
            return {}
        try:
            found = self._read_back(items)
        except KgctlError:
            return {}
        for item, is_done in found.items():
            if is_done:
                self._settle(item, ItemOutcome.DONE)
        return found

    def _look_for_the_last_time(self) -> None:
        doubtful = list(filter(self._is_doubtful, self._account.having(ItemOutcome.FAILED)))
        unknown = [*self._account.having(ItemOutcome.UNKNOWN), *doubtful]
        if not unknown:
            return
        if self._account.signal is not None:
            self._stop.allow(LAST_LOOK_S)
        begun_s = time.monotonic()
        self._steps_limit = self._new_limit()  # who was silent is asked all the same
        self._limit(max(0.0, self._patience_s) + self._last_look_s)
        found: Mapping[K, bool] = {}
        with suppress(Interrupted):
            found = self._read(unknown)
        self._account.outcomes |= dict.fromkeys((item for item in doubtful if item not in found), ItemOutcome.UNKNOWN)
        self._last_look_s -= time.monotonic() - begun_s


def _item_error(error: KgctlError) -> ItemError:
    try:
        code = ErrorCode[error.code]
    except KeyError:
        code = ErrorCode.REQUEST_TIMED_OUT if isinstance(error, TimedOutError) else ErrorCode.NETWORK_EXCEPTION
    return ItemError(code, error.message)


_GROUPS_PER_STEP = 50


def groups_a_step(admin: GroupAdmin, most: int) -> int:
    """How many groups a step may have: one of an admin that changes one after the other in a limited time, as many would take
    more than goes through at once (`AT_ONCE_S`)."""
    return 1 if isinstance(admin, LimitsTime) and not isinstance(admin, AltersManyGroups) else most


@frozen_in_order
class DeletionDecision:
    """The group as it is listed, if it is, and why it cannot be deleted; None: it can."""

    listing: GroupListing | None
    refused: ItemError | None = None


def decide_deletion(admin: GroupAdmin, group_ids: Sequence[str]) -> dict[str, DeletionDecision]:
    """Which of these groups can be deleted now: those of every type that are Empty, as a broker sees it.

    Source: Group#validateDeleteGroup of the classic, consumer, share and streams groups: anything but Empty is NON_EMPTY_GROUP.
    """
    listed = admin.list_groups()
    found = {group_id: listed.values.get(group_id) for group_id in group_ids}
    unlisted = [group_id for group_id, listing in found.items() if listing is None]
    described: GroupResults[Any] = admin.describe_groups(unlisted) if unlisted else Results()
    # One that moves is on no broker's list.
    found |= {group_id: listing_of(group) for group_id, group in described.values.items()}
    return {
        group_id: DeletionDecision(listing, _refused(group_id, listing, described.errors.get(group_id)))
        for group_id, listing in found.items()
    }


def _refused(group_id: str, listing: GroupListing | None, error: ItemError | None) -> ItemError | None:
    if listing is None:
        return error or item_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group_id)
    if listing.state in (GroupState.EMPTY, GroupState.UNKNOWN):  # of an unknown state, only the broker can tell
        return None
    if listing.state is GroupState.DEAD:
        return item_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group_id)
    return ItemError(ErrorCode.NON_EMPTY_GROUP, f"group '{group_id}' is active ({listing.state.value}): it has members")


def execute_deletion(
    admin: GroupAdmin, decisions: Mapping[str, DeletionDecision], stop: StopRequest | None, saved: Mapping[str, Committed]
) -> Account[str]:
    """Delete the groups that were decided to be deletable, and tell what became of each of these, whatever ends it.

    A group of ``saved`` is refused where it no longer has these commits right before the request.
    """
    wanted = [group_id for group_id, decision in decisions.items() if decision.refused is None]
    size = groups_a_step(admin, _GROUPS_PER_STEP)
    batches = [wanted[start : start + size] for start in range(0, len(wanted), size)]
    steps = [ChangeStep.of_one_request(batch, lambda groups: admin.delete_groups(groups).errors) for batch in batches]
    watch = _GroupsAsSaved(admin, saved)
    return carry_out(steps, lambda items: _are_gone(admin, items), stop, watch, admin=admin)


@frozen_in_order
class _GroupsAsSaved:
    """Refuses groups whose commits are others by now: nobody could bring those back."""

    admin: GroupAdmin
    saved: Mapping[str, Committed]

    def before(self, items: Sequence[str]) -> Mapping[str, str | ItemError]:
        """Compares all commits of each group."""
        found = committed_now(self.admin, [group_id for group_id in items if group_id in self.saved])
        moved = {group_id: next(moves(self.saved[group_id], commits), None) for group_id, commits in found.values.items()}
        return {**found.errors, **{group_id: f"{move[0]}: {move[1]}" for group_id, move in moved.items() if move}}

    def after(self, items: Sequence[str]) -> Mapping[str, str]:
        """A group that is there again is another one."""
        del items
        return {}


CommitKey = tuple[str, TopicPartition]


def taking_away(admin: GroupAdmin, commits: Iterable[CommitKey]) -> Iterator[ChangeStep[CommitKey]]:
    """Steps that delete commits, a request a group."""

    def act(items: Sequence[CommitKey]) -> Mapping[CommitKey, ItemError]:
        group_id = items[0][0]
        errors = admin.delete_offsets(group_id, [partition for _, partition in items]).errors
        return {(group_id, partition): error for partition, error in errors.items()}

    by_group: dict[str, list[CommitKey]] = {}
    for commit in commits:
        by_group.setdefault(commit[0], []).append(commit)
    yield from (ChangeStep.of_one_request(items, act) for items in by_group.values())


@frozen_in_order
class CommitsAsPlanned:
    """Refuses groups, each as a whole, whose commits are no longer the planned ones, which are those of the undo file; and finds
    commits that came right after the change. ``aim`` is what each partition has by then; None for nothing. ``per_partition``: of
    a group only those partitions are refused. What was ``sent`` before and lost may be there by now."""

    admin: GroupAdmin
    planned: Mapping[CommitKey, OffsetAndMetadata | None]
    aim: Mapping[CommitKey, OffsetAndMetadata | None]
    per_partition: bool = False
    refused: set[str] = field(default_factory=set)
    sent: set[CommitKey] = field(default_factory=set)

    def before(self, items: Sequence[CommitKey]) -> Mapping[CommitKey, str | ItemError]:
        """One look at the groups of a step."""
        found = committed_now(self.admin, [group_id for group_id, _ in items])
        notes: dict[CommitKey, str | ItemError] = {key: found.errors[key[0]] for key in items if key[0] in found.errors}
        now = found.values
        for key in (key for key in items if key[0] in now):
            old, new = self.planned[key], now[key[0]].get(key[1])
            is_ours = key in self.sent and _offset(new) == _offset(self.aim[key])
            if old != new and present(old) != present(new) and not is_ours:
                notes[key] = outdated(present(old), present(new))
                self.refused.add(key[0])
        notes |= self._without_topic([key for key in notes if key[0] in now and present(now[key[0]].get(key[1])) is None])
        if self.refused and not self.per_partition:
            notes |= {key: LEFT_ALONE for key in items if key[0] in self.refused and key not in notes}
        self.sent.update(key for key in items if key not in notes)
        return notes

    def _without_topic(self, keys: Sequence[CommitKey]) -> Mapping[CommitKey, str]:
        """Those whose commit went with its topic."""
        known: Mapping[str, int] | None = None
        with suppress(KgctlError):
            known = self.admin.list_topics(sorted({place.topic for _, place in keys})) if keys else None
        if known is None:
            return {}
        why = "topic {!r} is gone, or hidden from this user, and so is its commit"
        return {key: why.format(key[1].topic) for key in keys if key[1].topic not in known}

    def after(self, items: Sequence[CommitKey]) -> Mapping[CommitKey, str]:
        """Of a group that cannot be asked nothing is said."""
        found = committed_now(self.admin, [group_id for group_id, _ in items]).values
        moved: dict[CommitKey, str] = {}
        for key in (key for key in items if key[0] in found):
            offset = _offset(found[key[0]].get(key[1]))
            if offset != _offset(self.aim[key]):
                moved[key] = f"was done, and somebody else changed it since: {'no commit' if offset is None else offset} now"
        return moved


def _offset(commit: OffsetAndMetadata | None) -> int | None:
    return None if commit is None or commit.offset == NO_OFFSET else commit.offset


def committed_now(admin: GroupAdmin, group_ids: Sequence[str]) -> GroupResults[Committed]:
    """What groups have committed; asked twice where the first answer may be of a coordinator that has just been lost."""
    found = admin.list_committed_offsets(list(dict.fromkeys(group_ids)))
    if not found.errors:
        return found
    again = admin.list_committed_offsets(list(found.errors))
    return Results({**found.values, **again.values}, again.errors)


def moves(planned: Mapping[TopicPartition, OffsetAndMetadata | None], found: Committed) -> Iterator[tuple[TopicPartition, str]]:
    """Yield the partitions whose commit, of either side, is not as it was when the change was planned, and what it was and is."""
    for partition in sorted({*planned, *found}):
        old, new = present(planned.get(partition)), present(found.get(partition))
        if old != new:
            yield partition, outdated(old, new)


def present(commit: OffsetAndMetadata | None) -> OffsetAndMetadata | None:
    """Return the commit; None for one that says that there is none."""
    return None if commit is None or commit.offset == NO_OFFSET else commit


def outdated(old: OffsetAndMetadata | None, new: OffsetAndMetadata | None) -> str:
    """Return what the commit of a partition was, and is, as a message says it."""
    is_same = old is not None and new is not None and old.offset == new.offset
    shown = "no commit" if new is None else f"{new.offset}{' with other metadata' if is_same else ''}"
    return f"changed since the plan was made: {'no commit' if old is None else old.offset} then, {shown} now"


def _are_gone(admin: GroupAdmin, group_ids: Sequence[str]) -> Mapping[str, bool]:
    """By the word of each group's own coordinator: a list lacks the groups of one that has just been lost, without a word where
    the cluster no longer counts that among its brokers. Of a group without one nothing is said."""
    found = admin.describe_groups(group_ids)
    gone = {group_id: True for group_id, error in found.errors.items() if error.code is ErrorCode.GROUP_ID_NOT_FOUND}
    return gone | dict.fromkeys(found.values, False)
