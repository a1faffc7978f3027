"""Test one's own consumers in milliseconds: a coordinator and topics on a free local port, and the faults that they meet.

With pytest the fixtures ``kafka_cluster``, ``kafka_server``, ``consumer_group`` and the marker ``kafka`` are there once kgctl is
installed: see `kgctl.testing.plugin`. Every run of pytest imports this package then, so it imports nothing before
`EmbeddedServer` is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kgctl.server.access import Denial
    from kgctl.testing.cluster import EmbeddedServer
    from kgctl.testing.faults import Fault

__all__ = ["Denial", "EmbeddedServer", "Fault"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kgctl.testing import cluster

    found: object = getattr(cluster, name)
    globals()[name] = found
    return found
