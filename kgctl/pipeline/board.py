"""A board of Grafana for what ``kgctl history watch --metrics`` shows: JSON to import, or to provide as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 39
"""Of Grafana 10.4's dashboards; later ones read it."""
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_OF_GROUPS = 'cluster=~"$cluster",group=~"$group"'
_OF_CLUSTERS = 'cluster=~"$cluster"'
_COLUMNS = 24


@dataclass(frozen=True, slots=True)
class _Panel:
    """``queries`` are expressions of Prometheus, each with its legend."""

    title: str
    about: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    height: int = 8


_PANELS = (
    _Panel(
        "Alerts",
        "What fires now, by the rules of kgctl history watch --alert.",
        [(f"sum by (alertname, cluster, group, topic) (kgctl_alert_firing{{{_OF_CLUSTERS}}}) > 0", "")],
        kind="table",
        width=18,
    ),
    _Panel(
        "Last look",
        "How long ago the rules were judged; what this board shows is as old. Nothing: no watch runs.",
        [(f"time() - kgctl_watch_last_look_timestamp_seconds{{{_OF_CLUSTERS}}}", "{{cluster}}")],
        unit="s",
        kind="stat",
        width=6,
    ),
    _Panel(
        "Records to read",
        "By group. A group has no line where the end of one of its logs is not known.",
        [(f"kgctl_group_lag{{{_OF_GROUPS}}}", "{{cluster}} {{group}}")],
    ),
    _Panel(
        "How far behind",
        "How long the next record of a group's worst partition has waited.",
        [(f"max by (cluster, group) (kgctl_partition_lag_seconds{{{_OF_GROUPS}}})", "{{cluster}} {{group}}")],
        unit="s",
    ),
    _Panel(
        "Partitions by status",
        "Burrow's, and UNMEASURED or UNKNOWN where the lag is not known: these are not well.",
        [(f"sum by (status) (kgctl_partition_status{{{_OF_GROUPS}}})", "{{status}}")],
    ),
    _Panel(
        "Commits out of the log",
        "Partitions with a commit past the log's end or before its start: no consumer can read from there.",
        [(f"sum by (cluster, group, status) (kgctl_group_out_of_range{{{_OF_GROUPS}}}) > 0", "{{cluster}} {{group}} {{status}}")],
    ),
    _Panel("Members", "By group.", [(f"kgctl_group_members{{{_OF_GROUPS}}}", "{{cluster}} {{group}}")]),
    _Panel(
        "The furthest behind",
        "Partitions, with records to read.",
        [(f"topk(20, kgctl_partition_lag{{{_OF_GROUPS}}})", "")],
        kind="table",
    ),
    _Panel(
        "The watch itself",
        "Failures in the last hour, and what the webhook has not taken.",
        [
            (f"increase(kgctl_watch_failures_total{{{_OF_CLUSTERS}}}[1h])", "{{cluster}} looks that failed"),
            (f"increase(kgctl_watch_webhook_failures_total{{{_OF_CLUSTERS}}}[1h])", "{{cluster}} posts that failed"),
            (f"kgctl_watch_undelivered{{{_OF_CLUSTERS}}}", "{{cluster}} not delivered"),
        ],
    ),
)


def board() -> dict[str, Any]:
    """The dashboard, with a choice of source, clusters and groups."""
    return {
        "uid": "kgctl-groups",
        "title": "Kafka consumer groups (kgctl)",
        "tags": ["kafka", "kgctl"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "utc",
        "templating": {"list": [_source(), *_choices()]},
        "panels": [_panel(number, panel, place) for number, (panel, place) in enumerate(_placed(), start=1)],
    }


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}}


def _choices() -> list[dict[str, Any]]:
    queries = {
        "cluster": "label_values(kgctl_watch_last_look_timestamp_seconds, cluster)",
        "group": f"label_values(kgctl_partition_status{{{_OF_CLUSTERS}}}, group)",
    }
    several = {"type": "query", "datasource": _SOURCE, "multi": True, "includeAll": True, "refresh": 2, "sort": 1}
    everything = {"selected": True, "text": ["All"], "value": ["$__all"]}
    return [{"name": name, "label": name, "query": text, "current": everything, **several} for name, text in queries.items()]


def _placed() -> list[tuple[_Panel, dict[str, int]]]:
    found, x, y = [], 0, 0
    for panel in _PANELS:
        if x + panel.width > _COLUMNS:
            x, y = 0, y + panel.height
        found.append((panel, {"x": x, "y": y, "w": panel.width, "h": panel.height}))
        x += panel.width
    return found


def _panel(number: int, panel: _Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {},
        "targets": [_target(at, panel, *query) for at, query in enumerate(panel.queries)],
    }


def _target(at: int, panel: _Panel, expression: str, legend: str) -> dict[str, Any]:
    is_of_now = panel.kind != "timeseries"
    found = {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
    return {**found, "instant": is_of_now, "range": not is_of_now, "format": "table" if panel.kind == "table" else "time_series"}
