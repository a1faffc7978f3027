"""What was measured of Kafka Streams beside what `simulate` says: the table of the page on Kafka Streams."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import read_yaml

HERE = Path(__file__).parent
MEASURED: dict[str, list[dict[str, float]]] = json.loads((HERE / "measured.json").read_text())
"""CASE:PROTOCOL -> the metrics of each play."""
METRICS = ("task_downtime", "max_task_downtime", "time_to_whole", "restored")
SEEDS = range(1, 21)


def simulated(name: str) -> dict[str, list[float]]:
    """Metric -> its values with each seed, in order, for CASE:PROTOCOL."""
    case, protocol = name.split(":")
    path = HERE / "scenarios" / f"{case}.yaml"
    (variant,) = load(
        read_yaml(path.read_text(), path.name), settings=(f"members.app.config.group.protocol={protocol}",)
    ).variants
    results = [run(variant.scenario, seed) for seed in SEEDS]
    return {metric: sorted(float(result.metric(metric) or 0) for result in results) for metric in METRICS}


def table() -> str:
    """Least, median and most of the plays, and of the seeds."""
    metrics = " | ".join(f"`{metric}`" for metric in METRICS)
    lines = [f"| case | | {metrics} |", "| --- | --- | --- | --- | --- | --- |"]
    for name, plays in MEASURED.items():
        model = simulated(name)
        world = {metric: sorted(play[metric] for play in plays) for metric in METRICS}
        for word, values in ((f"measured, {len(plays)} plays", world), ("simulated", model)):
            lines.append(f"| {name.replace(':', ', ')} | {word} | {' | '.join(_shown(values[metric]) for metric in METRICS)} |")
    return "\n".join(lines)


def _shown(values: list[float]) -> str:
    found = [f"{value:,.0f}" if value > 1_000 else f"{value:.1f}" for value in (values[0], median(values), values[-1])]
    return " / ".join(found) if len(set(found)) > 1 else found[0]
