"""The manual's table of reality and simulation."""

from __future__ import annotations

from tests.calibration.cases import all_cases, measured, simulated, spread

COLUMNS = ("generations", "unavailable", "max_gap", "duplicates")


def table(seeds: int) -> str:
    """Markdown: medians of what was measured, medians and ranges over seeds of what was simulated, and the ratio."""
    head = "| Scenario | Runs | Generations | Unavailable p*s | Longest gap s | Duplicates | Ratio |"
    lines = [head, "|---|---:|---|---|---|---|---:|"]
    for case in all_cases():
        real, model = measured().get(case.name), spread(simulated(case, seeds))
        if real:
            seen = spread(real)
            cells = [_cell(name, seen[name][1], model[name]) for name in COLUMNS]
            ratio = model["unavailable"][1] / seen["unavailable"][1]
            lines.append(f"| `{case.name}` | {len(real)} | {' | '.join(cells)} | {ratio:.2f} |")
    return "\n".join(lines)


def _cell(name: str, seen: float, model: tuple[float, float, float]) -> str:
    digits = 1 if name in ("unavailable", "max_gap") else 0
    low, middle, high = (f"{value:.{digits}f}" for value in model)
    return f"{seen:.{digits}f} / {middle}" + (f" ({low} to {high})" if low != high else "")
