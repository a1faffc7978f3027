"""``kgctl simulate check``, ``list``, ``show``, ``schema`` and ``init``."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli

DOUBTFUL = """\
kgctl: 1
name: doubtful
topics: {orders: 2}
members:
  app: {count: 4, boot: 50s, instance_id: one, config: {heartbeat.interval.ms: 20s}}
warmup: 60s
events:
  - {at: 0s, crash: app/9, for: 5s}
"""


def test_check_names_rule_and_line(cli: Cli) -> None:
    path = cli.folder / "doubtful.yaml"
    path.write_text(DOUBTFUL)
    ran = cli(f"simulate check {path} -o json")
    assert (ran.code, ran.json["status"]) == (0, "ok")
    assert [(row["rule"], row["line"], row["severity"]) for row in ran.data] == [
        ("idle-members", 4, "warning"),
        ("session-below-boot", 5, "warning"),
        ("ids-not-unique", 5, "warning"),
        ("heartbeat-above-third", 5, "warning"),
        ("selects-nobody", 8, "warning"),
    ]
    assert cli(f"simulate check {path} --strict").code == 2


def test_check_of_a_wrong_file_exits_2_with_rows_and_errors(cli: Cli) -> None:
    path = cli.folder / "wrong.yaml"
    path.write_text("kgctl: 1\nname: x\nmembers: {app: {}}\ntopcs: {a: 1}\n")
    ran = cli(f"simulate check {path} -o json")
    assert (ran.code, ran.json["exit_code"]) == (2, 2)
    assert [(row["line"], row["column"], row["path"], row["message"]) for row in ran.data] == [
        (4, 1, "topcs", "unknown key; did you mean 'topics'?")
    ]
    assert [error["code"] for error in ran.json["errors"]] == ["USAGE"]


BREAKS = "kgctl: 1\nname: x\ntopics: {t: 1}\nmembers: {app: {count: 1}}\nduration: 5s\nvariants: {one: {}, other: {}}\n"


def test_shrink_writes_to_stdout_or_where_nothing_is(cli: Cli) -> None:
    path = cli.folder / "s.yaml"
    path.write_text(BREAKS)
    line = f"simulate shrink {path} --check members==0 --most-runs 2"
    assert (cli(f"{line} --out -").out, [*cli.folder.glob("-")]) == (cli(line).out, [])
    assert (cli(f"{line} --out {path}").code, cli(f"{line} --out {cli.folder}/no/s.yaml").code) == (5, 2)
    assert cli(f"simulate init {cli.folder}/no/s.yaml").code == 2


def test_a_number_with_leading_zeros_is_refused_in_every_file(cli: Cli) -> None:
    told = "010: a number has no leading zeros: write 10, or '010' where text is meant"
    for name, text, line in (
        ("s.yaml", "kgctl: 1\nname: x\ntopics: {a: 4}\nmembers: {app: {count: 010}}\n", "simulate check {}"),
        ("g.yaml", "topics: {a: 010}\nmembers: {m: {topics: [a]}}\n", "simulate assign {}"),
        ("p.yaml", "- group: g1\n  topic: t1\n  partition: 0\n  offset: 010\n", "reset-offsets --from-file {}"),
    ):
        path = cli.folder / name
        path.write_text(text)
        ran = cli(line.format(path))
        assert (ran.code, told in ran.out + ran.err) == (2, True), (ran.out, ran.err)
    ran = cli("simulate run rolling-restart --set members.app.count=010")
    assert (ran.code, told in ran.err) == (2, True), ran.err


def test_init_tells_that_a_set_is_not_rolled(cli: Cli) -> None:
    manifest = cli.folder / "db.yaml"
    manifest.write_text("kind: StatefulSet\nmetadata: {name: db}\nspec: {updateStrategy: {type: OnDelete}}\n")
    ran = cli(f"simulate init --from-manifest {manifest} {cli.folder}/s.yaml")
    assert (ran.code, "db.yaml) is OnDelete: a deploy rolls nothing by itself" in ran.err) == (0, True), ran.err
    assert cli(f"simulate check {cli.folder}/s.yaml").code == 0


def test_a_mistake_that_the_table_tells_is_not_told_on_stderr_again(cli: Cli) -> None:
    path = cli.folder / "wrong.yaml"
    path.write_text("kgctl: 1\nname: x\nmembers: {app: {}}\ntopcs: {a: 1}\nevnts: []\n")
    ran, names = cli(f"simulate check {path}"), cli(f"simulate check {path} -o name")
    assert (ran.code, ran.out.count("unknown key"), ran.err) == (2, 2, f"kgctl: {path}: 2 mistakes\n")
    assert (names.out.count("unknown key"), names.err.count("unknown key")) == (0, 2)


def test_check_of_a_good_file_says_so(cli: Cli) -> None:
    ran = cli("simulate check rolling-restart")
    assert (ran.code, ran.out, ran.err) == (0, "", "rolling-restart: ok\n")


def test_list_has_a_question_for_each_scenario(cli: Cli) -> None:
    rows = cli("simulate list -o json").data
    assert len(rows) >= 15
    assert all(row["question"].endswith("?") for row in rows)


def test_show_prints_the_file_itself(cli: Cli) -> None:
    assert yaml.safe_load(cli("simulate show rolling-restart").out)["name"] == "rolling-restart"
    assert cli("simulate show rolling").code == 4


def test_schema_describes_events_and_sections(cli: Cli) -> None:
    schema = json.loads(cli("simulate schema").out)
    assert schema == cli("simulate schema -o json").data
    for output in ("csv", "name", "name0"):
        assert cli(f"simulate schema -o {output}").err == f"kgctl: -o {output}: a schema has no rows; without -o it is JSON\n"
    titles = [each["title"] for each in schema["properties"]["events"]["items"]["anyOf"]]
    assert {"rolling_restart", "crash", "scale"} <= set(titles)


def test_init_writes_a_scenario_that_runs(cli: Cli) -> None:
    path = cli.folder / "g2.yaml"
    ran = cli(f"simulate init --from-group g2 --sample 0s {path}")
    assert (ran.code, ran.out) == (0, f"FILE\n{path}\n")
    document = yaml.safe_load(path.read_text())
    assert document["topics"] == {"t1": {"partitions": 3}}
    assert sum(members["count"] for members in document["members"].values()) == 2
    assert cli(f"simulate run {path} --runs 1").code == 0
    assert cli(f"simulate init {path}").code == 5


def test_a_scenario_is_written_to_stdout_where_the_file_is_a_dash(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cli.folder)
    assert (cli("simulate init -").out, [*cli.folder.glob("-")]) == (cli("simulate init").out, [])


def test_init_from_a_saved_description_is_the_same_group(cli: Cli) -> None:
    saved = cli.folder / "g2.json"
    saved.write_text(cli("describe group g2 --members -o json").out)
    document = yaml.safe_load(cli(f"simulate init --from-file {saved}").out)
    assert document["topics"] == {"t1": {"partitions": 3}}
    assert sum(members["count"] for members in document["members"].values()) == 2


def test_a_saved_description_knows_the_assignor(cli: Cli) -> None:
    assert isinstance(cli.admin, FakeGroupAdmin)
    members = cli.admin.groups["g2"].description.members
    cli.admin.group("g2", {}, members, assignor="cooperative-sticky")
    saved = cli.folder / "g2.json"
    saved.write_text(cli("describe group g2 --members -o json").out)
    document = yaml.safe_load(cli(f"simulate init --from-file {saved}").out)
    assert document["group"]["config"]["partition.assignment.strategy"] == ["cooperative-sticky"]


@pytest.mark.parametrize("command", ["check", "explain", "run"])
def test_a_scenario_about_a_group_that_there_is_takes_the_cluster_from_the_command_line(cli: Cli, command: str) -> None:
    path = cli.folder / "live.yaml"
    path.write_text('kgctl: 1\nname: x\ngroup: {from: "live:nosuch"}\n')
    ran = cli(f"simulate {command} {path} --bootstrap-server other:9092")
    assert (ran.code, (ran.out + ran.err).count("Group 'nosuch' does not exist")) == (2, 1)
    assert cli.settings[-1].bootstrap == "other:9092"


def test_init_from_manifests_names_them_from_where_it_is_written(cli: Cli) -> None:
    (cli.folder / "k8s").mkdir()
    (cli.folder / "k8s" / "d.yaml").write_text("kind: Deployment\nmetadata: {name: a}\nspec: {replicas: 2}\n")
    path = cli.folder / "a.yaml"
    assert cli(f"simulate init --from-manifest {cli.folder}/k8s/d.yaml {path}").code == 0
    assert yaml.safe_load(path.read_text())["from_manifest"] == {"files": ["k8s/d.yaml"], "says": ["members.a.count"]}
    assert cli(f"simulate check {path}").code == 0
    (cli.folder / "k8s" / "d.yaml").write_text("kind: Deployment\nmetadata: {name: a}\nspec: {replicas: 3}\n")
    ran = cli(f"simulate check {path} -o json")
    assert (ran.code, [row["path"] for row in ran.data]) == (2, ["members.a.count"])
    assert cli(f"simulate init --from-manifest {path} --from-group g2").code == 2
    assert cli(f"simulate init --from-manifest {cli.folder}/nosuch.yaml").code == 2


def test_init_without_a_group_is_an_example(cli: Cli) -> None:
    assert cli("simulate init").out == cli("simulate show rolling-restart").out


def test_init_of_a_group_that_is_not_there_exits_4(cli: Cli) -> None:
    assert cli("simulate init --from-group nosuch").code == 4
