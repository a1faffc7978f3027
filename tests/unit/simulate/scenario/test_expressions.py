"""Expressions: what they are worth, and what is wrong with those that are none."""

from __future__ import annotations

import pytest

from kgctl.simulate.scenario.expressions import (
    ExpressionError,
    Metric,
    Names,
    ScenarioSetting,
    Value,
    evaluate,
    metrics_of,
    parse_check,
    parse_expression,
    variants_of,
)

VALUES: dict[str, Value] = {
    "max_gap": 12.5,
    "unavailable": 600,
    "unavailable(not inv/3, cause rebalance)": 60,
    "eager.unavailable": 7000,
    "as-is.rebalances": 3,
    "state": "Stable",
    "drain_time": None,
    "thrash(replicas)": 40,
    "record_bytes": 2048,
    "lag": 0,
    "availability": 0.9,
}
SETTINGS: dict[str, float | str] = {"session.timeout.ms": 45.0, "group.protocol": "classic"}
NAMES = Names(
    ("max_gap", "unavailable", "rebalances", "state", "drain_time", "thrash", "record_bytes", "lag", "availability"),
    tuple(SETTINGS),
    ("eager", "as-is"),
)


class Given:
    """The values above."""

    def metric(self, metric: Metric) -> Value:
        filters = f"({', '.join(metric.filters)})" if metric.filters else ""
        return VALUES[f"{metric.variant + '.' if metric.variant else ''}{metric.name}{filters}"]

    def setting(self, setting: ScenarioSetting) -> Value:
        return SETTINGS[setting.name]


TRUE = """\
max_gap < 12.6s
max_gap<=12500ms
max_gap == 12.5s
max_gap != 13s
unavailable(not inv/3,  cause rebalance) < 1m1s
eager.unavailable > 10 * unavailable
as-is.rebalances == 3
unavailable / 2 - 100 == 200
2 + 3 * 4 == 14
(2 + 3) * 4 == 20
-max_gap < 0
- - 2 == 2
state == Stable
state == 'Stable'
not state == Empty
not (max_gap < 1s or lag > 5)
max_gap < 1s or lag == 0 and not lag > 0
drain_time > 5s or lag == 0
not (drain_time > 5s and lag > 5)
max_gap <= session.timeout.ms + 5s
session.timeout.ms == 45s
group.protocol == "classic"
thrash(replicas) < 50%
availability >= 0.5%
record_bytes == 2KiB
record_bytes < 2.1kB
lag < 1000
1_000 == 1000
"""

FALSE = """\
drain_time < 5s
drain_time >= 0
drain_time != 3s
max_gap / lag < 1
not max_gap < 100s
state < 5
max_gap > 5s and lag > 5
not drain_time > 5s
not (drain_time > 5s and lag == 0)
not (drain_time > 5s or lag > 5)
drain_time > 5s or lag > 5
"""


@pytest.mark.parametrize("text", TRUE.splitlines())
def test_expression_holds(text: str) -> None:
    assert evaluate(parse_check(text, NAMES), Given()) is True


@pytest.mark.parametrize("text", FALSE.splitlines())
def test_expression_does_not_hold(text: str) -> None:
    assert not evaluate(parse_check(text, NAMES), Given())


WRONG = {
    "max_gap": (0, "a check compares: write something like max_gap < 15s"),
    "maxgap < 3": (0, "unknown metric 'maxgap'; did you mean 'max_gap'?"),
    "eagr.max_gap < 3s": (0, "there is no variant 'eagr'; did you mean 'eager'?"),
    "eager.max_gp < 3": (0, "unknown metric 'eager.max_gp'; did you mean 'max_gap'?"),
    "sesion.timeout.ms > 3s": (0, "unknown metric 'sesion.timeout.ms'; did you mean 'session.timeout.ms'?"),
    "lag-max_gap > 3s": (0, "'lag-max_gap' is one name; write spaces around a minus"),
    "max_gap < ": (9, "expected a number or a metric, not the end"),
    "max_gap < 3s 4": (13, "did not expect '4' here"),
    "(max_gap < 3s": (13, "a closing parenthesis is missing"),
    "max_gap(app/3 < 3": (7, "the parenthesis is never closed"),
    "max_gap(a,) < 3s": (8, "a filter is empty"),
    "1 < 2 < 3": (6, "one comparison at a time; join two by 'and'"),
    "max_gap and lag > 1": (0, "'and' joins comparisons, not numbers"),
    "lag > 1 or max_gap": (11, "'or' joins comparisons, not numbers"),
    "not max_gap": (4, "'not' stands before a comparison"),
    "(lag > 1) + 2 > 1": (0, "'+' takes numbers"),
    "session.timeout.ms >= 60000": (19, "session.timeout.ms is a time: give the number a unit, such as 60000ms"),
    "max_gap < 15%": (8, "max_gap is in seconds, and '%' beside it is another unit"),
    "3s > rebalances": (3, "rebalances is a plain number, and 's' beside it is another unit"),
    "lag < 1000/s": (4, "lag is in records, and '/s' beside it is another unit"),
    "max_gap < 500": (8, "max_gap is a time: give the number a unit, such as 500s"),
    "500 > max_gap": (4, "max_gap is a time: give the number a unit, such as 500s"),
    "max_gap < 5s parsecs": (13, "did not expect 'parsecs' here"),
    "max_gap < 5x": (10, "cannot read '5x'"),
    "__import__('os') == 1": (0, "unknown metric '__import__'"),
    "max_gap ; 1": (8, "cannot read '; 1'"),
    "(" * 500 + "1": (21, "nested too deeply"),
    "1 < " + "9" * 3000: (0, "an expression has at most 2000 letters"),
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:20])
def test_what_is_wrong_is_told_with_its_column(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_check(text, NAMES)
    assert (caught.value.at, str(caught.value)) == WRONG[text]


def test_metrics_and_variants_of_an_expression() -> None:
    node = parse_expression("not (eager.max_gap < lag(end) and as-is.lag > -max_gap)", NAMES)
    assert [(metric.variant, metric.name) for metric in metrics_of(node)] == [
        ("eager", "max_gap"),
        (None, "lag"),
        ("as-is", "lag"),
        (None, "max_gap"),
    ]
    assert variants_of(node) == ("eager", "as-is")


GROUPS = Names(
    ("max_gap",),
    ("session.timeout.ms",),
    ("old-pay", "new-pay", "old-aud", "new-aud"),
    {"pay": ("old-pay", "new-pay"), "aud": ("old-aud", "new-aud"), "old": ("old-pay", "old-aud"), "new": ("new-pay", "new-aud")},
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("max_gap < 5s", ["max_gap < 5s"]),
        ("old-pay.max_gap < 5s", ["old-pay.max_gap < 5s"]),
        ("pay.max_gap < 5s", ["old-pay.max_gap < 5s", "new-pay.max_gap < 5s"]),
        ("new.max_gap < 5s", ["new-pay.max_gap < 5s", "new-aud.max_gap < 5s"]),
        ("pay.max_gap < aud.max_gap", ["old-pay.max_gap < old-aud.max_gap", "new-pay.max_gap < new-aud.max_gap"]),
        ("new.pay.max_gap < old.pay.max_gap", ["new-pay.max_gap < old-pay.max_gap"]),
        ("old.pay.max_gap < new.max_gap", ["old-pay.max_gap < new-pay.max_gap", "old-pay.max_gap < new-aud.max_gap"]),
        ("pay.session.timeout.ms > 5s", ["old-pay.session.timeout.ms > 5s", "new-pay.session.timeout.ms > 5s"]),
        ("audit.max_gap < 5s", ["audit.max_gap < 5s"]),
    ],
)
def test_a_group_or_a_variant_alone_stands_for_each_of_its_columns(text: str, meant: list[str]) -> None:
    assert list(GROUPS.spelled_out(text)) == meant
