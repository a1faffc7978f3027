"""Commands that run in a pod: the line that kubectl gets, and what comes back through it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kgctl.cli import kubernetes
from tests.cli.harness import Cli

CONFIG = """\
current-context: prod
contexts:
  prod:
    bootstrap-server: kafka:9092
    timeout: 20s
    properties:
      sasl.password: env:PASSWORD
    kubernetes:
      context: eu/prod
      namespace: kafka
      POD
  desk:
    bootstrap-server: d:9092
"""


class BecameError(Exception):
    """In place of the process that turns into kubectl."""


@pytest.fixture
def typed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The last line that kubectl got."""
    last: list[str] = []

    def become(words: Sequence[str]) -> None:
        last[:] = words
        raise BecameError

    monkeypatch.setattr(kubernetes, "_become", become)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    cli.variables.pop("KGCTL_BOOTSTRAP_SERVER")
    cli.variables["KGCTL_DEBUG"] = "1"
    return last


def configured(cli: Cli, pod: str = "pod: deploy/kgctl", more: str = "") -> None:
    (cli.folder / "config.yaml").write_text(CONFIG.replace("POD", pod) + more)


def line(cli: Cli, words: str, typed: list[str]) -> str:
    with pytest.raises(BecameError):
        cli(words)
    return shlex.join(typed)


WHERE = "kubectl --context eu/prod --namespace kafka"
CLUSTER = "kgctl --bootstrap-server kafka:9092 --timeout 20s -X sasl.password=env:PASSWORD"


def test_a_command_runs_in_the_pod_that_stays(cli: Cli, typed: list[str]) -> None:
    configured(cli)
    expected = f"{WHERE} exec --stdin deploy/kgctl -- env 'KGCTL_VIA=--context prod' {CLUSTER}"
    assert line(cli, "list groups -o json", typed) == f"{expected} list groups -o json"
    assert line(cli, "--context prod reset-offsets g --topic t --to-latest --execute", typed) == (
        f"{expected} reset-offsets g --topic t --to-latest --execute"
    )
    assert (
        line(cli, "delete-groups --yes --context=prod -- g --context", typed) == f"{expected} delete-groups --yes -- g --context"
    )


def test_a_pod_of_an_image_is_made_for_one_command(cli: Cli, typed: list[str]) -> None:
    configured(cli, "image: own/kgctl:1")
    found = line(cli, "describe group g", typed).split()
    assert found.pop(found.index("run") + 1).startswith("kgctl-")
    assert shlex.join(shlex.split(" ".join(found))) == (
        f"{WHERE} run --stdin --rm --quiet --restart=Never --image=own/kgctl:1 '--env=KGCTL_VIA=--context prod' --command -- "
        f"{CLUSTER} describe group g"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("reset-offsets g --topic t --to-latest --execute", "removed with its undo file"),
        ("delete-groups g --yes", "removed with its undo file"),
        ("undo 2024 --execute", "removed with its undo file"),
        ("reset-offsets g --topic t --to-latest --plan-out p.csv", "removed with its plan"),
    ],
)
def test_what_needs_a_file_of_the_pod_is_refused_where_the_pod_is_removed(
    words: str, said: str, cli: Cli, typed: list[str]
) -> None:
    configured(cli, "image: own/kgctl:1")
    ran = cli(words)
    assert (ran.code, said in ran.err, typed) == (2, True, []), ran.err


@pytest.mark.parametrize(
    "words", ["reset-offsets g --topic t --to-latest", "delete-groups g --dry-run", "delete-groups g --yes --no-backup"]
)
def test_what_leaves_no_file_needs_no_pod_that_stays(words: str, cli: Cli, typed: list[str]) -> None:
    configured(cli, "image: own/kgctl:1")
    assert line(cli, words, typed).endswith(words)


def test_the_flag_says_where(cli: Cli, typed: list[str]) -> None:
    cli.variables |= {"KGCTL_K8S_POD": "pod/p"}
    expected = "kubectl --context c --namespace n exec --stdin pod/p -- env 'KGCTL_VIA=--k8s c/n' kgctl"
    assert line(cli, "--k8s c/n list groups --bootstrap-server k:1", typed) == f"{expected} list groups --bootstrap-server k:1"
    configured(cli)
    assert line(cli, "list groups --context desk --k8s arn:x/y/n", typed) == (
        "kubectl --context arn:x/y --namespace n exec --stdin pod/p -- env 'KGCTL_VIA=--context desk --k8s arn:x/y/n' "
        "kgctl --bootstrap-server d:9092 list groups"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--k8s c list groups", "write CONTEXT/NAMESPACE"),
        ("--k8s c/n list groups --bootstrap-server k:1", "say where in Kubernetes kgctl is"),
        ("list groups --context prod -X ssl.key.password=x", "a secret would be on the pod's command line"),
        ("simulate run x.yaml --k8s c/n", "no such option --k8s"),
        ("history collect --once", "is reached from a pod; this command runs here"),
    ],
)
def test_what_cannot_be_is_a_usage_error(words: str, said: str, cli: Cli, typed: list[str]) -> None:
    configured(cli)
    ran = cli(words)
    assert (ran.code, said in ran.err, typed) == (2, True, []), ran.err


def test_a_secret_that_stands_in_the_file_is_not_sent(cli: Cli, typed: list[str]) -> None:
    configured(cli)
    path = cli.folder / "config.yaml"
    path.write_text(path.read_text().replace("env:PASSWORD", "hunter2"))
    ran = cli("list groups")
    assert (ran.code, typed, "hunter2" in ran.err) == (2, [], False)


def test_an_address_that_is_given_is_reached_from_here(cli: Cli, typed: list[str]) -> None:
    configured(cli)
    assert cli("list groups --bootstrap-server b:1").code == 0
    assert cli("list groups -X bootstrap.servers=b:1").code == 0
    assert cli("list groups", variables={"KGCTL_BOOTSTRAP_SERVER": "b:1"}).code == 0
    assert cli("list groups --context desk").code == 0
    assert (len(cli.settings), typed) == (4, [])


def test_a_context_keeps_where_its_pod_is(cli: Cli, typed: list[str]) -> None:
    added = cli("context add eu --bootstrap-server k:1 --k8s c/n")
    assert added.code == 0, added.err
    shown = {row["setting"]: row["value"] for row in cli("context show eu -o csv").csv}
    assert (shown["kubernetes context"], shown["kubernetes namespace"]) == ("c", "n")
    assert cli("context set eu --unset kubernetes").code == 0
    assert cli("list groups --context eu").code == 0


STUB = """#!/bin/sh
printf '%s\\n' "$*" >> "$(dirname "$0")/typed"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


def test_the_pods_output_stdin_and_exit_code_are_the_commands(tmp_path: Path) -> None:
    """A kubectl that runs what it is given on the spot; the data folder, which is not there, is the pod's."""
    stub = tmp_path / "kubectl"
    stub.write_text(STUB)
    stub.chmod(0o755)
    config = tmp_path / "config.yaml"
    config.write_text(f"current-context: c\ncontexts:\n  c:\n    embedded: {tmp_path / 'data'}\n    kubernetes: {{pod: p}}\n")
    environment = {
        "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "KGCTL_CONFIG": str(config),
    }

    def kgctl(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kgctl", *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, env=environment)

    ran = kgctl("describe", "group", "nosuch", "-o", "json")
    assert (ran.returncode, json.loads(ran.stdout)["errors"][0]["message"]) == (4, f"no data folder at {tmp_path / 'data'}"), (
        ran.stderr
    )
    ran = kgctl("reset-offsets", "g", "--from-file", "-", stdin="garbage\n")
    assert (ran.returncode, "stdin, line 1" in ran.stderr) == (2, True), ran.stderr
    assert (tmp_path / "typed").read_text().startswith("exec --stdin p -- env KGCTL_VIA=--context c kgctl --embedded ")
