"""Rates that swing."""

from __future__ import annotations

import re

import pytest

from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.quantities import Wave, parse_wave
from kgctl.yaml_files import read_yaml

HOUR_US = 3_600_000_000
UHZ = 1_000_000


def test_a_day_goes_from_low_to_high_and_back_in_quarters_of_an_hour() -> None:
    wave = parse_wave("sine(1000/s, 5000/s, 24h)")
    assert wave == Wave(1_000 * UHZ, 5_000 * UHZ, 24 * HOUR_US)
    assert [wave.begin_us(number) * 4 for number in (0, 1, 97)] == [0, HOUR_US, 97 * HOUR_US]
    rates = [wave.rate_uhz(number) // UHZ for number in range(97)]
    assert (rates[0], rates[47], rates[48], rates[96]) == (1_001, 4_998, 4_998, 1_001)
    assert rates[:48] == sorted(rates[:48])
    assert rates[48:96] == rates[47::-1]
    assert sum(rates[:96]) / 96 == pytest.approx(wave.mean_uhz / UHZ, abs=1)


def test_a_short_period_has_a_piece_a_second() -> None:
    assert Wave(0, UHZ, 10_000_000).pieces == 10
    assert Wave(0, UHZ, 2_000_000).pieces == 2


@pytest.mark.parametrize("raw", ["1000/s", 5, {"0s": "1/s"}, None])
def test_other_rates_are_none(raw: object) -> None:
    assert parse_wave(raw) is None


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("sine(1/s, 2/s)", "a sine has a lowest rate, a highest one and a period"),
        ("sine(1/s, 2/s, 24h", "a sine has a lowest rate"),
        ("sine(2/s, 1/s, 24h)", "the lowest rate comes first"),
        ("sine(1/s, 2/s, 1s)", "the period is at least 2s"),
        ("sine(1/s, lots, 24h)", "'lots' is no rate"),
        ("sine(1/s, 2/s, often)", "'often' is no duration"),
    ],
)
def test_a_wave_that_is_wrong_is_told(raw: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_wave(raw)


@pytest.mark.usefixtures("exact_warmup")
def test_a_run_is_written_to_as_the_wave_says() -> None:
    text = """
kgctl: 1
name: x
topics: {t: 4}
members: {app: {count: 2, rate: 1000/s}}
traffic: {t: {rate: "sine(100/s, 300/s, 10m)", keys: zipf(1.1)}}
warmup: 60s
duration: 20m
"""
    result = run(load(read_yaml(text, "f")).variants[0].scenario, 1)
    first = Wave(100 * UHZ, 300 * UHZ, 600_000_000).rate_uhz(0) / UHZ
    assert result.metric("processed") == pytest.approx(60 * first + 1_200 * 200, abs=20)
