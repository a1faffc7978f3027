"""``--execute``, ``--dry-run`` and ``--yes`` mean the same to all commands that change something."""

from __future__ import annotations

import pytest

from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli

DRY = ["reset-offsets g1 --topic t1 --to-latest", "undo last", "migrate-offsets g1"]
"""Dry runs unless they are told otherwise."""
ASKING = ["delete-groups {g1}", "delete-offsets {g1} --topic t1:1", "remove-members {g2} --all"]


def named(line: str) -> str:
    return line.replace("{", "").replace("}", "")


@pytest.mark.parametrize("line", [*DRY, *map(named, ASKING)])
def test_two_answers_are_none(cli: Cli, cluster: FakeGroupAdmin, line: str) -> None:
    ran = cli(f"{line} --execute --dry-run")
    assert (ran.code, ran.err, cluster.calls) == (2, "kgctl: --execute and --dry-run exclude each other\n", [])


@pytest.mark.parametrize("line", DRY)
@pytest.mark.parametrize(("option", "value"), [("--yes", ""), ("--backup", "b.csv")])
def test_what_only_the_deed_has_a_use_for_does_not_pass_for_it(
    cli: Cli, cluster: FakeGroupAdmin, line: str, option: str, value: str
) -> None:
    ran = cli(f"{line} {option} {value}")
    told = f"kgctl: {option} without --execute does nothing, and this would be a dry run: add --execute, or --dry-run\n"
    assert (ran.code, ran.err, cluster.calls) == (2, told, [])


@pytest.mark.parametrize("line", ASKING)
def test_execute_answers_for_what_is_named_alone(cli: Cli, cluster: FakeGroupAdmin, line: str) -> None:
    ran = cli(f"{line.replace('{', '--match ^').replace('}', '$')} --execute")
    assert (ran.code, "no terminal to ask at" in ran.err) == (1, True), ran.err
    assert not [name for name, _ in cluster.calls if name.startswith(("delete", "remove"))]
    assert cli(f"{named(line)} --execute").code == 0
