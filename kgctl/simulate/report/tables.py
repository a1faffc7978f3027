"""The rows that every report of an outcome shows: metrics by variant, and verdicts by expectation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgctl.simulate.report.beside import summaries
from kgctl.simulate.report.metric_labels import LOOKS, look_of, show
from kgctl.simulate.report.outcome import Expectation, Outcome, Spread
from kgctl.simulate.scenario.vocabulary import MEANINGS

_BY_CAUSE = "unavailable(cause "

MEANING_OF = {cause.label: meaning for cause, meaning in MEANINGS.items()}


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric; ``cells`` has a shown value for each variant, in their order."""

    label: str
    cells: tuple[str, ...]
    hint: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One expectation, for one variant or for several that it held in alike. ``word`` is PASS, WARN or FAIL."""

    word: str
    check: str
    detail: str


def metric_rows(outcome: Outcome) -> list[MetricRow]:
    """The headline metrics, unavailable time by cause below its sum, then those that an expectation names."""
    rows = []
    for name in _shown_metrics(outcome):
        rows.append(_row(outcome, name))
        if name == "unavailable":
            rows += _cause_rows(outcome)
    return rows


def _cause_rows(outcome: Outcome) -> list[MetricRow]:
    """The worst of each cause that there was in any seed; the seeds differ, so that the rows need not add up."""
    names = dict.fromkeys(name for variant in outcome.variants.values() for name in variant.metrics if name.startswith(_BY_CAUSE))
    rows = []
    for name in names:
        label = name.removeprefix(_BY_CAUSE).removesuffix(")")
        spreads = [variant.metrics.get(name) for variant in outcome.variants.values()]
        cells = tuple(show("unavailable", 0 if spread is None else spread.worst) for spread in spreads)
        rows.append(MetricRow(f"  {label}", cells, MEANING_OF.get(label, "")))
    return rows


def seeds_note(outcome: Outcome) -> str:
    """Which seeds the table is about."""
    count = len(outcome.seeds)
    return f"{count} seeds, worst shown" if count > 1 else f"seed {outcome.seeds[0]}" if count else ""


def verdicts(outcome: Outcome) -> list[Verdict]:
    """All expectations in the file's order; one that held in every variant is told once."""
    found = []
    for group in _by_check(outcome.expectations):
        passed = [each for each in group if each.passed]
        found += [_held(outcome, passed)] if passed else []
        found += [_broken(outcome, each) for each in group if not each.passed]
    return found


def played_verdicts(outcome: Outcome) -> list[Verdict]:
    """The expectations as they came out in the play with real clients, where there was one."""
    if outcome.measured is None:
        return []
    found = verdicts(replace(outcome, expectations=outcome.measured.expectations, measured=None))
    return [replace(each, check=f"played: {each.check}", detail=each.detail.replace("with seed", "in play")) for each in found]


def column_names(outcome: Outcome) -> list[str]:
    """The variants as headings; the one of a file without variants needs none."""
    return ["" if name == "default" else name for name in outcome.variants]


def replays(outcome: Outcome) -> list[str]:
    """The commands that run again what failed, each once."""
    return list(dict.fromkeys(each.replay for each in outcome.failures if each.replay))


def notes(outcome: Outcome) -> list[str]:
    """What stands below the verdicts: how sure one can be, and what the runner has to say."""
    played = () if outcome.measured is None else (*summaries(outcome), *outcome.measured.notes)
    return [text for text in (_confidence_note(outcome), *outcome.notes, *played) if text]


def _confidence_note(outcome: Outcome) -> str:
    """The rule of three, where everything held; empty where it says nothing."""
    count = len(outcome.seeds)
    if count <= 3 or not outcome.expectations or outcome.failures or outcome.warnings:
        return ""
    return f"held in {count} of {count} seeds: with 95% confidence, fewer than {300 / count:.3g}% of all seeds break it"


def _shown_metrics(outcome: Outcome) -> list[str]:
    present = dict.fromkeys(name for variant in outcome.variants.values() for name in variant.metrics)
    checks = " ; ".join(each.check for each in outcome.expectations)
    headlines = [name for name, look in LOOKS.items() if look.headline and name in present]
    named = [name for name in present if name not in headlines and "(" not in name and _names(checks, name)]
    return headlines + named


def _names(checks: str, metric: str) -> bool:
    """Whether a check has this metric as a whole word; ``lag`` is not named by ``lag(end)`` or ``lag_peak``."""
    return re.search(rf"(?<![\w-]){re.escape(metric)}(?![\w(-])", checks) is not None


def _row(outcome: Outcome, name: str) -> MetricRow:
    spreads = [variant.metrics.get(name) for variant in outcome.variants.values()]
    look = look_of(name)
    hint = _moves_hint(outcome) if name == "moves" else look.hint
    return MetricRow(look.label, tuple(show(name, _worst(spread)) for spread in spreads), hint)


def _worst(spread: Spread | None) -> float | None:
    return None if spread is None else spread.worst


def _moves_hint(outcome: Outcome) -> str:
    bounds = {spread.worst for variant in outcome.variants.values() if (spread := variant.metrics.get("moves_min"))}
    return f"lower bound {show('moves', bounds.pop())}" if len(bounds) == 1 else ""


def _by_check(expectations: Sequence[Expectation]) -> list[list[Expectation]]:
    groups: dict[str, list[Expectation]] = {}
    for each in expectations:
        groups.setdefault(each.check, []).append(each)
    return list(groups.values())


def _held(outcome: Outcome, group: list[Expectation]) -> Verdict:
    metric = metric_of(group[0].check)
    values = list(dict.fromkeys(show(metric, each.observed) for each in group if each.observed is not None))
    detail = (
        values[0]
        if len(values) == 1
        else ", ".join(f"{each.variant} {show(metric, each.observed)}" for each in group if each.observed is not None)
    )
    if len(group) == 1:
        detail = " ".join(filter(None, [detail, group[0].note and f"({group[0].note})"]))
    check = group[0].check
    if len(group) == 1 and len(outcome.variants) > 1 and not _names_variant(check, group[0].variant):
        check = f"{group[0].variant}: {check}"
    return Verdict("PASS", check, detail)


def _broken(outcome: Outcome, each: Expectation) -> Verdict:
    lone = len(outcome.variants) <= 1 or _names_variant(each.check, each.variant)
    check = each.check if lone else f"{each.variant}: {each.check}"
    detail = f"observed {show(metric_of(each.check), each.observed)} with seed {each.seed}"
    return Verdict("FAIL" if each.severity == "fail" else "WARN", check, detail + (f" ({each.note})" if each.note else ""))


def _names_variant(check: str, variant: str) -> bool:
    return f"{variant}." in check


def metric_of(check: str) -> str:
    """The metric on the left of a comparison, which says the observed value's unit: without its variant, and without what the
    check asks of it (``always: ``, ``p95: ``)."""
    left = re.split(r"[<>=!]=?", check, maxsplit=1)[0].rpartition(": ")[2].strip()
    before_filter, paren, rest = left.partition("(")
    return before_filter.rpartition(".")[2].strip() + paren + rest
