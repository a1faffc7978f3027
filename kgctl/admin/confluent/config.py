"""What every client of librdkafka is configured with, besides what the user says."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.admin.config.librdkafka import CLIENT_PROPERTIES

_DEFAULTS: Mapping[str, str | int] = {
    "client.id": "kgctl",
    "reconnect.backoff.ms": 1,  # the first connection to a broker already counts as a reconnect: saves some 40 ms
    "reconnect.backoff.max.ms": 200,
    "log_level": 0,  # what goes wrong is said once, by kgctl
    "enable.metrics.push": "false",
}


def client_config(properties: Mapping[str, str]) -> dict[str, str | int]:
    """The configuration of an admin client; the user's values win, and those for consumers and producers are left out."""
    own = {name: value for name, value in properties.items() if name in CLIENT_PROPERTIES}
    log_level = {"log_level": "7"} if "debug" in own else {}
    return {**_DEFAULTS, **log_level, **own}
