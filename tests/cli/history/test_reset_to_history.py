"""``kgctl reset-offsets --to-history``."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.model.groups import MemberDescription, OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog
from tests.cli.harness import Cli
from tests.support.pipeline.gold import commit, run, write_gold

ORDERS = [TopicPartition("orders", number) for number in range(4)]
AT = "2026-03-02T08:39:00Z"


@pytest.fixture(autouse=True)
def _later(cli: Cli) -> None:
    """Of a history the future is refused."""
    cli.now_ms = 1_772_442_000_000  # 2026-03-02T09:00:00Z


@pytest.fixture
def admin(cli: Cli) -> FakeGroupAdmin:
    """``payments`` was reset on partition 0, lost its commit of 1, and got one for 3 that it had not then."""
    admin = FakeGroupAdmin()
    admin.topic("orders", *(FakeLog(0, 900) for _ in range(4)))
    admin.group("payments", {ORDERS[0]: 10, ORDERS[2]: 112, ORDERS[3]: 8})
    cli.admin = admin
    return admin


def test_dry_run_shows_what_was_committed_then(cli: Cli, admin: FakeGroupAdmin) -> None:
    ran = cli(f"reset-offsets payments --to-history {AT} -o json")

    assert [(row["partition"], row["old_offset"], row["new_offset"], row["delta"], row["result"]) for row in ran.data] == [
        (0, 10, 70, 60, "planned"),
        (1, None, 71, None, "planned"),
        (2, 112, 72, -40, "planned"),
        (3, 8, 8, 0, "unchanged"),
    ]
    assert ran.data[3]["note"] == "the history has no commit at 2026-03-02T08:39:00.000Z; left alone"
    assert ran.err == (
        f"--to-history {AT} means 2026-03-02T08:39:00.000Z (UTC).\n"
        "Offsets are those of the history of cluster 'staging'; whether that is this cluster cannot be told, "
        "as one of the two has no id.\n"
        "orders-3: the history has no commit at 2026-03-02T08:39:00.000Z; left alone\n"
        "Dry run on fake:9092: nothing was changed. Add --execute to change 3 partitions of 1 group.\n"
    )
    assert (ran.code, admin.commits("payments")) == (0, {("orders", 0): 10, ("orders", 2): 112, ("orders", 3): 8})


def test_executed_it_saves_what_was_there_and_is_undone_by_that(cli: Cli, admin: FakeGroupAdmin) -> None:
    before = admin.commits("payments")

    ran = cli(f"reset-offsets payments --to-history {AT} --execute")
    assert (ran.code, admin.commits("payments")) == (
        0,
        {("orders", 0): 70, ("orders", 1): 71, ("orders", 2): 72, ("orders", 3): 8},
    )

    (backup,) = (cli.folder / "backups").glob("*.csv")
    assert cli(f"reset-offsets --from-file {backup} --execute").code == 0
    assert admin.commits("payments") == before


def test_another_clusters_history_is_refused(cli: Cli, admin: FakeGroupAdmin, tmp_path: Path) -> None:
    rows = [commit("payments", "orders", 0, 7, 100, 1)]
    warehouse = write_gold(tmp_path / "w", {"offset_commits": rows, "coverage": [run(0, 9, 50, 900)]}, cluster="prod")
    warehouse.tell("prod", 0, cluster_id="abc")
    line = f"reset-offsets payments --to-history 100 --topic orders:0 --warehouse {tmp_path / 'w'}"

    admin.own_cluster_id = "other"
    refused = cli(f"{line} --execute")
    assert (refused.code, refused.err.splitlines()[-1]) == (
        5,
        "kgctl: the history of 'prod' is of the cluster with the id abc, and this one's is other: offsets of one cluster mean "
        "nothing in another",
    )
    assert admin.commits("payments")[("orders", 0)] == 10

    admin.own_cluster_id = "abc"
    assert "Offsets are those of the history of cluster 'prod'.\n" in cli(f"{line} --execute").err
    assert admin.commits("payments")[("orders", 0)] == 7


def test_topics_narrow_it_and_clamping_is_that_of_every_reset(cli: Cli, admin: FakeGroupAdmin) -> None:
    admin.topic("orders", FakeLog(80, 900), FakeLog(0, 900), FakeLog(0, 50), FakeLog(0, 50))

    rows = cli(f"reset-offsets payments --to-history {AT} --topic orders:0,2 -o json").data
    assert [(row["partition"], row["new_offset"], row["note"]) for row in rows] == [
        (0, 80, "70 is before the log start 80; 80 is used"),
        (2, 50, "72 is past the log end 50; 50 is used"),
    ]
    assert cli(f"reset-offsets payments --to-history {AT} --no-clamp --execute").code == 1
    assert admin.commits("payments")[("orders", 0)] == 10


def test_active_group_is_refused(cli: Cli, admin: FakeGroupAdmin) -> None:
    member = MemberDescription("m", "c", "/127.0.0.1", assignment={"orders": (0,)}, subscribed_topics=("orders",))
    admin.group("payments", {ORDERS[0]: 10}, [member])

    ran = cli(f"reset-offsets payments --to-history {AT} --execute")

    assert (ran.code, admin.commits("payments")) == (5, {("orders", 0): 10})


def test_group_that_is_gone_comes_back_with_create(cli: Cli, admin: FakeGroupAdmin) -> None:
    admin.groups.clear()
    assert cli(f"reset-offsets payments --to-history {AT} --execute").code == 4

    assert cli(f"reset-offsets payments --to-history {AT} --create --execute").code == 0
    assert admin.commits("payments") == {("orders", number): 70 + number for number in range(3)}


def test_group_that_the_history_never_heard_of_is_an_error_of_its_own(cli: Cli, admin: FakeGroupAdmin) -> None:
    admin.group("new", {ORDERS[0]: 1})

    one = cli(f"reset-offsets new --to-history {AT}")
    assert (one.code, "kgctl: group 'new' is not in the history of cluster 'staging'\n" in one.err) == (4, True)

    all_groups = cli(f"reset-offsets --all-groups --to-history {AT} --execute --yes -o json")
    assert (all_groups.code, {row["group"] for row in all_groups.data}) == (3, {"payments"})
    assert admin.commits("new") == {("orders", 0): 1}


def test_metadata_and_leader_epoch_come_back(cli: Cli, admin: FakeGroupAdmin, tmp_path: Path) -> None:
    rows = [commit("payments", "orders", 0, 7, 100, 1, metadata="mine", leader_epoch=4)]
    write_gold(tmp_path / "w", {"offset_commits": rows, "coverage": [run(0, 9, 50, 900)]})

    assert cli(f"reset-offsets payments --to-history 100 --topic orders:0 --warehouse {tmp_path / 'w'} --execute").code == 0

    assert admin.groups["payments"].offsets[ORDERS[0]] == OffsetAndMetadata(7, "mine", 4)


@pytest.mark.parametrize(
    ("metadata", "committed", "note"),
    [("mine\0", "mine", None), ("a\0b", "", "its metadata has a NUL, which librdkafka cannot write: left out")],
)
def test_metadata_with_a_nul(
    cli: Cli, admin: FakeGroupAdmin, tmp_path: Path, metadata: str, committed: str, note: str | None
) -> None:
    """librdkafka's consumers end theirs with one, and librdkafka can write none."""
    rows = [commit("payments", "orders", 0, 7, 100, 1, metadata=metadata)]
    write_gold(tmp_path / "w", {"offset_commits": rows, "coverage": [run(0, 9, 50, 900)]})
    ran = cli(f"reset-offsets payments --to-history 100 --topic orders:0 --warehouse {tmp_path / 'w'} --execute -o json")

    assert (ran.code, ran.data[0]["note"]) == (0, note)
    assert admin.groups["payments"].offsets[ORDERS[0]].metadata == committed

    late = cli(f"reset-offsets payments --to-history 901 --topic orders:0 --warehouse {tmp_path / 'w'} -o json")
    doubt = "commits between 1970-01-01T00:00:00.900Z and 1970-01-01T00:00:00.901Z are not known"
    assert late.data[0]["note"] == (doubt if note is None else f"{doubt}; {note}")


def test_doubts_are_said_and_what_is_not_known_is_not_guessed(cli: Cli, admin: FakeGroupAdmin, tmp_path: Path) -> None:
    rows = [commit("payments", "orders", 0, 7, 100, 1), commit("payments", "orders", 2, 9, 500, 8)]
    write_gold(tmp_path / "w", {"offset_commits": rows, "coverage": [run(0, 3, 50, 200), run(7, 9, 400, 600)]})
    line = f"reset-offsets payments --warehouse {tmp_path / 'w'} --topic orders:0-2 -o json --to-history"

    early = cli(f"{line} 300")
    assert (early.code, early.json["errors"][0]["code"]) == (3, "NOT_IN_THE_HISTORY")
    assert [(row["new_offset"], row["result"], row["note"]) for row in early.data] == [
        (7, "planned", "later commits before 1970-01-01T00:00:00.300Z may have been compacted away"),
        (None, "unchanged", "the history has no commit at 1970-01-01T00:00:00.300Z; left alone"),
        (None, "failed", "what was committed at 1970-01-01T00:00:00.300Z was not collected"),
    ]

    late = cli(f"{line} 700")
    assert late.code == 0
    assert late.data[2]["note"] == "commits between 1970-01-01T00:00:00.600Z and 1970-01-01T00:00:00.700Z are not known"
    assert "Collected up to 1970-01-01T00:00:00.600Z: what came later is not known.\n" in late.err


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("--to-history lastweek", 2, "--to-history: cannot read 'lastweek' as a time"),
        (f"--to-history {AT} --to-earliest", 2, "--to-earliest and --to-history exclude each other"),
        ("--to-earliest --all-topics --warehouse w", 2, "--warehouse has a place beside --to-history only"),
        ("--to-earliest --all-topics --history-cluster c", 2, "--history-cluster has a place beside --to-history only"),
        (f"--to-history {AT} --history-cluster=", 2, "--history-cluster is empty"),
        (f"--to-history {AT} --history-cluster other", 4, "no cluster 'other' (there: staging)"),
        (f"--to-history {AT} --warehouse nosuch", 4, "nosuch: kgctl history collect makes one"),
    ],
)
def test_mistakes_are_said_before_anything_is_contacted(
    cli: Cli, admin: FakeGroupAdmin, line: str, code: int, message: str
) -> None:
    ran = cli(f"reset-offsets payments {line}")

    assert (ran.code, cli.settings) == (code, [])
    assert message in ran.err


def test_two_hours_ago_is_a_time(cli: Cli, admin: FakeGroupAdmin) -> None:
    ran = cli.run(["reset-offsets", "payments", "--to-history", "2h ago"])

    assert ran.err.startswith("--to-history 2h ago means 2026-03-02T07:00:00.000Z (UTC).\n")
