"""librdkafka's errors in kgctl's terms."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from kgctl.admin.confluent.errors import connection_error, error_code, explained
from kgctl.errors import AuthError, BrokerError, KgctlError, TimedOutError, UnreachableError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (KafkaError._TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
        (KafkaError._NOENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (KafkaError._UNKNOWN_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (KafkaError._UNSUPPORTED_FEATURE, ErrorCode.UNSUPPORTED_VERSION),
        (KafkaError._STATE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_codes_are_kafkas_or_the_nearest(code: int, expected: ErrorCode) -> None:
    assert error_code(KafkaError(code)) is expected


def test_an_error_of_one_thing_is_one_sentence() -> None:
    found = explained(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), partition=TopicPartition("t", 1))

    assert found.message == "t-1 does not exist, or this user may not see it"
    assert explained(KafkaError(KafkaError._STATE, "librdkafka's words")).message == "librdkafka's words"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError._AUTHENTICATION, AuthError),
        (KafkaError._TIMED_OUT, TimedOutError),
        (KafkaError._ALL_BROKERS_DOWN, UnreachableError),
        (KafkaError._SSL, UnreachableError),
        (KafkaError._INVALID_ARG, UsageError),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, AuthError),
        (KafkaError.POLICY_VIOLATION, BrokerError),
    ],
)
def test_an_error_of_the_whole_cluster_has_the_class_of_its_exit_code(code: int, expected: type[KgctlError]) -> None:
    assert type(connection_error(KafkaError(code, "x"))) is expected


def test_the_cause_that_came_before_says_more() -> None:
    down = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
    cause = KafkaError(KafkaError._TRANSPORT, "h:1/bootstrap: Connect failed: refused (after 0ms in state CONNECT)")

    assert connection_error(down, because=cause).message == "Connect failed: refused"
