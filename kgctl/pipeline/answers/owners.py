"""Whose groups they are, by a small file of comma-separated values: ``group`` (an id, or a pattern with ``*``), and labels."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from kgctl.errors import UsageError, did_you_mean

LABELS = ("owner", "team")
"""What a group may be told of, a column each."""


@dataclass(frozen=True)
class Owners:
    """Made by `read`. ``rows``: the groups or patterns, each with its labels. ``file``: where they stand."""

    rows: Sequence[tuple[str, Mapping[str, str | None]]]
    file: str = ""

    @classmethod
    def read(cls, path: Path) -> Owners:
        """Raises `UsageError` where it cannot be read, or has other columns."""
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file, strict=True)
                _require(path, reader.fieldnames or ())
                return cls([_row(path, reader.line_num, row) for row in reader], str(path))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from None
        except (UnicodeDecodeError, csv.Error) as error:
            raise UsageError(f"{path}: is no file of comma-separated values in UTF-8: {error}") from None

    def of(self, group: str) -> Mapping[str, str | None]:
        """The labels of a group: those beside its id, else beside the first pattern that it fits; null where none does."""
        exact = next((labels for name, labels in self.rows if name == group), None)
        fitting = (labels for pattern, labels in self.rows if "*" in pattern and _fits(pattern, group))
        return exact or next(fitting, dict.fromkeys(LABELS))

    def of_no_group(self, groups: Collection[str]) -> list[str]:
        """The ids and patterns that are none of these groups'; nothing where there is no group."""
        return [name for name, _ in self.rows if not any(_fits(name, group) for group in groups)] if groups else []


def _fits(pattern: str, group: str) -> bool:
    return fnmatchcase(group, re.sub(r"[?\[]", r"[\g<0>]", pattern))


def _require(path: Path, names: Sequence[str]) -> None:
    wanted = ("group", *LABELS)
    for name in names:
        if name not in wanted:
            raise UsageError(f"{path}: no column may be called {name!r}{did_you_mean(name, wanted)} ({', '.join(wanted)} may)")
    if "group" not in names or len(names) == 1:
        raise UsageError(f"{path}: the first line names the columns: group, and one of {' and '.join(LABELS)} at least")


def _row(path: Path, line: int, row: Mapping[str | None, str | None]) -> tuple[str, Mapping[str, str | None]]:
    group = row["group"]
    if not group or None in row:
        raise UsageError(f"{path}, line {line}: {'more cells than columns' if None in row else 'no group'}")
    return group, {name: row.get(name) or None for name in LABELS}
