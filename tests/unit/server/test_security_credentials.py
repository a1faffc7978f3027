"""Users' keys, as clients alter them."""

from __future__ import annotations

from kgctl.scram import keys_of
from kgctl.server.security import Credentials
from kgctl.storage.files import Documents

KEYS = keys_of("SCRAM-SHA-256", "secret", b"salt", 5_000)


def test_keys_come_and_go_by_mechanism() -> None:
    folder = Documents()
    users = Credentials(folder)
    users.set_passwords({"bob": "pass"})

    users.alter({"alice": ("SCRAM-SHA-256", KEYS), "bob": ("SCRAM-SHA-256", None)})
    again = Credentials(folder)

    assert (again.scram("SCRAM-SHA-256", "alice"), again.iterations("bob")) == (KEYS, {"SCRAM-SHA-512": 4_096})

    again.alter({"alice": ("SCRAM-SHA-256", None)})

    assert Credentials(folder).names() == ["bob"]


def test_nobody_logs_in_by_a_mechanism_without_keys() -> None:
    users = Credentials(Documents())
    users.alter({"alice": ("SCRAM-SHA-256", KEYS)})

    assert not users.is_right("alice", "secret")
    assert users.scram("SCRAM-SHA-512", "alice") == users.scram("SCRAM-SHA-512", "nobody")


def test_keys_for_scram_are_no_password_for_plain() -> None:
    users = Credentials(Documents())
    users.alter({"alice": ("SCRAM-SHA-512", keys_of("SCRAM-SHA-512", "secret"))})

    assert not users.is_right("alice", "secret")

    users.set_passwords({"alice": "secret"})
    users.alter({"alice": ("SCRAM-SHA-256", None)})
    users.alter({"alice": ("SCRAM-SHA-512", None)})

    assert users.is_right("alice", "secret")
    assert (users.names(), users.iterations("alice")) == ([], {})
