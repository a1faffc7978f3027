"""``kgctl describe group``."""

from __future__ import annotations

import pytest

from kgctl.admin import ItemError, Record, Span
from kgctl.errors import UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, MemberDescription, OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog, error
from tests.cli.harness import NOW_MS, Cli, Ran

G1 = (
    "GROUP  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG\n"
    "g1     t1             0             100             100    0\n"
    "g1     t1             1              50             100   50\n"
    "g1     t1             2               -             100    -\n"
)
G1_NOTICES = "Group 'g1' has no active members.\nGroup 'g1': total lag 50 in 3 partitions, 1 of them without a commit.\n"


def test_offsets_of_an_empty_group(cli: Cli) -> None:
    assert cli("describe group g1") == Ran(0, G1, G1_NOTICES)


BELONG_TO_OFFSETS = (
    "--topic, --only-lagging, --sort, --totals, --time-lag, --commit-age, --next-record, --lag-mode and the --fail-if options "
    "belong to --offsets, not to --state"
)


@pytest.mark.parametrize("line", ["describe group --group g1", "describe group g1 --offsets", "describe groups g1 --group g1"])
def test_ways_to_name_a_group(cli: Cli, line: str) -> None:
    assert cli(line).out == G1


def test_json_of_a_partition_with_an_owner(cli: Cli) -> None:
    assert cli("describe group g2 --topic t1:1 -o json").json == {
        "kgctl_result_version": 1,
        "command": "describe group",
        "status": "ok",
        "exit_code": 0,
        "data": [
            {
                "group": "g2",
                "topic": "t1",
                "partition": 1,
                "current_offset": 90,
                "log_start_offset": 0,
                "log_end_offset": 100,
                "lag": 10,
                "consumer_id": "c1-uuid",
                "host": "/127.0.0.1",
                "client_id": "c1",
                "group_instance_id": "i1",
                "leader_epoch": None,
                "metadata": "",
                "flags": [],
            }
        ],
        "errors": [],
        "summary": {"lag": 10, "groups": [{"group": "g2", "lag": 10, "partitions": 1, "unknown": 0, "topics": {"t1": 10}}]},
    }


def test_a_group_that_is_not_there_has_its_neighbour_named(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("payments", {})
    assert cli("describe group paymnets").err == "kgctl: Group 'paymnets' does not exist; did you mean 'payments'?\n"


def test_missing_group_is_not_found_and_stdout_stays_empty(cli: Cli) -> None:
    assert cli("describe group nosuch") == Ran(4, "", "kgctl: Group 'nosuch' does not exist\n")
    assert cli("describe group nosuch -o json").json == {
        "kgctl_result_version": 1,
        "command": "describe group",
        "status": "error",
        "exit_code": 4,
        "data": [],
        "errors": [
            {
                "code": "GROUP_ID_NOT_FOUND",
                "message": "Group 'nosuch' does not exist",
                "group": "nosuch",
                "topic": None,
                "partition": None,
            }
        ],
        "summary": {"lag": None, "groups": []},
    }


def test_one_missing_group_does_not_hide_the_other(cli: Cli) -> None:
    assert cli("describe group nosuch g1") == Ran(3, G1, "kgctl: Group 'nosuch' does not exist\n" + G1_NOTICES)


def test_partitions_are_ordered_by_number(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.topic("many", *(FakeLog(0, 1) for _ in range(12)))
    cluster.group("g4", {TopicPartition("many", number): 1 for number in (10, 2, 11, 0)})
    assert [row["partition"] for row in cli("describe group g4 -o json").data] == list(range(12))


def test_group_without_commits_has_no_rows_and_says_so(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4")
    assert cli("describe group g4") == Ran(0, "", "Group 'g4' has no active members.\nGroup 'g4' has no committed offsets.\n")


def test_commit_of_minus_one_is_no_commit(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4", {TopicPartition("t2", 0): -1})
    assert [(row["current_offset"], row["lag"]) for row in cli("describe group g4 -o json").data] == [(None, None)]


def test_flags_name_commits_that_no_consumer_can_start_from(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4", {TopicPartition("t1", 0): 101, TopicPartition("t2", 0): 39})
    rows = cli("describe group g4 --topic t1:0 --topic t2 -o json").data
    assert [(row["topic"], row["lag"], row["flags"]) for row in rows] == [
        ("t1", None, ["past-log-end"]),
        ("t2", None, ["below-log-start"]),
    ]


def test_flag_names_a_partition_that_nobody_reads(cli: Cli, cluster: FakeGroupAdmin) -> None:
    member = MemberDescription("m", "c", "/h", assignment={"t1": (0, 2)})
    cluster.group("g4", {TopicPartition("t1", 0): 1}, [member])
    assert [row["flags"] for row in cli("describe group g4 -o json").data] == [[], ["no-consumer"], []]


def test_idle_members_are_noticed(cli: Cli) -> None:
    assert cli("describe group g2").err == (
        "Group 'g2': total lag 30 in 3 partitions.\n"
        "Group 'g2': 1 of 2 members own no partition (see --members).\n"
    )  # fmt: skip


def test_rebalance_is_noticed_and_rows_are_shown(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4", {TopicPartition("t2", 0): 50}, state=GroupState.PREPARING_REBALANCE)
    ran = cli("describe group g4 -o csv")
    assert len(ran.csv) == 1
    assert ran.err.startswith("Group 'g4' is rebalancing (PreparingRebalance): members and assignment will change.\n")


def test_metadata_and_leader_epoch_are_wide_columns(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4", {TopicPartition("t2", 0): OffsetAndMetadata(50, "by hand", 7)})
    wide = "LEADER-EPOCH  METADATA"
    assert wide not in cli("describe group g4").out
    assert wide in cli("describe group g4 --verbose").out
    assert cli("describe group g4 --verbose").out == cli("describe group g4 -o wide").out
    assert cli("describe group g4 -o csv").csv[0]["metadata"] == "by hand"


def test_members_with_idle_ones(cli: Cli) -> None:
    assert cli("describe group g2 --members") == Ran(
        0,
        "GROUP  CONSUMER-ID  GROUP-INSTANCE-ID  HOST        CLIENT-ID  #PARTITIONS\n"
        "g2     c1-uuid      i1                 /127.0.0.1  c1                   3\n"
        "g2     c2-uuid      -                  /127.0.0.1  c2                   0\n",
        "",
    )


def test_members_verbose_names_topics(cli: Cli) -> None:
    header, first, _ = cli("describe group g2 --members --verbose").out.splitlines()
    assert "ASSIGNMENT" in header
    assert "t1:0,1,2" in first


def test_members_of_the_consumer_protocol_have_epochs_and_targets(cli: Cli, cluster: FakeGroupAdmin) -> None:
    member = MemberDescription(
        "m", "c", "/h", assignment={"t1": (0,)}, target_assignment={"t1": (0, 2), "t0": (1,)}, member_epoch=5, rack_id="r1"
    )
    cluster.group("g4", {}, [member], type=GroupType.CONSUMER, group_epoch=6, assignment_epoch=6)
    row = cli("describe group g4 --members -o json").data[0]
    assert (row["member_epoch"], row["target_assignment_epoch"], row["target_assignment"], row["rack"]) == (
        5,
        6,
        "t0:1;t1:0,2",
        "r1",
    )


def test_assignment_that_the_broker_does_not_tell_is_unknown(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g4", {}, [MemberDescription("m", "c", "/h")], state=GroupState.PREPARING_REBALANCE)
    row = cli("describe group g4 --members -o json").data[0]
    assert (row["partitions"], row["assignment"]) == (None, None)


def test_members_of_an_empty_group_are_no_rows_and_no_error(cli: Cli) -> None:
    assert cli("describe group g1 --members") == Ran(0, "", "Group 'g1' has no active members.\n")


def test_one_missing_group_beside_an_empty_one_is_partial(cli: Cli) -> None:
    assert cli("describe group g1 nosuch --members").code == 3


def test_state(cli: Cli) -> None:
    assert cli("describe group g2 --state") == Ran(
        0,
        "GROUP  COORDINATOR     ID  ASSIGNMENT-STRATEGY  STATE   TYPE     #MEMBERS\n"
        "g2     127.0.0.1:9092   1  range                Stable  classic         2\n",
        "",
    )


def test_all_groups_as_csv_has_one_header_and_quotes(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group('a,"b"', {TopicPartition("t2", 0): 90})
    lines = cli("describe group --all-groups -o csv").out.splitlines()
    assert lines[0].startswith("group,topic,partition,current_offset,log_start_offset,log_end_offset,lag,")
    assert [line.split(",")[0] for line in lines].count("group") == 1
    assert lines[1].startswith('"a,""b""",t2,0,90,40,90,0,')
    assert len(lines) == 1 + 1 + 3 + 3 + 1


def test_all_groups_leaves_out_what_has_no_committed_offsets(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("share", type=GroupType.SHARE, protocol_type="share")
    cluster.group("connect", protocol_type="connect")
    assert {row["group"] for row in cli("describe group --all-groups -o json").data} == {"g1", "g2", "g3"}


def test_many_groups_are_summed_up_in_one_notice(cli: Cli, cluster: FakeGroupAdmin) -> None:
    for number in range(10):
        cluster.group(f"x{number}", {TopicPartition("t2", 0): 80})
    assert cli("describe group --match ^x -o csv").err == "10 groups: total lag 100.\n"


def test_match_chooses_groups(cli: Cli) -> None:
    assert cli("describe group --match g[12] --exclude 2 --state -o name").out == "g1\n"
    assert cli("describe group --match nothing") == Ran(4, "", "kgctl: no group matches\n")


def test_topic_filter_that_meets_nothing_is_not_found(cli: Cli) -> None:
    assert cli("describe group g1 --topic t2") == Ran(
        4,
        "",
        "kgctl: group 'g1' has no offsets and no members on topic 't2'\nGroup 'g1' has no active members.\n",
    )


def test_failed_partition_is_a_row_with_unknowns_and_an_error(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.log_errors[TopicPartition("t1", 1)] = error(ErrorCode.LEADER_NOT_AVAILABLE, "no leader")
    ran = cli("describe group g1 -o json")
    assert [(row["current_offset"], row["log_end_offset"], row["lag"]) for row in ran.data] == [
        (100, 100, 0),
        (50, None, None),
        (None, 100, None),
    ]
    assert (ran.code, ran.err.splitlines()[0]) == (3, "kgctl: t1-1: no leader")


def test_group_that_may_not_be_described_is_an_authorisation_error(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group_errors["g1"] = error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "not authorised for group 'g1'")
    assert cli("describe group g1") == Ran(8, "", "kgctl: not authorised for group 'g1'\n")


def test_lag_within_the_threshold_is_success(cli: Cli) -> None:
    assert cli("describe group g1 --topic t1:0-1 --fail-if-lag-over 50 --fail-if-partition-lag-over 50").code == 0


def test_lag_that_is_unknown_is_not_within_the_threshold(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("describe group g1 --fail-if-lag-over 1000")
    unknown = "group 'g1', t1-2: lag is unknown: it has records, and nothing is committed"
    assert (ran.code, ran.err.splitlines()[0]) == (6, f"kgctl: {unknown}")
    allowed = cli("describe group g1 --fail-if-lag-over 1000 --allow-unknown")
    assert (allowed.code, f"{unknown} (allowed)\n" in allowed.err) == (0, True)
    assert cli("describe group g1 --fail-if-lag-over 49 --allow-unknown").code == 6

    cluster.group("new", {}, [MemberDescription("m", assignment={"t1": (0, 1, 2)}, subscribed_topics=("t1",))])
    assert cli("describe group new --fail-if-lag-over 1000").code == 6
    cluster.group("nothing")
    assert cli("describe group nothing --fail-if-lag-over 1000").code == 6


def test_topic_that_has_no_records_is_within_every_threshold(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.topic("empty", FakeLog(5, 5))
    cluster.group("new", {}, [MemberDescription("m", assignment={"empty": (0,)}, subscribed_topics=("empty",))])
    assert cli("describe group new --fail-if-lag-over 0 --fail-if-time-lag-over 1s").code == 0


def test_right_that_lacks_exits_with_8(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.log_errors[TopicPartition("t1", 1)] = error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorised for topic 't1'")
    ran = cli("describe group g2 --fail-if-lag-over 1000 -o json")
    assert (ran.code, [each["code"] for each in ran.json["errors"]]) == (8, ["TOPIC_AUTHORIZATION_FAILED"])
    assert cli("describe group g2 --fail-if-lag-over 1000 --allow-unknown").code == 0
    assert cli("list groups --match g2 --fail-if-lag-over 1000").code == 8


@pytest.mark.parametrize(("limit", "code"), [("49m", 6), ("50m", 0), ("1d", 0), ("1s", 6)])
def test_time_lag_is_the_age_of_the_next_record(cli: Cli, limit: str, code: int) -> None:
    """Record 50 of the partition is 50 minutes old."""
    assert cli(f"describe group g1 --topic t1:0-1 --fail-if-time-lag-over {limit}").code == code


@pytest.mark.parametrize("shown", ["", " --time-lag"])
def test_a_record_that_is_older_than_those_before_it_is_too_old(cli: Cli, cluster: FakeGroupAdmin, shown: str) -> None:
    log = cluster.logs[TopicPartition("t1", 1)]
    recent, old = (NOW_MS - minutes * 60_000 for minutes in (1, 500))
    log.timestamps = ((0, recent), *((offset, old) for offset in range(50, 60)), *((offset, recent) for offset in range(60, 100)))
    ran = cli(f"describe group g1 --topic t1:0-1 --fail-if-time-lag-over 5m{shown}")
    assert (ran.code, "kgctl: group 'g1', t1-1: its next record is older than 300 s" in ran.err) == (6, True), ran.err


def test_where_no_record_can_be_read_the_order_of_the_log_tells(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise UnsupportedError("no records here")

    monkeypatch.setattr(FakeGroupAdmin, "list_record_times", unsupported)
    assert [cli(f"describe group g1 --topic t1:0-1 --fail-if-time-lag-over {limit}").code for limit in ("1h", "1m")] == [0, 6]


def test_partition_lag_is_held_against_its_own_limit(cli: Cli) -> None:
    ran = cli("describe group g1 g2 --topic t1:0-1 --fail-if-partition-lag-over 10")
    assert (ran.code, ran.err.splitlines()[0]) == (6, "kgctl: group 'g1', t1-1: lag 50 is over 10")


def test_only_lagging_and_sort(cli: Cli) -> None:
    ran = cli("describe group g1 g2 g3 --only-lagging --sort lag -o csv")
    assert [(row["group"], row["topic"], row["partition"], row["lag"]) for row in ran.csv] == [
        ("g3", "t2", "0", ""),
        ("g1", "t1", "1", "50"),
        ("g2", "t1", "0", "10"),
        ("g2", "t1", "1", "10"),
        ("g2", "t1", "2", "10"),
    ]


def test_topic_that_is_not_there_is_told_from_one_without_commits(cli: Cli) -> None:
    ran = cli("describe group g1 --topic nope")
    assert (ran.code, ran.err) == (4, "kgctl: topic 'nope' does not exist, or this user may not see it\n")


@pytest.mark.parametrize("more", ["", " --totals", " --only-lagging"])
@pytest.mark.parametrize(("where", "shown"), [("t2", "t2"), ("t1:0,7-8", "t1:7-8")])
def test_a_topic_or_partition_that_was_named_is_not_forgotten_beside_others(cli: Cli, where: str, shown: str, more: str) -> None:
    ran = cli(f"describe group g1 --topic t1:0 --topic {where}{more}")
    assert (ran.code, f"kgctl: group 'g1' has no offsets and no members on topic '{shown}'\n" in ran.err) == (3, True), ran.err


def test_a_topic_that_one_of_several_groups_reads_is_there(cli: Cli) -> None:
    assert cli("describe group g1 g3 --topic t1:0-1 --topic t2").code == 0
    ran = cli("describe group g1 g3 --topic t1:0,9 --topic t2")
    assert (ran.code, "kgctl: none of the groups has offsets or members on topic 't1:9'\n" in ran.err) == (3, True), ran.err


def test_a_topic_that_was_named_and_that_no_group_reads_is_within_no_limit(cli: Cli) -> None:
    """Beside one that it reads it is not forgotten; nor is a partition that there is not."""
    for where, shown in (("t2", "topic 't2'"), ("t1:0,7-8", "topic 't1:7-8'")):
        ran = cli(f"describe group g1 --topic t1:0 --topic {where} --fail-if-lag-over 1000")
        message = f"kgctl: no group has offsets or members on {shown}: its lag is unknown\n"
        assert (ran.code, message in ran.err) == (6, True)
    assert cli("describe group g1 --topic t1:0-1 --fail-if-lag-over 1000").code == 0
    assert "no group has" not in cli("describe group g1 g3 --topic t1:0-1 --topic t2 --fail-if-lag-over 1000").err


def test_topic_that_no_member_subscribes_to_is_stale(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.groups["g2"].offsets[TopicPartition("t2", 0)] = OffsetAndMetadata(50)
    assert [row["flags"] for row in cli("describe group g2 -o json").data] == [[], [], [], ["stale"]]


def test_lag_over_the_threshold_exits_with_6_and_still_shows_rows(cli: Cli) -> None:
    ran = cli("describe group g1 g2 --fail-if-lag-over 49 --allow-unknown")
    assert (ran.code, ran.out.count("\n")) == (6, 7)
    assert ran.err.startswith("kgctl: group 'g1': total lag 50 is over 49\n")
    assert cli("describe group g1 --fail-if-lag-over 49 -o json").json["errors"][0]["code"] == "EXPECTATION_FAILED"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("describe group", "no group is named: give group ids, --match REGEX or --all-groups"),
        ("describe group g1 --all-groups", "groups are named, so --all-groups, --match, --exclude and --type have no place"),
        ("describe group g1 --match g", "groups are named, so --all-groups, --match, --exclude and --type have no place"),
        ("describe group g1 --state --offsets", "--offsets and --state exclude each other"),
        ("describe group g1 --state --topic t1", BELONG_TO_OFFSETS),
        ("describe group g1 --topic t1:", "--topic 't1:': '' is not a partition; write topic:3 or topic:0,2-5"),
        ("describe group g1 --topic t1:0:1", "--topic 't1:0:1': '0:1' is not a partition; write topic:3 or topic:0,2-5"),
    ],
)
def test_usage_errors_contact_nothing(cli: Cli, line: str, message: str) -> None:
    assert cli(line) == Ran(2, "", f"kgctl: {message}\n")
    assert cli.settings == []


def test_terminal_gets_colour_and_a_pipe_does_not(cli: Cli) -> None:
    assert "\x1b[" not in cli("describe group g2").out
    cli.terminal = True
    assert "\x1b[" in cli.run(["describe", "group", "g2"], variables={"TERM": "xterm"}).out
    assert "\x1b[3" not in cli.run(["describe", "group", "g2"], variables={"TERM": "xterm", "NO_COLOR": "1"}).out


def test_an_unknown_lag_is_no_part_of_a_total(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.log_errors = dict.fromkeys(cluster.logs, ItemError(ErrorCode.REQUEST_TIMED_OUT, "no answer"))
    assert "Group 'g1': total lag unknown in 3 partitions" in cli("describe group g1").err
    (group,) = cli("describe group g1 -o json").json["summary"]["groups"]
    assert (group["lag"], group["topics"], group["unknown"]) == (None, {"t1": None}, 3)
    assert cli("describe group g1 -o json").json["summary"]["lag"] is None


def test_where_nothing_has_a_lag_the_total_is_unknown_and_not_zero(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.groups["g2"].offsets.clear()
    told = "Group 'g2': total lag {} in 3 partitions, 3 of them without a commit."
    assert cli("describe group g2").err.splitlines()[0] == told.format("unknown")
    for number in range(3):
        cluster.logs[TopicPartition("t1", number)] = FakeLog(100, 100)
    assert cli("describe group g2").err.splitlines()[0] == told.format(0)


def test_the_line_about_many_groups_counts_what_is_not_measured(cli: Cli, cluster: FakeGroupAdmin) -> None:
    for number in range(10):
        cluster.group(f"x{number}", {TopicPartition("t1", 1): 90})
    assert cli("describe group --match ^x -o csv").err == "10 groups: total lag 100, unknown for 20 partitions.\n"


def test_totals_have_a_row_a_topic_and_one_a_group(cli: Cli) -> None:
    out = cli("describe group g1 --totals -o csv").out
    assert out == "group,topic,partitions,unknown,lag\ng1,t1,3,1,50\ng1,,3,1,50\n"
    assert cli("describe group g1 --totals --time-lag").code == 2


def test_time_lag_column_has_the_age_of_the_next_record(cli: Cli, cluster: FakeGroupAdmin) -> None:
    rows = cli("describe group g1 --time-lag -o json").json["data"]
    assert [(row["time_lag_s"], row["record_time"]) for row in rows] == [
        (0.0, None),
        (3000.0, "2023-12-31T23:10:00.000Z"),
        (None, None),
    ]
    assert ("list_record_times", ((TopicPartition("t1", 1), 50),)) in cluster.calls


def test_commit_age_column_has_the_time_since_the_commit(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.commit_times["g1", TopicPartition("t1", 0)] = cli.now_ms - 90_500
    rows = cli("describe group g1 --commit-age -o json").json["data"]
    assert [(row["commit_age_s"], row["commit_time"]) for row in rows] == [
        (90.5, "2023-12-31T23:58:29.500Z"),
        (None, None),
        (None, None),
    ]
    assert ("list_commit_times", {"g1": {TopicPartition("t1", 0), TopicPartition("t1", 1)}}) in cluster.calls
    assert cli("describe group g1 --members --commit-age").code == 2


def test_the_next_record_is_shown(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.records[TopicPartition("t1", 1), 50] = Record(50, cli.now_ms, b"k", b"\xff" + b"v" * 300)
    rows = cli("describe group g1 --next-record -o json").json["data"]
    found = [(row["next_record_time"], row["next_record_key"], row["next_record_value"]) for row in rows]
    assert found == [(None, None, None), ("2024-01-01T00:00:00.000Z", "k", "\\xff" + "v" * 199 + "..."), (None, None, None)]
    assert ("read_records", (Span(TopicPartition("t1", 1), 50),)) in cluster.calls


def test_the_time_of_a_record_that_is_not_told_is_unknown(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.logs[TopicPartition("t1", 1)] = FakeLog(0, 100)
    assert [row["time_lag_s"] for row in cli("describe group g1 --time-lag -o json").json["data"]] == [0.0, None, None]


def test_lag_mode_read_committed_ends_at_the_last_stable_offset(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.logs[TopicPartition("t1", 1)] = FakeLog(0, 100, last_stable=70)
    assert [row["lag"] for row in cli("describe group g1 --lag-mode read-committed -o json").json["data"]] == [0, 20, None]
    assert [row["lag"] for row in cli("describe group g1 --lag-mode committed -o json").json["data"]] == [0, 50, None]
    assert cli("describe group g1 --lag-mode nosuch").code == 2


def test_a_commit_past_the_end_hides_no_lag_of_others(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("odd", {TopicPartition("t1", 0): 500, TopicPartition("t1", 1): 57, TopicPartition("t1", 2): 100})
    ran = cli("describe group odd --fail-if-lag-over 40 -o json")
    assert ([row["lag"] for row in ran.data], ran.code) == ([None, 43, 0], 6)
    assert ran.json["summary"]["groups"][0]["lag"] == ran.json["summary"]["groups"][0]["topics"]["t1"] == 43
    assert [row["lag"] for row in cli("describe group odd --totals -o json").data] == [43, 43]
    assert {row["group"]: row["lag"] for row in cli("list groups --lag -o json").data}["odd"] is None
