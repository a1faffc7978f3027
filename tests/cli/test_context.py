"""Contexts, and which cluster a command goes to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kgctl
from kgctl.cli.environment import VARIABLES, nearest_variable
from tests.cli.harness import Cli, Ran

CONFIG = """\
# our clusters
current-context: staging   # for now
contexts:
  staging:
    bootstrap-server: s1:9092,s2:9092
    properties:
      client.id: me
      sasl.password: hunter2
    timeout: 2s
  desk:
    embedded: ~/data
"""


@pytest.fixture
def config(cli: Cli) -> Path:
    path = cli.folder / "config.yaml"
    path.write_text(CONFIG)
    cli.variables.pop("KGCTL_BOOTSTRAP_SERVER")
    return path


def address(cli: Cli, line: str = "list groups", **variables: str) -> tuple[str | None, str | None, dict[str, str], int]:
    """What a command connects with."""
    ran = cli(line, variables=variables)
    assert ran.code == 0, ran.err
    settings = cli.settings[-1]
    return (
        settings.bootstrap,
        str(settings.embedded) if settings.embedded else None,
        dict(settings.properties),
        settings.timeout_ms,
    )


def test_current_context_is_used_where_nothing_else_is_said(cli: Cli, config: Path) -> None:
    assert address(cli) == ("s1:9092,s2:9092", None, {"client.id": "me", "sasl.password": "hunter2"}, 2000)


def test_flag_wins_over_environment_and_environment_over_context(cli: Cli, config: Path) -> None:
    assert address(cli, KGCTL_BOOTSTRAP_SERVER="e:1") == ("e:1", None, {}, 15_000)
    assert address(cli, "--bootstrap-server f:1 list groups", KGCTL_BOOTSTRAP_SERVER="e:1") == ("f:1", None, {}, 15_000)
    assert address(cli, KGCTL_CONTEXT="desk")[1] == str(Path("~/data").expanduser())
    assert address(cli, "list groups --context staging", KGCTL_CONTEXT="desk")[0] == "s1:9092,s2:9092"
    assert address(cli, "list groups --context staging", KGCTL_BOOTSTRAP_SERVER="e:1")[0] == "s1:9092,s2:9092"
    assert address(cli, "list groups --embedded d", KGCTL_BOOTSTRAP_SERVER="e:1")[:2] == (None, "d")


@pytest.mark.parametrize("name", ["KGCTL_BOOTSTRAP_SERVERS", "KGCTL_CTX", "KGCTL_CONFIG_FILE"])
def test_a_variable_whose_name_is_nearly_right_does_not_lead_to_another_cluster(cli: Cli, config: Path, name: str) -> None:
    ran = cli("delete-groups g1 --yes", variables={name: "desk"})
    assert (ran.code, ran.err.startswith(f"kgctl: {name} is no variable of kgctl; did you mean KGCTL_"), cli.settings) == (
        2,
        True,
        [],
    )
    is_named = name != "KGCTL_CONFIG_FILE"
    assert cli("list groups --context staging", variables={name: "desk", "KGCTL_OWN": "1"}).code == (0 if is_named else 2)


def test_no_variable_that_kgctl_has_is_taken_for_another() -> None:
    """Each of them may be there beside the address of a cluster in the current context."""
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(kgctl.__file__).parent.rglob("*.py"))
    named = {*re.findall(r"\bKGCTL_[A-Z_]+", sources)}
    assert {*VARIABLES} <= named
    assert [name for name in named - {*VARIABLES} if nearest_variable(name)] == []


def test_named_context_keeps_its_credentials_for_another_address(cli: Cli, config: Path) -> None:
    assert address(cli, "list groups --context staging --bootstrap-server f:1") == (
        "f:1",
        None,
        {"client.id": "me", "sasl.password": "hunter2"},
        2000,
    )


@pytest.mark.parametrize(
    "line",
    [
        "--bootstrap-server f:1 -X client.id=1 list groups -X client.rack=2 --timeout 3",
        "list --bootstrap-server f:1 -X client.id=1 groups -X client.rack=2 --timeout 3",
        "list groups --bootstrap-server f:1 -X client.id=1 -X client.rack=2 --timeout 3s",
        "--bootstrap-server x:1 --timeout 9 list groups --bootstrap-server f:1 -X client.id=1 -X client.rack=2 --timeout 3000ms",
    ],
)
def test_options_stand_anywhere_and_the_last_wins(cli: Cli, line: str) -> None:
    assert address(cli, line) == ("f:1", None, {"client.id": "1", "client.rack": "2"}, 3000)


def test_properties_of_flags_win_over_file_and_context(cli: Cli, config: Path) -> None:
    java = cli.folder / "client.properties"
    java.write_text("client.id=file\nsecurity.protocol=SSL\n")
    properties = address(cli, f"list groups --context staging --command-config {java} -X security.protocol=PLAINTEXT")[2]
    assert properties["client.id"] == "file"
    assert properties["security.protocol"] == "PLAINTEXT"


def test_address_can_come_from_the_command_config(cli: Cli, config: Path) -> None:
    config.unlink()
    java = cli.folder / "client.properties"
    java.write_text("bootstrap.servers=j:1\n")
    assert address(cli, f"list groups --command-config {java}")[2]["bootstrap.servers"] == "j:1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("list groups --context nope", "unknown context 'nope'; known contexts: desk, staging"),
        ("list groups --bootstrap-server a:1 --embedded d", "--bootstrap-server and --embedded exclude each other"),
        ("list groups --timeout 0", "--timeout '0' must be more than zero and at most one day"),
        (
            "list groups --timeout soon",
            "--timeout: cannot read 'soon' as a duration: write P7D, PT1H, PT30M, or 2d, 1h, 1h30m, 90s, 500ms; "
            "a bare number counts seconds",
        ),
        ("context use nope", "unknown context 'nope'; known contexts: desk, staging"),
        ("--embedded d context show", "kgctl context show takes no --embedded"),
    ],
)
def test_usage_errors(cli: Cli, config: Path, line: str, message: str) -> None:
    assert cli(line) == Ran(2, "", f"kgctl: {message}\n")
    assert cli.settings == []


@pytest.mark.parametrize(
    ("line", "variables", "expected"),
    [
        ("--zookeeper z:1/k list groups", {"KGCTL_ZOOKEEPER": "e:2", "KGCTL_BOOTSTRAP_SERVER": "e:1"}, ("z:1/k", None)),
        ("--zookeeper z:1 --bootstrap-server f:1 list groups", {}, ("z:1", "f:1")),
        ("list groups", {"KGCTL_ZOOKEEPER": "e:2", "KGCTL_BOOTSTRAP_SERVER": "e:1"}, ("e:2", "e:1")),
        ("--bootstrap-server f:1 list groups", {"KGCTL_ZOOKEEPER": "e:2"}, (None, "f:1")),
        ("--context old list groups", {"KGCTL_ZOOKEEPER": "e:2"}, ("zk1:2181/kafka", "b:1")),
        ("--context old --bootstrap-server f:1 list groups", {}, (None, "f:1")),
        ("--context old --zookeeper z:1 list groups", {}, ("z:1", "b:1")),
    ],
)
def test_zookeeper_is_named_by_flag_before_environment_before_context(
    cli: Cli, config: Path, line: str, variables: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    config.write_text("contexts:\n  old:\n    zookeeper: zk1:2181/kafka\n    bootstrap-server: b:1\n")
    assert cli(line, variables=variables).code == 0
    assert (cli.settings[-1].zookeeper, cli.settings[-1].bootstrap) == expected


def test_zookeeper_and_a_data_folder_exclude_each_other(cli: Cli, config: Path) -> None:
    assert cli("--zookeeper z:1 --embedded d list groups").err == "kgctl: --embedded and --zookeeper exclude each other\n"
    config.write_text("contexts:\n  old:\n    zookeeper: z:1\n    embedded: d\n")
    assert "has both zookeeper and embedded" in cli("--context old list groups").err


def test_no_cluster_at_all(cli: Cli) -> None:
    cli.variables.pop("KGCTL_BOOTSTRAP_SERVER")
    assert cli("list groups") == Ran(
        2,
        "",
        "kgctl: no cluster given: use --bootstrap-server HOST:PORT, --embedded DIR or --zookeeper HOST:PORT, "
        "set KGCTL_BOOTSTRAP_SERVER or KGCTL_ZOOKEEPER, or make a context (kgctl context --help)\n",
    )


def test_list(cli: Cli, config: Path) -> None:
    assert cli("context list") == Ran(
        0,
        "CONTEXT  CURRENT  BOOTSTRAP-SERVER  EMBEDDED  ZOOKEEPER\n"
        "desk     no       -                 ~/data    -\n"
        "staging  yes      s1:9092,s2:9092   -         -\n",
        "",
    )


def test_list_without_a_file(cli: Cli) -> None:
    assert cli("context list") == Ran(0, "", f"No contexts. They are defined in {cli.folder / 'config.yaml'}.\n")


def test_show_hides_secrets(cli: Cli, config: Path) -> None:
    assert cli("context show").out == (
        "CONTEXT  SETTING           VALUE\n"
        "staging  bootstrap-server  s1:9092,s2:9092\n"
        "staging  timeout           2000 ms\n"
        "staging  client.id         me\n"
        "staging  sasl.password     [hidden]\n"
    )
    assert "hunter2" not in cli("context show staging -o json").out


def test_use_changes_one_line_and_keeps_the_rest(cli: Cli, config: Path) -> None:
    ran = cli("context use desk")
    assert (ran.code, ran.err) == (0, "Current context: desk.\n")
    assert config.read_text() == CONFIG.replace("current-context: staging   # for now", "current-context: desk")
    assert cli("context list -o csv").csv[0]["current"] == "true"


def test_use_adds_the_line_where_there_is_none(cli: Cli, config: Path) -> None:
    config.write_text("contexts:\n  'a b': {bootstrap-server: 'x:1'}\n")
    assert cli.run(["context", "use", "a b"]).code == 0
    assert config.read_text() == "current-context: 'a b'\ncontexts:\n  'a b': {bootstrap-server: 'x:1'}\n"
    assert address(cli)[0] == "x:1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contexts:\n  a:\n    bootstrap: x\n", "line 3: context 'a' has no setting 'bootstrap'; known: bootstrap-server, "),
        ("contexts: [1]\n", "line 1: contexts must be a mapping"),
        ("- 1\n", "line 1: the file must be a mapping"),
        ("a: 1\n", "line 1: the file has no setting 'a'; known: current-context, contexts"),
        ("contexts:\n  a:\n\tb: 1\n", "line 3: "),
        ("contexts:\n  a:\n    timeout: [1]\n", "line 3: timeout must be a single value"),
        (
            "contexts:\n  a:\n    bootstrap-server: x\n    embedded: d\n",
            "line 3: context 'a' has both bootstrap-server and embedded",
        ),
    ],
)
def test_malformed_config_names_its_line(cli: Cli, config: Path, text: str, message: str) -> None:
    config.write_text(text)
    ran = cli("context list")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"kgctl: {config}, {message}")


def test_words_and_numbers_of_the_config_file_are_those_of_yaml_1_2(cli: Cli, config: Path) -> None:
    config.write_text(
        "current-context: on\ncontexts:\n  on:\n    bootstrap-server: 'x:1'\n    timeout: 10\n"
        "    properties: {client.id: no, enable.auto.commit: True, fetch.wait.max.ms: 0x10}\n"
    )
    assert cli("context show").out == (
        "CONTEXT  SETTING             VALUE\n"
        "on       bootstrap-server    x:1\n"
        "on       timeout             10000 ms\n"
        "on       client.id           no\n"
        "on       enable.auto.commit  true\n"
        "on       fetch.wait.max.ms   16\n"
    )


def test_context_without_a_cluster_is_named(cli: Cli, config: Path) -> None:
    config.write_text("current-context: a\ncontexts:\n  a: {timeout: 3}\n")
    assert cli("list groups").err == "kgctl: context 'a' names no cluster\n"


def test_config_file_that_cannot_be_read(cli: Cli, config: Path) -> None:
    config.unlink()
    config.mkdir()
    ran = cli("context list")
    assert (ran.code, ran.err.startswith(f"kgctl: cannot read {config}: ")) == (2, True)


def test_empty_config_file_has_no_contexts(cli: Cli, config: Path) -> None:
    config.write_text("# nothing yet\n")
    assert cli("context list").code == 0


@pytest.mark.parametrize("flag", ["--bootstrap-server", "--context", "--embedded", "--command-config", "--timeout"])
@pytest.mark.parametrize("front", [True, False])
def test_cluster_flag_with_an_empty_value_never_means_another_cluster(cli: Cli, flag: str, *, front: bool) -> None:
    ran = cli.run([flag, "", "list", "groups", "-o", "json"] if front else ["list", "groups", "-o", "json", flag, ""])
    assert (ran.code, ran.json["command"]) == (2, "list groups")
    assert ran.err == f"kgctl: {flag} is empty (an unset variable?): leave it out, or give it a value\n"
    assert cli.settings == []


def test_address_in_a_property_given_by_flag_goes_before_environment_and_context(cli: Cli, config: Path) -> None:
    (cli.folder / "other.properties").write_text("bootstrap.servers=other:9092\n", encoding="utf-8")
    for flag in ("-X bootstrap.servers=other:9092", f"--command-config {cli.folder}/other.properties"):
        assert cli(f"list groups {flag}").code == 0
        assert cli(f"list groups {flag}", variables={"KGCTL_BOOTSTRAP_SERVER": "e:1"}).code == 0
    named = [(settings.bootstrap, settings.properties, settings.timeout_ms) for settings in cli.settings]
    assert named == [(None, {"bootstrap.servers": "other:9092"}, 15_000)] * 4


def test_named_context_goes_before_the_address_in_a_file_but_not_before_x(cli: Cli, config: Path) -> None:
    (cli.folder / "other.properties").write_text("bootstrap.servers=other:9092\n", encoding="utf-8")
    assert cli(f"list groups --context staging --command-config {cli.folder}/other.properties").code == 0
    assert cli("list groups --context staging -X bootstrap.servers=x:9092").code == 0
    assert [settings.bootstrap for settings in cli.settings] == ["s1:9092,s2:9092", None]
    assert [settings.timeout_ms for settings in cli.settings] == [2_000, 2_000]


@pytest.mark.parametrize("flag", ["--bootstrap-server a:1", "--embedded data"])
def test_two_addresses_by_flag_are_refused(cli: Cli, flag: str) -> None:
    ran = cli(f"list groups {flag} -X bootstrap.servers=b:1")
    assert (ran.code, ran.err) == (2, f"kgctl: {flag.split(maxsplit=1)[0]} and -X bootstrap.servers exclude each other\n")
    assert cli.settings == []
