"""Simulated and measured, side by side, in every report."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kgctl.simulate.batch.outcome import result_of
from kgctl.simulate.report.html import html_page
from kgctl.simulate.report.outcome import (
    Expectation,
    Measured,
    Observed,
    Outcome,
    VariantOutcome,
    duration,
    show,
)
from kgctl.simulate.report.tables import MedianPlace, beside, label_of, observed_text
from kgctl.simulate.report.text import markdown_text, summary_text
from tests.support.simulate.outcomes import outcome, picture, spread


def played(**values: float) -> Outcome:
    """The outcome of `outcome` with its first variant played once."""
    found = {"max_gap": 3.1, "moves": 11.0, "unavailable": 500.0, **values}
    variants = {"eager": VariantOutcome({name: spread(value) for name, value in found.items()}, picture=picture())}
    expectations = (Expectation("max_gap < 15s", "eager", passed=found["max_gap"] < 15, observed=found["max_gap"], seed=1),)
    return replace(outcome(), measured=Measured("localhost:9092", "java", 1, variants, expectations, ("not asked: lag",)))


@pytest.mark.parametrize(
    ("metric", "value", "place"),
    [
        ("max_gap", 3.0, MedianPlace.INSIDE),
        ("max_gap", 2.8, MedianPlace.INSIDE),  # 0.2 s: nobody sees a real group more exactly
        ("max_gap", 2.4, MedianPlace.BELOW),
        ("max_gap", 3.6, MedianPlace.ABOVE),
        ("moves", 13.0, MedianPlace.INSIDE),  # a tenth of the range's end
        ("moves", 14.0, MedianPlace.ABOVE),
        ("max_gap", float("inf"), MedianPlace.ABOVE),
    ],
)
def test_the_measured_median_lies_within_the_range_or_outside(metric: str, value: float, place: MedianPlace) -> None:
    assert {each.metric: each.place for each in beside(played(**{metric: value}))}[metric] is place


def test_the_summary_has_both() -> None:
    text = summary_text(played(max_gap=17.0), 100)
    shown = text[text.index("beside real") :]
    assert shown.splitlines()[:5] == [
        "beside real clients (java) on localhost:9092, 1 play:",
        "eager                       simulated   measured",
        "unavailable p*s    401 (380 to 7,689)        500",
        "longest gap         3.1s (3s to 3.2s)        17s   outside, above",
        "partitions moved        11 (10 to 12)         11",
    ]
    assert " FAIL played: eager: max_gap < 15s" in shown
    assert "in play 1" in shown
    assert "eager: 2 of 3 measured metrics lie within the simulated range; outside: max_gap" in shown
    assert "not asked: lag" in shown


def test_what_is_0_in_both_is_not_counted() -> None:
    nothing = spread(0)
    found = played(max_gap=17.0)
    with_more = {name: replace(each, metrics={**each.metrics, "errors": nothing}) for name, each in found.variants.items()}
    assert found.measured is not None
    measured = {
        name: replace(each, metrics={**each.metrics, "errors": nothing}) for name, each in found.measured.variants.items()
    }
    more = replace(found, variants=with_more, measured=replace(found.measured, variants=measured))
    assert "eager: 2 of 3 measured metrics lie within" in summary_text(more, 100)


def test_a_played_expectation_that_fails_is_a_failure() -> None:
    assert [each.check for each in played(max_gap=17.0).failures] == ["max_gap < 15s"]
    assert played().failures == ()


def test_markdown_html_and_json_have_both() -> None:
    found = played(max_gap=17.0)
    assert "| longest gap | 3.1s (3s to 3.2s) | 17s | outside, above |" in markdown_text(found)
    page = html_page(found)
    assert "Beside real clients (java) on localhost:9092, 1 play" in page
    assert 'value="eager, played"' in page
    measured = result_of(found)["measured"]
    assert (measured["cluster"], measured["client"], measured["plays"]) == ("localhost:9092", "java", 1)
    assert measured["places"]["eager"] == {"unavailable": "inside", "max_gap": "above", "moves": "inside"}


def test_without_a_play_nothing_is_beside() -> None:
    assert beside(outcome()) == []
    assert "measured" not in result_of(outcome())
    assert "played" not in summary_text(outcome())


@pytest.mark.parametrize(
    ("metric", "value", "shown"),
    [
        ("rebalances", 80, "80"),
        ("rebalances", 0.0, "0"),
        ("unavailable", 7689.4, "7,689"),
        ("unavailable", 12.345, "12.3"),
        ("unavailable(cause boot)", 0.01234, "0.0123"),
        ("max_gap", 3.2000001, "3.2s"),
        ("max_gap", 188.0, "188s"),
        ("max_gap", 0.0512, "0.051s"),
        ("max_gap", 0.00002, "<0.001s"),
        ("max_gap(app/3)", 0, "0s"),
        ("time_to_stable", math.inf, "never"),
        ("lag_peak", math.inf, "infinite"),
        ("cross_rack", 0.99871, "0.9987"),
        ("moves", math.nan, "-"),
        ("moves", None, "-"),
        ("state", "Stable", "Stable"),
        ("owners(partition)", True, "true"),
    ],
)
def test_value_is_shown_with_its_metrics_unit(metric: str, value: Observed, shown: str) -> None:
    assert show(metric, value) == shown


def test_unknown_metric_is_shown_under_its_own_name() -> None:
    assert [label_of(name) for name in ("max_gap", "errors(INVALID_CONFIG)", "unavailable(cause boot)", "nothing")] == [
        "longest gap",
        "errors(INVALID_CONFIG)",
        "unavailable(cause boot)",
        "nothing",
    ]


@pytest.mark.parametrize(
    ("us", "shown"),
    [(0, "0s"), (250_000, "0.25s"), (-5_000_000, "-5s"), (90_000_000, "1m 30s"), (7_200_000_000, "2h"), (3_660_000_000, "1h 1m")],
)
def test_virtual_time_is_shown_in_hours_minutes_and_seconds(us: int, shown: str) -> None:
    assert duration(us) == shown


@pytest.mark.parametrize(
    ("check", "observed", "text"),
    [
        ("max_gap < 3s", 3.04, "3.040s"),
        ("max_gap < 3s", 2.98, "2.980s"),
        ("max_gap < 3s", 3.0, "3s"),
        ("max_gap < 45.39s", 45.386, "45.386s"),
        ("max_gap < 3s", 3.06, "3.1s"),
        ("max_gap < 1m", 61.2, "61.2s"),
        ("duplicates < 100", 100.0, "100"),
        ("max_gap < session.timeout.ms", 3.04, "3s"),
        ("max_gap < 3s", math.inf, "never"),
    ],
)
def test_what_was_observed_is_seen_to_be_beyond_its_bound(check: str, observed: float, text: str) -> None:
    assert observed_text(Expectation(check, "eager", passed=False, observed=observed, seed=1)) == text
