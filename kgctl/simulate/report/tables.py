"""The rows that reports show: metrics by variant, verdicts by expectation, simulated beside measured."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from kgctl.model.values import frozen_in_order
from kgctl.simulate.report.outcome import Expectation, Measured, Outcome, Spread, show
from kgctl.simulate.scenario.metric import headlines, kind_of
from kgctl.simulate.scenario.quantities import is_duration, parse_duration
from kgctl.simulate.scenario.vocabulary import GapCause

_SLACK = 0.1
"""A value that is by a tenth of the range's end outside counts as inside,"""
_RESOLUTION_S = 0.25
"""and so does one that is less outside than a real group can be looked at."""


class MedianPlace(StrEnum):
    """Where the measured median lies: within what the seeds span, or outside of it."""

    INSIDE = "inside"
    BELOW = "below"
    ABOVE = "above"


@frozen_in_order
class Beside:
    """One metric of one variant, simulated and measured."""

    variant: str
    metric: str
    simulated: Spread
    measured: Spread
    place: MedianPlace


def beside(outcome: Outcome) -> list[Beside]:
    measured = outcome.measured
    if measured is None:
        return []
    return [
        Beside(name, metric, spread, real.metrics[metric], _place(metric, spread, real.metrics[metric].median))
        for name, variant in outcome.variants.items()
        if (real := measured.variants.get(name)) is not None
        for metric, spread in variant.metrics.items()
        if metric in real.metrics
    ]


def _place(metric: str, simulated: Spread, value: float) -> MedianPlace:
    kind = kind_of(metric)
    slack = _RESOLUTION_S if kind is not None and kind.unit.symbol == "s" else 0.0
    if value < simulated.minimum and not _near(value, simulated.minimum, slack):
        return MedianPlace.BELOW
    if value > simulated.maximum and not _near(value, simulated.maximum, slack):
        return MedianPlace.ABOVE
    return MedianPlace.INSIDE


def _near(value: float, end: float, slack: float) -> bool:
    return math.isfinite(value) and math.isfinite(end) and abs(value - end) <= max(_SLACK * abs(end), slack)


def beside_lines(outcome: Outcome) -> list[str]:
    """The table of a terminal, a block for each variant: the headline metrics, and what lies outside."""
    measured = outcome.measured
    if measured is None:
        return []
    lines = ["", _title(measured)]
    for name in outcome.variants:
        rows = beside_cells(outcome, name)
        widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
        for row in rows:
            cells = [f"{row[0]:<{widths[0]}}", f"{row[1]:>{widths[1]}}", f"{row[2]:>{widths[2]}}", row[3]]
            lines.append("   ".join(cells).rstrip())
    return lines


def _title(measured: Measured) -> str:
    runs = f"{measured.runs} plays" if measured.runs > 1 else "1 play"
    return f"beside real clients ({measured.client}) on {measured.cluster}, {runs}:"


def beside_cells(outcome: Outcome, variant: str) -> list[tuple[str, str, str, str]]:
    """The rows of a variant as texts: metric, simulated median with its range, measured median, where that lies."""
    rows = [each for each in beside(outcome) if each.variant == variant]
    shown = [each for each in rows if each.place is not MedianPlace.INSIDE or _is_headline(each.metric)]
    head = (heading(outcome, variant), "simulated", "measured", "")
    return [
        head,
        *(
            (label_of(each.metric), _range(each.metric, each.simulated), _range(each.metric, each.measured), _word(each))
            for each in shown
        ),
    ]


def label_of(metric: str) -> str:
    """What a report calls a metric; one with a filter (``unavailable(cause boot)``) has its own full name."""
    kind = kind_of(metric)
    return metric if kind is None or kind.name != metric else kind.label


def _is_headline(metric: str) -> bool:
    return any(kind.name == metric for kind in headlines())


def _range(metric: str, spread: Spread) -> str:
    low, middle, high = (show(metric, value) for value in (spread.minimum, spread.median, spread.maximum))
    return middle if low == high else f"{middle} ({low} to {high})"


def _word(each: Beside) -> str:
    return "" if each.place is MedianPlace.INSIDE else f"outside, {each.place}"


def summaries(outcome: Outcome) -> list[str]:
    """A sentence for each variant: how many metrics lie inside, and which do not. What is 0 in both says nothing."""
    found = []
    rows = [each for each in beside(outcome) if not _is_nothing(each)]
    for name in outcome.variants:
        mine = [each for each in rows if each.variant == name]
        outside = [each.metric for each in mine if each.place is not MedianPlace.INSIDE]
        if mine:
            start = f"{name}: " if len(outcome.variants) > 1 else ""
            rest = f"; outside: {', '.join(outside)}" if outside else ""
            found.append(
                f"{start}{len(mine) - len(outside)} of {len(mine)} measured metrics lie within the simulated range{rest}"
            )
    return found


def _is_nothing(each: Beside) -> bool:
    return not any((each.simulated.minimum, each.simulated.maximum, each.measured.minimum, each.measured.maximum))


def title(outcome: Outcome) -> str:
    """A heading for the table; "" where nothing was measured."""
    return "" if outcome.measured is None else _title(outcome.measured).rstrip(":").capitalize()


def tables(outcome: Outcome) -> Sequence[list[tuple[str, str, str, str]]]:
    return [rows for name in outcome.variants if len(rows := beside_cells(outcome, name)) > 1]


_BY_CAUSE = "unavailable(cause "

MEANING_OF = {cause.label: cause.meaning for cause in GapCause}


@frozen_in_order
class MetricRow:
    """One metric; ``cells`` has a shown value for each variant, in their order."""

    label: str
    cells: tuple[str, ...]
    hint: str


@frozen_in_order
class CheckVerdict:
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
    count = len(outcome.seeds)
    return f"{count} seeds, worst shown" if count > 1 else f"seed {outcome.seeds[0]}" if count else ""


def trouble_lines(outcome: Outcome) -> list[str]:
    """What went wrong though nobody asked, in the order of its weight: who, by which rule, when."""
    return _told(outcome, outcome.troubles)


def allowed_lines(outcome: Outcome) -> list[str]:
    """The same of what is let through."""
    return [f"allowed: {text}" for text in _told(outcome, outcome.allowed)]


def _told(outcome: Outcome, found: Sequence[Expectation]) -> list[str]:
    lone = len(outcome.variants) <= 1
    return [each.note if lone else f"{each.variant}: {each.note}" for each in found]


def verdicts(outcome: Outcome) -> list[CheckVerdict]:
    """All expectations in the file's order; one that held in every variant is told once."""
    found = []
    for group in _by_check(outcome.asked):
        passed = [each for each in group if each.passed]
        found += [_held(outcome, passed)] if passed else []
        found += [_broken(outcome, each) for each in group if not each.passed]
    return found


def played_verdicts(outcome: Outcome) -> list[CheckVerdict]:
    """The expectations as they came out in the play with real clients, where there was one."""
    if outcome.measured is None:
        return []
    found = verdicts(replace(outcome, expectations=outcome.measured.expectations, measured=None))
    return [replace(each, check=f"played: {each.check}", detail=each.detail.replace("with seed", "in play")) for each in found]


def heading(outcome: Outcome, variant: str) -> str:
    """The variant's name; "" for the only one of a file without variants, which nobody has named."""
    return "" if [*outcome.variants] == ["default"] else variant


def column_names(outcome: Outcome) -> list[str]:
    """The variants as headings."""
    return [heading(outcome, name) for name in outcome.variants]


def replays(outcome: Outcome) -> list[str]:
    return list(dict.fromkeys(each.replay for each in outcome.failures if each.replay))


def notes(outcome: Outcome) -> list[str]:
    """What stands below the verdicts: what is let through, how sure one can be, and what the runner has to say."""
    played = () if outcome.measured is None else (*summaries(outcome), *outcome.measured.notes)
    return [text for text in (*allowed_lines(outcome), _confidence_note(outcome), *outcome.notes, *played) if text]


_ENOUGH = 60
"""By the rule of three, what never failed in so many runs fails in fewer than one of twenty."""


def _confidence_note(outcome: Outcome) -> str:
    """The rule of three, where everything held with every seed; else what did not, though it passed. Empty: it says nothing."""
    count = len(outcome.seeds)
    if count <= 3 or not outcome.asked or outcome.failures or outcome.warnings:
        return ""
    if short := [each for each in outcome.asked if each.held_in is not None and each.held_in < count]:
        told = ", ".join(f"{each.check} in {each.held_in}" for each in short if each.held_in)
        return f"held in some of {count} seeds: {told}" if told else ""
    if count < _ENOUGH:
        return f"held in {count} of {count} seeds; --runs {_ENOUGH} would show, with 95% confidence, that fewer than 5% break it"
    return f"held in {count} of {count} seeds: with 95% confidence, fewer than {300 / count:.3g}% of all break it"


def _shown_metrics(outcome: Outcome) -> list[str]:
    present = dict.fromkeys(name for variant in outcome.variants.values() for name in variant.metrics)
    checks = " ; ".join(each.check for each in outcome.asked)
    shown = [kind.name for kind in headlines() if kind.name in present]
    named = [name for name in present if name not in shown and "(" not in name and _names(checks, name)]
    return shown + named


def _names(checks: str, metric: str) -> bool:
    """Whether a check has this metric as a whole word; ``lag`` is not named by ``lag(end)`` or ``lag_peak``."""
    return re.search(rf"(?<![\w-]){re.escape(metric)}(?![\w(-])", checks) is not None


def _row(outcome: Outcome, name: str) -> MetricRow:
    spreads = [variant.metrics.get(name) for variant in outcome.variants.values()]
    kind = kind_of(name)
    hint = _moves_hint(outcome) if name == "moves" else kind.hint if kind is not None else ""
    return MetricRow(label_of(name), tuple(show(name, None if spread is None else spread.worst) for spread in spreads), hint)


def _moves_hint(outcome: Outcome) -> str:
    bounds = {spread.worst for variant in outcome.variants.values() if (spread := variant.metrics.get("moves_min"))}
    return f"lower bound {show('moves', bounds.pop())}" if len(bounds) == 1 else ""


def _by_check(expectations: Sequence[Expectation]) -> list[list[Expectation]]:
    groups: dict[str, list[Expectation]] = {}
    for each in expectations:
        groups.setdefault(each.check, []).append(each)
    return list(groups.values())


def _held(outcome: Outcome, group: list[Expectation]) -> CheckVerdict:
    known = [each for each in group if each.observed is not None]
    values = list(dict.fromkeys(map(observed_text, known)))
    detail = values[0] if len(values) == 1 else ", ".join(f"{each.variant} {observed_text(each)}" for each in known)
    if len(group) == 1:
        detail = " ".join(filter(None, [detail, group[0].note and f"({group[0].note})"]))
    check = group[0].check
    if len(group) == 1 and len(outcome.variants) > 1 and not _names_variant(check, group[0].variant):
        check = f"{group[0].variant}: {check}"
    return CheckVerdict("PASS", check, detail)


def _broken(outcome: Outcome, each: Expectation) -> CheckVerdict:
    lone = len(outcome.variants) <= 1 or _names_variant(each.check, each.variant)
    check = each.check if lone else f"{each.variant}: {each.check}"
    detail = f"observed {observed_text(each)} with seed {each.seed}"
    return CheckVerdict("FAIL" if each.severity == "fail" else "WARN", check, detail + (f" ({each.note})" if each.note else ""))


def observed_text(each: Expectation) -> str:
    """Return what was observed, to the millisecond where a rounded time would be on the other side of the bound, or on it."""
    text, limit = show(metric_of(each.check), each.observed), each.check.rpartition(" ")[2]
    if isinstance(each.observed, float) and text.endswith("s") and is_duration(limit) and is_duration(text):
        bound_us, observed_us = parse_duration(limit), round(each.observed * 1_000_000)
        sides = {(us > bound_us) - (us < bound_us) for us in (parse_duration(text), observed_us)}
        return text if len(sides) == 1 else f"{each.observed:.3f}s"
    return text


def _names_variant(check: str, variant: str) -> bool:
    return f"{variant}." in check


def metric_of(check: str) -> str:
    """The metric on the left of a comparison, which says the observed value's unit: without its variant, and without what the
    check asks of it (``always: ``, ``p95: ``)."""
    left = re.split(r"[<>=!]=?", check, maxsplit=1)[0].rpartition(": ")[2].strip()
    before_filter, paren, rest = left.partition("(")
    return before_filter.rpartition(".")[2].strip() + paren + rest


def assumption_rows(outcome: Outcome) -> list[tuple[str, str]]:
    """Return what the runs went by: what about, and the value, said once where it is the same in all variants."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, variant in outcome.variants.items():
        for what, value in variant.assumptions.items():
            found.setdefault(what, {}).setdefault(value, []).append(name)
    return [
        (what, next(iter(values)))
        if len(values) == 1 and len(next(iter(values.values()))) == len(outcome.variants)
        else (what, "; ".join(f"{', '.join(names)}: {value}" for value, names in values.items()))
        for what, values in found.items()
    ]
