"""The table of APIs."""

from __future__ import annotations

import pytest

from kgctl.serde.schemas import Direction, load_plan
from kgctl.server.request_context import ApiRegistry, ApiSpec
from kgctl.server.service import default_registry

SPECS = default_registry().specs()
DIRECTIONS: tuple[Direction, ...] = ("request", "response")


def spec(key: int, name: str = "One") -> ApiSpec:
    return ApiSpec(key, name, 1, 3, lambda _call, _body: None, hidden_versions=frozenset({0}))


def test_a_key_registered_twice_raises() -> None:
    with pytest.raises(ValueError, match="API key 5 is both One and Other"):
        ApiRegistry([spec(5), spec(5, "Other")])


def test_specs_come_by_key() -> None:
    assert [entry.key for entry in ApiRegistry([spec(9), spec(2)]).specs()] == [2, 9]


@pytest.mark.parametrize(("version", "served"), [(-1, False), (0, True), (1, True), (3, True), (4, False)])
def test_a_version_is_served_inside_the_range_or_when_hidden(version: int, served: bool) -> None:
    assert spec(1).serves(version) is served


@pytest.mark.parametrize("entry", SPECS, ids=lambda entry: entry.name)
def test_every_version_has_schemas_of_that_name(entry: ApiSpec) -> None:
    for version in {*range(entry.min_version, entry.max_version + 1), *entry.hidden_versions}:
        for direction in DIRECTIONS:
            name = load_plan(entry.key, version, direction).name

            assert name == f"{entry.name}{direction.capitalize()}"


def test_only_what_authentication_needs_is_answered_before_it() -> None:
    assert {entry.name for entry in SPECS if entry.before_authentication} <= {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}
