"""Where a watch tells what it knows: a page or file for Prometheus (by prometheus-client, the extra ``metrics``), and a webhook.

A webhook gets one POST of JSON in the form of Alertmanager's webhook (version 4), which many receivers know.
"""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgctl.errors import KgctlError, StorageError, UsageError
from kgctl.extras import require
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.inferred import OUT_OF_RANGE, UNMEASURED
from kgctl.pipeline.answers.series import Row
from kgctl.pipeline.watch.rules import Alert, unread

TIMEOUT_S = 5.0
TRIES = 3
_PAUSE_S = 0.5
_TRANSIENT = (408, 425, 429)


class NotTakenError(KgctlError):
    """The receiver was away or busy: the same may work later."""


@dataclass(frozen=True)
class Webhook:
    """A receiver. ``headers`` go with each request (``Authorization``)."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    pause: Callable[[float], object] = time.sleep

    def __post_init__(self) -> None:
        """Raises `UsageError` for what is no URL of HTTP."""
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(self.url)
            is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_web = False
        if not is_web:
            raise UsageError(f"--webhook {self.url!r}: write http://HOST/PATH or https://HOST/PATH")

    def send(self, cluster: str, alerts: Sequence[Alert]) -> None:
        """Post them together, `TRIES` times at most; a time-out is not tried again at once.

        Raises:
            NotTakenError: it was away or busy. KgctlError: it refused them, and would again.
        """
        body = json.dumps(payload(cluster, alerts)).encode()
        for left in reversed(range(TRIES)):
            try:
                self._post(body)
            except TimeoutError:
                raise NotTakenError(f"the webhook did not answer within {self.timeout_s:g} s") from None
            except NotTakenError:
                if not left:
                    raise
                self.pause(_PAUSE_S * 2 ** (TRIES - 1 - left))
            else:
                return

    def _post(self, body: bytes) -> None:
        import urllib.error
        import urllib.request

        headers = {"Content-Type": "application/json", "User-Agent": "kgctl", **self.headers}
        request = urllib.request.Request(self.url, body, headers, method="POST")  # noqa: S310 - http or https: looked at when it was made
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:  # noqa: S310
                answer.read(1)
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _TRANSIENT or error.code >= 500:
                    raise NotTakenError(f"the webhook answered {error.code} {error.reason}") from None
                raise KgctlError(f"the webhook refused the alerts: {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise TimeoutError from None
            raise NotTakenError(f"the webhook cannot be reached: {error.reason}") from None
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotTakenError(f"the webhook cannot be reached: {str(error) or type(error).__name__}") from None


def payload(cluster: str, alerts: Sequence[Alert]) -> dict[str, Any]:
    """The body: ``alerts`` with labels, annotations, ``startsAt`` and ``endsAt``, as Alertmanager posts them."""
    told = [_told(cluster, alert) for alert in alerts]
    is_firing = any(each["status"] == "firing" for each in told)
    return {
        "version": "4",
        "receiver": "kgctl",
        "status": "firing" if is_firing else "resolved",
        "groupKey": f"kgctl:{cluster}",
        "groupLabels": {"cluster": cluster},
        "commonLabels": {"cluster": cluster},
        "commonAnnotations": {},
        "externalURL": "",
        "truncatedAlerts": 0,
        "alerts": told,
    }


def _told(cluster: str, alert: Alert) -> dict[str, Any]:
    return {
        "status": alert.status,
        "labels": labels(cluster, alert),
        "annotations": {"summary": alert.summary, "rule": alert.rule},
        "startsAt": _instant(alert.since_ms),
        "endsAt": "0001-01-01T00:00:00Z" if alert.resolved_ms is None else _instant(alert.resolved_ms),
        "generatorURL": "",
        "fingerprint": _fingerprint(cluster, alert),
    }


def labels(cluster: str, alert: Alert) -> dict[str, str]:
    """Return the labels that tell one alert from another."""
    found = {"alertname": alert.name, "cluster": cluster, "group": alert.group}
    if alert.topic is not None:
        found |= {"topic": alert.topic, "partition": str(alert.partition)}
    return found


def _fingerprint(cluster: str, alert: Alert) -> str:
    import hashlib

    return hashlib.blake2b(repr((cluster, alert.key)).encode(), digest_size=8).hexdigest()


def _instant(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@frozen_in_order
class WatchState:
    """What is shown: the state after a look. Times are milliseconds since the epoch, None where there was none yet."""

    cluster: str
    standings: Sequence[Row] = ()
    members: Sequence[tuple[str, int | None]] = ()
    firing: Sequence[Alert] = ()
    looked_ms: int | None = None
    built_ms: int | None = None
    look_ms: int | None = None
    failures: int = 0
    webhook_failures: int = 0
    undelivered: int = 0


@dataclass(eq=False)  # the registry keeps it in a dict
class Metrics:
    """A registry that shows what `show` was last given of each cluster; ``page`` and ``file`` are where."""

    file: Path | None = None
    _now: dict[str, WatchState] = field(default_factory=dict)
    _registry: Any = field(init=False)
    _server: Any = None
    _thread: Any = None

    def __post_init__(self) -> None:
        """Raises `UsageError` without prometheus-client."""
        require("--metrics", "prometheus_client")
        from prometheus_client.registry import CollectorRegistry

        self._registry = CollectorRegistry()
        self._registry.register(self)

    def listen(self, host: str, port: int) -> int:
        """Serve the page from a thread, until `close`; the port. Raises `KgctlError` where the address cannot be had."""
        from prometheus_client import start_http_server

        try:
            self._server, self._thread = start_http_server(port, host, self._registry)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise KgctlError(f"cannot listen on {host}:{port} for metrics: {reason}") from error
        return int(self._server.server_port)

    def close(self) -> None:
        """Close the listening socket, and leave the file."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def begin(self, cluster: str) -> None:
        """Show that a cluster is watched of which nothing is known yet; the file stays as it is."""
        self._now = {**self._now, cluster: WatchState(cluster)}

    def show(self, measured: WatchState) -> None:
        """From now on this of its cluster. Raises `StorageError` where the file cannot be written."""
        kept = replace(measured, standings=tuple(measured.standings), firing=tuple(measured.firing))
        self._now = {**self._now, measured.cluster: kept}
        if self.file is None:
            return
        from prometheus_client import write_to_textfile

        try:
            write_to_textfile(str(self.file), self._registry)
        except OSError as error:
            raise StorageError(f"{self.file}: {error.strerror or error}") from error

    def describe(self) -> list[Any]:
        """Nothing is asked before the first page (prometheus-client asks)."""
        return []

    def collect(self) -> Iterator[Any]:
        """The metrics, as prometheus-client takes them. What is not known has no sample: never 0."""
        now = list(self._now.values())  # another thread may show more meanwhile
        yield from _of_partitions(now)
        yield from _of_groups(now)
        firing = _gauge("kgctl_alert_firing", "An alert of kgctl history watch that fires now", "alertname", *_PLACE)
        all_labels = (labels(each.cluster, alert) for each in now for alert in each.firing)
        for told in {tuple(sorted(each.items())): each for each in all_labels}.values():
            firing.add_metric([told.get(name, "") for name in ("alertname", *_PLACE)], 1)
        yield firing
        yield from _of_watch(now)


_PLACE = ("cluster", "group", "topic", "partition")


def _gauge(name: str, text: str, *names: str) -> Any:
    from prometheus_client.metrics_core import GaugeMetricFamily

    return GaugeMetricFamily(name, text, labels=names)


def _of_partitions(now: Sequence[WatchState]) -> Iterator[Any]:
    lag = _gauge("kgctl_partition_lag", "Records that a group has not read of a partition", *_PLACE)
    seconds = _gauge("kgctl_partition_lag_seconds", "How long the next record of a partition has waited", *_PLACE)
    measured = _gauge("kgctl_partition_measured_timestamp_seconds", "When the lag was last measured", *_PLACE)
    is_well = _gauge("kgctl_partition_status", "1 for the status that a partition has now", *_PLACE, "status")
    for cluster, row in ((each.cluster, row) for each in now for row in each.standings):
        place = [cluster, row["group"], row["topic"], str(row["partition"])]
        if row["lag"] is not None and row["status"] != UNMEASURED:
            lag.add_metric(place, row["lag"])
            if row["lag_ms"] is not None:
                seconds.add_metric(place, row["lag_ms"] / 1000)
        if row["log_end_offset"] is not None:
            measured.add_metric(place, row["time_ms"] / 1000)
        is_well.add_metric([*place, row["status"] or "UNKNOWN"], 1)
    yield from (lag, seconds, measured, is_well)


def _of_groups(now: Sequence[WatchState]) -> Iterator[Any]:
    total = _gauge("kgctl_group_lag", "Records that a group has not read, if all ends of logs are known", *_PLACE[:2])
    out = _gauge("kgctl_group_out_of_range", "Partitions whose commit is out of the log's range", *_PLACE[:2], "status")
    rows: dict[tuple[str, str], list[Row]] = {}
    for cluster, row in ((each.cluster, row) for each in now for row in each.standings):
        rows.setdefault((cluster, row["group"]), []).append(row)
    for place, found in rows.items():
        is_whole = all(row["status"] not in (None, UNMEASURED) for row in found)
        if is_whole and any(row["lag"] is not None for row in found):
            total.add_metric(place, unread(found))
        for status in OUT_OF_RANGE:
            if (count := sum(row["status"] == status for row in found)) or is_whole:
                out.add_metric([*place, status], count)
    members = _gauge("kgctl_group_members", "Members of a group", *_PLACE[:2])
    for cluster, (group, count) in ((each.cluster, of_group) for each in now for of_group in each.members):
        if count is not None:
            members.add_metric([cluster, group], count)
    yield from (total, out, members)


_TIMES: Sequence[tuple[str, str, Callable[[WatchState], int | None]]] = (
    ("kgctl_watch_last_look_timestamp_seconds", "When the rules were last judged", lambda each: each.looked_ms),
    ("kgctl_watch_last_build_timestamp_seconds", "When the tables were last brought up to date", lambda each: each.built_ms),
    ("kgctl_watch_look_seconds", "How long the last look took", lambda each: each.look_ms),
)
_COUNTS: Sequence[tuple[str, str, Callable[[WatchState], int]]] = (
    ("kgctl_watch_failures", "Looks that failed", lambda each: each.failures),
    ("kgctl_watch_webhook_failures", "Posts that the webhook did not take", lambda each: each.webhook_failures),
)


def _of_watch(now: Sequence[WatchState]) -> Iterator[Any]:
    from prometheus_client.metrics_core import CounterMetricFamily

    for name, text, time_ms in _TIMES:
        found = _gauge(name, text, "cluster")
        for each in now:
            if (value := time_ms(each)) is not None:
                found.add_metric([each.cluster], value / 1000)
        yield found
    waiting = _gauge("kgctl_watch_undelivered", "Changes of alerts that the webhook has not taken yet", "cluster")
    for each in now:
        waiting.add_metric([each.cluster], each.undelivered)
    yield waiting
    for name, text, count in _COUNTS:
        counter = CounterMetricFamily(name, text, labels=("cluster",))
        for each in now:
            counter.add_metric([each.cluster], count(each))
        yield counter
