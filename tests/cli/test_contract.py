"""What all commands have in common: the envelope, the formats, the exit codes, also for errors before a command runs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kgctl.admin.notation import FileHeader, seal
from kgctl.cli.exit_codes import EXIT_CODES, ExitCode, exit_code_of, exit_code_of_all
from kgctl.cli.registry import COMMANDS
from kgctl.cli.render import RENDERERS
from kgctl.cli.report import OutputFormat, error_line
from kgctl.errors import (
    AuthError,
    BrokerError,
    ClosedError,
    CommitError,
    DamagedError,
    ExpectationError,
    GenerationEnded,
    InvariantViolation,
    KgctlError,
    MisuseError,
    NotFoundError,
    RefusedError,
    StorageError,
    TimedOutError,
    UnreachableError,
    UnsupportedError,
    UsageError,
    UserCodeError,
)
from kgctl.files import write_new
from kgctl.pipeline.builds.run import build
from kgctl.pipeline.collect.at_rest import collect_at_rest
from kgctl.pipeline.engines import LocalEngine
from kgctl.pipeline.sources.at_rest import segments
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.pipeline.upkeep import Pruned
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, Ran, example_cluster
from tests.cli.history.questions import QUESTIONS
from tests.cli.keys import shown_by
from tests.support.pipeline.collected import collected_history
from tests.support.pipeline.example import example_history
from tests.support.pipeline.segments import example_segments
from tests.support.storage import commit, new_folder

ENVELOPE = ["kgctl_result_version", "command", "status", "exit_code", "data", "errors"]
TOLD = "collected_from collected_to records_not_built late_records_not_built samples_not_built"
SUMMARIES = {
    "history collect": "cluster records known damaged samples",
    "history build": "version",
    **dict.fromkeys(QUESTIONS, TOLD),
    "history calibrate": f"pause_ms heartbeat_ms session_ms latency_ms distance distance_before {TOLD}",
    "describe group": "lag groups",
    "diff-offsets": "same different",
    "reset-offsets": "planned unchanged",
    "delete-groups": "deleted",
    "delete-offsets": "deleted",
    "remove-members": "removed",
}
"""Commands whose rows do not tell all, and what their JSON has besides."""
ERROR = ["code", "message", "group", "topic", "partition"]


def keys_of(path: str, line: str) -> str:
    """The keys that a command declares for its usual table, with the options of a line."""
    (spec,) = (spec for spec in COMMANDS if spec.path == path)
    asked = [each for each in shown_by(spec).tables[0] if not each.when or f"--{each.when.replace('_', '-')}" in line]
    return " ".join(column.key for column in asked)


# A line for every command that has a result, and the keys of its rows: `tests/docs/keys_1.json` holds those of the code.
LINES = {
    "list groups": ("--lag", keys_of("list groups", "--lag")),
    "describe group": ("g1", keys_of("describe group", "g1")),
    "reset-offsets": ("g1 --topic t1 --to-latest", keys_of("reset-offsets", "g1 --topic t1 --to-latest")),
    "peek": ("g1", keys_of("peek", "g1")),
    "top": ("--iterations 1", keys_of("top", "--iterations 1")),
    "diff-offsets": ("g1 g3", keys_of("diff-offsets", "g1 g3")),
    "undo": ("", keys_of("undo", "")),
    "delete-groups": ("g1 --yes", keys_of("delete-groups", "g1 --yes")),
    "delete-offsets": ("g1 --topic t1 --yes", keys_of("delete-offsets", "g1 --topic t1 --yes")),
    "remove-members": ("g2 --all --yes", keys_of("remove-members", "g2 --all --yes")),
    "validate-regex": ("^t.* --topic t1", keys_of("validate-regex", "^t.* --topic t1")),
    "simulate check": ("doubtful.yaml", "severity file line column path rule message"),
    "simulate compare": ("small.yaml --all", "a b metric verdict a_mean b_mean difference low high a_better b_better seeds"),
    "simulate list": ("", "name question"),
    "simulate shrink": (
        "small.yaml --variant slow --check slow.max_gap<1ms --most-runs 3",
        "check seed events pods partitions runs is_minimal cause file text",
    ),
    "manual": ("", "page subject chapter"),
    "simulate sweep": (
        "small.yaml --set members.app.count=2,3 --jobs 1 --metric moves",
        "members.app.count variant runs errors failed moves_median moves_p95 moves_max worst_seed",
    ),
    "history collect": (
        "--segments logs/kafka --warehouse logs/warehouse",
        "cluster log_partition records known damaged first_offset last_offset from to",
    ),
    "history build": ("--warehouse collected --engine local", "cluster table rows written changed"),
    "history sql": ("--tables", "table column type meaning"),
    "history dbt": ("dbt --warehouse collected", "file"),
    "history grafana": ("board.json", "file"),
    "history calibrate": (
        "group --no-search --runs 1 --warehouse collected",
        "metric recorded sim_min simulated sim_max inside before meaning",
    ),
    "history prune": ("--older-than 1d --yes --warehouse collected", "table rows"),
    "history forget": ("c1 --yes --warehouse collected", "table rows"),
    **QUESTIONS,
    "serve commits": ("coordinator", "time group topic partition offset metadata leader_epoch member"),
    "serve status": (
        "coordinator",
        "group type state members generation leader protocol in_state_since created last_activity waiting_for awaited left_ms "
        "stuck",
    ),
    "context list": ("", "context current bootstrap_server embedded zookeeper command_config timeout"),
    "context use": ("desk", "context current bootstrap_server embedded zookeeper command_config timeout"),
    "context current": ("", "context current bootstrap_server embedded zookeeper command_config timeout"),
    "context set": ("desk --timeout 5s", "context current bootstrap_server embedded zookeeper command_config timeout"),
    "context show": ("desk", "context setting value"),
    "context trust": ("config.yaml --forget", "context setting value"),
}
DATA_OF_THEIR_OWN = {
    "simulate assign": "--members 2 --topic orders:4 --assignor range",
    "simulate run": "small.yaml",
    "simulate explain": "small.yaml --variant slow",
    "simulate schema": "",
    "simulate show": "rolling-restart",
    "simulate init": "",
}
WITHOUT_A_RESULT = {
    "serve",
    "demo",
    "completion",
    "kafka-consumer-groups",
    "context add",
    "context delete",
    "serve complete-rebalance",
    "migrate-offsets",
    "history watch",
}  # the last three need servers, or trouble: test_serve_operator.py, test_migrate_offsets.py, test_watch.py
SMALL = """\
kgctl: 1
name: small
topics: {orders: 4}
members: {app: {count: 2}}
warmup: 30s
events: [{at: 0s, restart: app/1}]
variants: {slow: {}, fast: {members: {app: {boot: 1s}}}}
"""
CONFIG = "current-context: desk\ncontexts:\n  desk:\n    bootstrap-server: 'a:1'\n"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "warehouse"
    example_history(folder)
    return folder


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "collected"
    collected_history(folder)
    build(Warehouse.open(folder), ["c1"], lambda _: LocalEngine())
    return folder


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Segments, and a warehouse that has their records already: collecting them again says the same each time."""
    folder = tmp_path_factory.mktemp("logs")
    example_segments(folder / "kafka")
    new = Warehouse.create(folder / "warehouse")
    collect_at_rest(new, "default", [segments(folder / "kafka")], LocalEngine(), str)
    return folder


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a commit."""
    with new_folder("sqlite", tmp_path_factory.mktemp("coordinator")) as folder:
        folder.record_log.append([commit("g1", 0, 5, member="m")], 1_000)
        assert folder.path is not None
        return folder.path


@pytest.fixture(autouse=True)
def config(cli: Cli, warehouse: Path, collected: Path, logs: Path, coordinator: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.folder / "coordinator").symlink_to(coordinator)
    (cli.folder / "config.yaml").write_text(CONFIG)
    (cli.folder / "warehouse").symlink_to(warehouse)
    (cli.folder / "collected").symlink_to(collected)
    monkeypatch.setattr("kgctl.pipeline.upkeep.forget", lambda *_: Pruned({"records": 15}))  # the real one is of use once
    (cli.folder / "logs").symlink_to(logs)
    monkeypatch.chdir(cli.folder)
    (cli.folder / "small.yaml").write_text(SMALL)
    (cli.folder / "doubtful.yaml").write_text(SMALL.replace("count: 2", "count: 9"))
    header = FileHeader("undo", "fake:9092", "fake:9092", "kgctl delete-groups old", 0, ("old",), 1)
    write_new(cli.folder / "backups" / "x.csv", seal(header, "group,topic,partition,offset\nold,t,0,1\n"), make_folder=True)


def test_every_command_is_held_to_the_contract() -> None:
    assert {spec.path for spec in COMMANDS} == {*LINES, *DATA_OF_THEIR_OWN, *WITHOUT_A_RESULT}


@pytest.mark.parametrize("command", LINES)
def test_json_is_one_envelope_with_the_documented_keys(cli: Cli, command: str) -> None:
    arguments, keys = LINES[command]
    document = cli(f"{command} {arguments} -o json").json
    assert list(document.pop("summary", {})) == SUMMARIES.get(command, "").split()
    assert list(document) == ENVELOPE
    assert {**document, "data": None} == {
        "kgctl_result_version": 1,
        "command": command,
        "status": "ok",
        "exit_code": 0,
        "data": None,
        "errors": [],
    }
    assert document["data"]
    assert all(list(row) == keys.split() for row in document["data"])


@pytest.mark.parametrize("command", DATA_OF_THEIR_OWN)
def test_data_of_its_own_is_in_the_same_envelope(cli: Cli, command: str) -> None:
    ran = cli(f"{command} {DATA_OF_THEIR_OWN[command]} -o json")
    assert (ran.code, list(ran.json), ran.json["command"], ran.json["status"]) == (0, ENVELOPE, command, "ok")
    assert ran.data


@pytest.mark.parametrize("command", LINES)
def test_yaml_says_the_same_as_json(cli: Cli, command: str) -> None:
    line = f"{command} {LINES[command][0]}"
    as_json = Cli(cli.folder, example_cluster())(f"{line} -o json").json
    assert yaml.safe_load(cli(f"{line} -o yaml").out) == as_json


@pytest.mark.parametrize("command", LINES)
def test_csv_has_the_rows_and_keys_of_json(cli: Cli, command: str) -> None:
    arguments, keys = LINES[command]
    out = cli(f"{command} {arguments} -o csv").out
    assert out.isascii()
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == keys.split()
    assert all(len(row) == len(rows[0]) for row in rows)
    assert len(rows) > 1


@pytest.mark.parametrize("command", LINES)
@pytest.mark.parametrize("output", ["table", *(pytest.param(each, marks=pytest.mark.deep) for each in ("wide", "csv", "name"))])
def test_plain_formats_have_no_colour_no_boxes_and_no_cut(cli: Cli, command: str, output: str) -> None:
    arguments, _ = LINES[command]
    out = cli(f"-o {output} {command} {arguments}").out
    assert out.isascii()
    assert "\x1b" not in out
    assert out.endswith("\n")


@pytest.mark.parametrize("output", OutputFormat)
def test_every_format_renders_nothing_and_only_errors(cli: Cli, cluster: FakeGroupAdmin, output: OutputFormat) -> None:
    cluster.groups.clear()
    assert cli(f"list groups -o {output}").code == 0
    ran = cli(f"describe group nosuch -o {output}")
    assert (ran.code, ran.err) == (4, "kgctl: Group 'nosuch' does not exist\n")
    assert bool(ran.out) == output.speaks_of_errors


def test_ndjson_has_the_rows_of_json(cli: Cli) -> None:
    lines = cli("describe group g1 -o ndjson").out.splitlines()
    assert [json.loads(line) for line in lines] == cli("describe group g1 -o json").data


def test_every_format_has_its_renderer() -> None:
    assert set(RENDERERS) == set(OutputFormat)


BEFORE_THE_COMMAND = {
    "nosuch -o json": ("", "no such command 'nosuch' (kgctl --help lists the commands)"),
    "-o json lst": ("", "no such command 'lst'; did you mean 'list'? (kgctl --help lists the commands)"),
    "-o json list": ("list", "Missing command (kgctl list --help shows how it is used)"),
    "list grups -ojson": (
        "list",
        "no such command 'grups'; type: kgctl list groups (kgctl list --help lists the commands)",
    ),
    "-o json describe groups g --zzz": (
        "describe group",
        "no such option --zzz (kgctl describe group --help shows how it is used)",
    ),
    "list groups --output=json --zzz": (
        "list groups",
        "no such option --zzz (kgctl list groups --help shows how it is used)",
    ),
    "list groups extra -ojson": (
        "list groups",
        "kgctl list groups takes no names; type: kgctl describe group extra (kgctl list groups --help shows how it is used)",
    ),
    "-o json describe group g --fail-if-lag-over x": ("describe group", None),
    "-o json reset-offsets g --to-offset": (
        "reset-offsets",
        "Option '--to-offset' requires an argument (kgctl reset-offsets --help shows how it is used)",
    ),
    "-o json context use": ("context use", "Missing argument 'NAME' (kgctl context use --help shows how it is used)"),
    "--output json demo": ("demo", "kgctl demo takes no --output"),
}


@pytest.mark.parametrize("line", BEFORE_THE_COMMAND)
def test_errors_before_the_command_runs_are_enveloped(cli: Cli, line: str) -> None:
    command, message = BEFORE_THE_COMMAND[line]
    ran = cli(line)
    document = ran.json
    assert (ran.code, list(document), list(document["errors"][0])) == (2, ENVELOPE, ERROR)
    assert (document["command"], document["status"], document["data"]) == (command, "error", [])
    assert document["errors"][0]["code"] == "USAGE"
    assert ran.err == f"kgctl: {document['errors'][0]['message']}\n"
    if message:
        assert document["errors"][0]["message"] == message


def test_usage_errors_are_one_line_without_an_envelope_in_tables(cli: Cli) -> None:
    assert cli("list groups --zzz") == Ran(2, "", "kgctl: no such option --zzz (kgctl list groups --help shows how it is used)\n")


def test_alias_is_told_by_the_name_of_its_command(cli: Cli) -> None:
    assert cli("describe groups g1 -o json").json["command"] == "describe group"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("denied", "group 'g', t-1: denied"),
        ("group 'g' denied", "t-1: group 'g' denied"),
        ("t-1 denied for g.", "t-1 denied for g."),
        ("t-11 denied for gg", "group 'g', t-1: t-11 denied for gg"),
    ],
)
def test_error_line_names_group_and_partition_once(message: str, expected: str) -> None:
    assert error_line(BrokerError(message, group="g", topic="t", partition=1)) == expected


def test_error_line_names_no_partition_without_a_topic() -> None:
    assert error_line(BrokerError("log partition 7 was cut", partition=7)) == "log partition 7 was cut"


def test_error_line_knows_a_quoted_group_again() -> None:
    message = r"group 'a\tb' does not exist"
    assert error_line(BrokerError(message, group="a\tb")) == message


@pytest.mark.parametrize(
    "line",
    [
        "describe group {}",
        "reset-offsets {} --topic t1 --to-latest",
        "delete-groups g1 {} --yes",
        "delete-offsets {} --topic t1 --yes",
        "remove-members --group {} --all --yes",
    ],
)
def test_group_id_longer_than_the_protocol_has_room_for_is_a_usage_error(cli: Cli, line: str) -> None:
    ran = cli(line.format("\u00e9" * 16_384))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"kgctl: the group id '{'é' * 40}...' has 32768 bytes; at most 32767 are possible\n"
    assert cli.settings == []


def test_unknown_format_lists_the_formats(cli: Cli) -> None:
    ran = cli("list groups -o xml")
    assert (ran.code, ran.out, cli.settings) == (2, "", [])
    for output in OutputFormat:
        assert output.value in ran.err


def test_no_command_shows_the_help_as_an_error(cli: Cli) -> None:
    for line in ("", "list"):
        ran = cli(line)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("Usage: kgctl")


FAILURES: list[tuple[KgctlError, ExitCode]] = [
    (UsageError("x"), ExitCode.USAGE),
    (NotFoundError("x"), ExitCode.NOT_FOUND),
    (RefusedError("x"), ExitCode.REFUSED),
    (ExpectationError("x"), ExitCode.EXPECTATION),
    (UnreachableError("x"), ExitCode.UNREACHABLE),
    (TimedOutError("x"), ExitCode.UNREACHABLE),
    (AuthError("x"), ExitCode.AUTH),
    (UnsupportedError("x"), ExitCode.FAILED),
    (BrokerError("x"), ExitCode.FAILED),
    (CommitError("x", errors={}), ExitCode.FAILED),
    (MisuseError("x"), ExitCode.USAGE),
    (ClosedError("x"), ExitCode.USAGE),
    (GenerationEnded("x"), ExitCode.USAGE),
    (StorageError("x"), ExitCode.FAILED),
    (DamagedError("x"), ExitCode.FAILED),
    (InvariantViolation("x"), ExitCode.BUG),
    (UserCodeError("x"), ExitCode.BUG),
]


@pytest.mark.parametrize(("failure", "code"), FAILURES, ids=lambda value: type(value).__name__)
def test_every_class_of_error_has_its_exit_code_and_slug(cli: Cli, failure: KgctlError, code: ExitCode) -> None:
    cli.connect_failure = failure
    ran = cli("list groups -o json")
    assert (ran.code, ran.json["exit_code"], ran.json["errors"][0]["code"]) == (code, code, failure.slug)
    assert cli("list groups") == Ran(code, "", "kgctl: x\n")


def test_every_error_class_is_in_the_table_of_failures() -> None:
    def tree(kind: type[KgctlError]) -> set[type[KgctlError]]:
        return {kind}.union(*(tree(child) for child in kind.__subclasses__()))

    own = {kind for kind in tree(KgctlError) if kind.__module__ == "kgctl.errors"} - {KgctlError}
    assert {type(failure) for failure, _ in FAILURES} == own
    assert {kind for kind, _ in EXIT_CODES} <= own


def test_failure_in_the_middle_of_a_command(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.failure = TimedOutError("no answer within 2000 ms")
    assert cli("describe group g1") == Ran(7, "", "kgctl: no answer within 2000 ms\n")
    assert cluster.closed == 1


@pytest.mark.parametrize(
    ("errors", "something_done", "code"),
    [
        ([], True, ExitCode.OK),
        ([], False, ExitCode.OK),
        ([NotFoundError("")], False, ExitCode.NOT_FOUND),
        ([NotFoundError("")], True, ExitCode.PARTIAL),
        ([NotFoundError(""), NotFoundError("")], False, ExitCode.NOT_FOUND),
        ([NotFoundError(""), RefusedError("")], False, ExitCode.FAILED),
        ([NotFoundError(""), ExpectationError("")], True, ExitCode.EXPECTATION),
    ],
)
def test_exit_code_of_several_errors(errors: list[KgctlError], something_done: bool, code: ExitCode) -> None:
    assert exit_code_of_all(errors, something_done=something_done) is code


def test_every_exit_code_is_reached_by_some_error_or_rule() -> None:
    by_error = {exit_code_of(failure) for failure, _ in FAILURES}
    by_rule = {ExitCode.OK, ExitCode.PARTIAL, ExitCode.INTERRUPTED, ExitCode.TERMINATED}
    assert by_error | by_rule == set(ExitCode)


def test_unicode_survives_every_format(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.groups.clear()
    cluster.group("größe-日本")
    assert cli("list groups -o name").out == "größe-日本\n"
    assert json.loads(cli("list groups -o json").out)["data"][0]["group"] == "größe-日本"
    document: Any = yaml.safe_load(cli("list groups -o yaml").out)
    assert document["data"][0]["group"] == "größe-日本"
    assert cli("list groups -o csv").csv[0]["group"] == "größe-日本"
    assert "größe-日本  Empty" in cli("list groups").out


def test_what_nobody_foresaw_is_one_line_and_a_bug(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.failure = ValueError("two\nlines")
    assert cli("list groups") == Ran(
        9, "", "kgctl: internal error, please report it: ValueError: two lines (KGCTL_DEBUG=1 shows where)\n"
    )
    cluster.failure = OSError(28, "No space left on device")
    assert cli("list groups") == Ran(1, "", "kgctl: [Errno 28] No space left on device\n")


def test_traceback_is_shown_to_those_who_ask(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.failure = ValueError("x")
    with pytest.raises(ValueError, match="x"):
        cli("list groups", variables={"KGCTL_DEBUG": "1"})
