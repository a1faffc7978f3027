"""What the assignors see of a document."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.assignors.spec import MemberSpec, StickyClaim
from kgctl.simulate.assign.groups import parse_document


def _member(assignor: str, **member: Any) -> MemberSpec:
    document = parse_document({"topics": {"t": 3}, "members": {"m": {"topics": ["t"], **member}}}, 1)
    return document.group(assignor).members[0]


OWNED = {"t": [0, 2]}


@pytest.mark.parametrize(
    ("version", "owned", "generation", "rack"),
    [(0, {}, -1, None), (1, OWNED, -1, None), (2, OWNED, 4, None), (3, OWNED, 4, "r"), (None, OWNED, 4, "r")],
)
def test_a_version_carries_what_it_can(
    version: int | None, owned: dict[str, list[int]], generation: int, rack: str | None
) -> None:
    seen = _member("range", owned=OWNED, generation=4, rack="r", version=version)

    assert (seen.owned, seen.generation, seen.rack) == (owned, generation, rack)


@pytest.mark.parametrize(
    ("member", "sticky", "cooperative"),
    [
        ({}, None, None),
        ({"owned": OWNED}, StickyClaim(OWNED), None),
        ({"generation": 4}, StickyClaim({}, 4), StickyClaim({}, 4)),
        ({"owned": OWNED, "generation": 4}, StickyClaim(OWNED, 4), StickyClaim(OWNED, 4)),
        ({"owned": OWNED, "generation": 4, "user_data": None}, None, None),
        ({"user_data": {"owned": OWNED}}, StickyClaim(OWNED), None),
        ({"user_data": {"owned": OWNED, "generation": 2}}, StickyClaim(OWNED, 2), StickyClaim(OWNED, 2)),
        ({"user_data": {"base64": "AAAA"}}, b"\0\0\0", b"\0\0\0"),
    ],
)
def test_user_data_is_what_kafkas_client_would_send(member: dict[str, Any], sticky: object, cooperative: object) -> None:
    assert (_member("sticky", **member).user_data, _member("cooperative-sticky", **member).user_data) == (sticky, cooperative)


def test_server_assignors_see_the_target_and_nothing_else() -> None:
    seen = _member("uniform", owned=OWNED, generation=4, rack="r", version=0, instance_id="i", user_data=None)

    assert seen == MemberSpec("m", ("t",), OWNED, instance_id="i")


@pytest.mark.parametrize(("raw", "identity"), [({}, 7), ({"id": "x"}, "x"), ({"id": 3}, 3), ({"id": True}, "True")])
def test_a_document_without_id_has_its_number(raw: dict[str, Any], identity: str | int) -> None:
    assert parse_document(raw, 7).id == identity
