"""librdkafka's errors in kgctl's terms."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError

from kgctl.admin.explain import item_error
from kgctl.admin.results import ItemError
from kgctl.errors import AuthError, BrokerError, KgctlError, TimedOutError, UnreachableError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition

_LOCAL: Mapping[int, ErrorCode] = {
    KafkaError._TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE: ErrorCode.REQUEST_TIMED_OUT,
    KafkaError._WAIT_COORD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    KafkaError._TRANSPORT: ErrorCode.NETWORK_EXCEPTION,
    KafkaError._ALL_BROKERS_DOWN: ErrorCode.NETWORK_EXCEPTION,
    KafkaError._UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._UNKNOWN_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._NOENT: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._UNSUPPORTED_FEATURE: ErrorCode.UNSUPPORTED_VERSION,
    KafkaError._AUTHENTICATION: ErrorCode.SASL_AUTHENTICATION_FAILED,
}


def error_code(error: KafkaError) -> ErrorCode:
    """Kafka's code; librdkafka's own errors become the nearest one."""
    number = error.code()
    if number in _LOCAL:
        return _LOCAL[number]
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def explained(
    error: KafkaError, *, group: str | None = None, partition: TopicPartition | None = None, detail: str | None = None
) -> ItemError:
    """The error of one thing, as one sentence."""
    return item_error(error_code(error), group=group, partition=partition, detail=detail or error.str())


def connection_error(error: KafkaError, *, because: KafkaError | None = None) -> KgctlError:
    """The exception for an error that concerns the whole cluster. ``because`` was seen before it and says more."""
    message = _told(because or error)
    match error.code():
        case KafkaError._AUTHENTICATION:
            return AuthError(message, code=ErrorCode.SASL_AUTHENTICATION_FAILED.name)
        case KafkaError._TIMED_OUT | KafkaError._TIMED_OUT_QUEUE:
            return TimedOutError(message)
        case KafkaError._INVALID_ARG:
            return UsageError(message)
        case code if code < 0:
            return UnreachableError(message)
        case _:
            found = explained(error)
            return found.to_exception() if found.message != found.code.name else BrokerError(message, code=found.code.name)


def _told(error: KafkaError) -> str:
    """librdkafka begins its texts with the thread's name and ends them with how often it tried."""
    text = error.str()
    _, separator, rest = text.partition("/bootstrap: ")
    return (rest if separator else text).partition(" (after ")[0]
