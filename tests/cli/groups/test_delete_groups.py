"""``kgctl delete-groups``, and how kgctl asks."""

from __future__ import annotations

import pytest

from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, Ran

QUESTION = "Delete 1 group ('g1') with all committed offsets? [y/N] \n"


def test_yes_deletes_without_asking(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("delete-groups g1 --yes") == Ran(0, "GROUP  RESULT   ERROR\ng1     deleted  -\n", "")
    assert sorted(cluster.groups) == ["g2", "g3"]


@pytest.mark.parametrize("answer", ["y\n", "YES\n", " y "])
def test_answer_yes_deletes(cli: Cli, cluster: FakeGroupAdmin, answer: str) -> None:
    assert cli("delete-groups g1", stdin=answer) == Ran(0, "GROUP  RESULT   ERROR\ng1     deleted  -\n", QUESTION)


@pytest.mark.parametrize("answer", ["n\n", "\n", "yep\n", "g1\n"])
def test_any_other_answer_changes_nothing(cli: Cli, cluster: FakeGroupAdmin, answer: str) -> None:
    assert cli("delete-groups g1", stdin=answer) == Ran(1, "", QUESTION + "kgctl: not confirmed; nothing was changed\n")
    assert (cluster.calls, cli.settings) == ([], [])


def test_end_of_stdin_is_a_no(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("delete-groups g1") == Ran(
        1, "", QUESTION + "kgctl: not confirmed; nothing was changed (no answer on stdin; --yes answers yes)\n"
    )
    assert sorted(cluster.groups) == ["g1", "g2", "g3"]


def test_missing_group_beside_one_that_goes_is_partial(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("delete-groups g1 nosuch --yes -o json")
    assert (ran.code, ran.json["status"]) == (3, "partial")
    assert ran.data == [
        {"group": "g1", "result": "deleted", "error": None},
        {"group": "nosuch", "result": "failed", "error": "GROUP_ID_NOT_FOUND"},
    ]
    assert "g1" not in cluster.groups


def test_missing_group_alone_is_not_found(cli: Cli) -> None:
    ran = cli("delete-groups nosuch --yes")
    assert (ran.code, ran.err) == (4, "kgctl: Group 'nosuch' does not exist\n0 deleted, 1 failed.\n")


def test_active_group_is_refused(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("delete-groups --group g2 --yes").code == 5
    assert "g2" in cluster.groups


def test_failures_of_different_kinds_with_nothing_done_are_a_failure(cli: Cli) -> None:
    assert cli("delete-groups g2 nosuch --yes").code == 1


def test_dry_run_says_what_could_be_deleted(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("delete-groups g1 g2 nosuch --dry-run")
    assert ran.out == (
        "GROUP   RESULT     ERROR\n"
        "g1      deletable  -\n"
        "g2      failed     NON_EMPTY_GROUP\n"
        "nosuch  failed     GROUP_ID_NOT_FOUND\n"
    )
    assert (ran.code, ran.err.splitlines()[-1]) == (3, "Dry run: nothing was changed.")
    assert sorted(cluster.groups) == ["g1", "g2", "g3"]


def test_name_output_has_the_groups(cli: Cli) -> None:
    assert cli("delete-groups g1 g3 --yes -o name").out == "g1\ng3\n"


@pytest.mark.parametrize("line", ["delete-groups", "delete-groups --yes"])
def test_no_group_is_a_usage_error(cli: Cli, line: str) -> None:
    assert cli(line) == Ran(2, "", "kgctl: no group is named: give the ids of the groups to delete\n")


def test_empty_group_id_is_a_usage_error(cli: Cli) -> None:
    assert cli.run(["delete-groups", ""]).code == 2


def test_question_names_only_so_many_groups(cli: Cli) -> None:
    names = " ".join(f"x{number}" for number in range(12))
    assert cli(f"delete-groups {names}").err.startswith("Delete 12 groups ('x0', 'x1', ")
    assert "'x9' and 2 more) with all" in cli(f"delete-groups {names}").err
