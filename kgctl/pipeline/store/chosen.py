"""Which rows of a table are wanted, by values of columns: in Spark's SQL, and by what the table's log says of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from pyarrow import types

from kgctl.errors import UsageError, did_you_mean
from kgctl.pipeline.store.files import DataFile, instant_ms
from kgctl.pipeline.store.tables import TABLES


@dataclass(frozen=True)
class ColumnCondition:
    """Of a column: one of ``values``, or from ``low`` to ``high``, ends included, None for no bound; without any of these, null.

    Times are milliseconds, days texts in ISO 8601.
    """

    column: str
    kind: pa.DataType
    values: Sequence[Any] = ()
    low: Any = None
    high: Any = None

    def may_hold(self, file: DataFile) -> bool:
        """Whether it may hold for a row of a file."""
        if self.column == "date":
            low = high = file.date
        elif self.column in file.low and (self.values or self.low is not None or self.high is not None):
            low, high = file.low[self.column], file.high[self.column]
        else:
            return True
        if self.values:
            return any(low <= value <= high for value in self.values)
        return bool((self.low is None or high >= self.low) and (self.high is None or low <= self.high))

    @property
    def sql(self) -> str:
        """Return it in Spark's SQL."""
        name = f"`{self.column}`"
        if self.values:
            return f"{name} IN ({', '.join(map(self._literal, self.values))})"
        bounds = [(">=", self.low), ("<=", self.high)]
        found = [f"{name} {sign} {self._literal(bound)}" for sign, bound in bounds if bound is not None]
        return " AND ".join(found) or f"{name} IS NULL"

    def _literal(self, value: Any) -> str:
        if types.is_timestamp(self.kind):
            return f"timestamp_millis({value})"
        if types.is_date(self.kind):
            return f"DATE'{value}'"
        text = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'" if isinstance(value, str) else text


@dataclass(frozen=True)
class Chosen:
    """All of these conditions."""

    conditions: Sequence[ColumnCondition]

    @classmethod
    def of(cls, table: str, where: Mapping[str, object]) -> Chosen:
        """Read a mapping of columns to a value, a list of values, or a tuple (from, to). Raises `UsageError`."""
        schema = TABLES[table].dated()
        for name in where:
            if name not in schema.names:
                raise UsageError(f"where: {table} has no column {name!r}{did_you_mean(name, schema.names)}")
        return cls([_condition(schema.field(name), value) for name, value in where.items()])

    def may_hold(self, file: DataFile) -> bool:
        """Whether a row of a file may be wanted."""
        return all(each.may_hold(file) for each in self.conditions)

    @property
    def sql(self) -> str:
        """Return them in Spark's SQL; nothing where there are none."""
        return " AND ".join(each.sql for each in self.conditions)


def _condition(field: pa.Field, value: object) -> ColumnCondition:
    if value is None:
        return ColumnCondition(field.name, field.type)
    if isinstance(value, tuple):
        if len(value) != 2 or value == (None, None):
            raise UsageError(f"where: {field.name}: a tuple is (from, to), a list has values")
        low, high = (None if each is None else _plain(field, each) for each in value)
        return ColumnCondition(field.name, field.type, low=low, high=high)
    values = value if isinstance(value, list) else [value]
    if not values:
        raise UsageError(f"where: {field.name}: a list without a value")
    return ColumnCondition(field.name, field.type, [_plain(field, each) for each in values])


def _plain(field: pa.Field, value: Any) -> Any:
    """A value of a column's kind. Raises `UsageError`."""
    try:
        if types.is_timestamp(field.type):
            moment = datetime.fromisoformat(value) if isinstance(value, str) else value
            return instant_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        if types.is_date(field.type):
            return (date.fromisoformat(value) if isinstance(value, str) else value).isoformat()[:10]
        return pa.scalar(value, field.type).as_py()
    except (pa.ArrowException, AttributeError, TypeError, ValueError):
        raise UsageError(f"where: {field.name}: {value!r} is no {field.type}") from None
