"""``kgctl remove-members``."""

from __future__ import annotations

import pytest

from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, Ran


def test_removes_by_member_and_by_instance(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("remove-members g2 --member c2-uuid --instance i1 --yes --reason gone") == Ran(
        0,
        "GROUP  CONSUMER-ID  GROUP-INSTANCE-ID  RESULT   ERROR\n"
        "g2     c2-uuid      -                  removed  -\n"
        "g2     -            i1                 removed  -\n",
        "Executed on fake:9092: 2 removed.\n",
    )
    assert cluster.calls[-1] == ("remove_members", ("g2", ("c2-uuid",), ("i1",), "gone"))
    assert cluster.groups["g2"].description.members == ()


def test_all_removes_static_members_by_their_instance(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("remove-members g2 --all --yes -o name").out == "c2-uuid\ni1\n"
    assert cluster.calls[-1] == ("remove_members", ("g2", ("c2-uuid",), ("i1",), None))


def test_unknown_member_is_not_found_and_the_others_leave(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("remove-members g2 --member c2-uuid --member nosuch --yes")
    assert (ran.code, ran.err) == (3, "kgctl: Group 'g2' has no member 'nosuch'\nExecuted on fake:9092: 1 removed, 1 failed.\n")
    assert len(cluster.groups["g2"].description.members) == 1


def test_a_group_that_is_not_there_is_told_once(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("remove-members nosuch --member a --member b --yes")
    assert (ran.code, ran.err) == (4, "kgctl: Group 'nosuch' does not exist\nNothing was changed.\n")


def test_asks_first(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("remove-members g2 --instance i1", stdin="n\n")
    question = "Remove 1 member ('i1') from 'g2' on fake:9092? [y/N] "
    assert (ran.code, ran.err) == (1, question + "kgctl: not confirmed; nothing was changed\n")
    assert len(cluster.groups["g2"].description.members) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("g1 --all", 4, "group 'g1' has no members"),
        ("nosuch --all", 4, "Group 'nosuch' does not exist"),
        ("g2", 2, "say which members: --member ID, --instance ID, or --all"),
        ("g2 --all --member x", 2, "say which members: --member ID, --instance ID, or --all"),
        ("--all", 2, "no group is named: give group ids, --match REGEX or --all-groups"),
        ("g1 g2 --member x", 2, "--member and --instance need exactly one group, by name"),
    ],
)
def test_bad_input_changes_nothing(cli: Cli, cluster: FakeGroupAdmin, arguments: str, code: int, message: str) -> None:
    assert cli(f"remove-members {arguments} --yes") == Ran(code, "", f"kgctl: {message}\n")
