"""``kgctl remove-members``."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kgctl.admin import GroupResults
from kgctl.errors import UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupDescription, GroupType, MemberDescription
from tests.cli.fake_admin import FakeGroupAdmin, error
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


@pytest.mark.parametrize("more", ["--dry-run", "--yes"])
@pytest.mark.parametrize("kind", [GroupType.SHARE, GroupType.STREAMS])
def test_members_of_types_that_nobody_can_remove_are_no_preview_s_either(
    cli: Cli, cluster: FakeGroupAdmin, kind: GroupType, more: str
) -> None:
    cluster.group("s", {}, [MemberDescription("m1")], type=kind)
    told = f"kgctl: group 's' is a {kind.value} group: members are removed from classic and consumer groups only\n"
    assert cli(f"remove-members s --all {more}") == Ran(1, "", told)
    ran = cli(f"remove-members g2 s --all {more} -o json")
    words = {"--dry-run": "removable", "--yes": "removed"}
    assert (ran.code, {(row["group"], row["result"]) for row in ran.data}) == (3, {("g2", words[more])})
    assert len(cluster.groups["s"].description.members) == 1


def test_a_preview_of_named_members_says_what_is_wrong_with_their_group(cli: Cli, cluster: FakeGroupAdmin) -> None:
    deed, preview = (cli(f"remove-members nosuch --member a {more} -o json") for more in ("--yes", "--dry-run"))
    assert (preview.code, preview.data, preview.json["errors"]) == (deed.code, deed.data, deed.json["errors"])
    assert (preview.code, [row["error"] for row in preview.data]) == (4, ["GROUP_ID_NOT_FOUND"])


def test_a_member_whose_group_nobody_tells_of_is_not_known_to_be_gone(
    cli: Cli, cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the coordinator goes away between two looks at the group."""
    describe, looks = cluster.describe_groups, list[object]()

    def removing(*_: object, **__: object) -> None:
        looks.append(None)
        raise UnreachableError("the connection was closed")

    def describing(group_ids: Sequence[str]) -> GroupResults[GroupDescription]:
        if len(looks) > 1:
            cluster.group_errors["g2"] = error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if looks:
            looks.append(None)
        return describe(group_ids)

    monkeypatch.setattr(cluster, "remove_members", removing)
    monkeypatch.setattr(cluster, "describe_groups", describing)
    monkeypatch.setattr("kgctl.admin.changes.time.sleep", lambda _: None)
    ran = cli("remove-members g2 --all --yes -o json")
    assert (ran.code, {row["result"] for row in ran.data}) == (3, {"unknown"}), ran.err
    assert [each["message"] for each in ran.json["errors"]] == ["the connection was closed"]


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
