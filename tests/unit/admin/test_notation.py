"""Times and durations, read and written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin.notation import (
    FromFile,
    PlannedOffset,
    UndoRow,
    format_instant,
    parse_duration_ms,
    parse_instant_ms,
    parse_offset_file,
    parse_past_instant_ms,
    undo_rows,
)
from kgctl.errors import UsageError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition

START_OF_2024 = 1_704_067_200_000


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


T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def plain(offset: int) -> PlannedOffset:
    return PlannedOffset(OffsetAndMetadata(offset))


def test_three_and_four_columns() -> None:
    assert parse_offset_file("t,1,5\nt,0,6\n", "f", ["g"]) == FromFile({"g": {T0: plain(6), T1: plain(5)}})
    assert parse_offset_file("h,t,1,5\ng,t,0,6\n", "f", []) == FromFile({"g": {T0: plain(6)}, "h": {T1: plain(5)}})


def test_named_groups_choose_from_the_file_in_their_order() -> None:
    found = parse_offset_file("a,t,0,1\nb,t,0,2\nc,t,0,3\n", "f", ["c", "a"])
    assert list(found.groups) == ["c", "a"]


def test_windows_line_ends_a_byte_order_mark_and_blank_lines() -> None:
    text = "\N{BYTE ORDER MARK}group,topic,partition,offset\r\n\r\ng,t,0,6\r\n"
    assert parse_offset_file(text, "f", []) == FromFile({"g": {T0: plain(6)}})


def test_header_in_any_order_with_other_columns() -> None:
    assert parse_offset_file("x,offset,partition,topic\n?,6,0,t\n", "f", ["g"]) == FromFile({"g": {T0: plain(6)}})


def test_plan_expects_the_old_offset() -> None:
    text = "group,topic,partition,old_offset,new_offset\ng,t,0,5,6\ng,t,1,,7\n"
    assert parse_offset_file(text, "f", []).groups["g"] == {
        T0: PlannedOffset(OffsetAndMetadata(6), 5, verify=True),
        T1: PlannedOffset(OffsetAndMetadata(7), None, verify=True),
    }


def test_json_rows_bare_and_in_the_envelope() -> None:
    rows = [{"group": "g", "topic": "t", "partition": 0, "current_offset": 6, "metadata": "m"}]
    expected = FromFile({"g": {T0: PlannedOffset(OffsetAndMetadata(6, "m"))}})
    assert parse_offset_file(json.dumps(rows), "f", []) == expected
    assert parse_offset_file(json.dumps({"kgctl_result_version": 1, "data": rows}), "f", []) == expected


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20).filter(lambda t: t.strip())
COMMIT = st.one_of(
    st.none(),
    st.builds(
        OffsetAndMetadata,
        st.integers(0, 2**63 - 1),
        st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20),
        st.integers(-1, 2**31 - 1),
    ),
)


WRITTEN = st.none() | st.integers(0, 2**63 - 1)


@given(st.dictionaries(st.tuples(TEXT, TEXT, st.integers(0, 2**31 - 1)), st.tuples(COMMIT, WRITTEN), min_size=1, max_size=6))
def test_backup_is_read_back_exactly(drawn: dict[tuple[str, str, int], tuple[OffsetAndMetadata | None, int | None]]) -> None:
    rows = [UndoRow(group, TopicPartition(topic, number), *found) for (group, topic, number), found in drawn.items()]
    found = parse_offset_file(undo_rows(rows), "f", [])
    read = {(group, partition): planned for group, rows in found.groups.items() for partition, planned in rows.items()}
    wanted = [PlannedOffset(row.before, row.written, verify=True, undoes=True) for row in rows]
    assert read == dict(zip(((row.group_id, row.partition) for row in rows), wanted, strict=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[\n{"topic":"t","partition":0,"offset":1},\n{"topic":"t",\n"partition":1,"offset":"x"}]',
            "f, line 3: the offset 'x' is",
        ),
        ('{"data": [\n\n{"topic":"t","partition":0}]}', "f, line 3: no column offset (or new_offset)"),
        ('\n\n[{"topic":"t","partition":0,"offset":-1}]', "f, line 3: the offset -1 is"),
        (
            '{"errors": ["\\"data\\": ["],\n"data":\n[{"topic":"","partition":0,"offset":1}] ,\n"data2":{}}',
            "f, line 3: group and topic must",
        ),
        ('{\n"x":1, "data": [{"topic":"t","partition":0,"offset":1, "data": [1]},\n{}]}', "f, line 3: no column topic"),
    ],
)
def test_json_error_names_the_line_where_its_row_begins(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_offset_file(text, "f", ["g"])
    assert caught.value.message.startswith(message)


def test_json_nested_without_end_is_a_usage_error() -> None:
    with pytest.raises(UsageError) as caught:
        parse_offset_file("[" * 100_000, "f", ["g"])
    assert caught.value.message == "f, line 1: not readable as JSON: nested too deeply"


@pytest.mark.parametrize("header", ["topic,topic,partition,offset", "topic,partition,partition,offset"])
def test_column_that_is_there_twice_is_refused(header: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_offset_file(f"{header}\nt,0,0,1\n", "f", ["g"])
    assert "line 1: column" in caught.value.message
    assert caught.value.message.endswith("is there twice")
