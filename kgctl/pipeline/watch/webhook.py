"""Telling alerts to a webhook: one POST of JSON in the form of Alertmanager's webhook (version 4), which many receivers know."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kgctl.errors import KgctlError, UsageError
from kgctl.pipeline.watch.alerts import Alert

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
    """What tells one alert from another."""
    found = {"alertname": alert.name, "cluster": cluster, "group": alert.group}
    if alert.topic is not None:
        found |= {"topic": alert.topic, "partition": str(alert.partition)}
    return found


def _fingerprint(cluster: str, alert: Alert) -> str:
    import hashlib

    return hashlib.blake2b(repr((cluster, alert.key)).encode(), digest_size=8).hexdigest()


def _instant(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
