"""The login's two mechanisms: PLAIN (RFC 4616) and SCRAM (RFC 5802, KIP-84), as a conversation of byte strings."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from kgctl.errors import AuthError
from kgctl.wire.settings import SaslSettings

Conversation = Generator[bytes, bytes, None]
"""Yields what to send, is sent what came back; ends when nothing more is to be sent."""


def conversation(settings: SaslSettings) -> Conversation:
    """The client's side. Raises `AuthError` when the server's proof is wrong."""
    return _plain(settings) if settings.mechanism == "PLAIN" else _scram(settings)


def _plain(settings: SaslSettings) -> Conversation:
    yield b"\0".join((b"", settings.username.encode(), settings.password.encode()))


def _scram(settings: SaslSettings) -> Conversation:
    from scramp import ScramClient, ScramException

    client = ScramClient([settings.mechanism], settings.username, settings.password)
    try:
        answer = yield client.get_client_first().encode()
        client.set_server_first(answer.decode())
        answer = yield client.get_client_final().encode()
        client.set_server_final(answer.decode())
    except (ScramException, UnicodeDecodeError) as error:
        raise AuthError(f"the broker's {settings.mechanism} answer is wrong: {_reason(error)}") from None


def _reason(error: Any) -> str:
    return str(error).strip() or type(error).__name__
