"""Times and durations, read and written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin.times import format_instant, parse_duration_ms, parse_instant_ms, parse_past_instant_ms, second_reading
from kgctl.errors import UsageError

START_OF_2024 = 1_704_067_200_000
NOW_MS = 1_798_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01T00:00:00.000", START_OF_2024),
        ("2024-01-01T00:00:00.000Z", START_OF_2024),
        ("2024-01-01T00:00:00", START_OF_2024),
        ("2024-01-01T00:00:00Z", START_OF_2024),
        ("2024-01-01T02:00:00.000+02:00", START_OF_2024),
        ("2024-01-01T02:00:00+0200", START_OF_2024),
        ("2024-01-01T02:00:00+02", START_OF_2024),
        ("2023-12-31T22:30-01:30", START_OF_2024),
        ("2024-01-01 00:00:00", START_OF_2024),
        ("2024-01-01", START_OF_2024),
        (" 2024-01-01 ", START_OF_2024),
        ("1704067200000", START_OF_2024),
        ("0", 0),
        ("1970-01-01", 0),
        ("2024-01-01T00:00:00.5Z", START_OF_2024 + 500),
        ("2024-01-01T00:00:00.001Z", START_OF_2024 + 1),
        ("2024-01-01T00:00:00.000001Z", START_OF_2024 + 1),
        ("2024-01-01T00:00:00.123456Z", START_OF_2024 + 124),
    ],
)
def test_instant_is_read(text: str, expected: int) -> None:
    assert parse_instant_ms(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot read '' as a time"),
        ("yesterday", "cannot read 'yesterday' as a time"),
        ("2024-13-01", "cannot read"),
        ("2024-01-01T25:00:00", "cannot read"),
        ("2024-01-01T00:00:00.000Zgarbage", "cannot read"),
        ("-5", "cannot read"),
        ("1969-12-31T23:59:59.999Z", "before 1970"),
        ("20240101", "looks like a date: write it as 2024-01-31"),
        ("1704067200", "looks like seconds since 1970"),
        ("9999999999999999", "out of range"),
        ("253402300800000", "out of range"),
        ("١٢٣", "cannot read"),
    ],
)
def test_what_is_no_instant_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_instant_ms(text)


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1)),  # noqa: DTZ001 - the zone is drawn apart
    st.integers(-14 * 60, 14 * 60),
)
def test_instant_in_any_zone_is_the_same_moment(moment: datetime, offset_minutes: int) -> None:
    utc = moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
    elsewhere = utc.astimezone(timezone(timedelta(minutes=offset_minutes)))
    instant_ms = parse_instant_ms(elsewhere.isoformat())
    assert instant_ms == parse_instant_ms(utc.isoformat()) == parse_instant_ms(utc.replace(tzinfo=None).isoformat())
    assert parse_instant_ms(format_instant(instant_ms)) == instant_ms


@given(st.integers(0, 253_402_300_799_999))
def test_written_instant_is_read_back(instant_ms: int) -> None:
    assert parse_instant_ms(format_instant(instant_ms)) == instant_ms


def test_instant_is_written_in_utc_with_milliseconds() -> None:
    assert format_instant(START_OF_2024 + 7) == "2024-01-01T00:00:00.007Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P7D", 7 * 86_400_000),
        ("PT1H", 3_600_000),
        ("PT1M", 60_000),
        ("P1DT2H", 26 * 3_600_000),
        ("PT36H", 36 * 3_600_000),
        ("PT0.1S", 100),
        ("PT1.5H", 5_400_000),
        ("p1d", 86_400_000),
        ("P1W", 604_800_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("PT0S", 0),
        ("PT0.0001S", 1),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
        ("1h30m", 5_400_000),
        ("2 hours", 7_200_000),
        ("1 day 30 Minutes", 88_200_000),
        ("90sec", 90_000),
        ("90s", 90_000),
        ("500ms", 500),
        ("1w2d", 777_600_000),
        ("1.5h", 5_400_000),
    ],
)
def test_duration_is_read(text: str, expected: int) -> None:
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("P1M", "counts months, which have no fixed length: write days, P30D, or PT1M for one minute"),
        ("P1Y", "counts years, which have no fixed length: write days, P365D"),
        ("P1Y2M3D", "counts years"),
        ("1M", "counts months or years.*minutes are a small m"),
        ("1y", "counts months or years"),
        ("P", "has no length"),
        ("PT", "has no length|cannot read"),
        ("P1DT", "cannot read"),
        ("", "cannot read '' as a duration"),
        ("10", "a unit is missing"),
        ("1x", "'x' is no unit"),
        ("1 h", "cannot read"),
        ("h", "cannot read"),
        ("PT1", "cannot read"),
        ("-PT1H", "is negative"),
        ("PT-1H", "is negative"),
        ("-1h", "is negative"),
        ("P99999999999D", "out of range"),
    ],
)
def test_what_is_no_duration_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_duration_ms(text)


@given(st.integers(0, 400), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
def test_both_notations_of_a_duration_agree(days: int, hours: int, minutes: int, seconds: int) -> None:
    expected = ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000
    assert parse_duration_ms(f"P{days}DT{hours}H{minutes}M{seconds}S") == expected
    assert parse_duration_ms(f"{days}d{hours}h{minutes}m{seconds}s") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2h ago", START_OF_2024 - 7_200_000),
        (" PT90S  AGO ", START_OF_2024 - 90_000),
        ("1d12h ago", START_OF_2024 - 129_600_000),
        ("0s ago", START_OF_2024),
        ("99999d ago", 0),
        ("2023-12-31T23:00:00Z", START_OF_2024 - 3_600_000),
        ("2023-12-31 23:00:00", START_OF_2024 - 3_600_000),
        ("1704067200001", START_OF_2024 + 1),
    ],
)
def test_past_instant_is_read(text: str, expected: int) -> None:
    assert parse_past_instant_ms(text, START_OF_2024) == expected


@pytest.mark.parametrize("text", ["ago", "2 ago", "2h", "-2h ago", "1M ago", "2h ago ago", "yesterday ago"])
def test_past_instant_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_past_instant_ms(text, START_OF_2024)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", "2026-03-29T12:00:00.000Z"),
        ("today", "2026-03-29T00:00:00.000Z"),
        ("yesterday", "2026-03-28T00:00:00.000Z"),
        ("Yesterday 14:00", "2026-03-28T14:00:00.000Z"),
        ("yesterday 14:00 Europe/Berlin", "2026-03-28T13:00:00.000Z"),
        ("2026-01-31 14:00 Europe/Berlin", "2026-01-31T13:00:00.000Z"),
        ("2026-07-31 14:00:30 Europe/Berlin", "2026-07-31T12:00:30.000Z"),
        ("2026-01-31 America/New_York", "2026-01-31T05:00:00.000Z"),
        ("today 14:00:30 Europe/Berlin", "2026-03-29T12:00:30.000Z"),  # summer time begins that night
        ("2h ago", "2026-03-29T10:00:00.000Z"),
    ],
)
def test_times_that_now_tells(text: str, meant: str) -> None:
    assert format_instant(parse_past_instant_ms(text, parse_instant_ms("2026-03-29T12:00:00Z"))) == meant


@pytest.mark.parametrize(
    "text",
    ["yesterday 25:00", "yesterday noon", "today 14:00 Nowhere/City", "today 14:00 UTC tomorrow", "tomorrow", "2026-02-31 UTC"],
)
def test_days_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_past_instant_ms(text, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01 Europe/Berlin", START_OF_2024 - 3_600_000),
        ("2024-01-01T01:00 Europe/Berlin", START_OF_2024),
        ("2024-01-01T01:00:00 Europe/Berlin", START_OF_2024),
        ("2024-01-01 01:00 Europe/Berlin", START_OF_2024),
    ],
)
def test_a_zone_may_be_named_behind_a_day_or_a_time(text: str, expected: int) -> None:
    assert parse_past_instant_ms(text, START_OF_2024) == expected


def test_a_wall_clock_s_time_that_is_skipped_is_none() -> None:
    with pytest.raises(UsageError, match="is skipped, as clocks are put forward there: 2026-03-29 03:30 comes after it"):
        parse_past_instant_ms("2026-03-29 02:30 Europe/Berlin", NOW_MS)
    assert format_instant(parse_past_instant_ms("2026-03-29 03:00 Europe/Berlin", NOW_MS)) == "2026-03-29T01:00:00.000Z"


def test_a_wall_clock_s_time_that_comes_twice_is_the_first_and_has_a_second_reading() -> None:
    text = "2026-10-25 02:30 Europe/Berlin"
    assert format_instant(parse_past_instant_ms(text, NOW_MS)) == "2026-10-25T00:30:00.000Z"
    assert format_instant(parse_past_instant_ms(text, NOW_MS) + 3_600_000) in second_reading(text, NOW_MS)
    for plain in ("2026-10-25 03:30 Europe/Berlin", "2026-10-25", "2h ago", "now"):
        assert second_reading(plain, NOW_MS) == ""


def test_a_day_whose_midnight_is_skipped_begins_at_its_first_moment() -> None:
    day = "2018-11-04 America/Sao_Paulo"
    assert format_instant(parse_past_instant_ms(day, NOW_MS)) == "2018-11-04T03:00:00.000Z"
    assert second_reading(day, NOW_MS) == ""


def test_a_day_that_a_zone_has_left_out_is_none() -> None:
    with pytest.raises(UsageError, match="is skipped, as clocks are put forward there: 2011-12-31 00:00 comes after it"):
        parse_past_instant_ms("2011-12-30 Pacific/Apia", NOW_MS)
