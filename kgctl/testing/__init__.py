"""Test one's own consumers in milliseconds: a coordinator and topics on a free local port, and the faults that they meet.

With pytest the fixtures ``kafka_cluster`` and ``consumer_group`` are there as soon as kgctl is installed: see
`kgctl.testing.plugin`.
"""

from kgctl.testing.cluster import EmbeddedServer

__all__ = ["EmbeddedServer"]
