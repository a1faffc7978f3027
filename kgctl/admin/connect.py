"""From settings to a `GroupAdmin`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.admin.client import GroupAdmin
    from kgctl.admin.config_file import ClusterContext

ADDRESSES = ("bootstrap.servers", "metadata.broker.list")
DEFAULT_TIMEOUT_MS = 15_000
LONGEST_BARE_TIMEOUT_S = 1000
"""A larger number without a unit is one of milliseconds, copied from a line for Kafka's tools."""


@dataclass(frozen=True)
class ConnectionSettings:
    """Which groups are meant: ``bootstrap``, ``embedded`` or ``zookeeper``, beside which ``bootstrap`` names the brokers.

    ``properties`` have librdkafka's names (`kgctl.admin.properties`) or begin with ``zookeeper.``; ``timeout_ms``
    covers each call as a whole.
    """

    bootstrap: str | None = None
    embedded: Path | None = None
    zookeeper: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_ms: int = 10_000


def connect(settings: ConnectionSettings) -> GroupAdmin:
    """The caller closes it. Raises `UsageError` for settings that cannot be; a cluster is not contacted before the first call."""
    if settings.embedded is not None:
        return _embedded(settings)
    if settings.zookeeper is not None:
        return _zookeeper(settings)
    properties = {key: value for key, value in settings.properties.items() if not key.startswith("zookeeper.")}
    servers = settings.bootstrap or properties.get("bootstrap.servers") or properties.get("metadata.broker.list")
    if not servers:
        raise UsageError("no cluster given: use --bootstrap-server HOST:PORT")
    properties["bootstrap.servers"] = servers
    return _live(properties, settings.timeout_ms)


def _live(properties: Mapping[str, str], timeout_ms: int) -> GroupAdmin:
    from kgctl.wire.settings import not_covered

    why = not_covered(properties)
    if why is None:
        from kgctl.admin.live import LiveGroupAdmin

        return LiveGroupAdmin(properties, timeout_ms)
    import logging

    from kgctl.admin.confluent.admin import ConfluentGroupAdmin

    admin = ConfluentGroupAdmin(properties, timeout_ms, why=why)
    logging.getLogger("kgctl.admin").warning(LOST, why)
    return admin


LOST = (
    "kgctl's own connection does not cover %s, so all goes through librdkafka: share, streams and Connect groups are not listed, "
    "epochs and the states Assigning and Reconciling are unknown, and delete-offsets and remove-members are not available"
)


def _embedded(settings: ConnectionSettings) -> GroupAdmin:
    from kgctl.admin.embedded import open_embedded

    assert settings.embedded is not None
    return open_embedded(settings.embedded)


def _zookeeper(settings: ConnectionSettings) -> GroupAdmin:
    from kgctl.admin.zookeeper.admin import open_zookeeper

    has_brokers = settings.bootstrap or {"bootstrap.servers", "metadata.broker.list"} & settings.properties.keys()
    brokers = connect(replace(settings, zookeeper=None)) if has_brokers else None
    assert settings.zookeeper is not None
    return open_zookeeper(settings.zookeeper, settings.properties, settings.timeout_ms, brokers)


def context_settings(
    context: ClusterContext, over: Mapping[str, str] | None = None, timeout: str | None = None
) -> ConnectionSettings:
    """Return what a context amounts to, under properties and a time limit that are given beside it; secrets stay where they are.

    Raises:
        UsageError: it names no cluster, or a file or value of it cannot be read.
    """
    properties = {**_properties_of(context), **(over or {})}
    if not (context.has_address() or any(name in properties for name in ADDRESSES)):
        raise UsageError(f"context {context.name!r} names no cluster")
    timeout_text = timeout or context.timeout
    return ConnectionSettings(
        bootstrap=context.bootstrap_server,
        embedded=Path(context.embedded).expanduser() if context.embedded else None,
        zookeeper=context.zookeeper,
        properties=properties,
        timeout_ms=parse_timeout_ms(timeout_text) if timeout_text else DEFAULT_TIMEOUT_MS,
    )


def _properties_of(context: ClusterContext) -> Mapping[str, str]:
    """What the context sets: its file, and over it its own properties."""
    if not (context.command_config or context.properties):
        return {}
    from kgctl.admin.properties import load_command_config, parse_x

    base = load_command_config(Path(context.command_config).expanduser()) if context.command_config else {}
    return {**base, **parse_x([f"{key}={value}" for key, value in context.properties.items()])}


def parse_timeout_ms(text: str) -> int:
    """Read a time limit: seconds, or a duration with a unit (``500ms``, ``2m``, ``PT5S``).

    Raises:
        UsageError: not a span of time, or not more than zero.
    """
    from kgctl.admin.plan.times import parse_duration_ms

    if _is_plain_number(text) and float(text) >= LONGEST_BARE_TIMEOUT_S:
        raise UsageError(f"--timeout {text} counts seconds, unlike in Kafka's tools: write {text}ms, or {text}s if that is meant")
    try:
        milliseconds = round(float(text) * 1000) if _is_plain_number(text) else parse_duration_ms(text)
    except UsageError as error:
        raise UsageError(f"--timeout: {error.message}; a bare number counts seconds") from None
    if not 0 < milliseconds <= 86_400_000:
        raise UsageError(f"--timeout {text!r} must be more than zero and at most one day")
    return milliseconds


def _is_plain_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal() and text.isascii()
