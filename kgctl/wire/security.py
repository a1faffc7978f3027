"""TLS as the properties ask for it, and the login: PLAIN (RFC 4616), SCRAM (RFC 5802, KIP-84)."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from kgctl import scram
from kgctl.errors import AuthError, UsageError
from kgctl.wire import Deadline
from kgctl.wire.settings import SaslSettings, TlsSettings, TokenSource, first_message


@cache
def tls_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the TLS context of these settings, one for equal ones. Raises `UsageError` naming the file that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not (settings.verify and settings.check_hostname):
        context.check_hostname = False
    if not settings.verify:
        context.verify_mode = ssl.CERT_NONE
    _load_authorities(context, settings)
    if settings.crl_location:
        with _blaming("ssl.crl.location", settings.crl_location):
            context.load_verify_locations(cafile=settings.crl_location)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if settings.ciphers:
        with _blaming("ssl.cipher.suites", settings.ciphers):
            context.set_ciphers(settings.ciphers)
    if settings.certificate_location or settings.certificate_pem:
        _load_certificate(context, settings)
    return context


def _load_authorities(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """The given ones alone, or the system's where none are given."""
    if settings.ca_pem:
        with _blaming("ssl.ca.pem", "the given text"):
            context.load_verify_locations(cadata=settings.ca_pem)
    if settings.ca_location:
        is_folder = Path(settings.ca_location).is_dir()
        with _blaming("ssl.ca.location", settings.ca_location):
            context.load_verify_locations(**{"capath" if is_folder else "cafile": settings.ca_location})
    if settings.verify and not (settings.ca_pem or settings.ca_location):
        context.load_default_certs()


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    with (
        _as_file(settings.certificate_location, settings.certificate_pem) as certificate,
        _as_file(settings.key_location, settings.key_pem) as key,
        _blaming("ssl.certificate.location", settings.certificate_location or "the given text"),
    ):
        context.load_cert_chain(str(certificate), key, settings.key_password or "")


@contextmanager
def _as_file(location: str | None, pem: str | None) -> Iterator[str | None]:
    """Python's ssl reads certificates from files only: text goes into one that nobody else may read, for a moment."""
    if location or not pem:
        yield location
        return
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(pem.replace("\\n", "\n"))
        file.flush()
        yield file.name


@contextmanager
def _blaming(name: str, value: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{name}: cannot use {value}: {reason}") from None


Conversation = Generator[bytes, bytes, None]
"""Yields what to send, is sent what came back; ends when nothing more is to be sent."""


def conversation(settings: SaslSettings, deadline: Deadline) -> Conversation:
    """The client's side. Raises `AuthError` when the server's proof is wrong, or no token is to be had before ``deadline``."""
    if settings.token is not None:
        return _bearer(settings.token, deadline)
    return _plain(settings) if settings.mechanism == "PLAIN" else _scram(settings)


def _bearer(source: TokenSource, deadline: Deadline) -> Conversation:
    """What is wrong with a token comes as an answer, which the client must acknowledge to be refused (RFC 7628, 3.2.3)."""
    is_own = source.ca_location is not None and (source.endpoint or "").startswith("https:")
    context = tls_context(TlsSettings(ca_location=source.ca_location)) if is_own else None
    answer = yield first_message(source, context, deadline)
    if answer:
        yield b"\x01"


def _plain(settings: SaslSettings) -> Conversation:
    yield b"\0".join((b"", settings.username.encode(), settings.password.encode()))


def _scram(settings: SaslSettings) -> Conversation:
    try:
        yield from scram.client(settings.mechanism, settings.username, settings.password)
    except scram.ScramError as error:
        raise AuthError(f"the broker's {settings.mechanism} answer is wrong: {error}") from None
