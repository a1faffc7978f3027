"""The page of keys says what the commands show: each key with its meaning, and no key goes without a new version of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgctl.cli.keys import KEYS
from kgctl.cli.registry import COMMANDS
from kgctl.cli.render import KGCTL_RESULT_VERSION
from tests.cli.harness import Cli, example_cluster
from tests.docs.generated import columns_of

OF_COMMANDS = {spec.path: [column.key for column in columns] for spec in COMMANDS if (columns := columns_of(spec))}
PROMISED = json.loads((Path(__file__).parent / f"keys_{KGCTL_RESULT_VERSION}.json").read_text())
LINES = [
    *("list groups", "list groups --lag --members", "top g1 --iterations 1", "diff-offsets g1 g2", "undo", "undo --log"),
    *("describe group g1 g2", "describe group g2 --members", "describe group g2 --state", "describe group g1 --totals"),
    *("describe group g1 --time-lag --commit-age --next-record", "peek g1 --topic t1", "remove-members g2 --all --yes"),
    *("reset-offsets g1 --all-topics --to-latest --execute", "reset-offsets g1 --all-topics --to-latest --summary"),
    *("delete-offsets g1 --topic t1 --yes", "delete-groups g1 --yes", "validate-regex ^t --topic t1"),
]


def test_every_key_is_explained_and_every_explanation_is_of_a_key() -> None:
    assert {key for keys in OF_COMMANDS.values() for key in keys} == set(KEYS)


@pytest.mark.parametrize("line", LINES)
def test_rows_have_no_key_that_is_not_declared(line: str, tmp_path: Path) -> None:
    cli = Cli(tmp_path, example_cluster())
    cli("reset-offsets g3 --all-topics --to-latest --execute")
    ran = cli(f"{line} -o json")
    path = next(path for path in OF_COMMANDS if line.startswith(path))
    assert (bool(ran.data), set().union(*ran.data) - {*OF_COMMANDS[path]}) == (True, set()), ran.err


@pytest.mark.parametrize("path", PROMISED)
def test_no_key_goes_in_one_version_of_results(path: str) -> None:
    """Raise `KGCTL_RESULT_VERSION`, and write its file, where one must."""
    assert {*PROMISED[path]} <= {*OF_COMMANDS[path]}
