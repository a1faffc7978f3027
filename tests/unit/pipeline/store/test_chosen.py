"""Rows of a table by values of columns: the condition, and which files may hold them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from kgctl.errors import UsageError
from kgctl.pipeline.store.chosen import Chosen
from kgctl.pipeline.store.files import DataFile

FILE = DataFile(
    "data/date=2026-11-24/b.parquet", 1, 1, "2026-11-24", {"group": "f", "time": 1_000}, {"group": "p", "time": 2_000}
)


@pytest.mark.parametrize(
    ("value", "sql", "is_held"),
    [
        ({"group": "o'k\\"}, "`group` IN ('o\\'k\\\\')", True),
        ({"group": ["a", "b"]}, "`group` IN ('a', 'b')", False),
        ({"group": ("a", "f")}, "`group` >= 'a' AND `group` <= 'f'", True),
        ({"group": ("q", None)}, "`group` >= 'q'", False),
        ({"time": ("1970-01-01T00:00:02", None)}, "`time` >= timestamp_millis(2000)", True),
        ({"time": (None, "1970-01-01T01:00:00.999+01:00")}, "`time` <= timestamp_millis(999)", False),
        ({"time": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}, "`time` IN (timestamp_millis(1000))", True),
        ({"date": ("2026-11-24", None)}, "`date` >= DATE'2026-11-24'", True),
        ({"date": date(2026, 11, 23)}, "`date` IN (DATE'2026-11-23')", False),
        ({"lag": None, "partition": 3}, "`lag` IS NULL AND `partition` IN (3)", True),
        ({"group": None}, "`group` IS NULL", True),
        ({}, "", True),
    ],
)
def test_conditions(value: dict[str, object], sql: str, *, is_held: bool) -> None:
    chosen = Chosen.of("lag", value)
    assert (chosen.sql, chosen.may_hold(FILE)) == (sql, is_held)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"grup": "a"}, "where: lag has no column 'grup'; did you mean group?"),
        ({"time": "yesterday"}, "where: time: 'yesterday' is no timestamp"),
        ({"partition": "one"}, "where: partition: 'one' is no int32"),
        ({"date": 3}, "where: date: 3 is no date32"),
        ({"group": ()}, "where: group: a tuple is (from, to), a list has values"),
        ({"group": (None, None)}, "where: group: a tuple is (from, to), a list has values"),
        ({"group": []}, "where: group: a list without a value"),
    ],
)
def test_what_is_no_condition(value: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        Chosen.of("lag", value)
    assert raised.value.message.startswith(words)
