"""The page of keys says what the commands show: each key with its meaning, and none goes, or changes its type, without a new
version of results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kgctl.cli.registry import COMMANDS
from kgctl.cli.render import KGCTL_RESULT_VERSION
from kgctl.cli.report import Kind
from tests.cli.harness import Cli, example_cluster
from tests.docs.generated import tables_of

TABLES = {spec.path: tables for spec in COMMANDS if (tables := tables_of(spec))}
OF_COMMANDS = {path: {column.key: column.kind for table in tables for column in table} for path, tables in TABLES.items()}
PROMISED = json.loads((Path(__file__).parent / f"keys_{KGCTL_RESULT_VERSION}.json").read_text())
LINES = [
    *("list groups", "list groups --lag --members", "top g1 --iterations 1", "diff-offsets g1 g2", "undo", "undo --log"),
    *("describe group g1 g2", "describe group g2 --members", "describe group g2 --state", "describe group g1 --totals"),
    *("describe group g1 --time-lag --commit-age --next-record", "peek g1 --topic t1", "remove-members g2 --all --yes"),
    *("reset-offsets g1 --all-topics --to-latest --execute", "reset-offsets g1 --all-topics --to-latest --summary"),
    *("delete-offsets g1 --topic t1 --yes", "delete-groups g1 --yes", "validate-regex ^t --topic t1"),
]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
HOLDS = {
    Kind.TEXT: lambda value: isinstance(value, str),
    Kind.WHOLE: lambda value: type(value) is int,
    Kind.NUMBER: lambda value: type(value) in (int, float),
    Kind.BOOL: lambda value: isinstance(value, bool),
    Kind.TEXTS: lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    Kind.TIME: lambda value: isinstance(value, str) and bool(TIME.fullmatch(value)),
}


def wrong_values(rows: list[dict[str, Any]], kinds: dict[str, Kind]) -> list[tuple[str, Any]]:
    """The values that are not of the type that their key is said to have, and keys of which none is said."""
    told = [(key, value) for row in rows for key, value in row.items()]
    return [(key, value) for key, value in told if key not in kinds or not (value is None or HOLDS[kinds[key]](value))]


def test_every_key_is_explained() -> None:
    assert [
        (path, column.key) for path, tables in TABLES.items() for table in tables for column in table if not column.meaning
    ] == []


@pytest.mark.parametrize("line", LINES)
def test_rows_have_the_keys_and_types_that_are_declared(line: str, tmp_path: Path) -> None:
    cli = Cli(tmp_path, example_cluster())
    cli("reset-offsets g3 --all-topics --to-latest --execute")
    ran = cli(f"{line} -o json")
    path = next(path for path in OF_COMMANDS if line.startswith(path))
    assert (bool(ran.data), wrong_values(ran.data, OF_COMMANDS[path])) == (True, []), ran.err


def test_a_value_of_another_type_is_found() -> None:
    assert wrong_values([{"lag": "5", "new": 1}, {"lag": None}], {"lag": Kind.WHOLE}) == [("lag", "5"), ("new", 1)]


@pytest.mark.parametrize("path", PROMISED)
def test_no_key_goes_or_changes_its_type_in_one_version_of_results(path: str) -> None:
    """Raise `KGCTL_RESULT_VERSION`, and write its file, where one must."""
    assert PROMISED[path].items() <= {key: kind.name for key, kind in OF_COMMANDS[path].items()}.items()


def test_every_command_promises_its_keys() -> None:
    """`python -m tests.docs.test_keys` adds those that are new to the file of the version."""
    assert {path: set(kinds) for path, kinds in OF_COMMANDS.items()} == {path: set(kinds) for path, kinds in PROMISED.items()}


if __name__ == "__main__":
    promised = {path: {key: kind.name for key, kind in kinds.items()} for path, kinds in OF_COMMANDS.items()}
    text = json.dumps({path: {**promised[path], **PROMISED.get(path, {})} for path in promised}, indent=1)
    (Path(__file__).parent / f"keys_{KGCTL_RESULT_VERSION}.json").write_text(text + "\n")
