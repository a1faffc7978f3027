"""Nothing that is served is left out of what is compared with Apache Kafka: an API of which nobody speaks fails here."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from uuid import UUID

from kgctl.server.service import default_registry
from tests.wire import differential
from tests.wire.differential import about_rights, talk

SPECS = {spec.key: spec for spec in default_registry().specs()}
LOGIN = {"SaslHandshake", "SaslAuthenticate"}
"""What a user does before there is one: tests/wire/test_security.py."""
KEYS = {name for name, value in vars(talk).items() if name.isupper() and type(value) is int}


def test_every_api_is_in_a_conversation() -> None:
    """Rights are no conversation: they ask what is refused."""
    names = {each.name for each in iter_modules(differential.__path__) if each.name.startswith("about_")} - {"about_rights"}
    modules = [vars(import_module(f"{differential.__name__}.{name}")) for name in names]
    spoken = {module[key] for module in modules for key in KEYS & module.keys()}
    assert {spec.name for key, spec in SPECS.items() if key not in spoken} == LOGIN


def test_every_api_is_asked_without_the_right_to() -> None:
    asked = {key for key, _ in about_rights.everything("name", UUID(int=1), lambda key: SPECS[key].max_version)}
    assert {spec.name for key, spec in SPECS.items() if key not in asked} == {*LOGIN, "ApiVersions"}
