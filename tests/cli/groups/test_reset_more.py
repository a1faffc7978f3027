"""``kgctl reset-offsets``: heal, copy, wait, plans as files, summaries."""

from __future__ import annotations

import pytest

from kgctl.admin import ItemError, Sight
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MemberDescription, OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, Ran

T1 = [TopicPartition("t1", number) for number in range(3)]
T2 = TopicPartition("t2", 0)


def test_heal_touches_only_commits_outside_their_log(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("sick", {T1[0]: OffsetAndMetadata(130, "m"), T1[1]: OffsetAndMetadata(50, "kept"), T2: 10})
    ran = cli("reset-offsets sick --heal --execute -o json")
    assert [(row["topic"], row["partition"], row["old_offset"], row["new_offset"]) for row in ran.data] == [
        ("t1", 0, 130, 100),
        ("t2", 0, 10, 40),
    ]
    assert cluster.commits("sick") == {("t1", 0): 100, ("t1", 1): 50, ("t2", 0): 40}
    assert cli("reset-offsets g1 --heal") == Ran(0, "", "Nothing is to do on fake:9092.\n")


NOTHING_WAS_TO_DO = "Nothing was to do on fake:9092: every partition is where it should be.\n"


def test_where_nothing_is_to_heal_nothing_is_refused(cli: Cli, cluster: FakeGroupAdmin) -> None:
    """g2 has members; of g3 a commit lies before its log."""
    assert cli("reset-offsets g1 --heal --execute") == Ran(0, "", NOTHING_WAS_TO_DO)
    assert cli("reset-offsets g2 --heal") == Ran(0, "", "Nothing is to do on fake:9092.\n")
    assert cli("reset-offsets g1 g2 --heal --execute") == Ran(0, "", NOTHING_WAS_TO_DO)
    assert cli("reset-offsets g1 g2 --all-topics --to-current --execute").code == 3, (
        "what was asked for all partitions is refused"
    )
    assert [row["group"] for row in cli("reset-offsets --all-groups --heal --summary -o json").data] == ["g3"]
    cluster.log_errors[T1[0]] = ItemError(ErrorCode.LEADER_NOT_AVAILABLE, "t1-0 has no leader")
    ran = cli("reset-offsets g1 --heal --execute")
    assert (ran.code, "Nothing was changed on fake:9092: 1 failed.\n" in ran.err) == (7, True)


def test_from_group_copies_what_another_group_has(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("reset-offsets new --from-group g1 --create --execute").code == 0
    assert cluster.commits("new") == cluster.commits("g1")
    assert cli("reset-offsets g3 --from-group g2 --topic t1:1 --execute").code == 0
    assert cluster.commits("g3") == {("t1", 1): 90, ("t2", 0): 10}
    assert cli("reset-offsets g1 --from-group nosuch").code == 4
    assert cli("reset-offsets new2 --from-group g1 --execute").code == 4


def test_what_another_group_has_nothing_on_is_not_left_out_in_silence(cli: Cli, cluster: FakeGroupAdmin) -> None:
    for where, shown in (("t1:0-2", "t1:2"), ("t2", "t2")):
        line = f"reset-offsets g2 --from-group g1 --topic t1:0 --topic {where}"
        assert cli(line) == Ran(4, "", f"kgctl: group 'g1': nothing is committed on topic '{shown}'\n")
        assert cli(f"{line} --skip-missing").code == 0
    assert cli("reset-offsets g2 --from-group g1 --topic t1").code == 0


def test_each_partition_goes_to_its_own_offset(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("reset-offsets g1 g3 --to-offsets t1:0=5,2=7 --to-offsets t2:0=41 --execute")
    assert ran.code == 0, ran.err
    wanted = {("t1", 0): 5, ("t1", 2): 7, ("t2", 0): 41}
    assert (cluster.commits("g1"), cluster.commits("g3")) == ({**wanted, ("t1", 1): 50}, wanted)
    assert cli("reset-offsets nosuch --to-offsets t1:0=5 --execute").code == 4
    assert cli("reset-offsets g1 --to-offsets nosuch:0=5 --execute").code == 4


def test_plan_file_is_executed_while_the_cluster_is_as_it_was(cli: Cli, cluster: FakeGroupAdmin) -> None:
    path = cli.folder / "plan.csv"
    cluster.own_cluster_id = "A"
    told = cli(f"reset-offsets g1 g3 --all-topics --to-latest --plan-out {path}")
    assert (told.code, f"to execute: kgctl --bootstrap-server fake:9092 reset-offsets --plan {path} --execute" in told.err) == (
        0,
        True,
    )
    cluster.own_cluster_id = "B"
    assert cli(f"reset-offsets --plan {path} --execute").code == 5
    cluster.own_cluster_id = "A"
    cluster.groups["g3"].offsets[T2] = OffsetAndMetadata(60)
    ran = cli(f"reset-offsets --plan {path} --execute -o json")
    assert [(row["group"], row["partition"], row["result"]) for row in ran.data] == [("g1", 1, "reset"), ("g3", 0, "refused")]
    assert (ran.code, cluster.commits("g1")[("t1", 1)], cluster.commits("g3")) == (3, 100, {("t2", 0): 60})


def test_plan_must_be_a_plan(cli: Cli) -> None:
    (cli.folder / "x.csv").write_text("t1,0,5\n")
    ran = cli(f"reset-offsets g1 --plan {cli.folder}/x.csv --execute")
    assert (ran.code, "is no plan that --plan-out wrote" in ran.err) == (2, True)


def test_wait_empty_waits_and_then_executes(cli: Cli, cluster: FakeGroupAdmin) -> None:
    left: list[int] = []

    def leave(milliseconds: int) -> None:
        left.append(milliseconds)
        if len(left) == 2:
            cluster.group("g2", cluster.groups["g2"].offsets)

    cli.sleep_ms = leave
    ran = cli("reset-offsets g2 --topic t1 --to-earliest --execute --wait-empty 30s")
    assert (ran.code, left, set(cluster.commits("g2").values())) == (0, [500, 500], {0})
    assert ran.err.startswith("Waiting up to 30 s for the members of 'g2' to leave.\n")


def test_wait_empty_takes_no_group_that_cannot_be_described_for_empty(cli: Cli, cluster: FakeGroupAdmin) -> None:
    looks: list[int] = []
    cluster.group_errors["g1"] = ItemError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "g1 is being loaded")

    def load(milliseconds: int) -> None:
        looks.append(milliseconds)
        if len(looks) == 3:
            del cluster.group_errors["g1"]

    cli.sleep_ms = load
    ran = cli("reset-offsets g1 --topic t1 --to-earliest --execute --wait-empty 30s")
    assert (ran.code, looks) == (0, [500, 500, 500]), ran.err


def test_wait_empty_leaves_a_group_that_is_never_described_to_the_change(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group_errors["g1"] = ItemError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "g1 is being loaded")
    before = cluster.commits("g1")
    ran = cli("reset-offsets g1 --topic t1 --to-latest --execute --wait-empty 2s")
    assert (ran.code, cluster.commits("g1")) == (7, before), ran.err


def test_wait_empty_gives_up(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g5", {T1[0]: 1}, [MemberDescription("m")])
    ran = cli("reset-offsets g5 --topic t1 --to-earliest --execute --wait-empty 2s")
    assert (ran.code, cluster.commits("g5")) == (5, {("t1", 0): 1})
    assert "1 group ('g5') still has members after 2 s; nothing was changed" in ran.err


def test_skip_missing_leaves_out_what_is_not_there(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4", {TopicPartition("gone", 0): 5, T1[0]: 5})
    assert [row["topic"] for row in cli("reset-offsets g4 --all-topics --to-latest --skip-missing -o json").data] == ["t1"]
    ran = cli("reset-offsets g1 --topic nope --to-latest --skip-missing")
    assert (ran.code, ran.err.splitlines()[0]) == (
        4,
        "kgctl: group 'g1': none of these topics or partitions exists: nothing to reset",
    )
    assert cli("reset-offsets g1 --to-offsets nope:0=3 --skip-missing").code == 4
    ran = cli("reset-offsets g1 --to-offsets nope:0=3 --to-offsets t1:0=3 --skip-missing -o json")
    assert (ran.code, [row["topic"] for row in ran.data]) == (0, ["t1"])
    ran = cli("reset-offsets g1 --topic nope --topic t1:1-7 --to-latest --skip-missing -o json")
    assert (ran.code, [row["partition"] for row in ran.data]) == (0, [1, 2])


def test_summary_has_one_row_a_group(cli: Cli) -> None:
    rows = cli("reset-offsets g1 g3 --all-topics --to-latest --summary -o json").data
    assert rows[0] == {
        "group": "g1",
        "state": "Empty",
        "partitions": 2,
        "delta": 50,
        "lag_before": 50,
        "lag_after": 0,
        "results": ["1 planned", "1 unchanged"],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("g1 --topic t1 --to-latest --wait-empty 5s", "--wait-empty waits before --execute only"),
        ("g1 --topic t1 --to-latest --execute --wait-empty soon", "--wait-empty: cannot read 'soon'"),
        ("g1 --topic t1 --to-latest --execute --plan-out p", "--plan-out keeps the plan of a dry run"),
        ("g1 --heal --to-latest", "--to-latest and --heal exclude each other"),
        ("g1 --topic t1 --to-latest --yes", "--yes without --execute does nothing, and this would be a dry run"),
        ("g1 --topic t1 --to-latest --backup b.csv", "--backup without --execute does nothing"),
    ],
)
def test_usage_errors(cli: Cli, arguments: str, message: str) -> None:
    ran = cli(f"reset-offsets {arguments}")
    assert (ran.code, message in ran.err, cli.settings) == (2, True, []), ran.err


def test_times_ago_are_times(cli: Cli) -> None:
    ran = cli.run(["reset-offsets", "g1", "--topic", "t1:0", "--to-datetime", "30m ago", "-o", "json"])
    assert [row["new_offset"] for row in ran.data] == [70]


def test_summary_of_logs_that_cannot_be_read_has_no_lag(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.log_errors = dict.fromkeys(cluster.logs, ItemError(ErrorCode.REQUEST_TIMED_OUT, "no answer"))
    (row,) = cli("reset-offsets g1 --all-topics --to-offset 7 --summary -o json").data
    assert (row["lag_before"], row["lag_after"]) == (None, None)


def test_a_wall_clocks_time_that_comes_twice_is_told(cli: Cli) -> None:
    line = ["reset-offsets", "g1", "--topic", "t1", "--to-datetime"]
    ran = cli.run([*line, "2023-10-29 02:30 Europe/Berlin"])
    assert "means 2023-10-29T00:30:00.000Z (UTC). It came twice, as clocks were turned back; the second is 2023-10" in ran.err
    skipped = cli.run([*line, "2023-03-26 02:30 Europe/Berlin"])
    assert (skipped.code, "is skipped, as clocks are put forward there" in skipped.err) == (2, True)


@pytest.mark.parametrize(
    ("line", "so"),
    [
        ("--heal", "stay as they are"),
        ("--all-topics --to-earliest", "stay as they are"),
        ("--from-group g1 --create", "are not copied"),
        ("--from-group g1 --create --execute", "are not copied"),
    ],
)
def test_commits_that_may_be_hidden_are_told(cli: Cli, cluster: FakeGroupAdmin, line: str, so: str) -> None:
    cluster.own_sight = Sight(all_topics=False, user="alice")
    told = f"user 'alice' lacks the right DESCRIBE on all topics: commits on others are not shown, and {so}.\n"
    assert told in cli(f"reset-offsets g1 {line}".replace("g1 --from", "new --from")).err
    assert told not in cli("reset-offsets g1 --topic t1 --to-earliest").err
