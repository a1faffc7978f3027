"""Share sessions: epochs, limits, and what the end of a connection does."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.server.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    SessionRefused,
    ShareConnection,
    ShareSession,
    ShareSessions,
    TopicIdPartition,
    next_epoch,
)

TOPIC = UUID(int=7)
P0, P1, P2 = (TopicIdPartition(TOPIC, index) for index in range(3))
ANNA, BERT = SessionKey("g", "anna"), SessionKey("g", "bert")


class Told:
    """What the sessions tell."""

    def __init__(self, limit: int = 10) -> None:
        self.left: list[SessionKey] = []
        self.empty: list[str] = []
        self.sessions = ShareSessions(limit, self.left.append, self.empty.append)

    def open(self, key: SessionKey = ANNA, connection: ShareConnection | None = None) -> ShareSession:
        return self.sessions.open(key, [(P0, "t"), (P1, "t")], connection or ShareConnection())


def refusal(sessions: ShareSessions, key: SessionKey, epoch: int) -> ErrorCode:
    with pytest.raises(SessionRefused) as caught:
        sessions.of_request(key, epoch)
    return caught.value.error


@pytest.mark.parametrize(("epoch", "expected"), [(0, 1), (1, 2), (2**31 - 1, 1), (-1, -1)])
def test_epochs_begin_again_at_one(epoch: int, expected: int) -> None:
    assert next_epoch(epoch) == expected


def test_a_session_takes_requests_one_after_the_other() -> None:
    told = Told()
    session = told.open()

    assert told.sessions.of_request(ANNA, 1) is session
    assert refusal(told.sessions, ANNA, 2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert refusal(told.sessions, BERT, 1) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_requests_say_what_changes() -> None:
    session = Told().open()

    session.update([(P1, "t"), (P2, "t")], [P0])

    assert list(session.partitions) == [P1, P2]


def test_an_answer_has_what_is_new_what_has_records_and_what_is_wrong() -> None:
    session = Told().open()
    session.update([(P2, "t")], [])

    told = [
        [session.answers(each, has_records=records, has_error=error) for each in (P0, P1, P2)]
        for records, error in ((False, False), (False, True), (False, False), (False, False))
    ]

    assert told == [[False, False, True], [True, True, True], [True, True, True], [False, False, False]]


def test_who_had_records_is_last_the_next_time() -> None:
    session = Told().open()

    assert session.answers(P0, has_records=True, has_error=False)
    assert list(session.partitions) == [P1, P0]


def test_a_partition_named_twice_opens_nothing_and_ends_the_old_session() -> None:
    told = Told()
    told.open()

    with pytest.raises(SessionRefused) as caught:
        told.sessions.open(ANNA, [(P0, "t"), (P0, "t")], ShareConnection())

    assert caught.value.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert told.sessions.get(ANNA) is None


def test_there_is_a_limit_which_a_session_in_place_of_an_old_one_keeps() -> None:
    told = Told(limit=1)
    told.open()
    told.open()

    with pytest.raises(SessionRefused) as caught:
        told.open(BERT)

    assert caught.value.error is ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_acknowledging_alone_takes_an_epoch_but_for_the_last_one() -> None:
    told = Told()
    session = told.open()

    told.sessions.acknowledges(ANNA, 1)
    told.sessions.acknowledges(ANNA, FINAL_EPOCH)

    assert session.epoch == 2
    for key, epoch, error in (
        (ANNA, INITIAL_EPOCH, ErrorCode.INVALID_SHARE_SESSION_EPOCH),
        (ANNA, 1, ErrorCode.INVALID_SHARE_SESSION_EPOCH),
        (BERT, FINAL_EPOCH, ErrorCode.SHARE_SESSION_NOT_FOUND),
        (BERT, 1, ErrorCode.SHARE_SESSION_NOT_FOUND),
    ):
        with pytest.raises(SessionRefused) as caught:
            told.sessions.acknowledges(key, epoch)
        assert caught.value.error is error


def test_a_connection_takes_its_session_with_it_and_the_last_one_the_group() -> None:
    told = Told()
    annas, berts = ShareConnection(), ShareConnection()
    told.open(ANNA, annas)
    told.open(BERT, berts)

    annas.gone()
    assert (told.left, told.empty, told.sessions.get(ANNA)) == ([ANNA], [], None)

    berts.gone()
    assert (told.left, told.empty) == ([ANNA, BERT], ["g"])


def test_a_session_that_ended_before_its_connection_has_left_already() -> None:
    told = Told()
    connection = ShareConnection()
    told.open(ANNA, connection)
    told.sessions.remove(ANNA)

    connection.gone()

    assert (told.left, told.empty) == ([], ["g"])


def test_a_session_opened_anew_elsewhere_outlives_its_old_connection() -> None:
    told = Told()
    old, new = ShareConnection(), ShareConnection()
    told.open(ANNA, old)
    session = told.open(ANNA, new)

    old.gone()

    assert (told.left, told.empty, told.sessions.get(ANNA)) == ([], [], session)


def test_a_connection_that_opens_another_session_keeps_the_last_one() -> None:
    told = Told()
    connection = ShareConnection()
    told.open(ANNA, connection)
    told.open(ANNA, connection)

    connection.gone()

    assert (told.left, told.empty) == ([ANNA], ["g"])
