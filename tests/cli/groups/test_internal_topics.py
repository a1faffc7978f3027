"""Topics that streams groups write for themselves, deleted with a reset or with their group."""

from __future__ import annotations

import pytest

from kgctl.errors import TimedOutError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, MemberDescription, TopicPartition
from kgctl.model.streams import Subtopology, Topology
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog, error
from tests.cli.harness import Cli

BETWEEN, CHANGES = "app-words-repartition", "app-counts-changelog"
TOPOLOGY = Topology(0, (Subtopology("0", ("t1",), (), (BETWEEN,)), Subtopology("1", (), (BETWEEN,), (), (CHANGES, "app-own"))))
RESET = "reset-offsets app --all-topics --to-earliest"
DELETE = "delete-groups app"


@pytest.fixture
def cluster(cluster: FakeGroupAdmin) -> FakeGroupAdmin:
    for topic in (BETWEEN, CHANGES, "app-own"):
        cluster.topic(topic, FakeLog(0, 5))
    cluster.group("app", {TopicPartition("t1", 0): 100}, type=GroupType.STREAMS, topology=TOPOLOGY)
    return cluster


def topics(cluster: FakeGroupAdmin) -> set[str]:
    return {partition.topic for partition in cluster.logs} - {"t1", "t2"}


@pytest.mark.parametrize("line", [RESET, f"{DELETE} --dry-run"])
def test_a_dry_run_names_them_and_changes_nothing(cli: Cli, cluster: FakeGroupAdmin, line: str) -> None:
    ran = cli(f"{line} --delete-all-internal-topics")
    lost = f"2 internal topics ({CHANGES}, {BETWEEN}) with all records, which no undo brings back"
    assert (ran.code, f"To be deleted: {lost}." in ran.err.splitlines()) == (0, True), ran.err
    assert topics(cluster) == {BETWEEN, CHANGES, "app-own"}


@pytest.mark.parametrize("line", [f"{RESET} --execute", DELETE, f"{DELETE} --execute"])
def test_it_asks_first_and_deletes_those_that_kafka_s_tool_takes_for_internal(
    cli: Cli, cluster: FakeGroupAdmin, line: str
) -> None:
    line += " --delete-all-internal-topics"
    cli.answers = False
    asked = cli(line)
    assert (asked.code, "with all records, which no undo brings back" in asked.err) == (1, True)
    assert topics(cluster) == {BETWEEN, CHANGES, "app-own"}
    ran = cli(f"{line} --yes -o json")
    assert (ran.code, ran.json["summary"]["topics_deleted"], topics(cluster)) == (0, 2, {"app-own"}), ran.err
    assert f"Deleted 2 internal topics ({CHANGES}, {BETWEEN})." in ran.err.splitlines()


def test_one_of_them_is_deleted_and_what_stays_is_said(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli(f"{RESET} --execute --delete-internal-topic {CHANGES} --yes")
    assert (ran.code, topics(cluster)) == (0, {BETWEEN, "app-own"}), ran.err
    assert f"its own topics (app-own, {BETWEEN}) and its instances' local state stay as they are." in ran.err


def test_the_line_that_executes_a_plan_deletes_what_the_plan_told(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli(f"{RESET} --delete-all-internal-topics --plan-out {cli.folder}/plan.csv")
    assert f"To be deleted: 2 internal topics ({CHANGES}, {BETWEEN})" in ran.err
    (line,) = (line for line in ran.err.splitlines() if line.startswith("Plan written; to execute: "))
    assert (cli(line.partition(": kgctl ")[2] + " --yes").code, topics(cluster)) == (0, {"app-own"})


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (f"{RESET} --execute --yes --delete-internal-topic t1", 5, "topic 't1' is none that 'app' writes for itself"),
        (f"{RESET} --execute --yes --delete-internal-topic app-own", 5, "topic 'app-own' is none that"),
        ("reset-offsets g1 --all-topics --to-earliest --delete-all-internal-topics", 2, "'g1' is a classic group"),
        ("delete-groups g1 app --yes --delete-all-internal-topics", 2, "'g1' is a classic group"),
    ],
)
def test_what_is_none_of_theirs_is_refused(cli: Cli, cluster: FakeGroupAdmin, line: str, code: int, said: str) -> None:
    ran = cli(line)
    assert (ran.code, said in ran.err) == (code, True), ran.err
    assert (topics(cluster), set(cluster.groups)) == ({BETWEEN, CHANGES, "app-own"}, {"app", "g1", "g2", "g3"})


def test_a_group_whose_topology_nobody_knows_keeps_its_topics(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("new", {TopicPartition("t1", 0): 1}, type=GroupType.STREAMS, topology=Topology(1), state=GroupState.EMPTY)
    ran = cli("delete-groups new --yes --delete-all-internal-topics")
    assert (ran.code, "the topology of group 'new' is not known (Empty)" in ran.err, "new" in cluster.groups) == (5, True, True)


@pytest.mark.parametrize("line", [f"{RESET} --execute", DELETE])
def test_those_of_a_group_with_members_stay(cli: Cli, cluster: FakeGroupAdmin, line: str) -> None:
    member = MemberDescription("m", "c", "/h")
    cluster.group("app", {TopicPartition("t1", 0): 100}, [member], type=GroupType.STREAMS, topology=TOPOLOGY)
    ran = cli(f"{line} --yes --delete-all-internal-topics")
    assert (ran.code, topics(cluster)) == (5, {BETWEEN, CHANGES, "app-own"}), ran.err


def test_a_topic_that_cannot_be_deleted_is_an_error_beside_what_was_done(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.topic_errors[CHANGES] = error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorised")
    ran = cli(f"{RESET} --execute --yes --delete-all-internal-topics -o json")
    (failed,) = ran.json["errors"]
    assert (ran.code, failed["code"], failed["topic"], failed["group"]) == (3, "TOPIC_AUTHORIZATION_FAILED", CHANGES, "app")
    assert (ran.json["summary"], topics(cluster)) == ({"reset": 1, "topics_deleted": 1}, {CHANGES, "app-own"})


def test_an_answer_that_does_not_come_is_not_told_as_a_deletion(
    cli: Cli, cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: object) -> None:
        raise TimedOutError("no answer")

    monkeypatch.setattr(cluster, "delete_topics", lost)
    ran = cli(f"{RESET} --execute --yes --delete-all-internal-topics -o json")
    told = [(each["topic"], each["message"]) for each in ran.json["errors"]]
    assert ran.code == 3
    assert told == [(topic, f"topic '{topic}' was not deleted: it may be: no answer") for topic in (CHANGES, BETWEEN)]


def test_where_nobody_tells_which_they_are_nothing_is_deleted(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group_errors["app"] = error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loads")
    ran = cli(f"{DELETE} --delete-all-internal-topics --yes")
    assert (ran.code, "loads" in ran.err, "app" in cluster.groups) == (7, True, True)
    assert not [name for name, _ in cluster.calls if name.startswith("delete")]
