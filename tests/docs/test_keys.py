"""The page of keys says what the commands show: each key with its meaning, and none goes, or changes its type, without a new
version of results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kgctl.cli.options import ALL, OUTPUT
from kgctl.cli.registry import COMMANDS
from kgctl.cli.render import KGCTL_RESULT_VERSION
from kgctl.cli.report import Column, JsonKind
from tests.cli import keys
from tests.cli.harness import Cli, example_cluster

SHOWN = {spec.path: shown for spec in COMMANDS if (shown := keys.shown_by(spec)).tables}
COLUMNS: dict[str, Sequence[Column]] = {
    path: [column for table in shown.tables for column in table] for path, shown in SHOWN.items()
}
COLUMNS |= {f"{path}, data": shown.document for path, shown in SHOWN.items() if shown.document}
COLUMNS |= {f"{path}, summary": shown.summary for path, shown in SHOWN.items() if shown.summary}
OF_COMMANDS = {path: {column.key: column.kind for column in columns} for path, columns in COLUMNS.items()}
PROMISED = json.loads((Path(__file__).parent / f"keys_{KGCTL_RESULT_VERSION}.json").read_text())
LINES = [
    *("list groups", "list groups --lag --members", "top g1 --iterations 1", "diff-offsets g1 g2", "undo", "undo --log"),
    *("describe group g1 g2", "describe group g2 --members", "describe group g2 --state", "describe group g1 --totals"),
    *("describe group g1 --time-lag --commit-age --next-record", "peek g1 --topic t1", "remove-members g2 --all --yes"),
    *("reset-offsets g1 --all-topics --to-latest --execute", "reset-offsets g1 --all-topics --to-latest --summary"),
    *("delete-offsets g1 --topic t1 --yes", "delete-groups g1 --yes", "validate-regex ^t --topic t1"),
]


def test_every_key_is_explained() -> None:
    assert [(path, column.key) for path, columns in COLUMNS.items() for column in columns if not column.meaning] == []


def test_every_command_with_a_result_says_what_is_in_it() -> None:
    wanted = {spec.path for spec in COMMANDS if spec.shared in (ALL, OUTPUT)}
    assert wanted - set(SHOWN) == set(keys.WITHOUT)


@pytest.mark.parametrize("line", LINES)
def test_rows_have_the_keys_and_types_that_are_declared(line: str, tmp_path: Path) -> None:
    cli = Cli(tmp_path, example_cluster())
    cli("reset-offsets g3 --all-topics --to-latest --execute")
    ran = cli(f"{line} -o json")  # which holds what it says to what is declared
    assert ran.data, ran.err


WHOLE, TEXT = Column("lag", kind=JsonKind.WHOLE), Column("by[].NAME.note")


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ({"lag": 5}, []),
        ({"lag": None}, []),
        ({"lag": "5", "new": 1}, [("lag", "5"), ("new", 1)]),
        ({"by": [{"any": {"note": "x"}}, {"b.c": {"note": None}}], "lag": 1}, []),
        ({"by": []}, []),
        ({"by": None}, []),
        ({"by": [{"any": {"note": 1}}]}, [("by[].any.note", 1)]),
        ({"by": [{"any": {"nota": None}}]}, [("by[].any.nota", None)]),
        ({"by": 3}, [("by", 3)]),
    ],
)
def test_a_key_that_is_not_told_of_and_a_value_of_another_type_are_found(found: object, wrong: list[object]) -> None:
    assert list(keys.wrong_values(found, [WHOLE, TEXT])) == wrong


def test_the_harness_holds_every_result_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = next(spec for spec in COMMANDS if spec.path == "list groups")
    monkeypatch.setattr(keys, "shown_by", lambda _: SHOWN["peek"])
    with pytest.raises(AssertionError, match="list groups: not as"):
        Cli(tmp_path, example_cluster())(f"{spec.path} -o json")


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
