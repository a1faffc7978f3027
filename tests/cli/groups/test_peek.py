"""``kgctl peek``."""

from __future__ import annotations

import pytest

from kgctl.admin import Record, Results, Sight, Span
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog, error
from tests.cli.harness import Cli, Ran

SECOND = TopicPartition("t1", 1)


def wrote(cluster: FakeGroupAdmin, *offsets: int) -> None:
    cluster.records.clear()
    for offset in offsets:
        cluster.records[SECOND, offset] = Record(offset, offset * 1000, None, f"v{offset}".encode())


def places(ran_rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(row["offset"], row["place"]) for row in ran_rows]


def test_the_records_around_a_commit_are_shown(cli: Cli, cluster: FakeGroupAdmin) -> None:
    wrote(cluster, *range(40, 60))
    ran = cli("peek g1 --topic t1:1 --before 2 --after 3 -o json")
    assert (ran.code, places(ran.data)) == (0, [(48, "read"), (49, "read"), (50, "next"), (51, "unread"), (52, "unread")])
    assert ran.data[2] == {
        "group": "g1",
        "topic": "t1",
        "partition": 1,
        "offset": 50,
        "place": "next",
        "time": "1970-01-01T00:00:50.000Z",
        "key": None,
        "value": "v50",
        "headers": [],
    }


def test_only_what_is_asked_for_is_read(cli: Cli, cluster: FakeGroupAdmin) -> None:
    wrote(cluster, 49, 50)
    assert places(cli("peek g1 --topic t1:1 -B 0 -A 1 -o json").data) == [(50, "next")]
    assert places(cli("peek g1 --topic t1:1 -B 1 -A 0 -o json").data) == [(49, "read")]
    assert [call for call in cluster.calls if call[0] == "read_records"] == [
        ("read_records", (Span(SECOND, 50, 1),)),
        ("read_records", (Span(SECOND, 49, 1, 50),)),
    ]


def test_records_before_a_commit_are_looked_for_further_back_where_a_log_has_holes(cli: Cli, cluster: FakeGroupAdmin) -> None:
    wrote(cluster, 3, 20, 49)
    assert places(cli("peek g1 --topic t1:1 -B 3 -A 0 -o json").data) == [(3, "read"), (20, "read"), (49, "read")]
    assert places(cli("peek g1 --topic t1:1 -B 4 -A 0 -o json").data) == [(3, "read"), (20, "read"), (49, "read")]


def test_commits_outside_their_log_are_looked_at_from_its_nearer_end(cli: Cli, cluster: FakeGroupAdmin) -> None:
    wrote(cluster, 60, 61)
    cluster.logs[SECOND] = FakeLog(60, 62)
    assert places(cli("peek g1 --topic t1:1 -o json").data) == [(60, "next"), (61, "unread")]
    cluster.logs[SECOND] = FakeLog(0, 40)
    wrote(cluster, 38, 39)
    assert places(cli("peek g1 --topic t1:1 -o json").data) == [(38, "read"), (39, "read")]


def test_a_table_shows_the_beginning_of_a_value_and_json_all(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.records[SECOND, 50] = Record(50, None, b"\xff", b"v" * 300, (("trace", b"1"), ("none", None)))
    line = "peek g1 --topic t1:1 -B 0 -A 1"
    (row,) = cli(f"{line} -o json").data
    assert (row["key"], row["value"], row["headers"], row["time"]) == ("\\xff", "v" * 300, ["trace=1", "none="], None)
    assert f"{'v' * 200}...  trace=1 none=\n" in cli(line).out


def test_a_group_without_commits_there_is_not_found(cli: Cli) -> None:
    ran = cli("peek g1 --topic t1:2")
    assert (ran.code, ran.err) == (4, "kgctl: group 'g1' has no committed offsets there\n")
    assert cli("peek g1 --topic nope").err == "kgctl: topic 'nope' does not exist, or this user may not see it\n"
    assert cli("peek nosuch").code == 4
    assert (cli("peek").code, cli("peek g1 -B 0 -A 0").code) == (2, 2)
    assert [cli.run([name, ""]).err for name in ("peek", "top")] == ["kgctl: a group id must not be empty\n"] * 2


def test_what_is_named_and_has_no_commit_is_not_found(cli: Cli, cluster: FakeGroupAdmin) -> None:
    """g1 has none on t1-2, nor on t2."""
    wrote(cluster, 50)
    ran = cli("peek g1 --topic t1:1,2,7-9 --topic t2 -A 1 -B 0 -o json")
    assert (ran.code, places(ran.data)) == (3, [(50, "next")])
    assert [(each["topic"], each["message"]) for each in ran.json["errors"]] == [
        ("t1", "group 'g1' has no committed offsets on topic 't1:2,7-9'"),
        ("t2", "group 'g1' has no committed offsets on topic 't2'"),
    ]
    assert cli("peek g1 --topic t1 -A 1 -B 0").code == 0
    assert cli("peek g1 --topic t1:7").err == "kgctl: group 'g1' has no committed offsets there\n"


def test_a_commit_whose_log_nobody_tells_of_is_no_missing_one(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.log_errors[SECOND] = error(ErrorCode.LEADER_NOT_AVAILABLE, "t1-1 has no leader")
    ran = cli("peek g1 --topic t1:1 -o json")
    assert (ran.code, [each["message"] for each in ran.json["errors"]]) == (7, ["t1-1 has no leader"])


def test_commits_that_may_be_hidden_are_told(cli: Cli, cluster: FakeGroupAdmin) -> None:
    wrote(cluster, 50)
    cluster.group("bare")
    cluster.own_sight = Sight(all_topics=False, user="alice")
    lacks = "user 'alice' lacks the right DESCRIBE on all topics"
    ran = cli("peek g1 -A 1 -B 0 -o json")
    bare = "Group 'g1': there is no record around its offset on t1-0.\n"
    assert (ran.code, ran.err) == (0, f"{bare}{lacks}: records of others are not shown.\n")
    assert cli("peek bare") == Ran(8, "", f"kgctl: group 'bare' has no committed offsets that are to be seen: {lacks}\n")
    assert cli("peek g1 --topic t1:1 -A 1 -B 0 -o json").err == ""


def test_where_no_record_can_be_read_nothing_was_learnt(
    cli: Cli, cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorised")
    monkeypatch.setattr(FakeGroupAdmin, "read_records", lambda _, spans: Results({}, dict.fromkeys(spans, denied)))
    assert cli("peek g1").code == 8
    cluster.logs[SECOND] = FakeLog(0, 0)
    cluster.groups["g1"].offsets[SECOND] = OffsetAndMetadata(0)
    assert cli("peek g1").code == 3


def test_partitions_that_have_no_record_there_are_named(cli: Cli, cluster: FakeGroupAdmin) -> None:
    wrote(cluster, 50)
    first = "Group 'g1': there is no record around its offset on t1-0.\n"
    ran = cli("peek g1 -o json")
    assert (ran.code, places(ran.data), ran.err) == (0, [(50, "next")], first)
    assert cli("peek g1 --topic t1:0") == Ran(0, "", first)
    cluster.topic("wide", *(FakeLog(0, 5) for _ in range(12)))
    cluster.group("w", {TopicPartition("wide", number): 5 for number in range(12)})
    told = ", ".join(f"wide-{number}" for number in range(10))
    assert cli("peek w").err == f"Group 'w': there is no record around its offset on {told} and 2 more.\n"
