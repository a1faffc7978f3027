"""``kgctl undo``: what was changed is brought back, on its own cluster."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest

from kgctl.admin.notation import FileHeader, seal
from kgctl.errors import TimedOutError
from kgctl.files import write_new
from kgctl.model.groups import GroupType, OffsetAndMetadata, StartOffset, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog
from tests.cli.harness import Cli, Ran

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
            "is_gone": False,
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
        ("--execute", 2, "say what to undo: `kgctl undo` lists it, `kgctl undo last --execute` takes the last change back"),
        ("--overwrite", 2, "say what to undo"),
        ("--per-partition --all-clusters", 2, "say what to undo"),
        ("--summary", 2, "say what to undo"),
        ("--other-cluster --log", 2, "say what to undo"),
        ("last --all-clusters", 2, "--all-clusters lists changes, and undoes none: 'last' has no place beside it"),
        ("last --log", 2, "--log lists changes, and undoes none: 'last' has no place beside it"),
        ("x --prune 1d", 2, "--prune stands alone"),
        ("--prune 1d --overwrite", 2, "--prune stands alone"),
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
    ambiguous, unique = cli("undo 20"), cli(f"undo {ID}-d")
    assert (ambiguous.code, unique.code) == (2, 0)
    assert ambiguous.err == (
        "kgctl: '20' begins the ids of 2 changes; the newest of them is `kgctl reset-offsets g1 --topic t1 --to-earliest "
        f"--execute`: kgctl undo {ID}-reset-offsets\n"
    )


def test_a_beginning_means_a_change_of_this_cluster(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.own_cluster_id = "A"
    cli("reset-offsets g1 --topic t1:0 --to-earliest --execute")
    cluster.own_cluster_id = "B"
    cli("reset-offsets g1 --topic t1:1 --to-earliest --execute")
    for name in ("20", "last"):
        ran = cli(f"undo {name} -o json")
        assert (ran.code, [row["partition"] for row in ran.data]) == (0, [1])
    assert cli(f"undo {ID}-reset-offsets").code == 5


def test_what_was_committed_since_is_not_overwritten(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("reset-offsets g1 --topic t1:0-1 --to-offset 5 --execute")
    cluster.groups["g1"].offsets[T1[0]] = OffsetAndMetadata(45)
    file = cli.folder / "backups" / f"{ID}-reset-offsets.csv"
    for arguments in ("undo last", "undo last --execute", f"reset-offsets --from-file {file} --execute"):
        ran = cli(f"{arguments} -o json")
        assert (ran.code, [(row["result"], row["note"]) for row in ran.data]) == (
            5,
            [
                ("refused", "went on since: the change left 5, 45 now (--overwrite insists)"),
                ("refused", "left alone: other partitions of the group are not as they were"),
            ],
        )
        assert ran.json["errors"][0]["code"] == "CHANGED_MEANWHILE"
        assert cluster.commits("g1") == {("t1", 0): 45, ("t1", 1): 5}
    ran = cli("undo last --execute --per-partition -o json")
    assert (ran.code, [row["result"] for row in ran.data]) == (3, ["refused", "reset"])
    assert cluster.commits("g1") == {("t1", 0): 45, ("t1", 1): 50}
    assert cli(f"undo {ID}-reset-offsets --execute --overwrite").code == 0
    assert cluster.commits("g1") == {("t1", 0): 100, ("t1", 1): 50}


def test_undoing_a_deletion_finds_what_is_there_again(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("delete-groups g1 --yes")
    cluster.group("g1", {T1[0]: 7})
    ran = cli("undo last --execute -o json")
    assert (ran.code, ran.data[0]["note"]) == (5, "went on since: the change left no commit, 7 now (--overwrite insists)")
    assert cluster.commits("g1") == {("t1", 0): 7}
    assert cli("undo last --execute --overwrite").code == 0
    assert cluster.commits("g1") == {("t1", 0): 100, ("t1", 1): 50}


def test_a_file_that_does_not_say_what_was_written_is_told_as_such(cli: Cli, cluster: FakeGroupAdmin) -> None:
    rows = "group,topic,partition,offset,leader_epoch,metadata\ng1,t1,0,100,-1,\n"
    header = FileHeader("undo", "fake:9092", "fake:9092", "kgctl reset-offsets", 1000, ("g1",), 1)
    (cli.folder / "old.csv").write_text(seal(header, rows))
    cluster.groups["g1"].offsets[T1[0]] = OffsetAndMetadata(45)
    said = "old.csv does not say what the change wrote, so that what was committed since cannot be told, and would be lost"
    shown, ran = cli(f"undo {cli.folder}/old.csv"), cli(f"undo {cli.folder}/old.csv --execute")
    assert (shown.code, f"{said}; --execute needs --overwrite." in shown.err) == (0, True)
    assert (ran.code, said in ran.err, cluster.commits("g1")[("t1", 0)]) == (5, True, 45)
    assert (cli(f"undo {cli.folder}/old.csv --execute --overwrite").code, cluster.commits("g1")[("t1", 0)]) == (0, 100)


def test_the_older_of_two_changes_waits_for_the_newer_to_be_undone(cli: Cli, cluster: FakeGroupAdmin) -> None:
    for target in (5, 10):
        cli.now_ms += 1_000
        assert cli(f"reset-offsets g1 --topic t1:0 --to-offset {target} --execute").code == 0
    newer, older = (row["id"] for row in cli("undo -o json").data)
    assert (cli(f"undo {older} --execute --no-backup").code, cluster.commits("g1")[("t1", 0)]) == (5, 10)
    assert (cli(f"undo {newer} --execute --no-backup").code, cluster.commits("g1")[("t1", 0)]) == (0, 5)
    assert (cli(f"undo {older} --execute --no-backup").code, cluster.commits("g1")[("t1", 0)]) == (0, 100)


def test_a_file_elsewhere_is_listed_and_found_and_told_where_it_is_gone(cli: Cli, cluster: FakeGroupAdmin) -> None:
    path = cli.folder / "mine.csv"
    ran = cli(f"reset-offsets g1 --topic t1:0 --to-earliest --execute --backup {path}")
    assert f"to undo: kgctl --bootstrap-server fake:9092 undo {path} --execute\n" in ran.err
    assert [(row["id"], row["is_gone"], row["file"]) for row in cli("undo -o json").data] == [
        (f"{ID}-reset-offsets", False, str(path))
    ]
    assert (cli("undo last --execute --no-backup").code, cluster.commits("g1")[("t1", 0)]) == (0, 100)
    path.unlink()
    assert [row["is_gone"] for row in cli("undo -o json").data] == [True]
    ran = cli("undo last")
    assert (ran.code, ran.err) == (4, f"kgctl: the undo file of {ID}-reset-offsets is gone: {path}\n")


def test_the_log_has_every_change(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("reset-offsets g1 --topic t1:0-1 --to-offset 5 --execute --no-backup")
    cli("remove-members g2 --all --yes")
    cli("delete-groups g3 --yes")
    cli("reset-offsets g1 --topic t1:0-1 --to-offset 7")
    rows = cli("undo --log -o json").data
    assert [(row["id"], row["groups"], row["results"], row["file"] is not None) for row in rows] == [
        (f"{ID}-delete-groups", ["g3"], ["1 deleted"], True),
        (f"{ID}-remove-members", ["g2"], ["2 removed"], False),
        (f"{ID}-reset-offsets", ["g1"], ["2 reset"], False),
    ]
    assert all(row["user"] and row["host"] for row in rows)
    assert (cli.folder / "backups" / "changes.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_change_whose_end_nobody_saw_is_in_the_log(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("reset-offsets g1 --topic t1:0 --to-offset 5 --execute")
    log = cli.folder / "backups" / "changes.jsonl"
    log.write_text(log.read_text().splitlines()[0] + "\n{broken")
    (row,) = cli("undo --log -o json").data
    assert row["results"] == ["not known: it did not end by itself"]


def test_a_log_that_cannot_be_written_is_told_and_ends_nothing(cli: Cli, cluster: FakeGroupAdmin) -> None:
    (cli.folder / "backups").write_text("")
    ran = cli("reset-offsets g1 --topic t1:0 --to-offset 5 --execute --no-backup")
    assert (ran.code, cluster.commits("g1")[("t1", 0)]) == (0, 5)
    assert "This change is not in the log of changes: " in ran.err


def test_a_file_that_was_saved_on_windows_is_whole(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("reset-offsets g1 --topic t1:0 --to-offset 5 --execute")
    path = cli.folder / "backups" / f"{ID}-reset-offsets.csv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert (cli("undo last --execute").code, cluster.commits("g1")[("t1", 0)]) == (0, 100)


def test_the_line_to_type_has_the_login_without_its_secret(cli: Cli) -> None:
    login = "-X security.protocol=SASL_SSL -X sasl.mechanism=PLAIN -X sasl.username=bob -X sasl.password=hunter2"
    ran = cli(f"reset-offsets g1 --topic t1:0 --to-offset 5 --execute {login}")
    assert "kgctl -X security.protocol=SASL_SSL -X sasl.mechanism=PLAIN -X sasl.username=bob " in ran.err
    assert "hunter2" not in ran.err


def test_summary_is_one_row_a_group(cli: Cli) -> None:
    cli("reset-offsets g1 --topic t1:0-1 --to-offset 5 --execute")
    assert [(row["group"], row["results"]) for row in cli("undo last --summary -o json").data] == [("g1", ["2 planned"])]


def test_foreign_files_in_the_folder_are_passed_over(cli: Cli, tmp_path: Path) -> None:
    folder = cli.folder / "backups"
    folder.mkdir()
    for name, content in (("a.csv", b""), ("b.csv", b"\xff"), ("d.csv", b"t1,0,1\n")):
        (folder / name).write_bytes(content)
    assert cli("undo").err == "Nothing can be undone on fake:9092.\n"


def unreadable(path: Path) -> None:
    """A file that nobody can open, whoever runs the test: a link to itself."""
    path.unlink(missing_ok=True)
    path.symlink_to(path)


def test_the_last_change_is_not_one_before_a_file_that_nobody_can_read(cli: Cli, cluster: FakeGroupAdmin) -> None:
    folder = cli.folder / "backups"
    cli("reset-offsets g1 --topic t1:0 --to-offset 5 --execute")
    cli.now_ms += 1000
    newer = folder / "20240101T000001Z-reset-offsets.csv"
    unreadable(newer)
    told = f"kgctl: cannot read {newer}: Too many levels of symbolic links\n"
    for line in ("undo last --execute", "undo last", "undo 20240101T000001Z"):
        assert cli(line) == Ran(1, "", told)
    assert cluster.commits("g1")[("t1", 0)] == 5
    assert (cli("undo -o name").code, cli("undo -o name").out) == (3, f"{ID}-reset-offsets\n")
    assert cli("undo nosuch").code == 4
    assert (cli(f"undo {ID}").code, cli("undo --prune 1d").code) == (0, 0)
    newer.rename(folder / "20231231T000000Z-reset-offsets.csv")
    assert cli("undo last --execute").code == 0


def test_a_file_of_another_version_is_told(cli: Cli) -> None:
    (cli.folder / "backups").mkdir()
    path = cli.folder / "backups" / f"{ID}-undo.csv"
    path.write_text("# kgctl {}\n")
    told = f"kgctl: {path}, line 1: written by another version of kgctl, and not readable\n"
    assert [cli(line) for line in ("undo", "undo last", "undo --all-clusters")] == [Ran(1, "", told)] * 3


@pytest.mark.parametrize(
    ("line", "name"), [("undo", ""), ("undo --log", "changes.jsonl"), ("undo last", ""), ("undo", "changes.jsonl")]
)
def test_where_nobody_can_look_there_is_not_nothing(cli: Cli, line: str, name: str) -> None:
    folder = cli.folder / "backups"
    if name:
        folder.mkdir()
    unreadable(folder / name)
    assert cli(line) == Ran(1, "", f"kgctl: cannot read {folder / name}: Too many levels of symbolic links\n")


@pytest.mark.parametrize(
    "damaged",
    [
        {"time_ms": "now"},
        {"time_ms": -1},
        {"time_ms": 10**18},
        {"partitions": None},
        {"groups": [5]},
        {"command": 5},
        {"cluster_id": None},
        {"topic_ids": {"t1": 5}},
    ],
)
def test_a_header_that_no_kgctl_writes_is_told_as_one(cli: Cli, damaged: dict[str, object]) -> None:
    """In the file and in the log, whose other lines count."""
    cli("reset-offsets g1 --topic t1:0 --to-offset 5 --execute")
    folder = cli.folder / "backups"
    first, *rest = (folder / f"{ID}-reset-offsets.csv").read_text().splitlines(keepends=True)
    header = json.loads(first.removeprefix("# kgctl ")) | damaged
    bad = folder / f"{ID}-bad.csv"
    bad.write_text("".join([f"# kgctl {json.dumps(header)}\n", *rest]))
    with (folder / "changes.jsonl").open("a") as log:
        log.write(f"{json.dumps(header | {'id': 'bad', 'user': 'u', 'host': 'h', 'file': None})}\n")
        log.write(f'{{"id": "{ID}-reset-offsets", "file": null, "results": ["reset"]}}\n')
    told = f"kgctl: {bad}, line 1: written by another version of kgctl, and not readable\n"
    assert (cli("undo").code, cli("undo -o name").err) == (3, told)
    assert [row["results"] for row in cli("undo --log -o json").data][-1] == ["1 reset"]
    assert cli("undo last").err == told


@pytest.mark.parametrize("line", ["--execute", "--plan-out ~/plan.csv", "--execute --backup ~/undo.csv"])
def test_a_user_without_a_home_is_told(cli: Cli, cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """As in a container whose user stands in no list."""

    def unknown(_: object) -> None:
        raise KeyError("uid not found")

    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    cli.variables["KGCTL_BACKUP_DIR"] = ""
    told = "kgctl: this user has no home directory: set HOME\n"
    assert cli(f"reset-offsets g1 --topic t1 --to-earliest {line}") == Ran(1, "", told)
    assert cli("undo last") == Ran(1, "", told)
    assert cluster.commits("g1") == {("t1", 0): 100, ("t1", 1): 50}


def test_what_else_speaks_of_a_home_directory_is_an_error_of_kgctl(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.failure = RuntimeError("the home directory of the record")
    ran = cli("list groups")
    assert (ran.code, "internal error, please report it: RuntimeError: the home directory" in ran.err) == (9, True)


def test_changes_of_one_moment_have_a_file_each(cli: Cli, cluster: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[Path] = []

    def second(path: Path, text: str, *, make_folder: bool = False) -> None:
        if not others:  # the other change is the quicker one
            others.append(path)
            write_new(path, "another's", make_folder=make_folder)
        write_new(path, text, make_folder=make_folder)

    monkeypatch.setattr("kgctl.cli.groups.undo_files.write_new", second)
    ran = cli("reset-offsets g1 --topic t1:0 --to-offset 5 --execute")
    assert (ran.code, f"undo {ID}-reset-offsets-2 --execute\n" in ran.err) == (0, True), ran.err
    assert others[0].read_text(encoding="utf-8") == "another's"
    assert cli("undo last --execute").code == 0
    assert cluster.commits("g1")["t1", 0] == 100


def test_a_plan_undoes_nothing(cli: Cli, cluster: FakeGroupAdmin) -> None:
    plan = cli.folder / "plan.csv"
    assert cli(f"reset-offsets g1 --topic t1:0 --to-offset 5 --plan-out {plan}").code == 0
    told = f"kgctl: {plan} is a plan, and undoes nothing: kgctl reset-offsets --plan {plan}\n"
    assert cli(f"undo {plan} --execute --overwrite") == Ran(2, "", told)


def test_a_log_that_cannot_be_read_stops_no_change(cli: Cli, cluster: FakeGroupAdmin) -> None:
    (cli.folder / "backups").mkdir()
    unreadable(cli.folder / "backups" / "changes.jsonl")
    ran = cli("reset-offsets g1 --topic t1:0 --to-offset 5 --execute")
    assert (ran.code, "This change is not in the log of changes: " in ran.err) == (0, True)
    assert (cli(f"undo {ID}-reset-offsets --execute").code, cluster.commits("g1")[("t1", 0)]) == (0, 100)


def test_a_line_that_a_full_disk_cuts_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    written = os.write
    monkeypatch.setattr(os, "write", lambda file, data: written(file, data[:10]))
    ran = cli("reset-offsets g1 --topic t1:0 --to-offset 5 --execute --no-backup")
    told = f"This change is not in the log of changes: {cli.folder}/backups/changes.jsonl: No space left on device\n"
    assert (ran.code, ran.err.count(told)) == (0, 2)


def test_prune_leaves_what_lies_elsewhere(cli: Cli) -> None:
    path = cli.folder / "mine.csv"
    assert cli(f"reset-offsets g1 --topic t1:0 --to-earliest --execute --backup {path}").code == 0
    cli.now_ms += 100 * 86_400_000
    assert cli("undo --prune 1d").err == "0 undo files older than 2024-04-09T00:00:00.000Z removed.\n"
    assert path.exists()


def test_a_group_that_was_deleted_and_reads_elsewhere_by_now_is_another_one(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("delete-groups g1 --yes")
    cluster.group("g1", {T1[2]: 7})
    why = f"the group was deleted, and is there again, with 7 committed on {T1[2]} (--overwrite insists)"
    for line in ("undo last", "undo last --execute"):
        ran = cli(f"{line} -o json")
        assert (ran.code, [(row["result"], row["note"]) for row in ran.data]) == (5, [("refused", why)] * 2)
        assert {error["code"] for error in ran.json["errors"]} == {"CHANGED_MEANWHILE"}
    assert cluster.commits("g1") == {("t1", 2): 7}
    assert cli("undo last --execute --per-partition").code == 0
    assert cluster.commits("g1") == {("t1", 0): 100, ("t1", 1): 50, ("t1", 2): 7}


def test_a_deletion_that_is_half_undone_is_gone_on_with(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("delete-groups g1 --yes")
    cluster.group("g1", {T1[0]: 100})
    assert (cli("undo last --execute").code, cluster.commits("g1")) == (0, {("t1", 0): 100, ("t1", 1): 50})


def test_deleted_offsets_come_back_beside_others(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("delete-offsets g1 --topic t1:0 --yes")
    cluster.groups["g1"].offsets[T1[2]] = OffsetAndMetadata(7)
    assert (cli("undo last --execute").code, cluster.commits("g1")[("t1", 0)]) == (0, 100)


@pytest.mark.parametrize("change", ["delete-offsets g1 --topic t1 --yes", "delete-groups g1 --yes"])
def test_offsets_of_a_topic_that_was_made_anew_are_not_brought_back(cli: Cli, cluster: FakeGroupAdmin, change: str) -> None:
    cluster.group("g1", {T1[0]: OffsetAndMetadata(100)})
    cluster.made = {"t1": "then"}
    assert cli(change).code == 0
    assert cli("undo last").code == 0
    cluster.made = {"t1": "now"}
    dry = cli("undo last")
    assert dry.code == 5
    assert (
        "t1-0: the topic was deleted and made anew since: offsets of the old one mean nothing in it (--overwrite insists)"
        in dry.err
    )
    assert "--execute makes it" not in dry.err
    assert (cli("undo last --execute").code, cluster.calls[-1][0] == "alter_offsets") == (5, False)
    assert cli("undo last --execute --overwrite").code == 0
    assert cluster.groups["g1"].offsets[T1[0]].offset == 100
    assert cli(f"undo {ID}-{change.split(maxsplit=1)[0]} --execute").code == 0  # nothing is to do


def test_a_topic_whose_id_nobody_tells_is_the_same(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.made = {"t1": "then"}
    assert cli("reset-offsets g1 --topic t1 --to-earliest --execute").code == 0
    cluster.made = {}
    assert cli("undo last --execute").code == 0


def test_a_refused_undo_of_a_deleted_group_makes_nothing(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g1", {T1[0]: OffsetAndMetadata(100)})
    cli("delete-groups g1 --yes")
    assert "Group 'g1' does not exist: --execute makes it." in cli("undo last").err
    cluster.logs.clear()
    assert "--execute makes it" not in cli("undo last").err


def share(cluster: FakeGroupAdmin) -> None:
    """A share group begins at 5 on t1-0."""
    cluster.group("s", {T1[0]: StartOffset(5)}, type=GroupType.SHARE, protocol_type="share")


def test_a_share_group_is_made_anew_as_one_also_where_its_log_begins_later_by_now(cli: Cli, cluster: FakeGroupAdmin) -> None:
    share(cluster)
    assert cli("delete-groups s --yes").code == 0
    cluster.logs[T1[0]] = FakeLog(8, 100)
    ran = cli("undo last --execute")
    assert (ran.code, "t1-0: 5 is before the log start 8; 8 is used\n" in ran.err) == (0, True)
    assert cluster.groups["s"].offsets == {T1[0]: StartOffset(8)}


THEN_NOW = [
    (GroupType.SHARE, GroupType.CLASSIC, "a share group then, and is a classic group now"),
    (GroupType.CLASSIC, GroupType.SHARE, "no share group then, and is a share group now"),
]


@pytest.mark.parametrize(("then", "now", "told"), THEN_NOW)
def test_a_group_of_another_type_by_the_same_name_is_another_one(
    cli: Cli, cluster: FakeGroupAdmin, then: GroupType, now: GroupType, told: str
) -> None:
    cluster.group("s", {T1[0]: StartOffset(5) if then is GroupType.SHARE else 5}, type=then)
    assert cli("delete-groups s --yes").code == 0
    cluster.group("s", {}, type=now)
    preview, deed = (cli(f"undo last {answer} -o json") for answer in ("--dry-run", "--execute"))
    for ran in (preview, deed):
        rows = [(row["result"], row["note"]) for row in ran.data]
        assert (ran.code, rows) == (5, [("refused", f"the group was {told} (--overwrite insists)")])
    assert cluster.groups["s"].offsets == {}
    preview, deed = cli("undo last --overwrite"), cli("undo last --overwrite --execute")
    gets = "start offsets, not commits" if now is GroupType.SHARE else "commits, not start offsets"
    for ran in (preview, deed):
        assert (ran.code, f"Group 's' was {told}: it gets {gets}.\n" in ran.err) == (0, True), ran.err
        assert "get their start offsets back" not in ran.err
    assert type(cluster.groups["s"].offsets[T1[0]]) is (StartOffset if now is GroupType.SHARE else OffsetAndMetadata)


def test_one_of_several_start_offsets_of_a_topic_cannot_be_taken_away(cli: Cli, cluster: FakeGroupAdmin) -> None:
    """Kafka's request for it is about whole topics."""
    share(cluster)
    assert cli("reset-offsets s --topic t1:1 --to-earliest --execute").code == 0
    preview, deed = (cli(f"undo last --overwrite {answer} -o json") for answer in ("--dry-run", "--execute"))
    why = "Kafka deletes the start offsets of a share group by whole topics, and t1-0 has one too"
    for ran in (preview, deed):
        assert (ran.code, [(row["result"], row["note"]) for row in ran.data]) == (1, [("failed", why)])
    assert cluster.groups["s"].offsets == {T1[0]: StartOffset(5), T1[1]: StartOffset(0)}
    cluster.groups["s"].offsets = {T1[1]: StartOffset(0)}
    assert cli("undo last --overwrite --execute").code == 0
    assert cluster.groups["s"].offsets == {}


def test_a_plan_knows_what_is_a_share_group(cli: Cli, cluster: FakeGroupAdmin, tmp_path: Path) -> None:
    share(cluster)
    plan = tmp_path / "plan.csv"
    assert cli(f"reset-offsets s --topic t1:1 --to-earliest --plan-out {plan}").code == 0
    line = f"reset-offsets --plan {plan} --execute -o json"
    cluster.group("s", {})
    ran = cli(line)
    why = "the group was a share group then, and is a classic group now"
    assert (ran.code, [(row["result"], row["note"]) for row in ran.data]) == (5, [("refused", why)])
    del cluster.groups["s"]
    assert cli(f"{line} --create").code == 0
    assert cluster.groups["s"].offsets == {T1[1]: StartOffset(0)}
