"""``kgctl undo``: what was changed is brought back, on its own cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.errors import TimedOutError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli

T1 = [TopicPartition("t1", number) for number in range(3)]
ID = "20240101T000000Z"


@pytest.mark.parametrize(
    "change",
    [
        "reset-offsets g1 --topic t1 --to-earliest --execute",
        "delete-groups g1 --yes",
        "delete-offsets g1 --topic t1 --yes",
        "reset-offsets --match g1 --all-topics --shift-by -3 --execute --yes",
    ],
)
def test_every_change_is_undone_and_the_undo_too(cli: Cli, cluster: FakeGroupAdmin, change: str) -> None:
    before = {T1[0]: OffsetAndMetadata(100, 'with, "quotes"\n# end', 3), T1[1]: OffsetAndMetadata(50)}
    cluster.group("g1", before)
    assert cli(change).code == 0
    after = dict(cluster.groups["g1"].offsets) if "g1" in cluster.groups else {}
    name = f"{ID}-{change.split(maxsplit=1)[0]}"

    dry = cli(f"undo {name}")
    assert (dry.code, "Undoes `kgctl " in dry.err, "Dry run on fake:9092: nothing was changed." in dry.err) == (0, True, True)
    assert (dict(cluster.groups["g1"].offsets) if "g1" in cluster.groups else {}) == after
    assert (cli(f"undo {name} --execute").code, cluster.groups["g1"].offsets) == (0, before)
    assert cli(f"undo {ID}-undo --execute").code == 0
    assert {p: each.offset for p, each in cluster.groups["g1"].offsets.items()} == {p: each.offset for p, each in after.items()}


def test_list_has_what_can_be_undone_on_this_cluster(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.own_cluster_id = "A"
    cli("reset-offsets g1 --topic t1:0 --to-earliest --execute")
    cluster.own_cluster_id = "B"
    cli("delete-groups g1 g3 --yes -X sasl.password=secret")
    ran = cli("undo -o json")
    assert ran.data == [
        {
            "id": f"{ID}-delete-groups",
            "time": "2024-01-01T00:00:00.000Z",
            "groups": ["g1", "g3"],
            "partitions": 3,
            "command": "kgctl delete-groups g1 g3 --yes",
            "cluster": "fake:9092",
            "cluster_id": "B",
            "file": str(cli.folder / "backups" / f"{ID}-delete-groups.csv"),
        }
    ]
    assert ran.err == "1 more of other clusters (--all-clusters).\n"
    assert cli("undo --all-clusters -o name").out == f"{ID}-reset-offsets\n{ID}-delete-groups\n"


def test_table_shows_some_of_many_groups_and_counts_the_rest(cli: Cli, cluster: FakeGroupAdmin) -> None:
    names = [f"many-{number}" for number in range(5)]
    for name in names:
        cluster.group(name, {T1[0]: 5})
    cli("delete-groups --match many-. --yes")
    assert cli("undo -o json").data[0]["groups"] == names
    assert "  many-0 many-1 many-2 (2 more)  " in cli("undo").out
    assert " ".join(names) in cli("undo -o wide").out


def test_undo_after_a_switch_of_contexts_is_refused(cli: Cli, cluster: FakeGroupAdmin) -> None:
    (cli.folder / "config.yaml").write_text(
        "current-context: stage\ncontexts:\n  stage: {bootstrap-server: 's:1'}\n  prod: {bootstrap-server: 'p:1'}\n"
    )
    cli.variables.pop("KGCTL_BOOTSTRAP_SERVER")
    cluster.own_cluster_id = "stage-id"
    told = cli("reset-offsets g1 --topic t1:0 --to-earliest --execute").err
    assert f"to undo: kgctl --context stage undo {ID}-reset-offsets --execute\n" in told
    assert "Executed on context stage (cluster id stage-id): 1 reset.\n" in told
    cli("context use prod")
    cluster.own_cluster_id = "prod-id"
    ran = cli(f"undo {ID}-reset-offsets --execute")
    assert (ran.code, cluster.commits("g1")[("t1", 0)]) == (5, 0)
    assert "is of the cluster context stage (id stage-id), and this is context prod (cluster id prod-id)" in ran.err


def test_file_keeps_only_what_was_or_may_have_been_changed(cli: Cli, cluster: FakeGroupAdmin) -> None:
    calls = 0

    def fail_later() -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise TimedOutError("no answer within 1000 ms")

    cluster.before_alter = fail_later
    ran = cli("reset-offsets g1 g3 --all-topics --to-earliest --execute -o json")
    assert [(row["group"], row["result"]) for row in ran.data] == [("g1", "reset"), ("g1", "reset"), ("g3", "unknown")]
    assert cli("undo -o json").data[0]["groups"] == ["g1", "g3"]


def test_prune_removes_old_files(cli: Cli) -> None:
    cli("reset-offsets g1 --topic t1 --to-earliest --execute")
    assert cli("undo --prune 1d").err == "0 undo files older than 2023-12-31T00:00:00.000Z removed.\n"
    path = cli.folder / "backups" / f"{ID}-reset-offsets.csv"
    old = path.read_text().replace('"time_ms": 1704067200000', '"time_ms": 1000')
    path.write_text(old)
    assert (cli("undo --prune 1d --dry-run").code, path.exists()) == (0, True)
    assert (cli("undo --prune 1d").code, path.exists()) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("nosuch", 4, "there is no undo file 'nosuch' in "),
        ("--execute", 2, "say what to undo: kgctl undo lists it"),
        ("x --prune 1d", 2, "--prune stands alone"),
        ("--prune soon", 2, "--prune: cannot read 'soon' as a duration"),
        ("x.csv", 2, "cannot read x.csv: No such file or directory"),
        ("x --execute --dry-run", 2, "--execute and --dry-run exclude each other"),
    ],
)
def test_bad_input(cli: Cli, arguments: str, code: int, message: str) -> None:
    ran = cli(f"undo {arguments}")
    assert (ran.code, message in ran.err) == (code, True), ran.err


def test_beginning_of_an_id_is_enough_where_it_is_one(cli: Cli) -> None:
    cli("reset-offsets g1 --topic t1 --to-earliest --execute")
    assert cli(f"undo {ID}").code == 0
    cli("delete-offsets g1 --topic t1 --yes")
    assert (cli(f"undo {ID}").code, cli(f"undo {ID}-d").code) == (2, 0)


def test_foreign_files_in_the_folder_are_passed_over(cli: Cli, tmp_path: Path) -> None:
    folder = cli.folder / "backups"
    folder.mkdir()
    for name, content in (("a.csv", b""), ("b.csv", b"\xff"), ("c.csv", b"# kgctl {}\n"), ("d.csv", b"t1,0,1\n")):
        (folder / name).write_bytes(content)
    assert cli("undo").err == "Nothing can be undone on fake:9092.\n"
