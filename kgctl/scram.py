"""SCRAM (RFC 5802, RFC 7677) on both sides of a connection, as Kafka has it (KIP-84): without channel binding, and with names and
passwords in UTF-8 as they stand, where the RFC would normalise them (ScramFormatter#normalize)."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from dataclasses import dataclass

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Kafka's mechanisms, and the hash of each."""

FEWEST_ITERATIONS = 4096
"""A client believes no server that asks for less (ScramMechanism#minIterations)."""

_FIRST = re.compile(r"n,(?:a=([^,]*))?,(n=([^,]+),r=([^,]+)(?:,.*)?)")
_ESCAPED = re.compile(r"=(?!2C|3D)")


class ScramError(Exception):
    """The other side does not keep to the protocol, or does not know the password; the message says which."""


@dataclass(frozen=True, slots=True)
class ScramKeys:
    """What a server keeps of a password: nothing that a login can be made from."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def keys_of(mechanism: str, password: str, salt: bytes | None = None, iterations: int = FEWEST_ITERATIONS) -> ScramKeys:
    """Return the keys of a password, with a new salt where none is given."""
    salt = secrets.token_bytes(24) if salt is None else salt
    return keys_of_salted(mechanism, _salted(mechanism, password, salt, iterations), salt, iterations)


def keys_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramKeys:
    """Return the keys of a password that a client has salted so often already."""
    client_key, server_key = _keys(mechanism, salted)
    return ScramKeys(salt, hashlib.new(HASHES[mechanism], client_key).digest(), server_key, iterations)


def client(mechanism: str, name: str, password: str) -> Generator[bytes, bytes, None]:
    """Yield what the client sends, and be sent what the server answers. Raises `ScramError`."""
    nonce = secrets.token_urlsafe(24)
    first = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = _text((yield f"n,,{first}".encode()))
    told = _fields(challenge, "r", "s", "i")
    if not told["r"].startswith(nonce):
        raise ScramError("its nonce does not begin with ours")
    iterations = int(told["i"]) if told["i"].isdecimal() else 0
    if iterations < FEWEST_ITERATIONS:
        raise ScramError(f"it asks for {told['i']} iterations, fewer than {FEWEST_ITERATIONS}")
    client_key, server_key = _keys(mechanism, _salted(mechanism, password, _bytes(told["s"]), iterations))
    final = f"c=biws,r={told['r']}"
    said = f"{first},{challenge},{final}".encode()
    signature = _signature(mechanism, hashlib.new(HASHES[mechanism], client_key).digest(), said)
    answer = _text((yield f"{final},p={b64encode(_xor(client_key, signature)).decode()}".encode()))
    if answer.startswith("e="):
        raise ScramError(answer[2:])
    if not hmac.compare_digest(_bytes(_fields(answer, "v")["v"]), _signature(mechanism, server_key, said)):
        raise ScramError("it does not know the password")


def server(mechanism: str, keys_of_user: Callable[[str], ScramKeys]) -> Generator[tuple[bytes, str], bytes, None]:
    """Yield answers, the last one with the user's name; is sent what the client says, and started with ``next``.

    Raises `ScramError`. Kafka: ScramSaslServer#evaluateResponse.
    """
    opening = _FIRST.fullmatch(_text((yield b"", "")))
    if opening is None or _ESCAPED.search(opening[3]):
        raise ScramError("the first message is none")
    authorization_id, first, escaped, client_nonce = opening.groups()
    name = escaped.replace("=2C", ",").replace("=3D", "=")
    keys = keys_of_user(name)
    nonce = client_nonce + secrets.token_urlsafe(24)
    challenge = f"r={nonce},s={b64encode(keys.salt).decode()},i={keys.iterations}"
    final, _, proof = _text((yield challenge.encode(), "")).rpartition(",p=")
    if _fields(final, "c", "r")["r"] != nonce:
        raise ScramError("the nonce is another one")
    said = f"{first},{challenge},{final}".encode()
    client_key = _xor(_bytes(proof), _signature(mechanism, keys.stored_key, said))
    if not hmac.compare_digest(hashlib.new(HASHES[mechanism], client_key).digest(), keys.stored_key):
        raise ScramError("the password is wrong")
    if authorization_id not in (None, "", name):
        raise ScramError(ANOTHER_ID)
    yield b"v=" + b64encode(_signature(mechanism, keys.server_key, said)), name


ANOTHER_ID = "Client requested an authorization id that is different from username"


def _salted(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def _keys(mechanism: str, salted: bytes) -> tuple[bytes, bytes]:
    """The client's key and the server's."""
    return _signature(mechanism, salted, b"Client Key"), _signature(mechanism, salted, b"Server Key")


def _signature(mechanism: str, key: bytes, said: bytes) -> bytes:
    return hmac.digest(key, said, HASHES[mechanism])


def _xor(one: bytes, other: bytes) -> bytes:
    if len(one) != len(other):
        raise ScramError("the proof has another length")
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _fields(message: str, *names: str) -> dict[str, str]:
    found = {name: value for name, _, value in (part.partition("=") for part in message.split(","))}
    if missing := [name for name in names if not found.get(name)]:
        raise ScramError(f"it has no {missing[0]}=")
    return found


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("it is no text") from None


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise ScramError("it is no base64") from None
