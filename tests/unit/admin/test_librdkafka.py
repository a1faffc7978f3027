"""The table of librdkafka's properties."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from kgctl.admin.librdkafka import AdminCalls, connection_error, error_code, explained
from kgctl.errors import AuthError, BrokerError, KgctlError, TimedOutError, UnreachableError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.settings import CLIENT_PROPERTIES, KNOWN_PROPERTIES, OTHER_PROPERTIES, OWN_PROPERTIES
from tests.support.patience import PATIENCE_MS, SOON_S

NOT_A_PROPERTY = "No such configuration property"


def refusal(name: str) -> str:
    """What librdkafka says to a value that no property takes; a name that it does not know is said first."""
    try:
        Consumer({"group.id": "g", name: "\x01no value\x01"}).close()
    except KafkaException as error:
        return str(error.args[0].str())
    return ""


def test_the_installed_librdkafka_knows_every_name() -> None:
    names = KNOWN_PROPERTIES - {"plugin.library.paths", *OWN_PROPERTIES}
    assert [name for name in sorted(names) if NOT_A_PROPERTY in refusal(name)] == []


def test_it_does_not_know_others() -> None:
    assert NOT_A_PROPERTY in refusal("no.such.property")


def test_no_name_is_in_both_tables() -> None:
    assert not CLIENT_PROPERTIES & OTHER_PROPERTIES


NOBODY = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture
def calls() -> Iterator[AdminCalls]:
    made = AdminCalls(NOBODY, 300)
    yield made
    made.close()


def never() -> Future[Any]:
    return Future()


def error(code: int, text: str = "why") -> KafkaError:
    return KafkaError(code, text)


def test_results_that_are_there_need_no_wait(calls: AdminCalls) -> None:
    future: Future[int] = Future()
    future.set_result(3)

    assert calls.result(future) == 3


def test_a_calls_own_failure_is_its_exception(calls: AdminCalls) -> None:
    future: Future[int] = Future()
    future.set_exception(KafkaException(error(KafkaError.NON_EMPTY_GROUP)))

    with pytest.raises(KafkaException):
        calls.result(future)


def test_a_call_that_runs_out_of_time_ends_in_time_and_its_client_lives_on(calls: AdminCalls) -> None:
    client = calls.client
    before = sys.getrefcount(client)
    started = time.monotonic()
    with pytest.raises(TimedOutError, match=r"did not answer within 0\.3 s"):
        calls.wait([never()])

    assert time.monotonic() - started < SOON_S
    assert sys.getrefcount(client) > before
    with pytest.raises(TimedOutError, match="given up"):
        calls.wait([never()])
    calls.begin(Deadline(300))
    assert calls.client is not client


def test_a_pause_is_refused_when_there_is_no_time_for_it() -> None:
    for timeout_ms, has_time in ((PATIENCE_MS, True), (1, False)):
        calls = AdminCalls(NOBODY, timeout_ms)
        calls.begin(Deadline(timeout_ms))
        assert calls.pause() is has_time
        calls.close()


@pytest.mark.parametrize(("code", "expected"), [(KafkaError._AUTHENTICATION, AuthError), (KafkaError._SSL, UnreachableError)])
def test_what_only_the_error_callback_tells_ends_the_wait_at_once(
    calls: AdminCalls, code: int, expected: type[KgctlError]
) -> None:
    calls._on_error(error(code, "sasl_ssl://x:1/bootstrap: it was refused (after 5ms in state AUTH)"))

    with pytest.raises(expected, match=r"^it was refused$"):
        calls.wait([never()])


def test_brokers_that_are_all_down_are_given_a_moment() -> None:
    calls = AdminCalls(NOBODY, PATIENCE_MS)
    calls._on_error(error(KafkaError._TRANSPORT, "connect refused"))
    calls._on_error(error(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    started = time.monotonic()
    with pytest.raises(UnreachableError, match="refused"):
        calls.wait([never()])

    assert 0.9 < time.monotonic() - started < SOON_S


def test_a_blocking_call_is_repeated() -> None:
    calls = AdminCalls(NOBODY, PATIENCE_MS)
    tries: list[float] = []

    def call(seconds: float) -> str:
        tries.append(seconds)
        if len(tries) < 3:
            raise KafkaException(error(KafkaError._TRANSPORT))
        return "done"

    assert calls.blocking(call) == "done"
    assert len(tries) == 3
    calls.close()


def test_a_blocking_call_is_not_repeated_when_the_time_is_up(calls: AdminCalls) -> None:
    def call(_: float) -> None:
        raise KafkaException(error(KafkaError._TRANSPORT))

    with pytest.raises(TimedOutError):
        calls.blocking(call)


def test_another_failure_of_a_blocking_call_is_its_own(calls: AdminCalls) -> None:
    def call(_: float) -> None:
        raise KafkaException(error(KafkaError.CLUSTER_AUTHORIZATION_FAILED))

    with pytest.raises(KafkaException):
        calls.blocking(call)


@pytest.mark.parametrize("properties", [{"ssl.ca.location": "/nosuch", "security.protocol": "SSL"}, {"debug": "nonsense"}])
def test_properties_that_librdkafka_refuses_are_a_usage_error(properties: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="librdkafka does not take these properties"):
        AdminCalls({**NOBODY, **properties}, 300)


def test_close_can_be_called_twice(calls: AdminCalls) -> None:
    close: Callable[[], None] = calls.close
    close()
    close()


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
