"""Conversations about users and what they may do."""

from __future__ import annotations

from typing import Any

from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import ALTER_SCRAM, CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, DESCRIBE_SCRAM

SHA_256, SHA_512 = 1, 2


def without_an_authorizer(probe: Probe, version: int, name: str) -> None:
    every = {
        "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None,
        "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip
    rule = {
        "resource_type": 2, "resource_name": name, "resource_pattern_type": 3, "principal": "User:alice",
        "host": "*", "operation": 3, "permission_type": 3,
    }  # fmt: skip
    probe.call(DESCRIBE_ACLS, version, every)
    for times in (0, 1, 2):
        probe.call(CREATE_ACLS, version, {"creations": [rule] * times})
        probe.call(DELETE_ACLS, version, {"filters": [every] * times})


def scram_credentials(probe: Probe, version: int, name: str) -> None:
    def tell(*users: str) -> None:
        probe.call(DESCRIBE_SCRAM, version, {"users": [{"name": user} for user in users]})

    def is_there(count: int) -> None:
        """A real broker learns of it from its controller."""
        values = {"users": [{"name": name}]}
        probe.until(DESCRIBE_SCRAM, 0, values, lambda body: len(body.results[0].credential_infos) == count)

    def add(user: str = name, mechanism: int = SHA_256, iterations: int = 4_096) -> dict[str, Any]:
        salted = {"salt": b"salt", "salted_password": b"p" * 32}
        return {"name": user, "mechanism": mechanism, "iterations": iterations, **salted}

    def alter(*upsertions: dict[str, Any], deletions: tuple[tuple[str, int], ...] = ()) -> None:
        gone = [{"name": user, "mechanism": mechanism} for user, mechanism in deletions]
        probe.call(ALTER_SCRAM, version, {"deletions": gone, "upsertions": list(upsertions)})

    tell(name, "nobody", "nobody")
    alter(add())
    is_there(1)
    alter(add(mechanism=SHA_512, iterations=8_192))
    is_there(2)
    tell(name)
    for wrong in (add(""), add(mechanism=0), add(mechanism=3), add(iterations=4_095), add(iterations=16_385), add("", 9, 1)):
        alter(wrong)
    alter(add(), add(mechanism=SHA_512))
    alter(add(), add(f"{name}-b", 9), deletions=((name, SHA_512),))
    alter(deletions=((name, SHA_256), (name, SHA_512)))
    alter(deletions=(("nobody", SHA_256), (name, 7), ("", SHA_256)))
    tell(name)
    alter(deletions=((name, SHA_256),))
    is_there(1)
    alter(deletions=((name, SHA_512),))
    is_there(0)
    tell(name)
