"""``kgctl context add|set|delete|current``, and secrets that a setting points to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from keyring.errors import NoKeyringError

from kgctl.extras import install_line
from tests.cli.harness import Cli
from tests.support.fault_lab import disk_full_at

FILE = """\
# ours
current-context: stage
contexts:
  # the small one
  stage:
    bootstrap-server: s:1
  prod:  # careful
    bootstrap-server: p:1
    properties:
      client.id: me

# the end
"""


@pytest.fixture
def config(cli: Cli) -> Path:
    path = cli.folder / "config.yaml"
    path.write_text(FILE)
    path.chmod(0o600)
    return path


def test_first_context_makes_a_file_for_its_owner_alone(cli: Cli) -> None:
    ran = cli("context add desk --bootstrap-server d:1 --timeout 20s -X client.id=me --use")
    path = cli.folder / "config.yaml"
    assert (ran.code, path.stat().st_mode & 0o777) == (0, 0o600)
    assert path.read_text() == (
        "current-context: desk\ncontexts:\n  desk:\n    bootstrap-server: d:1\n    timeout: 20s\n    properties:\n"
        "      client.id: me\n"
    )
    assert cli("context current -o name").out == "desk\n"


def test_a_setting_that_looks_like_a_number_stays_what_was_given(cli: Cli) -> None:
    assert cli("context add desk --bootstrap-server d:1 -X client.id=08 -X client.rack=61e5 --use").code == 0
    assert [line.split() for line in cli("context show").out.splitlines()[-2:]] == [
        ["desk", "client.id", "08"],
        ["desk", "client.rack", "61e5"],
    ]


def test_rest_of_the_file_stays_as_it_is(cli: Cli, config: Path) -> None:
    assert cli("context add desk --embedded /d").code == 0
    assert cli("context set prod --timeout 5s --unset client.id").code == 0
    assert cli("context delete stage").code == 0
    assert config.read_text() == (
        "# ours\ncurrent-context: stage\ncontexts:\n  desk:\n    embedded: /d\n  # the small one\n"
        "  prod:\n    bootstrap-server: p:1\n"
        "    timeout: 5s\n# the end\n"
    )


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("context add stage --bootstrap-server x:1", 2, "there is a context 'stage' already"),
        ("context add new", 2, "say which cluster"),
        ("context add new --bootstrap-server x:1 -X sasl.password=hunter2", 2, "a secret is not kept as it stands"),
        ("context set nosuch --timeout 5s", 2, "unknown context 'nosuch'"),
        ("context set stage --unset nosuch", 2, "context 'stage' has no setting 'nosuch'"),
        ("context set stage -X nosuch=1", 2, "no such property"),
        ("context delete nosuch", 2, "unknown context 'nosuch'"),
    ],
)
def test_bad_input_changes_nothing(cli: Cli, config: Path, line: str, code: int, message: str) -> None:
    ran = cli(line)
    assert (ran.code, message in ran.err, config.read_text()) == (code, True, FILE), ran.err
    assert "hunter2" not in ran.err


def test_no_current_context_is_not_found(cli: Cli) -> None:
    assert cli("context current").code == 4


def test_secrets_are_read_where_a_setting_points(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pw").write_text("from-file\n")
    monkeypatch.setenv("KGCTL_TEST_PW", "from-env")
    kept = {("kgctl", "prod kafka"): "from-keyring"}
    monkeypatch.setattr("keyring.get_password", lambda service, name: kept.get((service, name)))
    common = "-X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=me"
    for pointer, secret in (
        ("env:KGCTL_TEST_PW", "from-env"),
        (f"file:{tmp_path}/pw", "from-file"),
        ("cmd:echo from-cmd", "from-cmd"),
        ("keyring:prod kafka", "from-keyring"),
    ):
        ran = cli.run(["list", "groups", *common.split(), "-X", f"sasl.password={pointer}"])
        assert (ran.code, cli.settings[-1].properties["sasl.password"]) == (0, secret)


@pytest.mark.parametrize(
    ("pointer", "message"),
    [
        ("env:KGCTL_NOT_SET", "sasl.password: the variable KGCTL_NOT_SET is not set"),
        ("file:/no/such", "sasl.password: cannot read /no/such: No such file or directory"),
        ("cmd:false", "sasl.password: 'false' ended with 1 and no output"),
        ("cmd:no-such-program-here", "sasl.password: cannot run 'no-such-program-here': No such file or directory"),
    ],
)
def test_secret_that_cannot_be_had_is_a_usage_error(cli: Cli, pointer: str, message: str) -> None:
    ran = cli(f"list groups -X sasl.password={pointer}")
    assert (ran.code, ran.err) == (2, f"kgctl: {message}\n")


def test_a_key_store_that_lacks_the_secret_is_a_usage_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "list groups -X sasl.password=keyring:prod"
    monkeypatch.setattr("keyring.get_password", lambda _service, _name: None)
    assert cli(line).err == "kgctl: sasl.password: the system's key store has no 'prod': keyring set kgctl prod\n"

    def refuse(_service: str, _name: str) -> str:
        raise NoKeyringError("No recommended backend was available")

    monkeypatch.setattr("keyring.get_password", refuse)
    message = "kgctl: sasl.password: the system's key store cannot be asked: No recommended backend was available\n"
    assert (cli(line).code, cli(line).err) == (2, message)

    monkeypatch.setitem(sys.modules, "keyring", None)
    assert install_line("keyring") in cli(line).err


def test_file_with_a_secret_that_others_can_read_is_told(cli: Cli, config: Path) -> None:
    config.write_text(FILE.replace("client.id: me", "sasl.password: hunter2"))
    config.chmod(0o644)
    ran = cli("list groups --context prod")
    assert (ran.code, ran.err.startswith(f"Others can read {config}, which holds sasl.password: chmod 600 it")) == (0, True)
    config.chmod(0o600)
    assert "Others can read" not in cli("list groups --context prod").err


def test_command_config_with_a_secret_that_others_can_read_is_told(cli: Cli) -> None:
    path = cli.folder / "bob.properties"
    path.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=bob\nsasl.password=bobpw\n")
    path.chmod(0o644)
    ran = cli(f"--command-config {path} list groups")
    assert (ran.code, ran.err.startswith(f"Others can read {path}, which holds sasl.password: chmod 600 it")) == (0, True), (
        ran.err
    )
    path.chmod(0o600)
    assert "Others can read" not in cli(f"--command-config {path} list groups").err


def test_a_secret_on_the_command_line_is_remarked_upon(cli: Cli) -> None:
    said = "-X sasl.password: all users of this machine can see it in the list of processes; write env:NAME, file:PATH"
    assert cli("list groups -X sasl.password=geheim").err.startswith(said)
    assert "geheim" not in cli("list groups -X sasl.password=geheim").err
    for harmless in ("sasl.password=env:HOME", "sasl.oauthbearer.token.endpoint.url=https://a.b/token", "client.id=x"):
        assert "list of processes" not in cli(f"list groups -X {harmless}").err


@pytest.mark.parametrize(
    ("server", "protocol", "mechanism", "told"),
    [
        ("broker1:9092", "SASL_PLAINTEXT", "PLAIN", "The password goes to broker1 unencrypted"),
        ("127.0.0.1:1,10.0.0.7:9092", "SASL_PLAINTEXT", "PLAIN", "The password goes to 10.0.0.7 unencrypted"),
        ("broker1:9092", "SASL_PLAINTEXT", "OAUTHBEARER", "The token goes to broker1 unencrypted"),
        ("broker1:9092", "SASL_PLAINTEXT", "SCRAM-SHA-512", ""),
        ("broker1:9092", "SASL_SSL", "PLAIN", ""),
        ("localhost:9092,127.0.0.2:9092,[::1]:9092", "SASL_PLAINTEXT", "PLAIN", ""),
    ],
)
def test_a_password_that_leaves_the_machine_in_the_clear_is_told(
    cli: Cli, server: str, protocol: str, mechanism: str, told: str
) -> None:
    login = f"-X security.protocol={protocol} -X sasl.mechanism={mechanism} -X sasl.username=me -X sasl.password=env:HOME"
    ran = cli(f"list groups --bootstrap-server {server} {login}")
    assert (ran.code, "unencrypted" in ran.err, told in ran.err) == (0, bool(told), True), ran.err


CHANGES = ["add desk --bootstrap-server d:1", "set prod --timeout 5s", "set prod --unset client.id", "delete prod", "use prod"]


@pytest.mark.parametrize("size", [0, 1, 100])
@pytest.mark.parametrize("change", CHANGES)
def test_a_full_disk_leaves_the_file_as_it_was(cli: Cli, config: Path, change: str, size: int) -> None:
    with disk_full_at(size):
        ran = cli(f"context {change} -o json")
    assert (ran.code, ran.data, [error["code"] for error in ran.json["errors"]]) == (1, [], ["STORAGE_ERROR"]), ran.err
    assert ran.err == f"kgctl: cannot write {config}: File too large; it is as it was\n"
    assert (config.read_text(), [path.name for path in cli.folder.iterdir()]) == (FILE, [config.name])
    assert cli(f"context {change}").code == 0


def test_a_link_stays_a_link(cli: Cli, config: Path) -> None:
    kept = config.rename(cli.folder / "dotfiles.yaml")
    config.symlink_to(kept)
    assert cli("context use prod").code == 0
    assert (config.is_symlink(), "current-context: prod" in kept.read_text()) == (True, True)


def test_a_file_that_may_not_be_written(cli: Cli, config: Path) -> None:
    cli.variables["KGCTL_CONFIG"] = "/proc/kgctl/config.yaml"
    ran = cli("context add desk --bootstrap-server d:1")
    assert (ran.code, ran.err.splitlines()) == (
        1,
        ["kgctl: cannot write /proc/kgctl/config.yaml: No such file or directory; it is as it was"],
    )


def test_setting_nothing_is_a_mistake_and_setting_the_same_again_is_none(cli: Cli, config: Path) -> None:
    ran = cli("context set prod")
    assert (ran.code, "say what to set" in ran.err, config.read_text()) == (2, True, FILE)
    assert cli("context set prod --bootstrap-server p:1").code == 0
