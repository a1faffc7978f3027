"""``kgctl list groups``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kgctl.admin import Sight, other_type
from kgctl.errors import KgctlError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, MemberDescription, OffsetAndMetadata, StartOffset, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog, error
from tests.cli.harness import Cli, Ran


def test_table_is_sorted_and_aligned(cli: Cli) -> None:
    assert cli("list groups") == Ran(
        0,
        "GROUP  STATE   TYPE\n"
        "g1     Empty   classic\n"
        "g2     Stable  classic\n"
        "g3     Empty   classic\n",
        "3 groups: 2 Empty, 1 Stable.\n",
    )  # fmt: skip


def test_lag_adds_partitions_and_total(cli: Cli) -> None:
    assert cli("list groups --lag").out == (
        "GROUP  STATE   TYPE     #PARTITIONS  LAG  FLAGS\n"
        "g1     Empty   classic            2   50  -\n"
        "g2     Stable  classic            3   30  -\n"
        "g3     Empty   classic            1    -  below-log-start\n"
    )


def test_wide_adds_protocol_and_coordinator(cli: Cli) -> None:
    assert (
        cli("list groups -o wide").out.splitlines()[2] == "g2     Stable  classic  consumer       127.0.0.1:9092               1"
    )


def test_json_rows_have_the_columns_as_keys(cli: Cli) -> None:
    assert cli("list groups --lag -o json --match g2").data == [
        {
            "group": "g2",
            "state": "Stable",
            "type": "classic",
            "protocol_type": "consumer",
            "coordinator": "127.0.0.1:9092",
            "coordinator_id": 1,
            "partitions": 3,
            "lag": 30,
            "flags": [],
        }
    ]


def test_name_prints_bare_ids(cli: Cli) -> None:
    assert cli("list groups -o name").out == "g1\ng2\ng3\n"


def test_state_ignores_case_and_takes_several(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("list groups --state EMPTY,stable -o name").out == "g1\ng2\ng3\n"
    assert cluster.calls == [("list_groups", ((GroupState.EMPTY, GroupState.STABLE), ())), ("sight", ())]


def test_state_takes_kafkas_spelling_with_separators(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("list groups --state preparing-rebalance --state COMPLETING_REBALANCE").code == 0
    assert cluster.calls[0][1][0] == (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)


def test_unknown_state_lists_the_valid_ones_and_asks_no_broker(cli: Cli) -> None:
    ran = cli("list groups --state nope")
    assert ran == Ran(
        2,
        "",
        "kgctl: --state 'nope' is unknown; known: Empty, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, "
        "NotReady, Stable, Dead, Unknown\n",
    )
    assert cli.settings == []


def test_type_filters(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("s1", type=GroupType.SHARE, protocol_type="share")
    assert cli("list groups --type Share,streams -o name").out == "s1\n"
    assert cli("list groups --type old").code == 2


def test_protocol_filters(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("connect-sink", protocol_type="connect")
    assert cli("list groups --protocol connect -o name").out == "connect-sink\n"
    assert cli("list groups --protocol nosuch").err == "No group matches.\n"


def test_match_and_exclude_are_regular_expressions(cli: Cli) -> None:
    assert cli("list groups --match ^g[12]$ --exclude g2 -o name").out == "g1\n"
    assert cli("list groups --exclude 1|3 -o name").out == "g2\n"


def test_bad_regular_expression_is_a_usage_error(cli: Cli) -> None:
    assert cli("list groups --match [") == Ran(
        2, "", "kgctl: --match '[' is not a regular expression: unterminated character set at position 0\n"
    )
    assert cli.settings == []


def test_who_may_see_no_group_is_not_told_that_there_are_none(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.groups.clear()
    cluster.own_sight = Sight(all_groups=False, user="alice")
    assert cli("list groups").err.startswith("No group is to be seen.\nuser 'alice' lacks the right DESCRIBE on all groups")


def test_empty_cluster_is_an_empty_list(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.groups.clear()
    assert cli("list groups") == Ran(0, "", "The cluster has no groups.\n")
    assert cli("list groups -o json").data == []
    assert cli("list groups -o csv").out == "group,state,type,protocol_type,coordinator,coordinator_id\n"


def test_nothing_matched_is_an_empty_list_with_a_notice(cli: Cli) -> None:
    assert cli("list groups --match nothing") == Ran(0, "", "No group matches.\n")


def test_broker_that_does_not_answer_makes_the_list_partial(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.unreachable["2"] = error(ErrorCode.REQUEST_TIMED_OUT, "broker 2 did not answer")
    ran = cli("list groups -o json")
    assert (ran.code, len(ran.data), ran.err) == (3, 3, "kgctl: broker 2 did not answer\n3 groups: 2 Empty, 1 Stable.\n")
    assert ran.json["status"] == "partial"


def test_group_whose_offsets_fail_has_unknown_lag_and_an_error(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.offset_errors["g1"] = error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "not allowed")
    ran = cli("list groups --lag -o json")
    assert [(row["group"], row["lag"]) for row in ran.data] == [("g1", None), ("g2", 30), ("g3", None)]
    assert (ran.code, ran.json["errors"]) == (
        3,
        [{"code": "GROUP_AUTHORIZATION_FAILED", "message": "not allowed", "group": "g1", "topic": None, "partition": None}],
    )


def test_log_end_that_is_unknown_makes_the_lag_unknown(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.log_errors[TopicPartition("t2", 0)] = error(ErrorCode.LEADER_NOT_AVAILABLE, "t2-0 has no leader")
    ran = cli("list groups --lag")
    assert ran.out.splitlines()[3] == "g3     Empty   classic            1    -  no-leader"
    assert (ran.code, ran.err) == (
        3,
        "kgctl: t2-0 has no leader\n3 groups: 2 Empty, 1 Stable; total lag 80, unknown for 1 group.\n",
    )


def test_lag_asks_each_partition_once(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("list groups --lag")
    asked = [arguments for name, arguments in cluster.calls if name == "list_log_offsets"]
    assert asked == [(*(TopicPartition("t1", number) for number in range(3)), TopicPartition("t2", 0))]


def test_control_characters_in_names_cannot_reach_the_terminal(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.groups.clear()
    cluster.group("evil\x1b[2J\nname")
    assert cli("list groups").out == "GROUP              STATE  TYPE\nevil\\x1b[2J\\nname  Empty  classic\n"


def test_members_topics_and_the_groups_of_a_topic(cli: Cli) -> None:
    rows = cli("list groups --members --sort members -o json").data
    assert [(row["group"], row["members"], row["topics"]) for row in rows] == [
        ("g2", 2, ["t1"]),
        ("g1", 0, ["t1"]),
        ("g3", 0, ["t2"]),
    ]
    assert cli("list groups --topic t2 -o name").out == "g3\n"


def test_the_groups_of_some_partitions_of_a_topic(cli: Cli) -> None:
    """Of a group that reads others it is not one, though it subscribes to the topic."""
    assert cli("list groups --topic t2:0 -o name").out == "g3\n"
    assert [cli(f"list groups --topic t1:{number} -o name").out for number in (0, 9)] == ["g1\ng2\n", ""]
    assert cli("list groups --topic t2:0 --fail-if-lag-over 0").code == 6
    assert cli("list groups --topic t2:x").code == 2


def test_a_topic_that_is_not_there_is_not_one_that_nobody_reads(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.topic("unread", FakeLog(0, 5))
    assert (cli("list groups --topic unread").code, cli("list groups --topic t1 --topic unread").code) == (0, 0)
    for line in ("list groups --topic nosuch", "list groups --topic t1 --topic nosuch -o name"):
        assert cli(line) == Ran(4, "", "kgctl: topic 'nosuch' does not exist, or this user may not see it\n")
    cluster.group("old", {TopicPartition("gone", 0): 3})
    assert cli("list groups --topic gone -o name").out == "old\n"


def test_a_group_of_a_topic_need_have_no_commit_on_it(cli: Cli, cluster: FakeGroupAdmin) -> None:
    """A member is enough: one that reads these partitions, or of the whole topic one that subscribes to it."""
    cluster.group("reads", members=[MemberDescription("m", assignment={"t2": (3,)})])
    cluster.group("waits", members=[MemberDescription("m", assignment={}, subscribed_topics=("t2",))])
    found = {scope: cli(f"list groups --topic {scope} -o name").out.split() for scope in ("t2", "t2:3", "t2:4")}
    assert found == {"t2": ["g3", "reads", "waits"], "t2:3": ["reads"], "t2:4": []}


def test_a_group_that_is_gone_meanwhile_is_no_error(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group_errors["g2"] = error(ErrorCode.GROUP_ID_NOT_FOUND, "gone")
    ran = cli("list groups --topic t2 -o json")
    assert (ran.code, [row["group"] for row in ran.data], ran.json["errors"]) == (0, ["g3"], [])


def test_a_group_whose_members_nobody_tells_is_an_error(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group_errors["g2"] = error(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not available")
    ran = cli("list groups --topic t2 -o json")
    assert (ran.code, [row["group"] for row in ran.data]) == (3, ["g3"])
    assert ran.json["errors"][0]["group"] == "g2"


@pytest.mark.parametrize(
    "line",
    [
        "list groups --lag",
        "delete-offsets g1 --topic t1 --dry-run",
        "diff-offsets g1 g3",
        "top g1 g3 --iterations 1 -o csv",
        "reset-offsets g1 g3 --all-topics --to-latest",
    ],
)
def test_what_is_missing_in_an_answer_is_told_beside_it(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    ask = FakeGroupAdmin.list_committed_offsets

    def asked(admin: FakeGroupAdmin, group_ids: Sequence[str], **how: Any) -> Any:
        return replace(ask(admin, group_ids, **how), flaws={"g1": (KgctlError("group 'g1', t1-2: damaged"),)})

    monkeypatch.setattr(FakeGroupAdmin, "list_committed_offsets", asked)
    ran = cli(line)
    assert (ran.code, "kgctl: group 'g1', t1-2: damaged\n" in ran.err) == (3, True), ran.err
    for line in ("list groups --lag", "top g1 g2 --iterations 1"):
        lags = {row["group"]: row["lag"] for row in cli(f"{line} -o json").data}
        assert (lags["g1"], lags["g2"]) == (None, 30), "of what is not whole there is no sum"
    ran = cli("reset-offsets g2 --from-group g1")
    assert (ran.code, ran.out, ran.err) == (1, "", "kgctl: group 'g1', t1-2: damaged\n")


def test_sort_by_lag_puts_what_is_lost_first_and_the_unknown_last(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("nothing")
    rows = cli("list groups --sort lag -o json").data
    assert [(row["group"], row["lag"]) for row in rows] == [("g3", None), ("g1", 50), ("g2", 30), ("nothing", None)]


def test_thresholds_hold_all_groups(cli: Cli) -> None:
    ran = cli("list groups --match g[12] --fail-if-lag-over 40 --allow-unknown")
    assert (ran.code, ran.err.splitlines()[0]) == (6, "kgctl: group 'g1': total lag 50 is over 40")
    assert cli("list groups --match g[12] --fail-if-lag-over 50 --allow-unknown").code == 0
    assert cli("list groups --match g[12] --fail-if-lag-over 50").code == 6
    assert cli("list groups --exclude g[13] --fail-if-lag-over 50").code == 0


def test_no_limit_holds_for_a_commit_that_is_out_of_its_log(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("past", {TopicPartition("t1", 0): 500})
    cluster.topic("empty", FakeLog(0, 0))
    cluster.group("anew", {TopicPartition("empty", 0): 500})
    rows = {row["group"]: (row["lag"], row["flags"]) for row in cli("list groups --lag -o json").data}
    assert rows == {
        "anew": (None, ["past-log-end"]),
        "g1": (50, []),
        "g2": (30, []),
        "g3": (None, ["below-log-start"]),
        "past": (None, ["past-log-end"]),
    }
    for limit in ("--fail-if-lag-over 1000", "--fail-if-partition-lag-over 1000", "--fail-if-time-lag-over 900d"):
        for command in ("list groups", "describe group --all-groups"):
            ran = cli(f"{command} --exclude g1 {limit} --allow-unknown")
            assert (ran.code, [line for line in ran.err.splitlines() if line.startswith("kgctl: ")]) == (
                6,
                [
                    "kgctl: group 'anew', empty-0: past-log-end: 500 is committed, in a log of 0 to 0",
                    "kgctl: group 'g3', t2-0: below-log-start: 10 is committed, in a log of 40 to 90",
                    "kgctl: group 'past', t1-0: past-log-end: 500 is committed, in a log of 0 to 100",
                ],
            )


def test_no_limit_holds_for_a_group_whose_type_is_not_measured(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("copies", type=GroupType.STREAMS, protocol_type="streams")
    for why, told in (
        (None, "group 'copies': nothing is committed, or this user may not see it: its lag is unknown"),
        (other_type("copies", "streams group"), "group 'copies' is a streams group, not a consumer group: its lag is unknown"),
    ):
        cluster.group_errors = {"copies": why} if why else {}
        ran = cli("list groups --match copies --fail-if-lag-over 1000")
        assert (ran.code, ran.err.splitlines()[0]) == (6, f"kgctl: {told}")
        assert cli("list groups --match copies --fail-if-lag-over 1000 --allow-unknown").code == 0


def test_a_share_group_s_lag_is_what_its_coordinator_tells(cli: Cli, cluster: FakeGroupAdmin) -> None:
    starts = {TopicPartition("t1", number): StartOffset(40, records_left=left) for number, left in enumerate((7, 0, 0))}
    cluster.group("jobs", dict(starts), type=GroupType.SHARE, protocol_type="share")
    line = "list groups --match jobs"
    assert [cli(f"{line} --fail-if-lag-over {most}").code for most in (6, 7)] == [6, 0]
    assert cli(f"{line} --lag -o json").data[0]["lag"] == 7
    cluster.groups["jobs"].offsets[TopicPartition("t1", 1)] = StartOffset(40)  # a broker before 4.2
    assert cli(f"{line} --lag -o json").data[0]["lag"] is None
    assert [cli(f"{line} --fail-if-lag-over 1000{more}").code for more in ("", " --allow-unknown")] == [6, 0]
    told = "kgctl: group 'jobs', t1-1: lag is unknown: its coordinator does not tell it before Kafka 4.2"
    assert cli(f"{line} --fail-if-lag-over 1000").err.splitlines()[0] == told


def test_a_group_of_workers_without_offsets_is_named_and_held_to_nothing(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("workers", protocol_type="connect")
    ran = cli("list groups --match workers --fail-if-lag-over 1000")
    assert (ran.code, ran.err) == (0, "Group 'workers' is of no consumers and has no offsets: no limit is about it.\n")
    cluster.groups["workers"].offsets[TopicPartition("t1", 0)] = OffsetAndMetadata(57)
    assert cli("list groups --match workers --fail-if-lag-over 40").code == 6


def test_limits_for_no_group_at_all_do_not_hold(cli: Cli) -> None:
    ran = cli("list groups --match nosuch --fail-if-lag-over 10")
    assert (ran.code, ran.err) == (4, "kgctl: no group matches: there is nothing that the limits could hold for\n")


def test_fails_if_flagged(cli: Cli) -> None:
    assert cli("list groups --match g2 --fail-if-flagged").code == 0
    assert cli("list groups --match g3 --fail-if-flagged").code == 6


def test_what_rights_may_hide_is_told_and_no_limit_holds_for_it(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.own_sight = Sight(all_groups=False, all_topics=False, user="alice")
    hidden = "user 'alice' lacks the right DESCRIBE on all groups: there may be groups that are not shown"

    listed = cli("list groups")
    assert (listed.code, hidden in listed.err.splitlines()) == (0, True)
    assert "on all topics" not in listed.err
    assert "3 groups: user 'alice' lacks the right DESCRIBE on all topics" in cli("list groups --lag").err
    judged = cli("list groups --exclude g3 --fail-if-lag-over 1000000")
    assert (judged.code, f"kgctl: {hidden}" in judged.err.splitlines()) == (8, True)
    assert f"{hidden} (allowed)" in cli("list groups --exclude g3 --fail-if-lag-over 1000000 --allow-unknown").err


def test_names_with_a_line_feed_come_whole_to_xargs_and_back_by_the_shell(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("x\ttab", {})
    cluster.group("two\nlines", {})
    assert cli("list groups --match tab|lines -o name").out == "two\\nlines\nx\\ttab\n"
    assert cli("list groups --match tab|lines -o name0").out == "two\nlines\0x\ttab\0"
    assert cli.run(["describe", "group", "x\\ttab", "--state", "-o", "json"]).data[0]["group"] == "x\ttab"
    assert cli.run(["describe", "group", "x\\ttabs"]).err.endswith("; did you mean $'x\\x09tab'?\n")
    assert "did you mean -o name0?" in cli("list groups -0").err


def test_a_name_by_which_two_groups_are_shown_is_neither_of_them(cli: Cli, cluster: FakeGroupAdmin) -> None:
    """Whoever may commit can make a group that looks like another's."""
    tab, backslash = "x\ttab", "x\\ttab"
    for name in (tab, backslash):
        cluster.group(name, {TopicPartition("t1", 0): 5})
    ran = cli.run(["delete-groups", backslash, "--yes"])
    assert (ran.code, ran.err.startswith("kgctl: 2 groups are shown as x\\ttab: name one by what")) == (2, True)
    assert {tab, backslash} <= set(cluster.groups)
    assert cli.run(["delete-groups", "x\\\\ttab", "--yes"]).code == 0
    assert cli.run(["describe", "group", tab, "--state", "-o", "json"]).data[0]["group"] == tab
    assert backslash not in cluster.groups
    cluster.group("back\\slash", {})
    assert cli.run(["describe", "group", "back\\slash", "--state"]).code == 0


def test_a_total_of_which_nothing_is_known_is_no_number(cli: Cli) -> None:
    cli.admin.group("g4", {TopicPartition("t1", 0): 5_000})  # type: ignore[attr-defined]
    assert cli("list groups --lag --match g[34]").err == "2 groups: 2 Empty; total lag unknown for 2 groups.\n"
    assert cli("list groups --lag --match g[134]").err == "3 groups: 3 Empty; total lag 50, unknown for 2 groups.\n"
