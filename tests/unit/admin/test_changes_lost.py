"""What a change does with items that were lost: looks at them, sends again what is not done, and tells what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from kgctl.admin import ItemError
from kgctl.admin.changes import LAST_LOOK_S, Account, ChangeStep, ItemOutcome, NeverStop, StepAnswer, carry_out, decide_deletion
from kgctl.errors import Interrupted, UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MemberDescription, listing_of
from kgctl.wire import Deadline
from tests.cli.fake_admin import FakeGroupAdmin

DONE, FAILED, MOVED, REFUSED, UNKNOWN = (
    ItemOutcome.DONE,
    ItemOutcome.FAILED,
    ItemOutcome.MOVED,
    ItemOutcome.REFUSED,
    ItemOutcome.UNKNOWN,
)
LOST, DOUBTFUL = (ItemError(code, "lost") for code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNKNOWN_SERVER_ERROR))
GONE = ItemError(ErrorCode.GROUP_ID_NOT_FOUND, "gone")

Try = Mapping[str, ItemError] | BaseException


class Lab:
    """A step of the items of a word. Its tries end as ``tries`` say, the last one for ever after; time passes with each."""

    timeout_ms = 10_000

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.limit: Deadline | None = None
        self.now_s = 0.0
        self.waits: list[float] = []
        self.sent: list[str] = []
        self.read: list[str] = []
        self.is_done: Callable[[str], bool | None] = lambda _: False
        monkeypatch.setattr("kgctl.admin.changes.time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("kgctl.admin.changes.time.sleep", self.waits.append)

    def step(self, items: str, *tries: Try) -> ChangeStep[str]:
        left = list(tries)

        def act(wanted: Sequence[str]) -> Mapping[str, ItemError]:
            self.now_s += 1.0
            self.sent.append("".join(wanted))
            found = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(found, BaseException):
                raise found
            return {item: error for item, error in found.items() if item in wanted}

        return ChangeStep(list(items), lambda wanted: iter([StepAnswer(wanted, act(wanted))]))

    def read_back(self, items: Sequence[str]) -> Mapping[str, bool]:
        """``is_done`` of each item; one of which that is None is left out."""
        self.read.append("".join(items))
        return {item: found for item in items if (found := self.is_done(item)) is not None}

    def run(self, *steps: ChangeStep[str], **given: object) -> Account[str]:
        return carry_out(steps, self.read_back, admin=self, **given)  # type: ignore[arg-type]


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(monkeypatch)


def test_what_was_lost_and_is_not_done_is_sent_once_more(lab: Lab) -> None:
    account = lab.run(lab.step("ab", {"b": LOST}, {}))
    assert (lab.sent, lab.read, account.outcomes) == (["ab", "b"], ["b"], {"a": DONE, "b": DONE})


def test_what_was_lost_and_is_done_is_not_sent_again(lab: Lab) -> None:
    lab.is_done = lambda _: True
    account = lab.run(lab.step("ab", {"b": LOST}, {}))
    assert (lab.sent, account.outcomes) == (["ab"], {"a": DONE, "b": DONE})


def test_what_cannot_be_read_is_not_sent_again(lab: Lab) -> None:
    def is_done(item: str) -> bool | None:
        lab.now_s += 1.0
        return None if item == "a" else False

    lab.is_done = is_done
    account = lab.run(lab.step("ab", {"a": LOST, "b": LOST}, {}))
    assert (set(lab.sent[1:]) - {""}, account.outcomes) == ({"b"}, {"a": UNKNOWN, "b": DONE})


def test_after_a_signal_nothing_is_sent_again(lab: Lab) -> None:
    stop = Recorded()

    def is_done(_: str) -> bool:
        stop.signal = 2
        return False

    lab.is_done = is_done
    lab.run(lab.step("ab", {"a": LOST, "b": LOST}), stop=stop)
    assert lab.sent == ["ab"]


def test_the_more_is_lost_the_fewer_are_sent_at_once(lab: Lab) -> None:
    lost = dict.fromkeys("abcdefgh", LOST)
    lab.run(lab.step("abcdefgh", lost, lost, lost, {}))
    assert lab.sent == ["abcdefgh", "abcdefgh", "abcd", "ab", "cdef", "gh"]


def test_waits_become_longer_until_something_comes_through(lab: Lab) -> None:
    lost = dict.fromkeys("abcd", LOST)
    lab.run(lab.step("abcd", lost, lost, lost, {"b": LOST}, {}))
    first, second, third, *rest = lab.waits
    assert first < second < third
    assert rest[0] == pytest.approx(first, rel=0.5)


def test_a_second_try_that_is_refused_since_the_first_was_done_is_done(lab: Lab) -> None:
    lab.is_done = lambda _: len(lab.sent) > 1
    account = lab.run(lab.step("a", {"a": LOST}, {"a": GONE}))
    assert (lab.sent, account.outcomes, account.errors) == (["a", "a"], {"a": DONE}, {})


def test_a_second_try_that_fails_has_failed(lab: Lab) -> None:
    account = lab.run(lab.step("a", {"a": LOST}, {"a": GONE}))
    assert (account.outcomes, account.errors) == ({"a": FAILED}, {"a": GONE})


@pytest.mark.parametrize(
    "tries",
    [
        ({"a": LOST}, UnreachableError("away")),
        (UnreachableError("away"), {"a": LOST}),
        ({"a": LOST}, UnreachableError("away"), {"a": LOST}),
    ],
)
def test_what_cut_a_step_short_is_told_whichever_try_it_was(lab: Lab, tries: tuple[Try, ...]) -> None:
    account = lab.run(lab.step("a", *tries))
    assert (account.outcomes, str(account.ended_by)) == ({"a": UNKNOWN}, "away")


class Recorded(NeverStop):
    """Keeps how long it allows."""

    def __init__(self) -> None:
        self.allowed: list[float] = []

    def allow(self, seconds: float) -> None:
        self.allowed.append(seconds)


def test_the_last_look_after_a_signal_has_a_time_of_its_own(lab: Lab) -> None:
    stop = Recorded()
    lab.run(lab.step("a", UnreachableError("away")), stop=stop)
    assert (stop.allowed, lab.read[-1]) == ([0], "a")

    stop.signal, stop.allowed = None, []
    interrupted = lab.step("b", Interrupted())
    act = interrupted.act

    def interrupt(items: Sequence[str]) -> object:
        stop.signal = 2
        return act(items)

    lab.run(ChangeStep(["b"], interrupt), stop=stop)  # type: ignore[arg-type]
    assert (stop.allowed, lab.read[-1]) == ([LAST_LOOK_S, LAST_LOOK_S, 0], "b")


@pytest.mark.parametrize(("is_sent", "read"), [(True, ["a"]), (False, [])])
def test_an_error_that_may_have_come_after_the_deed_is_looked_at(lab: Lab, is_sent: bool, read: list[str]) -> None:
    error = ItemError(DOUBTFUL.code, "broke", nothing_sent=not is_sent)
    account = lab.run(lab.step("ab", {"a": error, "b": GONE}))
    assert (lab.read, account.outcomes) == (read, {"a": FAILED, "b": FAILED})
    lab.is_done = lambda _: None
    account = lab.run(lab.step("ab", {"a": error, "b": GONE}))
    assert account.outcomes == {"a": UNKNOWN if is_sent else FAILED, "b": FAILED}, "nobody could look"


class Watching:
    """Everything is as planned before, and was moved after."""

    def __init__(self) -> None:
        self.looks: list[str] = []

    def before(self, items: Sequence[str]) -> Mapping[str, str | ItemError]:
        return {}

    def after(self, items: Sequence[str]) -> Mapping[str, str]:
        self.looks.append("".join(items))
        return dict.fromkeys(items, "moved")


def test_what_was_done_is_looked_at_once_more_where_the_whole_step_was_answered(lab: Lab) -> None:
    watch = Watching()
    account = lab.run(lab.step("ab", {"b": GONE}), watch=watch)
    assert (watch.looks, account.outcomes) == (["a"], {"a": MOVED, "b": FAILED})
    account = lab.run(lab.step("cd", {"d": ItemError(ErrorCode.REQUEST_TIMED_OUT, "slow")}), watch=watch)
    assert (watch.looks, account.outcomes) == (["a"], {"c": DONE, "d": UNKNOWN})


def test_a_group_that_no_broker_lists_is_what_its_coordinator_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that moves is on nobody's list for a moment."""
    cluster = FakeGroupAdmin()
    cluster.group("g", {})
    cluster.group("h", {}, [MemberDescription("m")])
    there = {group_id: listing_of(group.description) for group_id, group in cluster.groups.items()}
    monkeypatch.setattr(cluster, "list_groups", lambda: FakeGroupAdmin().list_groups())
    found = decide_deletion(cluster, ["g", "h", "nosuch"])
    assert {group_id: (one.listing, one.refused and one.refused.code) for group_id, one in found.items()} == {
        "g": (there["g"], None),
        "h": (there["h"], ErrorCode.NON_EMPTY_GROUP),
        "nosuch": (None, ErrorCode.GROUP_ID_NOT_FOUND),
    }


@pytest.mark.parametrize(("owner", "name"), [(Recorded, "went_through"), (Account, "having")])
def test_a_second_signal_hides_nothing_of_what_was_done(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    """It is raised wherever the change is by then: between two steps, or on the way to the last look."""
    stop = Recorded()

    def cut_in(*_: object) -> None:
        stop.signal = 2
        raise Interrupted

    monkeypatch.setattr(owner, name, cut_in)
    account = lab.run(lab.step("a", {}), stop=stop)
    assert (account.outcomes, stop.allowed[-1:]) == ({"a": DONE}, [0])


def test_a_third_signal_does_not_make_of_what_was_sent_something_that_was_not(lab: Lab) -> None:
    class Hammered(Recorded):
        def allow(self, seconds: float) -> None:
            super().allow(seconds)
            if len(self.allowed) == 1:
                raise Interrupted

    stop = Hammered()
    stop_at = lab.step("ab", Interrupted())

    def act(items: Sequence[str]) -> Iterator[StepAnswer[str]]:
        stop.signal = 2
        yield StepAnswer(["a"], {})
        yield from stop_at.act(items)

    lab.is_done = lambda _: None
    account = lab.run(ChangeStep(["a", "b"], act), lab.step("c", {}), stop=stop)
    assert account.outcomes == {"a": DONE, "b": UNKNOWN, "c": ItemOutcome.NOT_TRIED}
