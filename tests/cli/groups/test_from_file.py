"""``kgctl reset-offsets --from-file``: Kafka's CSV, plans, backups."""

from __future__ import annotations

import json

import pytest

from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, Ran

T1 = [TopicPartition("t1", number) for number in range(3)]


def from_file(cli: Cli, text: str, arguments: str, name: str = "plan.csv") -> Ran:
    path = cli.folder / name
    path.write_text(text)
    return cli(f"reset-offsets --from-file {path} {arguments}")


def test_backup_restores_exactly(cli: Cli, cluster: FakeGroupAdmin) -> None:
    before = {T1[0]: OffsetAndMetadata(100, 'with, "quotes"', 3), T1[1]: OffsetAndMetadata(50)}
    cluster.group("g1", before)
    assert cli("reset-offsets g1 --topic t1 --to-earliest --execute").code == 0
    assert len(cluster.commits("g1")) == 3
    backup = cli.folder / "backups" / "20240101T000000Z-reset-offsets.csv"
    ran = cli(f"reset-offsets --from-file {backup} --execute")
    assert (ran.code, cluster.groups["g1"].offsets) == (0, before)
    assert ran.err.endswith("t1-2: the commit is taken away\nExecuted on fake:9092: 2 reset, 1 deleted.\n")


def test_plan_of_a_dry_run_executes_as_csv_and_as_json(cli: Cli, cluster: FakeGroupAdmin) -> None:
    for output, commits in (("csv", {("t1", 0): 70, ("t1", 1): 20}), ("json", {("t1", 0): 40, ("t1", 1): 0})):
        plan = cli(f"reset-offsets g1 --topic t1:0-1 --shift-by -30 -o {output}").out
        assert from_file(cli, plan, "--execute", f"plan.{output}").code == 0
        assert cluster.commits("g1") == commits


def test_plan_that_no_longer_fits_is_refused_as_a_whole_group(cli: Cli, cluster: FakeGroupAdmin) -> None:
    plan = cli("reset-offsets g1 g3 --all-topics --to-latest -o csv").out
    cluster.groups["g1"].offsets[T1[1]] = OffsetAndMetadata(51)
    ran = from_file(cli, plan, "--execute -o json")
    assert [(row["group"], row["partition"], row["result"]) for row in ran.data] == [
        ("g1", 0, "unchanged"),
        ("g1", 1, "refused"),
        ("g3", 0, "reset"),
    ]
    assert (ran.code, ran.json["errors"][0]["code"]) == (3, "PLAN_OUTDATED")
    assert cluster.commits("g1") == {("t1", 0): 100, ("t1", 1): 51}


def test_outdated_plan_of_one_group_exits_with_5(cli: Cli, cluster: FakeGroupAdmin) -> None:
    plan = cli("reset-offsets g1 --topic t1 --to-earliest -o csv").out
    cluster.groups["g1"].offsets[T1[0]] = OffsetAndMetadata(99)
    ran = from_file(cli, plan, "--execute")
    assert ran.code == 5
    assert "kgctl: group 'g1', t1-0: changed since the plan was made: 100 then, 99 now\n" in ran.err
    assert cluster.commits("g1") == {("t1", 0): 99, ("t1", 1): 50}


def test_kafkas_three_columns_with_one_group(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert from_file(cli, "t1,0,10\nt1,1,11\n\n", "g1 --execute").code == 0
    assert cluster.commits("g1") == {("t1", 0): 10, ("t1", 1): 11}


def test_kafkas_four_columns_with_and_without_groups(cli: Cli, cluster: FakeGroupAdmin) -> None:
    text = "g1,t1,0,10\ng3,t2,0,50\n"
    assert from_file(cli, text, "--group g3 --execute").code == 0
    assert (cluster.commits("g1")[("t1", 0)], cluster.commits("g3")) == (100, {("t2", 0): 50})
    assert from_file(cli, text, "--execute").code == 0
    assert cluster.commits("g1")[("t1", 0)] == 10


def test_snapshot_made_by_describe_restores(cli: Cli, cluster: FakeGroupAdmin) -> None:
    snapshot = cli("describe group g1 -o json").out
    cli("reset-offsets g1 --topic t1 --to-earliest --execute")
    assert from_file(cli, snapshot, "--execute", "snapshot.json").code == 0
    assert cluster.commits("g1") == {("t1", 0): 100, ("t1", 1): 50}


def test_quotes_are_read(cli: Cli, cluster: FakeGroupAdmin) -> None:
    assert from_file(cli, '"t1",0,1\nt1,1,"2"\n', "g1 --execute").code == 0
    assert cluster.commits("g1") == {("t1", 0): 1, ("t1", 1): 2}


def test_two_rows_for_one_partition_are_an_error_with_both_lines(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = from_file(cli, "t1,0,1\nt1,1,1\nt1,0,2\n", "g1 --execute")
    told = f"kgctl: {cli.folder}/plan.csv, line 3: t1-0 of group 'g1' is there already, in line 1\n"
    assert (ran.code, ran.err, cluster.commits("g1")) == (2, told, {("t1", 0): 100, ("t1", 1): 50})


@pytest.mark.parametrize("output", ["csv", "json", "ndjson", "yaml"])
@pytest.mark.parametrize("group", ["g1", "61e5", "0o17", "on", "- x: y", "0x1f", "null"])
def test_what_an_output_format_wrote_is_read_back_from_stdin(cli: Cli, cluster: FakeGroupAdmin, output: str, group: str) -> None:
    cluster.group(group, {T1[0]: 100, T1[1]: OffsetAndMetadata(50, "12e4")})
    plan = cli.run(["reset-offsets", "--group", group, "--topic", "t1:0-1", "--shift-by", "-30", "-o", output]).out
    cli.answers = False
    assert cli("reset-offsets --from-file - --execute", stdin=plan).code == 0
    assert cluster.commits(group) == {("t1", 0): 70, ("t1", 1): 20}


def test_file_that_is_cut_short_is_refused(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cli("reset-offsets g1 --topic t1 --to-earliest --execute")
    path = cli.folder / "backups" / "20240101T000000Z-reset-offsets.csv"
    whole = path.read_text()
    for length in sorted({*range(0, len(whole), 9), *range(len(whole) - 9, len(whole))}):
        ran = from_file(cli, whole[:length], "--execute")
        assert (ran.code, changes_of(cluster)) == (0 if length == len(whole) - 1 else 2, 2 if length == len(whole) - 1 else 1), (
            length
        )
    ran = from_file(cli, whole.replace("g1,t1,0,100", "g1,t1,0,900"), "--execute")
    assert (ran.code, "is not as kgctl wrote it: its digest differs" in ran.err) == (2, True)


def changes_of(cluster: FakeGroupAdmin) -> int:
    return sum(name == "alter_offsets" for name, _ in cluster.calls)


def test_export_is_kafkas_own_csv(cli: Cli) -> None:
    assert cli("reset-offsets g1 --topic t1:0-1 --to-earliest --export").out == "t1,0,0\nt1,1,0\n"
    assert cli("reset-offsets g1 g3 --all-topics --to-earliest --export").out == "g1,t1,0,0\ng1,t1,1,0\ng3,t2,0,40\n"


def test_file_of_another_cluster_is_refused(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.own_cluster_id = "A"
    cli("reset-offsets g1 --topic t1:0 --to-earliest --execute")
    path = cli.folder / "backups" / "20240101T000000Z-reset-offsets.csv"
    cluster.own_cluster_id = "B"
    refused = cli(f"reset-offsets --from-file {path} --execute")
    assert (refused.code, cluster.commits("g1")[("t1", 0)]) == (5, 0)
    assert f"{path} is of the cluster fake:9092 (id A), and this is fake:9092 (cluster id B)" in refused.err
    assert cli(f"reset-offsets --from-file {path} --execute --other-cluster").code == 0
    assert cluster.commits("g1")[("t1", 0)] == 100


def test_backup_makes_no_folders(cli: Cli, cluster: FakeGroupAdmin) -> None:
    ran = cli(f"reset-offsets g1 --topic t1 --to-earliest --execute --backup {cli.folder}/no/such/file.csv")
    assert (ran.code, changes_of(cluster), cli.settings) == (2, 0, [])


def test_clamped_like_any_other_reset(cli: Cli) -> None:
    ran = from_file(cli, "t1,0,999\n", "g1")
    assert ran.err.startswith("t1-0: 999 is past the log end 100; 100 is used\n")


def test_topic_that_does_not_exist_fails_alone(cli: Cli) -> None:
    ran = from_file(cli, "t1,0,1\nnope,0,1\nt1,77,1\n", "g1 -o json")
    assert [(row["topic"], row["partition"], row["result"]) for row in ran.data] == [
        ("nope", 0, "failed"),
        ("t1", 0, "planned"),
        ("t1", 77, "failed"),
    ]
    assert [entry["code"] for entry in ran.json["errors"]] == ["UNKNOWN_TOPIC_OR_PARTITION"] * 2


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("t1,0,1\nt3,1\n", "g1", "line 2: 3 columns expected (topic,partition,offset), 2 found"),
        ("t1,0,1\n", "", "line 1: topic,partition,offset says no group: name exactly one group beside the file"),
        ("t1,0,1\n", "g1 g2", "line 1: topic,partition,offset says no group: name exactly one group beside the file"),
        ("t1,0,\n", "g1", "line 1: the offset is missing"),
        ("t1,0,-1\n", "g1", "line 1: the offset '-1' is not a number of 0 to 9223372036854775807"),
        (
            "t1,0,9223372036854775808\n",
            "g1",
            "line 1: the offset '9223372036854775808' is not a number of 0 to 9223372036854775807",
        ),
        ("t1,x,1\n", "g1", "line 1: the partition 'x' is not a number of 0 to 2147483647"),
        (",0,1\n", "g1", "line 1: group and topic must not be empty"),
        ("a\n", "g1", "line 1: expected topic,partition,offset or group,topic,partition,offset, or a header line"),
        ("a,b,c,d,e\n", "g1", "line 1: expected topic,partition,offset or group,topic,partition,offset, or a header line"),
        ("topic,partition\nt,1\n", "g1", "line 1: no column offset (or new_offset)"),
        ("topic,partition,offset\nt,1,2\n", "", "line 1: no column group (or name exactly one group beside the file)"),
        ('t1,0,"1\n', "g1", "line 1: not readable as CSV: unexpected end of data"),
        ("{\n oops", "g1", "line 2: not readable as JSON: Expecting property name enclosed in double quotes"),
        ('{"data": 3}', "g1", "line 1: expected a list of rows, or kgctl's own output with the rows under data"),
        ('[{"topic": "t"}]', "g1", "row 1: no column partition, offset (or new_offset)"),
        ('[{"topic": "t", "partition": 1.5, "offset": 1}]', "g1", "row 1: the partition 1.5 is not a number of 0 to 2147483647"),
        (
            '[{"topic": "t", "partition": true, "offset": 1}]',
            "g1",
            "row 1: the partition True is not a number of 0 to 2147483647",
        ),
        (
            "group,topic,partition,old_offset,new_offset,result\ng1,t1,0,1,,failed\n",
            "",
            "line 2: a plan row with the result failed cannot be executed",
        ),
    ],
)
def test_malformed_file_names_its_line_and_contacts_nothing(cli: Cli, text: str, arguments: str, message: str) -> None:
    ran = from_file(cli, text, arguments)
    assert ran == Ran(2, "", f"kgctl: {cli.folder / 'plan.csv'}, {message}\n")
    assert cli.settings == []


def test_empty_files_and_absent_groups(cli: Cli) -> None:
    path = cli.folder / "plan.csv"
    assert from_file(cli, "\n\n", "").err == f"kgctl: {path} has no offsets in it\n"
    assert from_file(cli, "g1,t1,0,1\n", "g2").err == f"kgctl: {path} has no offsets for group 'g2'\n"
    assert from_file(cli, json.dumps([]), "").code == 2


def test_file_that_cannot_be_read(cli: Cli) -> None:
    assert cli("reset-offsets --from-file nosuch.csv") == Ran(2, "", "kgctl: cannot read nosuch.csv: No such file or directory\n")
    path = cli.folder / "binary.csv"
    path.write_bytes(b"\xff\xfe")
    told = f"kgctl: {path} is not UTF-8 text (line 1, byte 0); it looks like UTF-16: save it as UTF-8\n"
    assert cli(f"reset-offsets --from-file {path}").err == told


def test_file_brings_its_own_scope(cli: Cli) -> None:
    ran = from_file(cli, "t1,0,1\n", "g1 --topic t1")
    assert ran.err == "kgctl: the offsets say which partitions are meant: --topic and --all-topics have no place beside them\n"
    assert ran.code == 2


def test_file_that_is_no_text_is_told_with_its_line(cli: Cli) -> None:
    (cli.folder / "latin.csv").write_bytes(b"t1,0,5\r\nt1,1,5\nt\xe9,0,5\n")
    ran = cli(f"reset-offsets g1 --from-file {cli.folder}/latin.csv")
    assert (ran.code, ran.err) == (2, f"kgctl: {cli.folder}/latin.csv is not UTF-8 text (line 3, byte 16)\n")


@pytest.mark.parametrize("flag", ["--from-file", "--backup"])
def test_empty_file_name_is_a_usage_error(cli: Cli, flag: str) -> None:
    target = [] if flag == "--from-file" else ["--topic", "t1", "--to-earliest", "--execute"]
    ran = cli.run(["reset-offsets", "g1", flag, "", *target])
    assert (ran.code, ran.err) == (2, f"kgctl: {flag} is empty (an unset variable?): give it a file\n")
    assert cli.settings == []


def test_undo_names_the_cluster_that_x_named(cli: Cli) -> None:
    ran = cli("reset-offsets g1 --topic t1:0 --to-earliest --execute -X client.id=me -X bootstrap.servers=other:9092")
    assert "to undo: kgctl --bootstrap-server other:9092 undo 20240101T000000Z-reset-offsets --execute" in ran.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"topic": "t1", "partition": 0, "offset": 1}\n{"topic": "t1"', "line 2: not readable as JSON: "),
        ('{"topic": "t1", "partition": 0, "offset": 1}\n[1]\n', "line 2: expected a row, as an object"),
        ('{"topic": "t1", "partition": 0}\n', "line 1: no column offset (or new_offset)"),
    ],
)
def test_a_line_of_json_that_is_no_row_is_an_error_with_its_number(
    cli: Cli, cluster: FakeGroupAdmin, text: str, told: str
) -> None:
    ran = from_file(cli, text, "g1 --execute")
    assert (ran.code, told in ran.err, cluster.commits("g1")) == (2, True, {("t1", 0): 100, ("t1", 1): 50}), ran.err
