"""Alerts fire once, hold while nothing is known, end with a word, and outlive the process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kgctl.errors import UsageError
from kgctl.pipeline.watch.rules import UNKNOWN_HOLD_MS, AlertFinding, Alerts, AlertStateFile, Rule

LAG = Rule("lag > 1", "lag", 1)
HELD = Rule("lag > 1 for 1m", "lag", 1, hold_ms=60_000)
MUCH = AlertFinding("g", "lag of g is 5, over 1", 5)
NOBODY_KNOWS = AlertFinding("g", "lag of g is not known", is_unknown=True)


def update(alerts: Alerts, rule: Rule, found: Sequence[AlertFinding], at_s: int, **how: bool) -> list[tuple[str, str]]:
    return [(alert.status, alert.summary) for alert in alerts.update({rule: found}, at_s * 1000, **how)]


def test_an_alert_fires_once_and_ends_once() -> None:
    alerts = Alerts()
    assert update(alerts, LAG, [MUCH], 0) == [("firing", MUCH.summary)]
    assert update(alerts, LAG, [MUCH], 30) == []
    assert [(alert.since_ms, alert.fired_ms) for alert in alerts.firing()] == [(0, 0)]
    assert update(alerts, LAG, [], 60) == [("resolved", MUCH.summary)]
    assert update(alerts, LAG, [], 90) == []
    assert update(alerts, LAG, [MUCH], 120) == [("firing", MUCH.summary)]


def test_it_must_hold_for_so_long_without_a_break() -> None:
    alerts = Alerts()
    assert [update(alerts, HELD, found, at) for at, found in ((0, [MUCH]), (30, []), (40, [MUCH]), (99, [MUCH]))] == [[]] * 4
    assert update(alerts, HELD, [MUCH], 100) == [("firing", MUCH.summary)]


def test_what_becomes_unknown_goes_on_firing() -> None:
    alerts = Alerts()
    update(alerts, LAG, [MUCH], 0)
    assert update(alerts, LAG, [NOBODY_KNOWS], 30) == []
    assert update(alerts, LAG, [NOBODY_KNOWS], 60, allow_unknown=True) == []
    assert [alert.summary for alert in alerts.firing()] == [NOBODY_KNOWS.summary]
    assert update(alerts, LAG, [], 90) == [("resolved", NOBODY_KNOWS.summary)]


def test_what_is_unknown_from_the_start_fires_later_or_never() -> None:
    alerts = Alerts()
    assert update(alerts, LAG, [NOBODY_KNOWS], 0) == []
    assert update(alerts, LAG, [NOBODY_KNOWS], UNKNOWN_HOLD_MS // 1000) == [("firing", NOBODY_KNOWS.summary)]
    for rule in (LAG, HELD):  # a single look waits for nothing
        assert update(Alerts(), rule, [NOBODY_KNOWS], 0, is_patient=False) == [("firing", NOBODY_KNOWS.summary)]
    assert update(Alerts(), HELD, [MUCH], 0, is_patient=False) == [], "what is known has to hold"
    assert update(Alerts(), LAG, [NOBODY_KNOWS], 0, is_patient=False, allow_unknown=True) == []


def test_events_of_one_place_are_alerts_of_their_own() -> None:
    rule = Rule("reset", "reset", span_ms=1000)
    first, second = (AlertFinding("g", text, 1, "t", 0, marker) for marker, text in ((7, "first"), (9, "second")))
    alerts = Alerts()
    assert update(alerts, rule, [first], 0) == [("firing", "first")]
    assert update(alerts, rule, [first, second], 1) == [("firing", "second")]


def test_rules_that_are_no_more_end_without_a_word() -> None:
    alerts = Alerts()
    update(alerts, LAG, [MUCH], 0)
    assert (update(alerts, HELD, [], 30), alerts.firing()) == ([], [])


def test_the_file_has_all_of_it(tmp_path: Path) -> None:
    file = AlertStateFile(tmp_path / "deep" / "state.json")
    assert file.load() == Alerts()
    alerts = Alerts()
    alerts.deliver_later(alerts.update({LAG: [MUCH], HELD: [MUCH]}, 1000))
    file.save(alerts)
    assert file.load() == alerts
    assert [each.name for each in file.path.parent.iterdir()] == ["state.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kgctl_watch_version": 1}', '{"kgctl_watch_version": 99}'])
def test_a_file_of_something_else(tmp_path: Path, text: str) -> None:
    (tmp_path / "state").write_text(text)
    with pytest.raises(UsageError, match=r"is not the state of a watch|another version of kgctl"):
        AlertStateFile(tmp_path / "state").load()
