"""A page of metrics for Prometheus, with prometheus-client (the extra ``metrics``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kgctl.errors import KgctlError, UsageError

Describe = Callable[[], Mapping[str, Any]]
GAUGES = {
    "connections": ("kgctl_connections", "Clients that are connected", 1),
    "offsets": ("kgctl_offsets", "Committed offsets", 1),
    "bytes_in_flight": ("kgctl_bytes_in_flight", "Bytes of large requests that are not answered yet", 1),
    "memory_bytes": ("kgctl_memory_bytes", "Resident memory of the process", 1),
    "uptime_s": ("kgctl_uptime_seconds", "How long the server runs", 1),
    "loop_delay_ms": ("kgctl_loop_delay_seconds", "How late the event loop was with what was due", 0.001),
    "longest_hold_ms": ("kgctl_longest_hold_seconds", "The longest that one request held the event loop", 0.001),
}
"""Keys of the status, with the metric's name, what it says, and the factor to its unit."""


class MetricsPage:
    """An HTTP server in a thread of its own, from now until `close`."""

    def __init__(self, address: tuple[str, int], describe: Describe) -> None:
        """Raises `UsageError` without prometheus-client and `KgctlError` where the address cannot be had."""
        try:
            from prometheus_client import start_http_server
            from prometheus_client.registry import CollectorRegistry
        except ImportError:
            raise UsageError("--metrics needs prometheus-client: pip install 'kgctl[metrics]'") from None
        registry = CollectorRegistry()
        registry.register(_Collector(describe))
        try:
            self._server, self._thread = start_http_server(address[1], address[0], registry)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise KgctlError(f"cannot listen on {address[0]}:{address[1]} for metrics: {reason}") from error

    @property
    def port(self) -> int:
        """Where it listens, for port 0."""
        return int(self._server.server_port)

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Collector:
    """Asks the server when a page is wanted."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def describe(self) -> list[Any]:
        """Nothing is asked before the first page."""
        return []

    def collect(self) -> Iterator[Any]:
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        found = self._describe()
        for key, (name, text, factor) in GAUGES.items():
            if found[key] is not None:
                yield GaugeMetricFamily(name, text, value=found[key] * factor)
        groups = GaugeMetricFamily("kgctl_groups", "Groups", labels=("type", "state"))
        for entry in found["groups"]:
            groups.add_metric((entry["type"], entry["state"]), entry["count"])
        yield groups
        members = GaugeMetricFamily("kgctl_members", "Members of groups", labels=("type",))
        for kind, count in sorted(found["members"].items()):
            members.add_metric((kind,), count)
        yield members
        under_way = GaugeMetricFamily("kgctl_rebalances", "Rebalances that are under way", labels=("stuck",))
        for stuck in (False, True):
            count = sum(1 for rebalance in found["rebalances"] if rebalance["is_stuck"] is stuck)
            under_way.add_metric((str(stuck).lower(),), count)
        yield under_way
        requests = CounterMetricFamily("kgctl_requests", "Requests that were answered", labels=("api_key",))
        for key, count in found["requests_by_api"].items():
            requests.add_metric((key,), count)
        yield requests
        yield CounterMetricFamily("kgctl_held_too_long", "Requests that held the loop above 50 ms", value=found["held_too_long"])
