"""What the manifest of an autoscaler says of when it scales: KEDA's triggers, metrics of an HPA of either version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from kgctl.errors import UsageError
from kgctl.model.values import frozen_in_order

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k|M|G|Ki|Mi|Gi)?")
_UNITS: Mapping[str, Decimal] = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    "M": Decimal(1000**2),
    "G": Decimal(1000**3),
    "Ki": Decimal(1024),
    "Mi": Decimal(1024**2),
    "Gi": Decimal(1024**3),
}
_KAFKA = ("kafka", "apache-kafka")
_KEDA_THRESHOLD = 10
_KEDA_FLAGS = (
    ("allow_idle_consumers", "allowIdleConsumers"),
    ("limit_to_partitions_with_lag", "limitToPartitionsWithLag"),
    ("exclude_persistent_lag", "excludePersistentLag"),
)
_NOT_SIMULATED = ("fallback", "idleReplicaCount", "scaleToZeroOnInvalidOffset")
Said: TypeAlias = "tuple[tuple[str, Any, str], ...]"
"""(key of ``autoscale``, value, where in the manifest)."""


@frozen_in_order
class Signal:
    """A trigger or a metric. ``says``: what a scenario takes of it; none: it has no words for it. ``topic``: of one alone."""

    name: str
    says: Said = ()
    is_lag: bool = False
    group_id: str = ""
    topic: str = ""


def mapping(data: Any) -> Mapping[str, Any]:
    return data if isinstance(data, dict) else {}


def entries(data: Any) -> list[Any]:
    return data if isinstance(data, list) else []


def whole_number(value: Any, where: str) -> int:
    """A number as Kubernetes writes it: ``500``, ``"500"``, ``1k``. Raises `UsageError`."""
    match = _QUANTITY.fullmatch(str(value).strip())
    found = None if match is None else Decimal(match[1]) * _UNITS[match[2] or ""]
    if found is None or found != int(found):
        raise UsageError(f"{where} is {str(value)!r}, which is no whole number")
    return int(found)


def signals(spec: Mapping[str, Any], where: str) -> list[Signal]:
    """All that it scales by, in the manifest's order. Raises `UsageError`."""
    found = [_of_trigger(mapping(each), where) for each in entries(spec.get("triggers"))]
    found += [_of_metric(mapping(each), where) for each in entries(spec.get("metrics"))]
    if (percent := spec.get("targetCPUUtilizationPercentage")) is not None:
        found.append(_by_cpu(percent, where, "targetCPUUtilizationPercentage"))
    return found


def chosen(found: list[Signal]) -> Signal | None:
    """The one that a scenario scales by: by the lag before the processors."""
    usable = [each for each in found if each.says]
    return next((each for each in usable if each.is_lag), usable[0] if usable else None)


def not_simulated(spec: Mapping[str, Any], where: str) -> Iterator[str]:
    """What KEDA does besides, and no scenario says, in words."""
    triggers = [mapping(mapping(each).get("metadata")) for each in entries(spec.get("triggers"))]
    for name in _NOT_SIMULATED:
        if any(str(each.get(name, "false")).lower() != "false" for each in (spec, *triggers)):
            yield f"{where} has {name}, which is not simulated"


def left_out(found: list[Signal], topics: str, where: str) -> Iterator[str]:
    """What of it a scenario does not say, in words. ``topics``: those that the consumers read, as far as they are told."""
    taken, names = chosen(found), ", ".join(each.name for each in found)
    if found and taken is None:
        yield f"{where} scales by {names}, for which a scenario has no words: put in a `metric` and a `target`"
    elif taken is not None and len(found) > 1:
        yield f"{where} scales by the most that {names} ask for; the scenario scales by {taken.name} alone"
    if taken is not None and taken.topic and {*topics.split(","), *(each.topic for each in found)} - {"", taken.topic}:
        yield f"{where} looks at the lag of topic {taken.topic}; the scenario counts that of all topics that are read"


def _of_trigger(trigger: Mapping[str, Any], where: str) -> Signal:
    kind, data = str(trigger.get("type", "?")), mapping(trigger.get("metadata"))
    if kind in _KAFKA:
        topic = str(data.get("topic", ""))
        says = [
            (
                "target",
                whole_number(data.get("lagThreshold", _KEDA_THRESHOLD), f"{where}, lagThreshold"),
                f"{where}, lagThreshold",
            )
        ]
        if (least := data.get("activationLagThreshold")) is not None:
            says.append(
                ("activation", whole_number(least, f"{where}, activationLagThreshold"), f"{where}, activationLagThreshold")
            )
        flags = ((key, str(data[name]).lower() == "true", f"{where}, {name}") for key, name in _KEDA_FLAGS if name in data)
        name = f"{kind} ({f'topic {topic}' if topic else 'all topics'})"
        return Signal(name, (*says, *flags), is_lag=True, group_id=str(data.get("consumerGroup", "")), topic=topic)
    is_utilization = trigger.get("metricType", data.get("type", "Utilization")) == "Utilization"
    return _by_cpu(data["value"], where, "cpu") if kind == "cpu" and is_utilization and "value" in data else Signal(kind)


def _of_metric(metric: Mapping[str, Any], where: str) -> Signal:
    kind = str(metric.get("type", "?"))
    body = mapping(metric.get(kind[:1].lower() + kind[1:]))
    target, named = mapping(body.get("target")), body.get("name", mapping(body.get("metric")).get("name", ""))
    if kind in ("External", "Pods") and "averageValue" in target:
        most = whole_number(target["averageValue"], f"{where}, averageValue")
        return Signal(f"{kind} {named}", (("target", most, f"{where}, averageValue"),), is_lag=True)
    if kind == "Resource" and named == "cpu" and "averageUtilization" in target:
        return _by_cpu(target["averageUtilization"], where, "averageUtilization")
    return Signal(f"{kind} {named}".strip())


def _by_cpu(percent: Any, where: str, what: str) -> Signal:
    share = f"{whole_number(percent, f'{where}, {what}')}%"
    return Signal("cpu", (("metric", "cpu", f"{where}, {what}"), ("target", share, f"{where}, {what}")))
