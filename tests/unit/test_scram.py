"""SCRAM on both sides: the example of the RFC, scramp as a second opinion, and what is wrong with what the other side says."""

from __future__ import annotations

import secrets
from base64 import b64decode
from collections.abc import Callable, Generator
from typing import Any

import pytest
from scramp import ScramClient, ScramMechanism

from kgctl.scram import HASHES, ScramError, ScramKeys, client, keys_of, server

NAME, PASSWORD = "bob=,é", "pass, =wörd"
SALT = b"salt" * 4


def kept(mechanism: str) -> Callable[[str], ScramKeys]:
    return {NAME: keys_of(mechanism, PASSWORD)}.__getitem__


def answers(conversation: Generator[Any, bytes, None], *said: str) -> Any:
    """What comes last, when all this is said to it."""
    found = next(conversation)
    for message in said:
        found = conversation.send(message.encode())
    return found


def test_the_example_of_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    nonces = iter(["rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"])
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: next(nonces))
    keys = keys_of("SCRAM-SHA-256", "pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    ours, theirs = client("SCRAM-SHA-256", "user", "pencil"), server("SCRAM-SHA-256", lambda _: keys)
    next(theirs)
    first = next(ours)
    challenge, _ = theirs.send(first)
    proof = ours.send(challenge)
    final, name = theirs.send(proof)
    with pytest.raises(StopIteration):
        ours.send(final)
    assert (first, name) == (b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", "user")
    assert challenge == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert proof.partition(b",p=")[2] == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_second_opinion_on_both_sides(mechanism: str) -> None:
    theirs = ScramClient([mechanism], NAME, PASSWORD)
    ours: Any = server(mechanism, kept(mechanism))
    next(ours)
    theirs.set_server_first(ours.send(theirs.get_client_first().encode())[0].decode())
    final, name = ours.send(theirs.get_client_final().encode())
    theirs.set_server_final(final.decode())
    assert name == NAME

    made = ScramMechanism(mechanism).make_auth_info(PASSWORD)
    theirs = ScramMechanism(mechanism).make_server(lambda _: made)
    ours = client(mechanism, NAME, PASSWORD)
    theirs.set_client_first(next(ours).decode())
    theirs.set_client_final(ours.send(theirs.get_server_first().encode()).decode())
    with pytest.raises(StopIteration):
        ours.send(theirs.get_server_final().encode())


def test_a_wrong_password_is_known_on_both_sides() -> None:
    theirs: Any = server("SCRAM-SHA-256", kept("SCRAM-SHA-256"))
    ours = client("SCRAM-SHA-256", NAME, "guessed")
    next(theirs)
    proof = ours.send(theirs.send(next(ours))[0])
    with pytest.raises(ScramError, match="the password is wrong"):
        theirs.send(proof)
    with pytest.raises(ScramError, match="it does not know the password"):
        ours.send(b"v=" + b"A" * 44)


def test_names_and_passwords_are_bytes_as_they_stand() -> None:
    """Kafka normalises neither; the RFC would make one user of these two."""
    assert keys_of("SCRAM-SHA-256", "\u2168", SALT) != keys_of("SCRAM-SHA-256", "IX", SALT)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("r=another,s=c2FsdA==,i=4096", "its nonce does not begin with ours"),
        ("r={nonce}x,s=c2FsdA==,i=4095", "it asks for 4095 iterations, fewer than 4096"),
        ("r={nonce}x,s=c2FsdA==,i=many", "it asks for many iterations, fewer than 4096"),
        ("r={nonce}x,s=!,i=4096", "it is no base64"),
        ("r={nonce}x,i=4096", "it has no s="),
        ("", "it has no r="),
    ],
)
def test_a_challenge_that_is_wrong(said: str, reason: str) -> None:
    ours = client("SCRAM-SHA-256", NAME, PASSWORD)
    nonce = next(ours).decode().partition(",r=")[2]
    with pytest.raises(ScramError, match=f"^{reason}$"):
        ours.send(said.format(nonce=nonce).encode())


@pytest.mark.parametrize("final", ["e=other-error", "v=", "x", "v=!"])
def test_an_end_that_is_wrong(final: str) -> None:
    ours = client("SCRAM-SHA-256", NAME, PASSWORD)
    nonce = next(ours).decode().partition(",r=")[2]
    ours.send(f"r={nonce}x,s=c2FsdA==,i=4096".encode())
    with pytest.raises(ScramError):
        ours.send(final.encode())


@pytest.mark.parametrize("said", ["", "x", "y,,n=a,r=b", "n,,n=,r=b", "n,,n=a", "n,,n=a=2B,r=b", "n,,m=x,n=a,r=b"])
def test_a_first_message_that_is_none(said: str) -> None:
    with pytest.raises(ScramError, match="the first message is none"):
        answers(server("SCRAM-SHA-256", kept("SCRAM-SHA-256")), said)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("c=biws,r=x,p=AAAA", "the nonce is another one"),
        ("c=biws,r={nonce},p=AAAA", "the proof has another length"),
        ("c=biws,r={nonce}", "it has no c="),
        ("r={nonce},p=AAAA", "it has no c="),
    ],
)
def test_a_proof_that_is_none(said: str, reason: str) -> None:
    theirs: Any = server("SCRAM-SHA-256", lambda _: keys_of("SCRAM-SHA-256", PASSWORD))
    challenge, _ = answers(theirs, "n,,n=bob,r=abc")
    nonce = challenge.decode().partition(",")[0].removeprefix("r=")
    with pytest.raises(ScramError, match=f"^{reason}$"):
        theirs.send(said.format(nonce=nonce).encode())


def test_bytes_that_are_no_text() -> None:
    theirs: Any = server("SCRAM-SHA-256", kept("SCRAM-SHA-256"))
    next(theirs)
    with pytest.raises(ScramError, match="it is no text"):
        theirs.send(b"\xff")
