"""``kgctl delete-groups``, and how kgctl asks."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.admin import Results, Sight
from kgctl.errors import KgctlError
from kgctl.model.error_codes import ErrorCode
from tests.cli.fake_admin import FakeGroupAdmin, error
from tests.cli.harness import Cli, Ran

QUESTION = "Delete 1 group ('g1') with 2 committed offsets on fake:9092?"
TABLE = "GROUP  TYPE     STATE  #OFFSETS  RESULT   ERROR\ng1     classic  Empty         2  deleted  -\n"
DONE = (
    "Previous offsets saved; to undo: kgctl --bootstrap-server fake:9092 undo 20240101T000000Z-delete-groups --execute\n"
    "Executed on fake:9092: 1 deleted.\n"
)


def test_yes_deletes_without_asking(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("delete-groups g1 --yes") == Ran(0, TABLE, DONE)
    assert sorted(cluster.groups) == ["g2", "g3"]


def test_execute_means_groups_that_are_named_and_asks_about_others(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("delete-groups --match g1 --execute")
    assert (ran.code, "no terminal to ask at" in ran.err, "g1" in cluster.groups) == (1, True, True)
    assert cli("delete-groups g1 --execute") == Ran(0, TABLE, DONE)
    assert cli("delete-groups g3 --execute --dry-run").code == 2


@pytest.mark.parametrize("answer", ["y\n", "YES\n", " y "])
def test_answer_yes_deletes(cli: Cli, cluster: FakeGroupAdmin, answer: str) -> None:
    assert cli("delete-groups g1", stdin=answer) == Ran(0, TABLE, QUESTION + " [y/N] " + DONE)


@pytest.mark.parametrize("answer", ["n\n", "\n", "yep\n", "g1\n"])
def test_any_other_answer_changes_nothing(cli: Cli, cluster: FakeGroupAdmin, answer: str) -> None:
    assert cli("delete-groups g1", stdin=answer) == Ran(1, "", QUESTION + " [y/N] kgctl: not confirmed; nothing was changed\n")
    assert sorted(cluster.groups) == ["g1", "g2", "g3"]


def test_end_of_stdin_is_a_no(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("delete-groups g1") == Ran(
        1, "", f"kgctl: not confirmed; nothing was changed: {QUESTION} (no terminal to ask at; --yes answers yes)\n"
    )
    assert sorted(cluster.groups) == ["g1", "g2", "g3"]


def test_missing_group_beside_one_that_goes_is_partial(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("delete-groups g1 nosuch --yes -o json")
    assert (ran.code, ran.json["status"]) == (3, "partial")
    assert [(row["group"], row["result"], row["error"]) for row in ran.data] == [
        ("g1", "deleted", None),
        ("nosuch", "failed", "GROUP_ID_NOT_FOUND"),
    ]
    assert "g1" not in cluster.groups


def test_missing_group_alone_is_not_found(cli: Cli) -> None:
    ran = cli("delete-groups nosuch --yes")
    assert (ran.code, ran.err) == (4, "kgctl: Group 'nosuch' does not exist\nNothing was changed.\n")


def test_active_group_is_refused(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("delete-groups --group g2 --yes").code == 5
    assert "g2" in cluster.groups


def test_failures_of_different_kinds_with_nothing_done_are_a_failure(cli: Cli) -> None:
    assert cli("delete-groups g2 nosuch --yes").code == 1


def test_dry_run_says_what_could_be_deleted(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("delete-groups g1 g2 nosuch --dry-run")
    assert ran.out == (
        "GROUP   TYPE     STATE   #OFFSETS  RESULT     ERROR\n"
        "g1      classic  Empty          2  deletable  -\n"
        "g2      classic  Stable         -  failed     NON_EMPTY_GROUP\n"
        "nosuch  -        -              -  failed     GROUP_ID_NOT_FOUND\n"
    )
    assert (ran.code, ran.err.splitlines()[-1]) == (3, "Dry run on fake:9092: nothing was changed.")
    assert sorted(cluster.groups) == ["g1", "g2", "g3"]


def test_name_output_has_the_groups(cli: Cli) -> None:
    assert cli("delete-groups g1 g3 --yes -o name").out == "g1\ng3\n"


@pytest.mark.parametrize("line", ["delete-groups", "delete-groups --yes"])
def test_no_group_is_a_usage_error(cli: Cli, line: str) -> None:
    assert cli(line) == Ran(2, "", "kgctl: no group is named: give group ids, --match REGEX or --all-groups\n")


def test_empty_group_id_is_a_usage_error(cli: Cli) -> None:
    assert cli.run(["delete-groups", ""]).code == 2


def test_question_names_only_so_many_groups(cli: Cli, cluster: FakeGroupAdmin) -> None:
    names = [f"x{number:02}" for number in range(12)]
    for name in names:
        cluster.group(name)
    asked = cli(f"delete-groups {' '.join(names)}", stdin="n\n").err
    assert asked.startswith("Delete 12 groups ('x00', 'x01', ")
    assert "'x09' and 2 more) with 0 committed offsets on fake:9092?" in asked


@pytest.mark.parametrize("line", ["g1 g3 --dry-run", "g1 g3 --yes"])
def test_a_group_whose_commits_nobody_can_read_fails_alone_in_preview_and_deed(
    cli: Cli, cluster: FakeGroupAdmin, line: str
) -> None:
    cluster.offset_errors["g3"] = error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "g3 loads")
    ran = cli(f"delete-groups {line} -o json")
    word = "deletable" if "dry" in line else "deleted"
    rows = [(row["group"], row["offsets"], row["result"], row["error"]) for row in ran.data]
    assert rows == [("g1", 2, word, None), ("g3", None, "failed", "COORDINATOR_LOAD_IN_PROGRESS")]
    assert (ran.code, "kgctl: g3 loads" in ran.err, "not saved" in ran.err) == (3, True, False)
    assert ("g1" in cluster.groups, "g3" in cluster.groups) == ("dry" in line, True)
    assert cli(f"delete-groups {line.replace('g1 ', '')}").code == 7


@pytest.mark.parametrize("line", ["--dry-run", "--yes"])
def test_what_is_deleted_unread_is_said(cli: Cli, cluster: FakeGroupAdmin, line: str) -> None:
    cluster.offset_errors["g3"] = error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "g3 loads")
    asked = cli("delete-groups g1 g3 --no-backup", stdin="n\n").err
    assert "with 2 committed offsets on fake:9092; g3 loads: offsets of group 'g3' are not saved?" in asked
    ran = cli(f"delete-groups g1 g3 --no-backup {line} -o json")
    assert (ran.code, [row["offsets"] for row in ran.data]) == (0, [2, None])
    assert "g3 loads: offsets of group 'g3' are not saved\n" in ran.err


def test_what_is_hidden_is_said_to_be_unsaved_where_something_is_deleted(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.own_sight = Sight(all_topics=False, user="alice")
    cluster.offset_errors["g3"] = error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "g3 loads")  # so that it is left alone
    told = "commits on others are deleted and not saved"
    assert [told in cli(f"delete-groups {group_id} --dry-run").err for group_id in ("g1", "g3")] == [True, False]


def test_what_kafka_s_tool_deletes_and_no_undo_brings_back_is_said(cli: Cli, cluster: FakeGroupAdmin) -> None:
    line = "kafka-consumer-groups --bootstrap-server fake:9092 --delete --group"
    cluster.offset_errors["g3"] = error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loads")
    ran = cli(f"{line} g3")
    assert (ran.code, ran.err) == (0, "loads: offsets of group 'g3' are not saved\n")
    tool = line.replace("--delete", "--delete-offsets") + " g3 --topic t1:0"
    assert cli(tool).err.startswith("loads: offsets of group 'g3' are not saved\n")
    cluster.own_sight = Sight(all_topics=False, user="alice")
    ran = cli(f"{line} g1")
    told = "user 'alice' lacks the right DESCRIBE on all topics: commits on others are deleted and not saved\n"
    assert (ran.code, ran.err.startswith(told), "g1" in cluster.groups) == (0, True, False)


@pytest.mark.parametrize("deed", ["--delete", "--delete-offsets --topic t1:0"])
def test_what_of_a_group_nobody_can_read_is_not_saved(cli: Cli, monkeypatch: pytest.MonkeyPatch, deed: str) -> None:
    flaws = {"g1": (KgctlError("group 'g1', t1-1: damaged"),)}
    monkeypatch.setattr(FakeGroupAdmin, "list_committed_offsets", lambda *_: Results({"g1": {}}, flaws=flaws))
    ran = cli(f"kafka-consumer-groups --bootstrap-server fake:9092 {deed} --group g1")
    assert ran.err.startswith("group 'g1', t1-1: damaged: not saved\n")


@pytest.mark.parametrize(
    ("line", "method", "kept"),
    [
        ("--delete --group g1 --group g3", "delete_groups", [("g1", 0), ("g1", 1)]),
        ("--delete-offsets --group g1 --topic t1:0 --topic t1:1", "delete_offsets", [("g1", 0)]),
        ("--reset-offsets --group g1 --topic t1:0 --topic t1:1 --to-earliest --execute", "alter_offsets", [("g1", 0)]),
    ],
)
def test_the_undo_file_of_kafka_s_tool_keeps_what_may_have_been_done(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str, method: str, kept: list[tuple[str, int]]
) -> None:
    """Of two items one is not answered, and the other surely failed."""

    def answer(_: object, *asked: Any) -> Results[Any, None]:
        codes = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return Results({}, dict(zip(asked[-1], map(error, codes), strict=True)))

    monkeypatch.setattr(FakeGroupAdmin, method, answer)
    cli(f"kafka-consumer-groups --bootstrap-server fake:9092 {line}")
    assert [(row["group"], row["partition"]) for row in cli("undo last -o json").data] == kept
