"""A project's .kgctl.yml: found from the working folder upwards, and used without a question only where it does no more than
say where clusters are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.harness import Cli

PLAIN = "current-context: dev\ncontexts:\n  dev:\n    bootstrap-server: d:9092\n"
RUNS = PLAIN + "    properties:\n      sasl.password: cmd:echo secret\n"


@pytest.fixture
def project(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project, in whose subfolder the commands run; the user's own contexts are staging and prod."""
    for name in ("KGCTL_CONFIG", "KGCTL_BOOTSTRAP_SERVER"):
        cli.variables.pop(name)
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(cli.folder / name.lower()))
    monkeypatch.delenv("KGCTL_CONFIG", raising=False)
    own = cli.folder / "config" / "kgctl" / "config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(
        "current-context: staging\ncontexts:\n  staging: {bootstrap-server: 's:9092'}\n  prod: {bootstrap-server: 'p:1'}\n"
    )
    here = cli.folder / "project" / "deep" / "down"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    return cli.folder / "project"


def say(project: Path, text: str) -> Path:
    path = project / ".kgctl.yml"
    path.write_text(text)
    return path


def test_the_nearest_file_comes_before_the_users(cli: Cli, project: Path) -> None:
    assert cli("list groups").code == 0
    say(project, PLAIN)
    assert cli("list groups").code == 0
    say(project / "deep", PLAIN.replace("d:9092", "n:9092"))
    assert cli("list groups").code == 0
    assert cli("list groups --context prod").code == 0
    assert cli("list groups", variables={"KGCTL_BOOTSTRAP_SERVER": "e:1"}).code == 0
    assert [settings.bootstrap for settings in cli.settings] == ["s:9092", "d:9092", "n:9092", "p:1", "e:1"]
    listed = cli("context list -o name")
    assert (listed.out.split(), "comes first" in listed.err) == (["dev", "prod", "staging"], True)


def test_a_change_of_the_cluster_of_a_projects_file_is_told_before_it_is_done(cli: Cli, project: Path) -> None:
    path = say(project, PLAIN)
    reset = "reset-offsets g1 --topic t1 --to-latest --no-backup"
    told = f"The cluster is the one that {path} names: "
    assert told not in cli(reset).err
    assert cli(f"{reset} --execute").err.startswith(told)
    assert told not in cli(f"{reset} --execute --context prod").err


def test_a_named_config_file_stands_alone(cli: Cli, project: Path) -> None:
    say(project, PLAIN)
    ran = cli("list groups", variables={"KGCTL_CONFIG": str(cli.folder / "none.yaml")})
    assert (ran.code, "no cluster given" in ran.err) == (2, True)


def test_a_folder_above_that_is_closed_has_no_file(cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    say(project, PLAIN)
    found = Path.is_file

    def is_file(path: Path) -> bool:
        if path.parent == project:
            raise PermissionError(13, "Permission denied")
        return found(path)

    monkeypatch.setattr(Path, "is_file", is_file)
    assert cli("list groups").code == 0
    assert cli.settings[0].bootstrap == "s:9092"


def loosened(path: Path) -> None:
    path.chmod(0o666)


def another_users(path: Path) -> None:
    os.chown(path, 12345, -1)


@pytest.mark.parametrize(
    ("more", "change", "said"),
    [
        ("    properties: {sasl.password: 'cmd:echo x'}\n", None, "sasl.password runs a command"),
        ("    properties: {sasl.password: 'env:PROD'}\n", None, "sasl.password reads a secret"),
        ("    properties: {plugin.library.paths: ./evil}\n", None, "it sets plugin.library.paths"),
        ("    command-config: c.properties\n", None, "it has a command-config"),
        ("", loosened, "every user can write it"),
        pytest.param("", another_users, "it belongs to another user (id 12345)", marks=pytest.mark.needs("root")),
    ],
)
def test_what_may_do_harm_is_not_used_before_it_is_trusted(
    more: str, change: Callable[[Path], None] | None, said: str, cli: Cli, project: Path
) -> None:
    path = say(project, PLAIN + more)
    if change:
        change(path)
    for line in ("list groups", "list groups --context dev", "context show", "list groups -o json"):
        ran = cli(line)
        assert (ran.code, said in ran.err, cli.settings) == (5, True, []), ran.err
    assert cli("list groups --context prod").code == 0
    assert cli("list groups --bootstrap-server b:1").code == 0


def test_trust_is_of_one_content(cli: Cli, project: Path) -> None:
    path = say(project, RUNS)
    ran = cli("context trust")
    assert (ran.code, "dev: sasl.password = cmd:echo secret" in ran.err) == (1, True)
    assert cli("list groups").code == 5
    ran = cli("context trust -o csv", stdin="y\n")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "dev,sasl.password,cmd:echo secret")
    assert (cli("list groups").code, cli.settings[-1].properties["sasl.password"]) == (0, "secret")
    path.write_text(RUNS + "# changed\n")
    assert cli("list groups").code == 5
    path.write_text(RUNS)
    assert cli("context trust --forget").code == 0
    assert cli("list groups").code == 5
    assert cli(f"context trust {path} --yes").code == 0
    assert cli("list groups").code == 0


def test_paths_are_as_seen_from_the_file(cli: Cli, project: Path) -> None:
    (project / "c.properties").write_text("client.id=me\n")
    say(project, "contexts:\n  desk:\n    embedded: data\n  dev:\n    bootstrap-server: d:1\n    command-config: c.properties\n")
    assert cli("context trust --yes").code == 0
    assert cli("list groups --context desk").code == 0
    assert cli("list groups --context dev").code == 0
    assert (cli.settings[0].embedded, cli.settings[1].properties["client.id"]) == (project / "data", "me")


def test_the_users_file_alone_is_written(cli: Cli, project: Path) -> None:
    say(project, PLAIN)
    used = cli("context use prod")
    assert (used.code, "In this folder it is dev" in used.err) == (0, True)
    for line in ("context use dev", "context set dev --timeout 3s", "context delete dev"):
        ran = cli(line)
        assert (ran.code, f"is of {project / '.kgctl.yml'}: edit that file" in ran.err) == (2, True), ran.err
    assert cli("context trust nosuch.yml").code == 2
    (project / ".kgctl.yml").unlink()
    assert cli("context trust").code == 4
