"""Files of offsets, undo files and plans, read and written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin.notation import FromFile, PlannedOffset, UndoRow, parse_offset_file, undo_rows
from kgctl.errors import UsageError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition

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
            "f, row 2: the offset 'x' is",
        ),
        ('{"data": [\n\n{"topic":"t","partition":0}]}', "f, row 1: no column offset (or new_offset)"),
        ('\n\n[{"topic":"t","partition":0,"offset":-1}]', "f, row 1: the offset -1 is"),
        (
            '{"errors": ["\\"data\\": ["],\n"data":\n[{"topic":"","partition":0,"offset":1}] ,\n"data2":{}}',
            "f, row 1: group and topic must",
        ),
        ('{\n"x":1, "data": [{"topic":"t","partition":0,"offset":1, "data": [1]},\n{}]}', "f, row 2: no column topic"),
    ],
)
def test_json_error_names_its_row(text: str, message: str) -> None:
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
