"""One sentence for each of Kafka's errors."""

from __future__ import annotations

import pytest

from kgctl.admin import ItemError, item_error
from kgctl.cli.exit_codes import ExitCode, exit_code_of
from kgctl.model.error_codes import UNSETTLED, ErrorCode
from kgctl.model.groups import TopicPartition


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, "group 'g' does not exist"),
        (ErrorCode.UNKNOWN_MEMBER_ID, "group 'g' has no member 'm'"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t-1 does not exist, or this user may not see it"),
        (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "group 'g' is subscribed to topic 't': its offsets are in use"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not authorised for the cluster"),
    ],
)
def test_the_sentence_names_the_thing(code: ErrorCode, message: str) -> None:
    assert item_error(code, group="g", partition=TopicPartition("t", 1), member="m") == ItemError(code, message)


def test_a_code_without_a_sentence_has_the_brokers_words_or_its_name() -> None:
    code = ErrorCode.POLICY_VIOLATION

    assert item_error(code, detail="because") == ItemError(code, "because")
    assert item_error(code) == ItemError(code, "POLICY_VIOLATION")


@pytest.mark.parametrize("code", sorted(UNSETTLED))
def test_a_cluster_that_had_not_settled_until_the_end_is_a_time_limit(code: ErrorCode) -> None:
    assert exit_code_of(item_error(code, group="g").to_exception(group="g")) is ExitCode.UNREACHABLE


def test_what_was_lost_with_its_connection_is_a_cluster_that_cannot_be_reached() -> None:
    """Where nothing was done the exit code is 7, as for a command that reached nobody."""
    assert exit_code_of(ItemError(ErrorCode.NETWORK_EXCEPTION, "closed").to_exception(group="g")) is ExitCode.UNREACHABLE


def test_a_sentence_that_cannot_name_its_thing_is_not_used() -> None:
    code = ErrorCode.UNKNOWN_MEMBER_ID

    assert item_error(code, group="g") == ItemError(code, "UNKNOWN_MEMBER_ID")
