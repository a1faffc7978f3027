"""Resets on a cluster in memory: what holds whatever the offsets, logs and strategy are. Examples are in tests/cli."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin import ItemError
from kgctl.admin.changes import MOST_LOST_IN_A_ROW, Account, ChangeStep, ItemOutcome, NeverStop, StepAnswer, carry_out
from kgctl.admin.notation import UndoRow, parse_offset_file, undo_rows
from kgctl.admin.offset_reset import (
    PastOffset,
    ResetPlan,
    ResetRequest,
    ResetResult,
    ShiftBy,
    Strategy,
    ToCurrent,
    ToEarliest,
    ToHistory,
    ToLatest,
    ToOffset,
)
from kgctl.admin.resets import execute_reset, plan_reset
from kgctl.admin.topic_scopes import TopicScope
from kgctl.errors import AuthError, Interrupted, KgctlError, TimedOutError, UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MemberDescription, OffsetAndMetadata, TopicPartition
from kgctl.wire import Deadline
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog

PARTITIONS = 4
LOGS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 100)).map(lambda drawn: (min(drawn), max(drawn))),
    min_size=PARTITIONS,
    max_size=PARTITIONS,
)
COMMITS = st.dictionaries(
    st.integers(0, PARTITIONS - 1).map(lambda number: TopicPartition("t", number)),
    st.builds(OffsetAndMetadata, st.integers(0, 120), st.text("ab", max_size=2), st.integers(-1, 5)),
    max_size=PARTITIONS,
)
Commits = dict[TopicPartition, OffsetAndMetadata]


def to_history(commits: Commits) -> ToHistory:
    return ToHistory(0, {"g": {partition: PastOffset(commit) for partition, commit in commits.items()}})


STRATEGIES = st.one_of(
    st.just(ToEarliest()),
    st.just(ToLatest()),
    st.just(ToCurrent()),
    st.integers(0, 120).map(ToOffset),
    st.integers(-120, 120).map(ShiftBy),
    COMMITS.map(to_history),
)


def cluster(logs: list[tuple[int, int]], commits: Commits) -> FakeGroupAdmin:
    admin = FakeGroupAdmin()
    admin.topic("t", *(FakeLog(start, end) for start, end in logs))
    admin.group("g", commits)
    return admin


def planned(admin: FakeGroupAdmin, strategy: Strategy) -> ResetPlan:
    return plan_reset(admin, ResetRequest(("g",), strategy, (TopicScope("t"),)))


@given(LOGS, COMMITS, STRATEGIES)
def test_planning_changes_nothing_and_executing_does_what_was_planned(
    logs: list[tuple[int, int]], commits: Commits, strategy: Strategy
) -> None:
    admin = cluster(logs, commits)
    plan = planned(admin, strategy)
    assert admin.groups["g"].offsets == commits
    execute_reset(admin, plan)
    expected = dict(commits)
    expected.update({row.partition: row.new for row in plan.to_change() if row.new})
    assert admin.groups["g"].offsets == expected


@given(LOGS, COMMITS, STRATEGIES)
def test_backup_of_an_executed_reset_restores_every_commit_inside_the_log(
    logs: list[tuple[int, int]], commits: Commits, strategy: Strategy
) -> None:
    inside = {partition: commit for partition, commit in commits.items() if _is_inside(logs[partition.partition], commit)}
    admin = cluster(logs, inside)
    plan = planned(admin, strategy)
    changed = plan.to_change()
    backup = undo_rows([UndoRow(row.group_id, row.partition, row.old, row.new.offset if row.new else None) for row in changed])
    execute_reset(admin, plan)
    if plan.to_change():
        restored = parse_offset_file(backup, "backup", ())
        execute_reset(admin, plan_reset(admin, ResetRequest(("g",), restored)))
    assert admin.groups["g"].offsets == inside


def _is_inside(log: tuple[int, int], commit: OffsetAndMetadata) -> bool:
    return log[0] <= commit.offset <= log[1]


@given(LOGS, COMMITS, STRATEGIES)
def test_active_group_is_planned_and_never_changed(logs: list[tuple[int, int]], commits: Commits, strategy: Strategy) -> None:
    admin = cluster(logs, commits)
    idle_plan = planned(admin, strategy)
    admin.group("g", commits, [MemberDescription("m")])
    plan = planned(admin, strategy)
    assert [row for row in plan.rows if row.result is not ResetResult.FAILED] == [
        row for row in idle_plan.rows if row.result is not ResetResult.FAILED
    ]
    assert plan.to_change() == ()
    done = execute_reset(admin, plan).plan
    assert (done.groups, len(done.errors)) == ((), 1)
    assert admin.groups["g"].offsets == commits


@given(COMMITS, COMMITS)
def test_history_without_a_scope_covers_what_was_committed_then_and_what_is_now(then: Commits, now: Commits) -> None:
    admin = cluster([(0, 200)] * PARTITIONS, now)
    plan = plan_reset(admin, ResetRequest(("g",), to_history(then)))
    assert [row.partition for row in plan.rows] == sorted({*then, *now})
    execute_reset(admin, plan)
    assert {p: each.offset for p, each in admin.groups["g"].offsets.items()} == {
        p: each.offset for p, each in {**now, **then}.items()
    }


DONE, FAILED, UNKNOWN, NOT_TRIED = ItemOutcome.DONE, ItemOutcome.FAILED, ItemOutcome.UNKNOWN, ItemOutcome.NOT_TRIED
NOTHING_TOLD: Mapping[str, bool] = {}


def steps(*acts: BaseException | ErrorCode | None) -> list[ChangeStep[str]]:
    """One step an act, for the items a, b, ...: what it raises, the error of its item, or None for success."""

    def act(item: str, outcome: BaseException | ErrorCode | None) -> Callable[[Sequence[str]], Mapping[str, ItemError]]:
        def run(_: Sequence[str]) -> Mapping[str, ItemError]:
            if isinstance(outcome, BaseException):
                raise outcome
            return {} if outcome is None else {item: ItemError(outcome, outcome.name)}

        return run

    return [ChangeStep.of_one_request([item], act(item, outcome)) for item, outcome in zip("abcdefgh", acts, strict=False)]


def outcomes(acts: Sequence[BaseException | ErrorCode | None], read: Mapping[str, bool] = NOTHING_TOLD) -> Account[str]:
    return carry_out(steps(*acts), lambda items: {item: read[item] for item in items if item in read})


def unreachable(*, nothing_sent: bool = False) -> UnreachableError:
    error = UnreachableError("gone")
    error.nothing_sent = nothing_sent
    return error


@pytest.mark.parametrize(
    ("acts", "found", "is_ended"),
    [
        ([None, None], [DONE, DONE], False),
        ([None, ErrorCode.NON_EMPTY_GROUP, None], [DONE, FAILED, DONE], False),
        ([None, ErrorCode.REQUEST_TIMED_OUT, None], [DONE, UNKNOWN, DONE], False),
        ([None, TimedOutError("slow"), None], [DONE, UNKNOWN, NOT_TRIED], True),
        ([None, unreachable(), None], [DONE, UNKNOWN, DONE], False),
        ([unreachable(nothing_sent=True)], [FAILED], True),
        ([None, AuthError("no"), None], [DONE, FAILED, NOT_TRIED], True),
        ([unreachable()] * 4, [*[UNKNOWN] * MOST_LOST_IN_A_ROW, NOT_TRIED], True),
        ([unreachable(), unreachable(), None, unreachable()], [UNKNOWN, UNKNOWN, DONE, UNKNOWN], False),
        ([None, Interrupted(), None], [DONE, UNKNOWN, NOT_TRIED], False),
    ],
)
def test_every_item_has_an_outcome(
    acts: Sequence[BaseException | ErrorCode | None], found: list[ItemOutcome], is_ended: bool
) -> None:
    account = outcomes(acts)
    assert (list(account.outcomes.values()), account.ended_by is not None) == (found, is_ended)
    assert all(item in account.errors for item, outcome in account.outcomes.items() if outcome in (FAILED, UNKNOWN))


@pytest.mark.parametrize(("is_done", "found"), [(True, DONE), (False, UNKNOWN)])
def test_unknown_is_read_back(is_done: bool, found: ItemOutcome) -> None:
    account = outcomes([None, TimedOutError("slow"), None], {"b": is_done})
    assert list(account.outcomes.values()) == [DONE, found, NOT_TRIED]
    assert ("b" in account.errors) is not is_done


@pytest.mark.parametrize("failure", [UnreachableError("still gone"), Interrupted()])
def test_unknown_stays_so_where_the_cluster_does_not_answer_again(failure: BaseException) -> None:
    def read_back(items: Sequence[str]) -> Mapping[str, bool]:
        assert items == ["a"]
        raise failure

    assert carry_out(steps(TimedOutError("slow")), read_back).outcomes == {"a": UNKNOWN}


def test_a_broker_that_is_away_costs_its_own_items_as_long_as_others_answer() -> None:
    def half(items: str) -> ChangeStep[str]:
        def act(_: Sequence[str]) -> Iterator[StepAnswer[str]]:
            yield StepAnswer(items[0], {})
            raise TimedOutError("slow")

        return ChangeStep(items, act)

    account = carry_out([half("ab"), half("cd"), ChangeStep.of_one_request("e", lambda _: {})], lambda _: {"b": True})
    assert list(account.outcomes.values()) == [DONE, DONE, DONE, UNKNOWN, DONE]
    assert account.ended_by is None
    account = carry_out([half("ab"), half("cd"), half("ef"), ChangeStep.of_one_request("g", lambda _: {})], lambda _: {})
    assert (account.outcomes["g"], account.ended_by is not None) == (NOT_TRIED, True)


def test_a_signal_ends_it_between_two_steps() -> None:
    stop = NeverStop()
    done: list[str] = []

    def act(item: str) -> Callable[[Sequence[str]], Mapping[str, ItemError]]:
        def run(_: Sequence[str]) -> Mapping[str, ItemError]:
            done.append(item)
            stop.signal = 2 if item == "b" else None
            return {}

        return run

    account = carry_out([ChangeStep.of_one_request([item], act(item)) for item in "abc"], lambda _: {}, stop)
    assert (done, account.signal, list(account.outcomes.values())) == (["a", "b"], 2, [DONE, DONE, NOT_TRIED])


def test_what_a_signal_cut_short_has_a_code_of_its_own() -> None:
    """A script that asks again after a time-out must not do so after Ctrl-C."""

    def interrupt(_: Sequence[str]) -> Mapping[str, ItemError]:
        raise Interrupted

    account = carry_out([ChangeStep.of_one_request("a", interrupt)], lambda _: {})
    assert (account.outcomes["a"], account.errors["a"].to_exception().code) == (UNKNOWN, "INTERRUPTED")


class Limited:
    """A cluster with a time limit, whose every step so long is lost and then read back as done."""

    timeout_ms = 1_000

    def __init__(self) -> None:
        self.limit: Deadline | None = None
        self.now_s = 0.0
        self.tries = 0

    def lose(self, items: Sequence[str]) -> Mapping[str, ItemError]:
        self.tries += 1
        self.now_s += 0.3
        return dict.fromkeys(items, ItemError(ErrorCode.NETWORK_EXCEPTION, "lost"))

    def work(self, _: Sequence[str]) -> Mapping[str, ItemError]:
        self.now_s += 0.3
        return {}


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Limited:
    """Time passes for changes where this cluster says so."""
    cluster = Limited()
    monkeypatch.setattr("kgctl.admin.changes.time.monotonic", lambda: cluster.now_s)
    monkeypatch.setattr("kgctl.admin.changes.time.sleep", lambda _: None)
    return cluster


def test_steps_that_lose_have_one_time_limit_together(limited: Limited) -> None:
    """Each comes through in the end: without a limit for all of them the change would take 300 ms for every group."""
    many = [ChangeStep.of_one_request([item], limited.lose) for item in "abcdefgh"]
    account = carry_out(many, lambda items: dict.fromkeys(items, True), admin=limited)
    assert list(account.outcomes.values()) == [*[DONE] * 3, *[NOT_TRIED] * 5]
    assert (limited.now_s <= limited.timeout_ms / 1000, type(account.ended_by)) == (True, TimedOutError)
    assert "--timeout" in str(account.ended_by)


def test_steps_that_go_well_are_never_cut_off(limited: Limited) -> None:
    many = [ChangeStep.of_one_request([item], limited.work) for item in "abcdefgh"]
    assert set(carry_out(many, lambda _: {}, admin=limited).outcomes.values()) == {DONE}


def test_a_look_that_went_ill_leaves_the_change_what_it_has_not_used(limited: Limited) -> None:
    """Of 1,000 ms 300 are left, and 200 of them are kept for the last look: the first step is tried until 100 ms are over."""
    limited.limit = Deadline(300)
    limited.limit.wait(0)
    account = carry_out([ChangeStep.of_one_request([item], limited.lose) for item in "ab"], lambda _: {"a": True}, admin=limited)
    assert (list(account.outcomes.values()), type(account.ended_by)) == ([DONE, NOT_TRIED], TimedOutError)


def test_a_change_for_which_a_look_that_went_ill_has_left_no_time_is_not_begun(limited: Limited) -> None:
    limited.limit = Deadline(199)
    limited.limit.wait(0)
    account = carry_out(steps(None), lambda _: {}, admin=limited)
    assert (account.outcomes, type(account.ended_by)) == ({"a": NOT_TRIED}, TimedOutError)
    assert account.may_have_changed is False


def test_a_look_that_went_well_takes_nothing_of_the_time_of_the_change(limited: Limited) -> None:
    limited.limit = Deadline(1)
    many = [ChangeStep.of_one_request([item], limited.lose) for item in "ab"]
    account = carry_out(many, lambda items: dict.fromkeys(items, True), admin=limited)
    assert list(account.outcomes.values()) == [DONE, DONE]


def test_what_follows_a_change_has_the_time_that_it_left_over(limited: Limited) -> None:
    limited.limit = Deadline(1_000)
    limited.limit.wait(0)
    carry_out([ChangeStep.of_one_request("a", limited.lose)], lambda _: {"a": True}, admin=limited)
    assert 600 < limited.limit.timeout_ms <= 700
    limited.limit = None
    carry_out([ChangeStep.of_one_request("a", limited.lose)], lambda _: {"a": True}, admin=limited)
    assert limited.limit is None


def test_the_last_look_asks_those_too_who_were_silent(limited: Limited) -> None:
    """They may be back."""

    def silent(_: Sequence[str]) -> Mapping[str, ItemError]:
        assert limited.limit
        Deadline.of_call(limited.limit, 9).note_silence("broker")
        raise TimedOutError("slow")

    asked: list[bool] = []

    def read_back(_: Sequence[str]) -> Mapping[str, bool]:
        assert limited.limit
        asked.append(Deadline.of_call(limited.limit, 9).expects("broker"))
        return {}

    carry_out([ChangeStep.of_one_request("a", silent)], read_back, admin=limited)
    assert asked == [True]


def test_who_was_silent_in_one_step_is_not_waited_for_in_the_next(limited: Limited) -> None:
    asked: list[bool] = []

    def silent(items: Sequence[str]) -> Iterator[StepAnswer[str]]:
        assert limited.limit
        deadline = Deadline.of_call(limited.limit, 9)
        asked.append(deadline.expects("broker"))
        deadline.note_silence("broker")
        yield StepAnswer(items[:1], {})
        raise TimedOutError("slow")

    carry_out([ChangeStep(["a", "b"], silent), ChangeStep(["c", "d"], silent)], lambda _: {}, admin=limited)
    assert asked == [True, False]


def test_what_was_never_sent_failed() -> None:
    def act(_: Sequence[str]) -> Mapping[str, ItemError]:
        lost = ErrorCode.NETWORK_EXCEPTION
        return {"a": ItemError(lost, "cannot connect", nothing_sent=True), "b": ItemError(lost, "lost")}

    account = carry_out([ChangeStep.of_one_request("ab", act)], lambda _: {})
    assert account.outcomes == {"a": FAILED, "b": UNKNOWN}


def test_account_says_whether_the_cluster_may_have_changed() -> None:
    cases: list[tuple[list[BaseException | ErrorCode | None], bool]] = [
        ([unreachable(nothing_sent=True)], False),
        ([unreachable()], True),
        ([KgctlError("no")], False),
        ([None], True),
    ]
    assert [outcomes(acts).may_have_changed for acts, _ in cases] == [expected for _, expected in cases]


@pytest.mark.parametrize("end", [Interrupted(), TimedOutError("slow"), UnreachableError("gone")])
def test_what_a_step_answered_before_it_was_cut_short_is_known(end: BaseException) -> None:
    def act(_: Sequence[str]) -> Iterator[StepAnswer[str]]:
        yield StepAnswer("a", {})
        yield StepAnswer("b", {"b": ItemError(ErrorCode.NON_EMPTY_GROUP, "no")})
        raise end

    account = carry_out([ChangeStep("abcd", act), ChangeStep.of_one_request("e", lambda _: {})], lambda _: {})
    expected = [DONE, FAILED, UNKNOWN, UNKNOWN, NOT_TRIED if type(end) is Interrupted else DONE]
    assert list(account.outcomes.values()) == expected
