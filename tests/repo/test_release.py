"""What others use of this repository: the GitHub action runs, the container file names what is there, the version is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kgctl import __version__
from tests.repo.project import ROOT
from tests.support.patience import PATIENCE_S

ACTION = ROOT / ".github" / "actions" / "simulate" / "action.yml"
CONTAINERFILE = ROOT / ".github" / "Containerfile"


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    return found


def test_the_action_uses_inputs_that_it_declares_and_quotes_none_into_a_script() -> None:
    text = ACTION.read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == action()["inputs"].keys()
    assert all(step["shell"] == "bash" and "${{" not in step["run"] for step in action()["runs"]["steps"])
    assert [name for name, given in action()["inputs"].items() if not given["description"]] == []


@pytest.mark.parametrize(
    ("options", "code", "seeds"),
    [
        ("--check rebalances>0", 0, "2 seeds"),
        ("--check 'rebalances < 0'", 6, "2 seeds"),
        ('--check "rebalances > 0" --runs 1', 0, "seed 1"),
        ("--runs=1 --check rebalances>0", 0, "seed 1"),
    ],
)
def test_the_action_posts_the_summary_and_ends_as_kgctl_does(tmp_path: Path, options: str, code: int, seeds: str) -> None:
    """The step itself, in the environment that GitHub gives it; the input `runs` holds where the options do not say how many."""
    programs = tmp_path / "kgctl" / "bin"
    programs.mkdir(parents=True)
    (programs / "kgctl").symlink_to(Path(sys.executable).parent / "kgctl")
    (run,) = (step for step in action()["runs"]["steps"] if step["id"] == "run")
    environment = {
        **os.environ,
        **dict.fromkeys(run["env"], ""),
        "FILE": "crash-detection",
        "RUNS": "2",
        "OPTIONS": f"--variant cooperative {options}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_OUTPUT": str(tmp_path / "out"),
    }
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", run["run"]],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (ran.returncode, (tmp_path / "out").read_text()) == (code, f"exit-code={code}\n"), ran.stderr
    summary = (tmp_path / "summary").read_text()
    assert "crash-detection" in summary
    assert f", {seeds}, " in summary.rpartition("<sub>")[2]


def test_options_of_the_action_whose_quotes_do_not_close_are_an_error(tmp_path: Path) -> None:
    (run,) = (step for step in action()["runs"]["steps"] if step["id"] == "run")
    environment = {**os.environ, **dict.fromkeys(run["env"], ""), "OPTIONS": "--check 'a < b", "RUNNER_TEMP": str(tmp_path)}
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", run["run"]],
        env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "unmatched single quote" in ran.stderr


GH = """\
#!/bin/bash
printf '%s\\n' "$*" >>"$CALLS"
case "$*" in *--method*) exit "${GH_CODE:-0}" ;; esac
[ -z "$MINE" ] || printf '%s\\n' "$MINE"
"""


@pytest.mark.parametrize(
    ("mine", "code", "call"),
    [
        ("", "0", "--method POST repos/o/r/issues/7/comments"),
        ("11\n12", "0", "--method PATCH repos/o/r/issues/comments/11"),
        ("", "1", "--method POST repos/o/r/issues/7/comments"),
    ],
)
def test_the_comment_of_a_pull_request_is_one_that_is_kept_up_to_date(tmp_path: Path, mine: str, code: str, call: str) -> None:
    (step,) = (step for step in action()["runs"]["steps"] if step["id"] == "comment")
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "kgctl-simulate.md").write_text("### deploy\n")
    given = {"MARKER": "<!-- kgctl simulate d.yaml -->", "NUMBER": "7", "GH_TOKEN": "x", "GITHUB_REPOSITORY": "o/r", "MINE": mine}
    more = {
        "CALLS": str(tmp_path / "calls"),
        "GH_CODE": code,
        "RUNNER_TEMP": str(tmp_path),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={**os.environ, **given, **more}, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert call in (tmp_path / "calls").read_text().splitlines()[1]
    assert (tmp_path / "kgctl-comment.md").read_text() == "<!-- kgctl simulate d.yaml -->\n### deploy\n"
    assert ("::warning::" in ran.stdout) is (code != "0")


@pytest.mark.needs("shellcheck")
def test_scripts_of_the_action_pass_shellcheck(tmp_path: Path) -> None:
    for step in action()["runs"]["steps"]:
        names = "".join(f"export {name}\n" for name in step["env"])
        (tmp_path / step["id"]).write_text(f"#!/usr/bin/env bash\n{names}{step['run']}")
    ran = subprocess.run(["shellcheck", *sorted(tmp_path.iterdir())], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_container_file_is_well_formed_and_runs_kgctl_without_rights() -> None:
    text = re.sub(r"\\\n\s*", "", CONTAINERFILE.read_text(encoding="utf-8"))
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENV", "EXPOSE", "ENTRYPOINT"}
    assert [words for words in lines if words[0] not in known or len(words) != 2] == []
    last_stage = lines[max(number for number, words in enumerate(lines) if words[0] == "FROM") :]
    assert [words[1] for words in last_stage if words[0] in ("USER", "ENTRYPOINT")] == ["kgctl", '["kgctl"]']
    named = re.findall(r"/checkout/(\S+)", text)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_server_that_the_container_file_shows_is_one_that_starts(tmp_path: Path) -> None:
    (line,) = re.findall(r"^# podman run .* kgctl (serve .*)$", CONTAINERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    words = line.replace("0.0.0.0:9092", "0.0.0.0:0").split()
    with subprocess.Popen([sys.executable, "-m", "kgctl", *words], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        server.terminate()
    assert (said.partition("0.0.0.0:")[0], server.returncode) == ("listening on ", 0)


def test_the_version_with_its_commit_and_libraries() -> None:
    program = Path(sys.executable).parent / "kgctl"
    plain, verbose = (
        subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout.splitlines()
        for words in (["--version"], ["--version", "-v"])
    )
    assert plain == [f"kgctl {__version__}"] == verbose[:1]
    told = dict(line.split(maxsplit=1) for line in verbose[1:])
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?|unknown", told["commit"])
    assert told["Python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"confluent-kafka", "google-re2", "pyspark", "kazoo"} <= told.keys()
    assert "pytest" not in told
