"""From settings to a `GroupAdmin`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.admin.client import GroupAdmin


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
