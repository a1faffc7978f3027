"""``kgctl diff-offsets``."""

from __future__ import annotations

import pytest

from kgctl.admin import ItemError, Sight
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, error
from tests.cli.harness import Cli, Ran

FIRST, SECOND = TopicPartition("t1", 0), TopicPartition("t1", 1)


def shown(cli: Cli, line: str, stdin: str = "") -> list[tuple[object, ...]]:
    rows = cli(f"diff-offsets {line} -o json", stdin=stdin).data
    return [
        (row["topic"], row["partition"], row["offset"], row["other_offset"], row["difference"], row["result"]) for row in rows
    ]


@pytest.fixture
def snapshot(cli: Cli, cluster: FakeGroupAdmin) -> str:
    """A file of g1 and g3, after which g1 has moved on in one partition and lost the other."""
    path = cli.folder / "before.csv"
    path.write_text(cli("describe group g1 g3 -o csv").out)
    cluster.groups["g1"].offsets.pop(FIRST)
    cluster.groups["g1"].offsets[SECOND] = OffsetAndMetadata(70)
    return str(path)


CHANGED = [("t1", 0, 100, None, None, "only-here"), ("t1", 1, 50, 70, 20, "differs")]


def test_a_file_is_compared_with_the_cluster_as_it_is(cli: Cli, snapshot: str) -> None:
    assert shown(cli, snapshot) == CHANGED
    assert shown(cli, f"{snapshot} --topic t1:1 --topic t2 --all") == [CHANGED[1], ("t2", 0, 10, 10, 0, "same")]
    assert cli(f"diff-offsets {snapshot}").err == "3 partitions: 1 the same, 2 different.\n"


def test_a_file_is_compared_with_one_group(cli: Cli, cluster: FakeGroupAdmin, snapshot: str) -> None:
    assert shown(cli, f"{snapshot} g1") == CHANGED
    assert shown(cli, f"g1 {snapshot}") == [("t1", 0, None, 100, None, "only-there"), ("t1", 1, 70, 50, -20, "differs")]
    cluster.group("other", {SECOND: 50})
    ran = cli(f"diff-offsets {snapshot} other")
    assert (ran.code, ran.err) == (4, "kgctl: the other side has 2 groups, and 'other' is none of them\n")


def test_kafkas_three_columns_are_of_the_group_beside_them(cli: Cli) -> None:
    assert shown(cli, "- g1", "t1,0,100\nt1,1,49\n") == [("t1", 1, 49, 50, 1, "differs")]


def test_two_groups_are_compared_whatever_they_are_called(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("copy", {FIRST: 100, SECOND: 51})
    (row,) = cli("diff-offsets g1 copy -o json").data
    assert (row["group"], row["other_group"], row["difference"]) == ("g1", "copy", 1)
    assert (cli("diff-offsets g1 copy --fail-if-different").code, cli("diff-offsets g1 g1 --fail-if-different").code) == (6, 0)


def test_two_files_need_no_cluster(cli: Cli, cluster: FakeGroupAdmin, snapshot: str) -> None:
    after = cli.folder / "after.json"
    after.write_text(cli("describe group g1 g3 -o json").out)
    cluster.calls.clear()
    assert shown(cli, f"{snapshot} {after}") == CHANGED
    assert cluster.calls == []


def test_a_group_that_one_of_two_files_has_no_more_is_a_difference(cli: Cli, snapshot: str) -> None:
    """Though the other one has a single group."""
    after = cli.folder / "after.csv"
    after.write_text(cli("describe group g3 -o csv").out)
    gone = [("t1", 0, 100, None, None, "only-here"), ("t1", 1, 50, None, None, "only-here")]
    assert shown(cli, f"{snapshot} {after} --all") == [*gone, ("t2", 0, 10, 10, 0, "same")]
    for files in (f"{snapshot} {after}", f"{after} {snapshot}"):
        assert cli(f"diff-offsets {files} --fail-if-different").code == 6
    assert cli(f"diff-offsets {snapshot} g3 --fail-if-different").code == 0


def test_what_cannot_be_learnt_is_no_difference(cli: Cli, cluster: FakeGroupAdmin, snapshot: str) -> None:
    cluster.offset_errors["g1"] = ItemError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "no")
    ran = cli(f"diff-offsets {snapshot} --all --fail-if-different -o json")
    assert ([row["group"] for row in ran.data], ran.code) == (["g3"], 3)
    ran = cli("diff-offsets g3 nosuch --fail-if-different")
    assert (ran.code, ran.out, ran.err) == (4, "", "kgctl: Group 'nosuch' does not exist\n")


@pytest.mark.parametrize("line", ["g1 g2 --topic t2", "g1 g2 --topic nosuch", "g1 g2 --topic t1:8", "bare other"])
def test_where_nothing_is_compared_nothing_is_found_to_be_the_same(cli: Cli, cluster: FakeGroupAdmin, line: str) -> None:
    for name in ("bare", "other"):
        cluster.group(name, {})
    is_named = "--topic" in line
    assert cli(f"diff-offsets {line}").code == (4 if is_named else 0)
    ran = cli(f"diff-offsets {line} --fail-if-different")
    assert (ran.code, "nothing is there to compare: neither side has an offset\n" in ran.err) == (4, True), ran.err


def test_a_topic_that_was_named_and_that_neither_has_is_not_the_same(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("copy", {FIRST: 100, SECOND: 50})
    ran = cli("diff-offsets g1 copy --topic t1 --topic tt2 --fail-if-different")
    message = "kgctl: topic 'tt2': nothing is there to compare: neither side has an offset\n"
    assert (ran.code, ran.err) == (3, f"{message}2 partitions: 2 the same, 0 different.\n")
    assert cli("diff-offsets g1 copy --topic t1 --topic tt2") == ran
    assert cli("diff-offsets g1 nosuch --topic t1") == Ran(4, "", "kgctl: Group 'nosuch' does not exist\n")
    assert cli("diff-offsets g1 copy --topic t1:0-7 --fail-if-different").code == 0
    assert "kgctl: topic 't2:7': nothing is there" in cli("diff-offsets g1 copy --topic t1 --topic t2:7 --fail-if-different").err
    cluster.groups["copy"].offsets[FIRST] = OffsetAndMetadata(1)
    assert cli("diff-offsets g1 copy --topic t1 --topic tt2 --fail-if-different").code == 6


def test_commits_that_may_be_hidden_are_not_the_same(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("copy", {FIRST: 100, SECOND: 50})
    cluster.own_sight = Sight(all_topics=False, user="alice")
    told = "user 'alice' lacks the right DESCRIBE on all topics: commits on others are not shown, nor their lag\n"
    notices = "".join(f"group '{name}': {told}" for name in ("g1", "copy"))
    assert cli("diff-offsets g1 copy") == Ran(0, "", f"2 partitions: 2 the same, 0 different.\n{notices}")
    ran = cli("diff-offsets g1 copy --fail-if-different")
    assert (ran.code, "user 'alice' lacks the right DESCRIBE" in ran.err) == (8, True), ran.err
    assert cli("diff-offsets g1 copy --topic t1 --fail-if-different").code == 0
    cluster.groups["copy"].offsets[FIRST] = OffsetAndMetadata(1)
    assert cli("diff-offsets g1 copy --fail-if-different").code == 6


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nosuch.csv", "there is no file 'nosuch.csv'; to compare two groups name both"),
        ("./nosuch.csv g1", "cannot read ./nosuch.csv: No such file or directory"),
        ("- -", "stdin can be only one of the two"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(cli: Cli, line: str, message: str) -> None:
    ran = cli(f"diff-offsets {line}")
    assert (ran.code, message in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("line", ["g1 other", "other g1", "g1.csv other"])
def test_a_group_that_nobody_can_read_is_not_one_without_commits(cli: Cli, cluster: FakeGroupAdmin, line: str) -> None:
    cluster.group("other", {FIRST: 100})
    cluster.offset_errors["other"] = error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "not authorised")
    (cli.folder / "g1.csv").write_text("group,topic,partition,offset\ng1,t1,0,100\n")
    line = line.replace("g1.csv", f"{cli.folder}/g1.csv")
    assert cli(f"diff-offsets {line} --fail-if-different") == Ran(8, "", "kgctl: group 'other': not authorised\n")
