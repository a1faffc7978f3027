"""What others did between a plan and its deed: who is left alone, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kgctl.admin import ItemError, Results
from kgctl.admin.changes import CommitsAsPlanned, ItemOutcome, decide_deletion, execute_deletion, outdated
from kgctl.admin.offset_reset import LEFT_ALONE
from kgctl.errors import TimedOutError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import NO_OFFSET, GroupState, OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
A0, A1, A2 = (("a", place) for place in (P0, P1, P2))
AWAY = ItemError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "away")


def at(offset: int, metadata: str = "") -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, metadata)


@pytest.fixture
def cluster() -> FakeGroupAdmin:
    made = FakeGroupAdmin()
    made.topic("t", *(FakeLog(0, 100) for _ in range(3)))
    made.group("a", {P0: at(5), P1: at(6)})
    made.group("b", {P0: at(5)})
    return made


def watch(cluster: FakeGroupAdmin, *, per_partition: bool = False) -> CommitsAsPlanned:
    return CommitsAsPlanned(cluster, {A0: at(5), A1: at(6), A2: None}, {A0: at(9), A1: at(9), A2: at(9)}, per_partition)


def test_who_is_as_planned_is_touched(cluster: FakeGroupAdmin) -> None:
    assert watch(cluster).before([A0, A1, A2]) == {}


@pytest.mark.parametrize(("per_partition", "others"), [(False, {A0: LEFT_ALONE, A2: LEFT_ALONE}), (True, {})])
def test_of_a_group_that_moved_the_rest_is_left_alone(
    cluster: FakeGroupAdmin, per_partition: bool, others: Mapping[object, str]
) -> None:
    cluster.group("a", {P0: at(5), P1: at(7)})
    found = watch(cluster, per_partition=per_partition).before([A0, A1, A2])
    assert found == {A1: "changed since the plan was made: 6 then, 7 now", **others}


def test_a_commit_where_there_was_none_is_a_move(cluster: FakeGroupAdmin) -> None:
    cluster.group("a", {P0: at(5), P1: at(6), P2: at(NO_OFFSET)})
    assert watch(cluster).before([A2]) == {}
    cluster.group("a", {P0: at(5), P1: at(6), P2: at(0)})
    assert watch(cluster).before([A2]) == {A2: "changed since the plan was made: no commit then, 0 now"}


def test_a_commit_of_the_same_offset_is_a_move_where_its_metadata_are_others(cluster: FakeGroupAdmin) -> None:
    cluster.group("a", {P0: at(5, "mine"), P1: at(6)})
    assert watch(cluster).before([A0]) == {A0: "changed since the plan was made: 5 then, 5 with other metadata now"}


def test_a_coordinator_that_has_just_been_lost_is_asked_again(cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Results[str, object]] = [Results({}, {"a": AWAY, "b": AWAY}), Results({"a": {}}, {"b": AWAY})]
    monkeypatch.setattr(FakeGroupAdmin, "list_committed_offsets", lambda *_: answers.pop(0))
    assert watch(cluster).before([A2, ("b", P0)]) == {("b", P0): AWAY}


def test_what_was_sent_and_lost_may_be_there(cluster: FakeGroupAdmin) -> None:
    looks = watch(cluster)
    cluster.group("a", {P0: at(9), P1: at(6)})
    assert set(looks.before([A0])) == {A0}, "nothing was sent, so that it is somebody else's"
    looks = watch(cluster)
    cluster.group("a", {P0: at(5), P1: at(6)})
    assert looks.before([A0, A1]) == {}
    cluster.group("a", {P0: at(9), P1: at(8)})
    assert looks.before([A0]) == {}
    assert looks.before([A1]) == {A1: "changed since the plan was made: 6 then, 8 now"}


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (at(9, "m"), None),
        (at(8), "was done, and somebody else changed it since: 8 now"),
        (at(NO_OFFSET), "was done, and somebody else changed it since: no commit now"),
        (None, "was done, and somebody else changed it since: no commit now"),
    ],
)
def test_what_was_done_and_is_something_else_has_moved(
    cluster: FakeGroupAdmin, now: OffsetAndMetadata | None, told: str | None
) -> None:
    cluster.group("a", {P1: at(6)} if now is None else {P0: now, P1: at(6)})
    assert watch(cluster).after([A0]) == ({} if told is None else {A0: told})


def test_nothing_is_said_of_a_group_that_cannot_be_asked(cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "list_committed_offsets", lambda groups: Results({}, dict.fromkeys(groups, AWAY)))
    assert watch(cluster).after([A0]) == {}
    assert watch(cluster).before([A0, A1]) == {A0: AWAY, A1: AWAY}


def test_other_metadata_are_told_as_such() -> None:
    assert outdated(at(5), at(5, "m")).endswith("5 then, 5 with other metadata now")
    assert outdated(at(5), at(6, "m")).endswith("5 then, 6 now")
    assert outdated(None, at(6)).endswith("no commit then, 6 now")


def test_a_group_that_went_on_since_it_was_saved_is_not_deleted(cluster: FakeGroupAdmin) -> None:
    """What it has committed since is in no undo file. Of one that nothing was saved of nothing can be lost."""
    decisions = decide_deletion(cluster, ["a", "b"])
    saved = {"a": {P0: at(5), P1: at(6)}}
    cluster.group("a", {P0: at(5), P1: at(7)})
    account = execute_deletion(cluster, decisions, None, saved)
    assert (account.outcomes, account.notes) == (
        {"a": ItemOutcome.REFUSED, "b": ItemOutcome.DONE},
        {"a": "t-1: changed since the plan was made: 6 then, 7 now"},
    )
    assert set(cluster.groups) == {"a"}


@pytest.mark.parametrize(
    ("still", "is_told", "outcomes"),
    [
        ((), True, {"a": ItemOutcome.DONE, "b": ItemOutcome.DONE}),
        (("b",), True, {"a": ItemOutcome.DONE, "b": ItemOutcome.UNKNOWN}),
        ((), False, {"a": ItemOutcome.UNKNOWN, "b": ItemOutcome.UNKNOWN}),
        (("a", "b"), False, {"a": ItemOutcome.UNKNOWN, "b": ItemOutcome.UNKNOWN}),
    ],
)
def test_a_deletion_without_an_answer_is_looked_for_at_the_coordinator(
    cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch, still: Sequence[str], is_told: bool, outcomes: object
) -> None:
    """A group that is on no list is gone only where its own coordinator says so: those of a broker that is given up are not."""
    decisions = decide_deletion(cluster, ["a", "b"])

    def delete(groups: Sequence[str]) -> Results[str, None]:
        for group_id in {*groups} - {*still}:
            del cluster.groups[group_id]
        if not is_told:
            cluster.group_errors |= dict.fromkeys(groups, AWAY)
            monkeypatch.setattr(cluster, "list_groups", FakeGroupAdmin().list_groups)
        raise TimedOutError("slow")

    monkeypatch.setattr(cluster, "delete_groups", delete)
    assert execute_deletion(cluster, decisions, None, {}).outcomes == outcomes


def test_a_group_that_has_committed_elsewhere_since_it_was_saved_is_not_deleted(cluster: FakeGroupAdmin) -> None:
    decisions = decide_deletion(cluster, ["b"])
    cluster.group("b", {P0: at(5), P1: at(1)})
    account = execute_deletion(cluster, decisions, None, {"b": {P0: at(5)}})
    assert account.notes == {"b": "t-1: changed since the plan was made: no commit then, 1 now"}
    assert set(cluster.groups) == {"a", "b"}


def test_a_group_whose_commits_nobody_can_read_by_now_is_not_deleted(cluster: FakeGroupAdmin) -> None:
    decisions = decide_deletion(cluster, ["a", "b"])
    cluster.offset_errors["a"] = AWAY
    account = execute_deletion(cluster, decisions, None, {"a": {P0: at(5), P1: at(6)}, "b": {P0: at(5)}})
    assert (account.outcomes, sorted(cluster.groups)) == ({"a": ItemOutcome.FAILED, "b": ItemOutcome.DONE}, ["a"])


@pytest.mark.parametrize("state", GroupState)
def test_a_group_can_be_deleted_where_it_is_empty_or_only_its_coordinator_can_tell(
    cluster: FakeGroupAdmin, state: GroupState
) -> None:
    """And one that is Dead is gone."""
    cluster.group("a", state=state)
    refused = decide_deletion(cluster, ["a"])["a"].refused
    codes = {GroupState.EMPTY: None, GroupState.UNKNOWN: None, GroupState.DEAD: ErrorCode.GROUP_ID_NOT_FOUND}
    assert (refused and refused.code) == codes.get(state, ErrorCode.NON_EMPTY_GROUP)
