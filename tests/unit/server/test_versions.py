"""Which groups a broker of each version has."""

from __future__ import annotations

import pytest

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.profile import PROFILES
from kgctl.server.api.fields import unsupported
from kgctl.server.service import default_registry
from kgctl.server.versions import features_of

SHARE_FETCH = 78


@pytest.mark.parametrize(
    ("version", "features"),
    [
        ("3.9", {}),
        ("4.0", {"group.version": 1}),
        ("4.1", {"group.version": 1}),
        ("4.2", {"group.version": 1, "share.version": 1}),
        ("4.3", {"group.version": 1, "share.version": 1}),
    ],
)
def test_features_are_on_since_their_version(version: str, features: dict[str, int]) -> None:
    assert features_of(PROFILES[version]) == features


@pytest.mark.parametrize(("version", "there", "on"), [("4.0", False, False), ("4.1", True, False), ("4.2", True, True)])
def test_share_groups_are_there_before_they_are_on(version: str, *, there: bool, on: bool) -> None:
    spec = default_registry(CoordinatorConfig.from_properties({"kgctl.broker.version": version})).get(SHARE_FETCH)
    assert (spec is not None, spec is not None and spec.handler is not unsupported) == (there, on)
