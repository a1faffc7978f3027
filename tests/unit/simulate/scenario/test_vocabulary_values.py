"""Durations, rates, shares, distributions, selectors: what is read, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kgctl.member.config import OTHER_CLIENT_NAMES, profile_names
from kgctl.simulate.scenario.autoscale import Autoscale, ScalingRules
from kgctl.simulate.scenario.events import COMMON, EVENT_KINDS
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.scenario.model import Cluster, Group, MemberSet, ScenarioFile, Topic
from kgctl.simulate.scenario.quantities import (
    Constant,
    Distribution,
    Exponential,
    LogNormal,
    Normal,
    Uniform,
    format_duration,
    parse_distribution,
    parse_duration,
    parse_rate,
    parse_share,
)
from kgctl.simulate.scenario.vocabulary import Choice, Selector, did_you_mean, other_words, parse_selector

DURATIONS = {
    "500ms": 500_000,
    "45s": 45_000_000,
    "1m30s": 90_000_000,
    "1.5s": 1_500_000,
    "2h": 7_200_000_000,
    "250us": 250,
    "0s": 0,
}


@pytest.mark.parametrize(("text", "us"), DURATIONS.items())
def test_duration_is_whole_microseconds(text: str, us: int) -> None:
    assert parse_duration(text) == us
    assert parse_duration(format_duration(us)) == us


@pytest.mark.parametrize("text", [5, "s", "-5s", "5 parsecs", "1:30", "", None, True, "1e9h", "20000d", float("nan"), [1]])
def test_what_is_no_duration_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_duration(text)


def test_only_zero_needs_no_unit() -> None:
    assert (parse_duration(0), parse_duration("0"), parse_duration(30_000, bare_unit="ms")) == (0, 0, 30_000_000)


@pytest.mark.parametrize(
    ("text", "uhz"), [("1000/s", 10**9), ("2.5k/s", 2_500 * 10**6), ("90/m", 1_500_000), (7, 7 * 10**6), ("1/h", 277)]
)
def test_rate_is_millionths_of_a_record_a_second(text: Any, uhz: int) -> None:
    assert parse_rate(text) == uhz


@pytest.mark.parametrize("text", ["1000", "x/s", "-1/s", -1, None, True, "1G/s1", float("inf"), "9999G/s"])
def test_what_is_no_rate_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_rate(text)


def test_share_is_millionths() -> None:
    assert [parse_share(each) for each in ("0.1%", "100%", 0.25, 0)] == [1_000, 1_000_000, 250_000, 0]
    for wrong in ("101%", -0.1, 2, "x", None, float("nan")):
        with pytest.raises(ValueError, match="is no share"):
            parse_share(wrong)


DISTRIBUTIONS: dict[str, Distribution] = {
    "45s": Constant(45_000_000),
    "20s..40s": Uniform(20_000_000, 40_000_000),
    "0ms..100ms": Uniform(0, 100_000),
    "normal(35s, 3s)": Normal(35_000_000, 3_000_000),
    "lognormal(2ms, 1ms)": LogNormal(2_000, 1_000),
    "exp(5m)": Exponential(300_000_000),
}


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_distribution_is_read(text: str) -> None:
    assert parse_distribution(text) == DISTRIBUTIONS[text]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("40s..20s", "ends before it begins"),
        ("gauss(1s, 1s)", "unknown distribution 'gauss'; known: normal, lognormal, exp"),
        ("norml(1s, 1s)", "unknown distribution 'norml'; did you mean 'normal'?"),
        ("normal(1s)", "normal takes 2 values, not 1"),
        ("exp(1s, 2s)", "exp takes 1 values, not 2"),
        ("normal(1s, 2s", "is no duration"),
    ],
)
def test_what_is_no_distribution_is_explained(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r".*") as caught:
        parse_distribution(text)
    assert complaint in str(caught.value)


SELECTORS = {
    "app": Selector(text="app", member_set="app"),
    "app/3": Selector(text="app/3", member_set="app", choice=Choice.RANGE, first=3, last=3),
    "app/0..9": Selector(text="app/0..9", member_set="app", choice=Choice.RANGE, first=0, last=9),
    "app/50%": Selector(text="app/50%", member_set="app", choice=Choice.SHARE, share_ppm=500_000),
    "app/oldest": Selector(text="app/oldest", member_set="app", choice=Choice.OLDEST),
    "app/leader": Selector(text="app/leader", member_set="app", choice=Choice.LEADER),
    "not app/3": Selector(text="not app/3", member_set="app", choice=Choice.RANGE, first=3, last=3, negated=True),
    "*": Selector(text="*"),
}


@pytest.mark.parametrize("text", SELECTORS)
def test_selector_is_read(text: str) -> None:
    assert parse_selector(text) == SELECTORS[text]


@pytest.mark.parametrize("text", ["", "app/", "app/x", "app/9..0", "app/1..", "app/101%", "a b", 3, None, "app/-1"])
def test_what_selects_nothing_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_selector(text)


ROLLOUT_KEYS = [*EVENT_KINDS["rollout"].by_key()]
SET_KEYS = ["count", "subscribe", "instance_id", "config", "rate", "boot"]


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("minReadySeconds", ROLLOUT_KEYS, "min_ready"),
        ("terminationGracePeriodSeconds", ROLLOUT_KEYS, "grace"),
        ("max-surge", ROLLOUT_KEYS, "max_surge"),
        ("session.timeout.ms", ROLLOUT_KEYS, "set: {session.timeout.ms: ...}"),
        ("StatefulSet", ["deployment", "statefulset"], "statefulset"),
        ("replicas", SET_KEYS, "count"),
        ("session.timeout.ms", SET_KEYS, "config: {session.timeout.ms: ...}"),
        ("group.instance.id", SET_KEYS, "instance_id: $name"),
        ("config", ROLLOUT_KEYS, "set"),
        ("lagThreshold", ["min", "max", "target"], "target"),
    ],
)
def test_a_word_of_others_names_the_one_that_is_meant(word: str, known: Iterable[str], meant: str) -> None:
    assert did_you_mean(word, known) == f"; did you mean {meant!r}?"


def test_each_word_of_others_means_something_here() -> None:
    models = (ScenarioFile, Cluster, Group, Topic, MemberSet, Autoscale, ScalingRules)
    keys = {str(field.validation_alias or name) for model in models for name, field in model.model_fields.items()}
    events = {key for kind in EVENT_KINDS.values() for key in (*kind.by_key(), *COMMON)}
    there = keys | events | set(metric_kinds())
    assert {meant.partition(":")[0] for words in other_words().values() for meant in words} - there == set()


def test_no_other_word_for_a_kind_of_events_is_a_kind_itself() -> None:
    assert {word for kind in EVENT_KINDS.values() for word in kind.also} & {*EVENT_KINDS} == set()


def test_each_other_name_of_a_client_names_one() -> None:
    assert {*OTHER_CLIENT_NAMES.values()} <= {*profile_names()}
    assert {*OTHER_CLIENT_NAMES} & {*profile_names()} == set()
