"""``kgctl delete-offsets``."""

from __future__ import annotations

import pytest

from kgctl.model.groups import GroupState, GroupType, MemberDescription, OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, Ran

SAVED = "Previous offsets saved; to undo: kgctl --bootstrap-server fake:9092 undo 20240101T000000Z-delete-offsets --execute\n"
PATTERN = "the members of group 'pattern' subscribe by a pattern, or do not tell to what: nothing is known to be stale"
DONE = "Executed on fake:9092: 1 deleted.\n"


def test_deletes_only_what_was_named(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("delete-offsets g1 --topic t1:1 --yes") == Ran(
        0, "GROUP  TOPIC  PARTITION  OFFSET  RESULT   ERROR\ng1     t1             1      50  deleted  -\n", SAVED + DONE
    )
    assert cluster.commits("g1") == {("t1", 0): 100}


def test_execute_deletes_without_asking(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert cli("delete-offsets g1 --topic t1:1 --execute").code == 0
    assert cluster.commits("g1") == {("t1", 0): 100}


@pytest.mark.parametrize("more", ["", " --yes", " --dry-run"])
def test_a_topic_on_which_no_selected_group_has_anything_is_not_found(cli: Cli, more: str) -> None:
    assert cli(f"delete-offsets --match g --topic nosuch{more}") == Ran(
        4, "", "kgctl: none of the groups has committed offsets on topic 'nosuch'\n"
    )


def test_a_topic_on_which_no_selected_group_has_anything_is_told_beside_others(cli: Cli, cluster: FakeGroupAdmin) -> None:
    for where, shown in (("nosuch", "nosuch"), ("t1:0,2", "t1:2")):
        ran = cli(f"delete-offsets --match g1 --topic t1:1 --topic {where} --dry-run")
        told = f"kgctl: none of the groups has committed offsets on topic '{shown}'\n"
        assert (ran.code, told in ran.err) == (3, True), ran.err
    assert cli("delete-offsets --match g1 --topic t1:1 --topic nosuch --yes").code == 3
    assert cluster.commits("g1") == {("t1", 0): 100}


def test_whole_topic_means_what_is_committed(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert [row["partition"] for row in cli("delete-offsets g1 --topic t1 --yes -o json").data] == [0, 1]
    assert cluster.commits("g1") == {}


def test_asks_first(cli: Cli, cluster: FakeGroupAdmin) -> None:
    question = "Delete 2 committed offsets of 1 group (t1-0, t1-1) on fake:9092? [y/N] "
    assert cli("delete-offsets g1 --topic t1", stdin="n\n") == Ran(
        1, "", question + "kgctl: not confirmed; nothing was changed\n"
    )
    assert len(cluster.commits("g1")) == 2


def test_partition_without_a_commit_is_not_found_and_the_others_go(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("delete-offsets g1 --topic t1:1-2 --yes -o csv")
    assert [(row["partition"], row["result"], row["error"]) for row in ran.csv] == [
        ("1", "deleted", ""),
        ("2", "failed", "NOT_FOUND"),
    ]
    assert (ran.code, ran.err) == (
        3,
        SAVED + "kgctl: group 'g1' has no committed offset on t1-2\nExecuted on fake:9092: 1 deleted, 1 failed.\n",
    )


def test_only_uncommitted_partitions_is_not_found_without_a_question(cli: Cli) -> None:
    assert cli("delete-offsets g1 --topic t1:2").code == 4


def test_topic_that_a_member_reads_is_refused_per_partition(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli("delete-offsets g2 --topic t1 --yes -o json")
    assert (ran.code, [row["error"] for row in ran.data]) == (5, ["GROUP_SUBSCRIBED_TO_TOPIC"] * 3)
    assert ran.json["errors"][0]["partition"] == 0


@pytest.mark.parametrize("more", ["--yes", "--dry-run"])
def test_topic_that_is_gone_is_in_preview_and_deed_what_brokers_say(cli: Cli, cluster: FakeGroupAdmin, more: str) -> None:
    cluster.group("g4", {TopicPartition("gone", 3): 1})
    ran = cli(f"delete-offsets g4 --topic gone {more} -o json")
    assert [(row["partition"], row["error"]) for row in ran.data] == [(3, "UNKNOWN_TOPIC_OR_PARTITION")]
    reader = MemberDescription("m", assignment={"t1": (0,)}, subscribed_topics=("t1",))
    cluster.group("g4", {TopicPartition("gone", 3): 1, TopicPartition("t2", 0): 50}, [reader])
    ran = cli(f"delete-offsets g4 --stale {more} -o json")
    assert (ran.code, [row["error"] for row in ran.data]) == (3, ["UNKNOWN_TOPIC_OR_PARTITION", None])


def test_a_topic_that_is_gone_can_be_cleaned_up_where_no_broker_is_asked(cli: Cli, cluster: FakeGroupAdmin) -> None:
    """In ZooKeeper, and in a data folder."""
    cluster.group("g4", {TopicPartition("gone", 3): 1}, coordinator=None)
    ran = cli("delete-offsets g4 --topic gone --dry-run -o json")
    assert (ran.code, [row["result"] for row in ran.data]) == (0, ["deletable"])


UNTOLD = MemberDescription("m", assignment=None, subscribed_topics=None)


def test_of_members_that_are_no_consumers_nothing_is_deletable(cli: Cli, cluster: FakeGroupAdmin) -> None:
    """Kafka Connect's workers. Kafka: ClassicGroup#validateOffsetDelete."""
    cluster.group("workers", {TopicPartition("t1", 0): 1}, [UNTOLD], protocol_type="connect")
    preview, deed = (cli(f"delete-offsets workers --topic t1 {more} -o json") for more in ("--dry-run", "--yes"))
    for ran in (preview, deed):
        assert (ran.code, [(row["result"], row["error"]) for row in ran.data]) == (5, [("failed", "NON_EMPTY_GROUP")])


def test_what_a_group_reads_that_rebalances_only_the_deed_can_tell(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("busy", {TopicPartition("t1", 0): 1}, [UNTOLD], protocol_type="consumer", state=GroupState.PREPARING_REBALANCE)
    ran = cli("delete-offsets busy --topic t1 --dry-run -o json")
    rows = [(row["offset"], row["result"], row["error"]) for row in ran.data]
    assert (ran.code, rows) == (5, [(1, "unknown", "REBALANCE_IN_PROGRESS")])
    ran = cli("delete-offsets busy g1 --topic t1 --dry-run")
    assert (ran.code, "2 deletable, 1 unknown.\n" in ran.err) == (3, True)
    assert "t1-0: group 'busy' is PreparingRebalance: what its members read is not told\n" in ran.err
    assert cli("delete-offsets busy --topic t1 --yes").code == 0


@pytest.mark.parametrize(
    ("kind", "result"),
    [(GroupType.CLASSIC, "unknown"), (GroupType.ZOOKEEPER, "unknown"), (GroupType.CONSUMER, "deletable")],
)
def test_members_that_do_not_tell_what_they_read(cli: Cli, cluster: FakeGroupAdmin, kind: GroupType, result: str) -> None:
    """Coordinators of the consumer protocol know, whether or not their description does."""
    cluster.group("g", {TopicPartition("t1", 0): 1}, [UNTOLD], type=kind)
    assert [row["result"] for row in cli("delete-offsets g --topic t1 --dry-run -o json").data] == [result]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("g1 --topic t2", 4, "group 'g1' has no committed offsets on 't2'"),
        (
            "g1 --topic nope",
            4,
            "group 'g1' has no committed offsets on 'nope' (nor is there such a topic that this user may see)",
        ),
        ("g1 --topic t1:7", 4, "partition t1-7 does not exist: topic 't1' has 3 partitions"),
        ("nosuch --topic t1", 4, "Group 'nosuch' does not exist"),
        ("g1", 2, "no scope given: use --topic TOPIC or --topic TOPIC:0,2-5, or --stale"),
        ("--topic t1", 2, "no group is named: give group ids, --match REGEX or --all-groups"),
    ],
)
def test_bad_input_changes_nothing(cli: Cli, cluster: FakeGroupAdmin, arguments: str, code: int, message: str) -> None:
    assert cli(f"delete-offsets {arguments} --yes") == Ran(code, "", f"kgctl: {message}\n")
    assert len(cluster.commits("g1")) == 2


def test_stale_offsets_are_those_on_topics_that_no_member_subscribes_to(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.groups["g2"].offsets[TopicPartition("t2", 0)] = OffsetAndMetadata(7)
    assert cli("delete-offsets g2 --stale --dry-run -o name").out == "g2:t2:0\n"
    ran = cli("delete-offsets --all-groups --stale --yes -o name")
    assert (ran.code, ran.out) == (0, "g2:t2:0\n")
    assert [("t2", 0) in cluster.commits(group) for group in ("g2", "g3")] == [False, True]


@pytest.mark.parametrize(
    ("group", "code", "told"),
    [
        ("g1", 5, "group 'g1' is Empty: only a stable group tells what it reads no more"),
        ("g2", 4, "group 'g2' has no stale offsets there"),
        (
            "pattern",
            5,
            PATTERN,
        ),
    ],
)
def test_what_nobody_can_tell_to_be_stale_is_left_alone(
    cli: Cli, cluster: FakeGroupAdmin, group: str, code: int, told: str
) -> None:
    member = MemberDescription("c", "c", "/127.0.0.1", assignment={"t1": (0,)}, subscribed_topic_regex="t.*")
    cluster.group("pattern", {TopicPartition("t2", 0): 1}, [member])
    ran = cli(f"delete-offsets {group} --stale --yes")
    assert (ran.code, ran.err) == (code, f"kgctl: {told}\n")
