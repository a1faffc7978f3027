"""From an address to a connection that takes requests: TCP, TLS, the versions, the login."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgctl.errors import AuthError, UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.serde.errors import MalformedMessage
from kgctl.serde.messages import decode_response
from kgctl.wire.apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, BrokerVersions
from kgctl.wire.connection import Connection, Request
from kgctl.wire.deadline import Deadline
from kgctl.wire.settings import Address, WireSettings
from kgctl.wire.sockets import open_socket

if TYPE_CHECKING:
    import ssl

_SOFTWARE = {"client_software_name": "kgctl", "client_software_version": "1"}


def open_connection(address: Address, settings: WireSettings, deadline: Deadline) -> Connection:
    """A connection ready for any request; the caller closes it.

    Raises `kgctl.errors.UnreachableError` (`kgctl.errors.TimedOutError`), `kgctl.errors.AuthError`, and
    `kgctl.errors.UsageError` for certificate files that cannot be used.
    """
    context = _tls_context(settings)
    connection = Connection(open_socket(address, settings, deadline), address, settings)
    try:
        if context:
            _start_tls(connection, context, deadline)
        connection.versions = _negotiate(connection, deadline)
        if settings.sasl:
            _log_in(connection, settings, deadline)
    except BaseException:
        connection.close()
        raise
    return connection


def _tls_context(settings: WireSettings) -> ssl.SSLContext | None:
    if not settings.tls:
        return None
    from kgctl.wire.tls import tls_context

    return tls_context(settings.tls)


def _start_tls(connection: Connection, context: ssl.SSLContext, deadline: Deadline) -> None:
    import ssl

    try:
        connection.start_tls(context, deadline)
    except ssl.SSLCertVerificationError as error:
        raise UnreachableError(f"{connection.address}: its certificate is not trusted: {error.verify_message}") from None
    except TimeoutError:
        raise deadline.timed_out(f"{connection.address} (TLS handshake)") from None
    except OSError as error:
        reason = (getattr(error, "reason", None) or error.strerror or "the connection was closed").replace("_", " ").lower()
        hint = "does it speak TLS, and does it want a client certificate?"
        raise UnreachableError(f"{connection.address}: TLS handshake failed: {reason} ({hint})") from None


def _negotiate(connection: Connection, deadline: Deadline) -> BrokerVersions:
    """KIP-35: a broker that does not know the version asked for answers in version 0, whatever was asked, with error 35.

    Since KIP-511 that answer has the list all the same; older brokers are asked again.
    """
    request = Request(API_VERSIONS, API_VERSIONS.highest, _SOFTWARE)
    payload = connection.call_raw(request, deadline)
    is_too_new = payload[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
    answer = _decode_versions(connection, payload, 0 if is_too_new else request.version)
    if is_too_new and not answer.api_keys:
        answer = connection.call(API_VERSIONS, {}, deadline, version=0)
    elif answer.error_code and not is_too_new:
        raise UnreachableError(f"{connection.address} refused to tell its versions: {ErrorCode(answer.error_code).name}")
    ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    return BrokerVersions(ranges, str(connection.address))


def _decode_versions(connection: Connection, payload: bytes, version: int) -> Any:
    try:
        _, body = decode_response(API_VERSIONS.key, version, payload)
    except MalformedMessage as error:
        raise UnreachableError(f"{connection.address} does not answer as a Kafka broker: {error}") from None
    return body


def _log_in(connection: Connection, settings: WireSettings, deadline: Deadline) -> None:
    from kgctl.wire.sasl import conversation

    assert settings.sasl
    _choose_mechanism(connection, settings.sasl.mechanism, deadline)
    version = connection.version(SASL_AUTHENTICATE)
    talk = conversation(settings.sasl)
    token = next(talk)
    while True:
        answer = connection.call_all([Request(SASL_AUTHENTICATE, version, {"auth_bytes": token})], deadline)[0]
        if answer.error_code:
            detail = answer.error_message or ErrorCode(answer.error_code).name
            raise AuthError(
                f"{connection.address} refused the login of '{settings.sasl.username}': {detail}",
                code=ErrorCode(answer.error_code).name,
            )
        try:
            token = talk.send(answer.auth_bytes)
        except StopIteration:
            return


def _choose_mechanism(connection: Connection, mechanism: str, deadline: Deadline) -> None:
    """A listener without SASL closes the connection or answers ILLEGAL_SASL_STATE."""
    try:
        answer = connection.call(SASL_HANDSHAKE, {"mechanism": mechanism}, deadline)
    except UnreachableError as error:
        error.message += " (does this listener use SASL?)"
        error.args = (error.message,)
        raise
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer.mechanisms)
        raise AuthError(
            f"{connection.address} does not take the SASL mechanism {mechanism}; it takes {offered}",
            code="UNSUPPORTED_SASL_MECHANISM",
        )
    if answer.error_code:
        name = ErrorCode(answer.error_code).name
        raise AuthError(f"{connection.address} refused SASL: {name} (does this listener use SASL?)", code=name)
