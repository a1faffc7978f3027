"""``kgctl reset-offsets``: plans, execution, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgctl.admin import Sight
from kgctl.errors import TimedOutError, UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, MemberDescription, OffsetAndMetadata, StartOffset, TopicPartition
from kgctl.model.streams import Subtopology, Topology
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog, error
from tests.cli.harness import NOW_MS, Cli, Ran

T1 = [TopicPartition("t1", number) for number in range(3)]
UNDO = "Previous offsets saved; to undo: kgctl --bootstrap-server fake:9092 undo {file} --execute\n"


def changes(cluster: FakeGroupAdmin) -> list[str]:
    """The calls that would have changed something."""
    return [name for name, _ in cluster.calls if name in ("alter_offsets", "delete_offsets", "delete_groups")]


def offsets(cli: Cli, line: str) -> list[tuple[int | None, int | None]]:
    """(old, new) of each row of a dry run."""
    return [(row["old_offset"], row["new_offset"]) for row in cli(line + " -o json").data]


def test_dry_run_shows_the_plan_and_changes_nothing(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("reset-offsets g1 --topic t1 --to-earliest") == Ran(
        0,
        "GROUP  TOPIC  PARTITION  OLD-OFFSET  NEW-OFFSET  DELTA  LAG-AFTER  RESULT\n"
        "g1     t1             0         100           0   -100        100  planned\n"
        "g1     t1             1          50           0    -50        100  planned\n"
        "g1     t1             2           -           0      -        100  planned\n",
        "Dry run on fake:9092: nothing was changed. Add --execute to change 3 partitions of 1 group.\n",
    )
    assert changes(cluster) == []


def test_execute_resets_saves_the_old_offsets_and_says_so(cli: Cli, cluster: FakeGroupAdmin) -> None:
    path = cli.folder / "backups" / "20240101T000000Z-reset-offsets.csv"
    ran = cli("reset-offsets g1 --topic t1 --to-earliest --execute --yes")
    assert ran == Ran(
        0,
        "GROUP  TOPIC  PARTITION  OLD-OFFSET  NEW-OFFSET  DELTA  LAG-AFTER  RESULT\n"
        "g1     t1             0         100           0   -100        100  reset\n"
        "g1     t1             1          50           0    -50        100  reset\n"
        "g1     t1             2           -           0      -        100  reset\n",
        UNDO.format(file=path.stem) + "Executed on fake:9092: 3 reset.\n",
    )
    assert cluster.commits("g1") == {("t1", 0): 0, ("t1", 1): 0, ("t1", 2): 0}
    first, *rows, last = path.read_text().splitlines(keepends=True)
    head = "group,topic,partition,offset,leader_epoch,metadata,written_offset\n"
    assert "".join(rows) == f"{head}g1,t1,0,100,-1,,0\ng1,t1,1,50,-1,,0\ng1,t1,2,,,,0\n"
    assert json.loads(first.removeprefix("# kgctl ")) == {
        "kind": "undo",
        "cluster_id": "fake:9092",
        "cluster": "fake:9092",
        "command": "kgctl reset-offsets g1 --topic t1 --to-earliest --execute --yes",
        "time_ms": NOW_MS,
        "groups": ["g1"],
        "partitions": 3,
    }
    assert last.startswith("# end rows=3 sha256=")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_json_rows_of_a_plan(cli: Cli) -> None:
    assert cli("reset-offsets g1 --topic t1:1 --to-offset 60 -o json").data == [
        {
            "group": "g1",
            "topic": "t1",
            "partition": 1,
            "old_offset": 50,
            "new_offset": 60,
            "delta": 10,
            "lag_after": 40,
            "log_start_offset": 0,
            "log_end_offset": 100,
            "result": "planned",
            "note": None,
        }
    ]


def test_latest(cli: Cli) -> None:
    assert offsets(cli, "reset-offsets g1 --topic t1 --to-latest") == [(100, 100), (50, 100), (None, 100)]


def test_all_topics_means_partitions_with_a_commit(cli: Cli) -> None:
    assert offsets(cli, "reset-offsets g1 --all-topics --to-offset 7") == [(100, 7), (50, 7)]


def test_partitions_of_a_topic_as_list_and_range(cli: Cli) -> None:
    assert offsets(cli, "reset-offsets g1 --topic t1:0,1-2 --to-earliest") == [(100, 0), (50, 0), (None, 0)]
    assert offsets(cli, "reset-offsets g1 --topic t1:1 --topic t1:0 --to-earliest") == [(100, 0), (50, 0)]


def test_shift_back_touches_only_what_was_named(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("reset-offsets g1 --topic t1:1 --shift-by -30 --execute").code == 0
    assert cluster.commits("g1") == {("t1", 0): 100, ("t1", 1): 20}


def test_shift_without_a_commit_fails_for_that_partition(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("reset-offsets g1 --topic t1 --shift-by -30 --execute")
    assert (ran.code, cluster.commits("g1")) == (3, {("t1", 0): 70, ("t1", 1): 20})
    assert "kgctl: group 'g1', t1-2: nothing is committed that could be shifted\n" in ran.err


def test_clamp_warns_for_each_partition_with_what_was_asked_and_what_is_used(cli: Cli) -> None:
    ran = cli("reset-offsets g1 --topic t1 --to-offset 150")
    assert ran.err == (
        "t1-0: 150 is past the log end 100; 100 is used\n"
        "t1-1: 150 is past the log end 100; 100 is used\n"
        "t1-2: 150 is past the log end 100; 100 is used\n"
        "Dry run on fake:9092: nothing was changed. Add --execute to change 2 partitions of 1 group.\n"
    )
    assert [line.split()[7] for line in ran.out.splitlines()[1:]] == ["unchanged", "planned", "planned"]


def test_warnings_of_several_groups_name_them(cli: Cli) -> None:
    ran = cli("reset-offsets g1 g3 --topic t2 --to-offset 1")
    assert ran.err.splitlines()[:2] == [
        "g1: t2-0: 1 is before the log start 40; 40 is used",
        "g3: t2-0: 1 is before the log start 40; 40 is used",
    ]


def test_no_clamp_fails_and_changes_nothing(cli: Cli, cluster: FakeGroupAdmin) -> None:
    for execute in ("", " --execute"):
        ran = cli("reset-offsets g1 --topic t1 --to-offset 150 --no-clamp" + execute)
        assert ran.code == 1
        assert "kgctl: group 'g1', t1-0: 150 is past the log end 100\n" in ran.err
    assert changes(cluster) == []


def test_no_clamp_with_one_good_partition_still_changes_nothing(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("reset-offsets g1 --topic t1:0 --topic t2 --to-offset 95 --no-clamp --execute")
    assert (ran.code, changes(cluster)) == (1, [])
    assert ran.err == (
        "kgctl: group 'g1', t1-0: left alone: other offsets of the plan lie outside their logs\n"
        "kgctl: group 'g1', t2-0: 95 is past the log end 90\nNothing was changed on fake:9092: 1 failed, 1 refused.\n"
    )
    for execute in ("", " --execute"):
        ran = cli(f"reset-offsets g1 --topic t1:0 --topic t2 --to-offset 95 --no-clamp{execute} -o json")
        assert [row["result"] for row in ran.data] == ["refused", "failed"]


def test_negative_offset_is_a_usage_error(cli: Cli) -> None:
    assert cli("reset-offsets g1 --topic t1 --to-offset -5") == Ran(
        2, "", "kgctl: --to-offset -5 is negative: offsets begin at 0\n"
    )


def test_current_heals_commits_outside_the_log_and_leaves_the_rest(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("reset-offsets g3 --all-topics --to-current --execute").code == 0
    assert cluster.commits("g3") == {("t2", 0): 40}
    assert offsets(cli, "reset-offsets g1 --topic t1 --to-current") == [(100, 100), (50, 50), (None, 100)]


def test_unchanged_partitions_are_not_written(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("reset-offsets g1 --all-topics --to-current --execute")
    assert (ran.code, ran.err, changes(cluster)) == (
        0,
        "Nothing was to do on fake:9092: every partition is where it should be.\n",
        [],
    )


def test_duration_and_datetime_agree_and_repeat_the_instant(cli: Cli) -> None:
    by_duration = cli("reset-offsets g1 --topic t1 --by-duration PT1H")
    by_datetime = cli("reset-offsets g1 --topic t1 --to-datetime 2023-12-31T23:00:00")
    assert by_duration.out == by_datetime.out
    assert by_duration.err.splitlines()[0] == "--by-duration PT1H means 2023-12-31T23:00:00.000Z (UTC)."
    assert by_datetime.err.splitlines()[0] == "--to-datetime 2023-12-31T23:00:00 means 2023-12-31T23:00:00.000Z (UTC)."
    assert offsets(cli, "reset-offsets g1 --topic t1:0 --by-duration 1h") == [(100, 40)]


def test_time_after_the_last_record_goes_to_the_end_and_says_why(cli: Cli) -> None:
    ran = cli("reset-offsets g1 --topic t1:1 --to-datetime 2024-01-01T00:00:00.000Z")
    assert ran.err.splitlines()[1] == "t1-1: no record at or after 2024-01-01T00:00:00.000Z; log end"
    assert ran.out.splitlines()[1].split()[4] == "100"


def test_time_before_the_first_record_goes_to_the_log_start(cli: Cli) -> None:
    assert offsets(cli, "reset-offsets g1 --topic t1 --to-datetime 2020-01-01") == [(100, 0), (50, 0), (None, 0)]


def test_dry_run_on_an_active_group_shows_the_plan(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("reset-offsets g2 --topic t1:0 --to-earliest")
    assert (ran.code, ran.out.splitlines()[1].split()[3:5]) == (0, ["90", "0"])
    assert ran.err == (
        "Group 'g2' is active (Stable): --execute is refused until its members have left.\n"
        "Dry run on fake:9092: nothing was changed.\n"
    )
    assert changes(cluster) == []


def test_execute_refuses_an_active_group(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("reset-offsets g2 --topic t1 --to-earliest --execute")
    assert ran == Ran(
        5,
        "",
        "kgctl: group 'g2' is active (Stable, 2 members): stop its consumers first\n"
        "Nothing was changed on fake:9092: 1 group refused.\n",
    )
    assert changes(cluster) == []
    assert not (cli.folder / "backups").exists()


def test_active_group_does_not_stop_the_others(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("reset-offsets g1 g2 --all-topics --to-earliest --execute -o json")
    assert (ran.code, {row["group"] for row in ran.data}) == (3, {"g1"})
    assert ran.json["errors"][0]["code"] == "NON_EMPTY_GROUP"
    assert cluster.commits("g1") == {("t1", 0): 0, ("t1", 1): 0}
    assert cluster.commits("g2") == {("t1", 0): 90, ("t1", 1): 90, ("t1", 2): 90}


def test_group_that_becomes_active_after_the_plan_is_refused(cli: Cli, cluster: FakeGroupAdmin) -> None:
    member = MemberDescription("m")
    cluster.before_alter = lambda: cluster.group("g1", cluster.groups["g1"].offsets, [member])
    ran = cli("reset-offsets g1 --all-topics --to-earliest --execute -o json")
    assert (ran.code, {row["result"] for row in ran.data}) == (5, {"refused"})
    assert ran.json["errors"][0]["code"] == "NON_EMPTY_GROUP"


def test_a_cluster_that_tells_of_the_members_is_understood(cli: Cli, cluster: FakeGroupAdmin) -> None:
    """A broker knows no such error of a commit; kgctl's own connection names it so."""
    cluster.alter_errors = dict.fromkeys(T1, error(ErrorCode.NON_EMPTY_GROUP, "group 'g1' has members"))
    ran = cli("reset-offsets g1 --all-topics --to-earliest --execute -o json")
    assert (ran.code, {row["result"] for row in ran.data}) == (5, {"refused"})
    assert {row["note"] for row in ran.data} == {"the group has become active; stop its consumers first"}


def test_partition_that_cannot_be_written_is_named(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.alter_errors[T1[1]] = error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not allowed")
    ran = cli("reset-offsets g1 --topic t1:0-1 --to-earliest --execute")
    assert (ran.code, cluster.commits("g1")) == (3, {("t1", 0): 0, ("t1", 1): 50})
    assert ran.err.splitlines()[1:] == ["kgctl: group 'g1', t1-1: not allowed", "Executed on fake:9092: 1 reset, 1 failed."]


def test_missing_group_is_not_made_by_a_typing_error(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("reset-offsets paymetns --topic t1 --to-latest --execute")
    assert ran.code == 4
    assert ran.err.startswith("kgctl: Group 'paymetns' does not exist\n")
    assert "paymetns" not in cluster.groups


def test_create_makes_the_group(cli: Cli, cluster: FakeGroupAdmin) -> None:
    dry = cli("reset-offsets new --create --topic t1 --to-latest")
    assert "Group 'new' does not exist: --execute makes it.\n" in dry.err
    assert cli("reset-offsets new --create --topic t1 --to-latest --execute").code == 0
    assert cluster.commits("new") == {("t1", 0): 100, ("t1", 1): 100, ("t1", 2): 100}


def test_a_share_group_has_start_offsets(cli: Cli, cluster: FakeGroupAdmin) -> None:
    offsets = (StartOffset(40, records_left=60), StartOffset(40, records_left=10), StartOffset(9))
    cluster.group("s1", {TopicPartition("t1", number): one for number, one in enumerate(offsets)}, type=GroupType.SHARE)
    ran = cli("reset-offsets s1 --topic t1 --to-offset 40 --execute")
    forgotten = "which records past {} are acknowledged is forgotten, and no undo brings that back"
    assert [line for line in ran.err.splitlines() if line.startswith("t1-")] == [
        f"t1-1: {forgotten.format(40)}",
        f"t1-2: {forgotten.format(9)}",
    ]
    assert [row.split()[-1] for row in ran.out.splitlines()[1:]] == ["unchanged", "reset", "reset"]
    assert {type(offset) for offset in cluster.groups["s1"].offsets.values()} == {StartOffset}


def test_a_start_offset_that_stays_is_not_done_before_it_is_set(cli: Cli, cluster: FakeGroupAdmin) -> None:
    """Its request was lost: that the offset is there already says nothing of what is acknowledged past it."""
    place = TopicPartition("t1", 0)
    cluster.group("s1", {place: StartOffset(40, records_left=10)}, type=GroupType.SHARE)

    def lose() -> None:
        raise UnreachableError("lost")

    cluster.before_alter = lose
    ran = cli("reset-offsets s1 --topic t1:0 --to-offset 40 --execute -o json")
    assert (ran.code, [row["result"] for row in ran.data]) == (3, ["unknown"])
    assert cluster.groups["s1"].offsets == {place: StartOffset(40, records_left=10)}


def test_an_undo_that_would_take_acknowledgements_away_is_refused(cli: Cli, cluster: FakeGroupAdmin) -> None:
    place = TopicPartition("t1", 0)
    cluster.group("s1", {place: StartOffset(40, records_left=60)}, type=GroupType.SHARE)
    assert cli("reset-offsets s1 --topic t1:0 --to-offset 20 --execute").code == 0
    for left, why in (
        (75, " with records past it acknowledged"),
        (None, ", past which its coordinator tells no lag: records may be acknowledged,"),
    ):
        cluster.groups["s1"].offsets[place] = StartOffset(20, records_left=left)
        ran = cli("undo last --execute")
        assert (ran.code, cluster.groups["s1"].offsets[place].offset) == (5, 20)
        assert f"went on since: the change left 20, 20{why} now (--overwrite insists)" in ran.err
    assert cli("undo last --overwrite --execute").code == 0
    assert cluster.groups["s1"].offsets[place].offset == 40


def test_a_streams_group_is_reset_on_its_input_topics(cli: Cli, cluster: FakeGroupAdmin) -> None:
    topology = Topology(0, (Subtopology("0", ("t1",), changelog_topics=()), Subtopology("1", (), ("t2",))))
    cluster.group("app", {TopicPartition("t1", 0): 10, TopicPartition("t2", 0): 45}, type=GroupType.STREAMS, topology=topology)
    assert [row.split()[:3] for row in cli("reset-offsets app --all-topics --to-latest").out.splitlines()[1:]] == [
        ["app", "t1", "0"]
    ]
    told = "Streams group 'app': its own topics (t2) and its instances' local state stay as they are.\n"
    for mode in ("", " --execute"):
        ran = cli(f"reset-offsets app --topic t2:0 --to-latest{mode}")
        assert (ran.code, told in ran.err) == (0, True)
    assert cluster.commits("app")["t2", 0] == 90


def test_a_topic_that_a_streams_group_does_not_read_is_refused(cli: Cli, cluster: FakeGroupAdmin) -> None:
    topology = Topology(0, (Subtopology("0", ("t1",)),))
    cluster.group("app", {TopicPartition("t1", 0): 10}, type=GroupType.STREAMS, topology=topology)
    ran = cli("reset-offsets app --topic t2:0 --to-latest --execute")
    assert (ran.code, ran.err.splitlines()[0]) == (
        4,
        "kgctl: t2-0: topic 't2' is not part of the streams group 'app'",
    )
    assert cluster.commits("app") == {("t1", 0): 10}


def test_group_with_nothing_committed_has_nothing_to_reset(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4")
    assert cli("reset-offsets g4 --all-topics --to-latest") == Ran(
        4, "", "kgctl: group 'g4' has no committed offsets: nothing to reset\n"
    )
    cluster.own_sight = Sight(all_topics=False, user="alice")
    unseen = "has no committed offsets that are to be seen: user 'alice' lacks the right DESCRIBE on all topics; nothing to"
    assert cli("reset-offsets g4 --all-topics --to-latest") == Ran(8, "", f"kgctl: group 'g4' {unseen} reset\n")
    assert cli("reset-offsets g1 --from-group g4") == Ran(8, "", f"kgctl: group 'g4' {unseen} copy\n")


def test_unknown_topic_and_partition_are_named_and_stop_everything(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("reset-offsets g1 --topic t1 --topic nope --to-latest --execute") == Ran(
        4, "", "kgctl: topic 'nope' does not exist\n"
    )
    assert cli("reset-offsets g1 --topic t1:0,9 --to-latest --execute") == Ran(
        4, "", "kgctl: partition t1-9 does not exist: topic 't1' has 3 partitions\n"
    )
    assert changes(cluster) == []


def test_partition_without_a_leader_fails_alone(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.log_errors[T1[0]] = error(ErrorCode.LEADER_NOT_AVAILABLE, "no leader")
    ran = cli("reset-offsets g1 --topic t1:0-1 --to-latest --execute")
    assert (ran.code, cluster.commits("g1")) == (3, {("t1", 0): 100, ("t1", 1): 100})
    assert "kgctl: group 'g1', t1-0: no leader\n" in ran.err


def test_commit_on_a_topic_that_is_gone_fails_alone(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4", {TopicPartition("gone", 0): 5, T1[0]: 5})
    ran = cli("reset-offsets g4 --all-topics --to-latest -o json")
    assert [(row["topic"], row["result"]) for row in ran.data] == [("gone", "failed"), ("t1", "planned")]
    assert ran.code == 3


def test_dead_group_can_be_reset(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4", {T1[0]: 5}, state=GroupState.DEAD)
    assert cli("reset-offsets g4 --all-topics --to-latest --execute").code == 0


def test_backup_goes_where_it_is_wanted(cli: Cli) -> None:
    path = cli.folder / "with space.csv"
    ran = cli.run(["reset-offsets", "g1", "--all-topics", "--to-latest", "--execute", "--backup", str(path)])
    assert ran.err.startswith(UNDO.format(file=f"'{path}'"))
    assert path.exists()


def test_backup_that_cannot_be_written_stops_the_reset(cli: Cli, cluster: FakeGroupAdmin) -> None:
    path = cli.folder / "kept.csv"
    path.write_text("mine")
    ran = cli(f"reset-offsets g1 --all-topics --to-latest --execute --backup {path}")
    assert (ran.code, changes(cluster), path.read_text()) == (2, [], "mine")
    assert ran.err == f"kgctl: --backup {path}: there is such a file already, and it is not replaced\n"


def test_backups_of_one_second_do_not_overwrite_each_other(cli: Cli) -> None:
    for line in ("--to-earliest", "--to-latest"):
        assert cli(f"reset-offsets g1 --topic t1 {line} --execute").code == 0
    names = sorted(path.name for path in (cli.folder / "backups").glob("*.csv"))
    assert names == ["20240101T000000Z-reset-offsets-2.csv", "20240101T000000Z-reset-offsets.csv"]


def test_no_backup_saves_nothing(cli: Cli) -> None:
    assert cli("reset-offsets g1 --all-topics --to-earliest --execute --no-backup").err == "Executed on fake:9092: 2 reset.\n"
    assert list((cli.folder / "backups").glob("*.csv")) == []


def test_place_of_the_backup_is_told_before_a_failure(cli: Cli, cluster: FakeGroupAdmin) -> None:
    def fail() -> None:
        raise TimedOutError("no answer within 1000 ms")

    cluster.before_alter = fail
    ran = cli("reset-offsets g1 --all-topics --to-earliest --execute")
    assert ran.code == 3  # sent, perhaps: not answered
    assert ran.err.startswith("Previous offsets saved; to undo: ")
    assert ran.err.endswith("Executed on fake:9092: 2 unknown.\n")


def test_metadata_is_dropped_by_a_reset_and_kept_where_nothing_moves(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4", {T1[0]: OffsetAndMetadata(5, "kept"), T1[1]: OffsetAndMetadata(6, "dropped")})
    cli("reset-offsets g4 --topic t1:0-1 --to-offset 5 --execute")
    assert cluster.groups["g4"].offsets == {T1[0]: OffsetAndMetadata(5, "kept"), T1[1]: OffsetAndMetadata(5)}


def test_all_groups_and_match(cli: Cli, cluster: FakeGroupAdmin) -> None:
    rows = cli("reset-offsets --match g[13] --all-topics --to-earliest -o json").data
    assert [(row["group"], row["partition"]) for row in rows] == [("g1", 0), ("g1", 1), ("g3", 0)]


def test_logs_are_asked_once_for_many_groups(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.topic("t3", FakeLog(0, 1))
    cli("reset-offsets g1 g3 --topic t3 --to-latest")
    assert [arguments for name, arguments in cluster.calls if name == "list_log_offsets"] == [(TopicPartition("t3", 0),)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "g1 --topic t1",
            "no target given: use one of --to-earliest, --to-latest, --to-current, --to-offset, --to-offsets, --shift-by, "
            "--to-datetime, --by-duration, --to-max-timestamp, --to-earliest-local, --to-latest-tiered, --to-history, --heal, "
            "--from-group, --from-file, --plan",
        ),
        ("g1 --topic t1 --to-earliest --to-offset 0", "--to-earliest and --to-offset exclude each other: give one"),
        ("g1 --topic t1 --to-offset 0 --shift-by 0", "--to-offset and --shift-by exclude each other: give one"),
        ("g1 --to-latest", "no scope given: use --topic TOPIC, --topic TOPIC:0,2-5 or --all-topics"),
        ("g1 --to-latest --topic t --all-topics", "--topic and --all-topics exclude each other"),
        ("--to-latest --topic t1", "no group is named: give group ids, --match REGEX or --all-groups"),
        ("g1 --to-latest --topic t1 --dry-run --execute", "--execute and --dry-run exclude each other"),
        ("g1 --to-latest --topic t1 --backup f --no-backup", "--backup and --no-backup exclude each other"),
        ("g1 --to-latest --topic t1:x", "--topic 't1:x': 'x' is not a partition; write topic:3 or topic:0,2-5"),
        ("g1 --to-latest --topic t1:5-2", "--topic 't1:5-2': the range '5-2' ends before it begins"),
        (
            "g1 --topic t1 --by-duration P1M",
            "--by-duration: the duration 'P1M' counts months, which have no fixed length: "
            "write days, P30D, or PT1M for one minute",
        ),
        (
            "g1 --topic t1 --by-duration P1Y",
            "--by-duration: the duration 'P1Y' counts years, which have no fixed length: write days, P365D",
        ),
        (
            "g1 --topic t1 --to-datetime soon",
            "--to-datetime: cannot read 'soon' as a time: write 2024-01-31T10:00:00Z, 2024-01-31T10:00:00+02:00, 2024-01-31 "
            "(without a zone: UTC) or milliseconds since 1970, or `2h ago`, `now`, `yesterday 14:00`",
        ),
    ],
)
def test_usage_errors_contact_nothing(cli: Cli, arguments: str, message: str) -> None:
    assert cli("reset-offsets " + arguments) == Ran(2, "", f"kgctl: {message}\n")
    assert cli.settings == []


def test_undo_goes_to_the_same_cluster(cli: Cli) -> None:
    ran = cli("-X client.id=secret reset-offsets g1 --all-topics --to-earliest --execute --bootstrap-server other:1")
    assert ran.err.startswith(
        "Previous offsets saved; to undo: kgctl --bootstrap-server other:1 undo 20240101T000000Z-reset-offsets --execute\n"
    )


def test_marks_of_tiered_storage(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.topic("t1", FakeLog(0, 100, local_start=40, tiered=39), FakeLog(0, 100, local_start=0), FakeLog(7, 7, local_start=7))
    assert [new for _, new in offsets(cli, "reset-offsets g1 --topic t1 --to-earliest-local")] == [40, 0, 7]
    tiered = cli("reset-offsets g1 --topic t1 --to-latest-tiered --execute -o json")
    assert [(row["new_offset"], row["result"]) for row in tiered.data] == [(39, "reset"), (None, "failed"), (None, "failed")]
    assert (tiered.code, {error["code"] for error in tiered.json["errors"]}) == (3, {"NOTHING_TIERED"})


def test_to_max_timestamp_is_the_record_with_the_largest(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.logs[T1[1]] = FakeLog(0, 100, ((7, NOW_MS), (8, NOW_MS - 1)))
    cluster.logs[T1[2]] = FakeLog(5, 5)
    assert [new for _, new in offsets(cli, "reset-offsets g1 --topic t1 --to-max-timestamp")] == [99, 7, 5]


@pytest.mark.parametrize(
    "line", ["reset-offsets g1 --topic hidden --to-latest --execute", "delete-offsets g1 --topic hidden --yes"]
)
def test_a_topic_that_this_user_may_not_see_is_no_missing_one(cli: Cli, cluster: FakeGroupAdmin, line: str) -> None:
    cluster.log_errors[TopicPartition("hidden", 0)] = error(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorised for topic 'hidden'"
    )
    ran = cli(f"{line} -o json")
    assert (ran.code, [each["code"] for each in ran.json["errors"]], ran.data) == (8, ["TOPIC_AUTHORIZATION_FAILED"], []), ran.err
    assert cluster.commits("g1") == {("t1", 0): 100, ("t1", 1): 50}


@pytest.mark.parametrize("option", ["--to-datetime", "--to-history"])
def test_a_time_in_the_future_is_refused(cli: Cli, option: str) -> None:
    """A day too late by a slip would move to the end of the log, and skip all that is left."""
    ran = cli(f"reset-offsets g1 --topic t1 {option} 2024-01-02")
    assert (ran.code, "which lies in the future" in ran.err, cli.settings) == (2, True, []), ran.err
    assert cli("reset-offsets g1 --topic t1 --to-datetime 2024-01-01T00:01").code == 0


def test_a_topic_deleted_between_plan_and_deed_is_told_as_gone(
    cli: Cli, cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = TopicPartition("t2", 0)
    cluster.group("g4", {gone: 60, T1[0]: 5})
    ask = cluster.list_log_offsets

    def ask_and_delete(*args: Any, **options: Any) -> Any:
        found = ask(*args, **options)
        cluster.logs.pop(gone, None)
        cluster.groups["g4"].offsets.pop(gone, None)
        return found

    monkeypatch.setattr(cluster, "list_log_offsets", ask_and_delete)
    ran = cli("reset-offsets g4 --all-topics --to-latest --execute -o json")
    assert [(row["topic"], row["result"]) for row in ran.data] == [("t1", "refused"), ("t2", "refused")]
    assert ran.json["errors"][-1]["message"] == "topic 't2' is gone, or hidden from this user, and so is its commit"


def test_a_plan_for_a_topic_that_was_made_anew_is_refused(cli: Cli, cluster: FakeGroupAdmin, tmp_path: Path) -> None:
    cluster.made = {"t1": "then"}
    made = cli(f"reset-offsets new --create --topic t1 --to-latest --plan-out {tmp_path}/plan.csv")
    line = made.err.partition("to execute: kgctl ")[2].partition("\n")[0]
    assert line.endswith("plan.csv --create --execute")
    cluster.made = {"t1": "now"}
    ran = cli(line)
    assert ran.code == 5
    assert "t1-0: the topic was deleted and made anew since: offsets of the old one mean nothing in it\n" in ran.err
    cluster.made = {"t1": "then"}
    assert cli(line).code == 0
    assert cluster.commits("new") == {("t1", 0): 100, ("t1", 1): 100, ("t1", 2): 100}
