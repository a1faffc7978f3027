"""The two lines that a newcomer types are the ones that are tested, and the version is told once."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import kgctl
from tests.repo.project import ROOT

DEMO_LINE = "python3 .ci/setup.py && .venv/bin/kgctl demo"
TEST_LINE = "python3 .ci/setup.py dev && .venv/bin/pytest"


@pytest.mark.parametrize("line", [DEMO_LINE, TEST_LINE])
def test_readme_shows_the_line_in_a_block_of_its_own(line: str) -> None:
    assert f"\n```sh\n{line}\n```\n" in (ROOT / "README.md").read_text()


def test_ci_runs_the_line_that_the_readme_shows() -> None:
    assert f'LINE = "{TEST_LINE}"' in (ROOT / ".ci" / "tests.py").read_text().splitlines()
    assert ".ci/tests.py" in (ROOT / ".ci" / "run").read_text()


def test_one_command_has_the_static_checks_for_ci_and_for_commits() -> None:
    assert any(line.split()[:1] == [".ci/check"] for line in (ROOT / ".ci" / "run").read_text().splitlines())
    hooks = [hook for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"] for hook in repo["hooks"]]
    assert [(hook["entry"], hook["language"], hook["pass_filenames"]) for hook in hooks] == [(".ci/check", "system", False)]
    assert os.access(ROOT / ".ci" / "check", os.X_OK)


def test_changelog_starts_with_unreleased_or_this_version() -> None:
    first = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] in ("Unreleased", kgctl.__version__)


@pytest.mark.parametrize("script", ["bare", "check", "installs", "lock", "python", "pythons", "release", "run", "smoke", "tools"])
def test_scripts_parse(script: str) -> None:
    done = subprocess.run(["bash", "-n", str(ROOT / ".ci" / script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("list_of_needs", "code", "told"),
    [("exit 3", 3, ""), ("echo", 0, "everything is there\n"), ("echo zsh", 1, "names of what is missing: zsh\n")],
)
def test_what_the_system_lacks_is_told(tmp_path: Path, list_of_needs: str, code: int, told: str) -> None:
    """A list that cannot be made is not an empty one. On a machine that has nothing but these programs: no apt."""
    programs = {"python3": f'case "$1" in *machine.py) {list_of_needs} ;; esac', "debootstrap": "", "dirname": "echo .ci"}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    command = [str(shutil.which("bash")), ".ci/tools"]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, (done.stdout + done.stderr).endswith(told)) == (code, True)


def test_set_up_refuses_an_unknown_extra() -> None:
    done = set_up(ROOT / ".ci" / "setup.py", "nonsense")
    assert (done.returncode, done.stderr) == (1, "setup: no such extra: nonsense (there are: history, dev, spark, ci, tests)\n")


@pytest.mark.parametrize(
    ("asked", "with_java", "without"),
    [
        ("", "", ""),
        ("history", "history", "history"),
        ("dev", "history dev spark", "history dev"),
        ("tests", "history dev", "history dev"),
        ("spark", "history spark", "history spark"),
        ("ci", "history dev spark ci", "history dev ci"),
        ("tests spark", "history dev spark", "history dev spark"),
    ],
)
def test_what_is_asked_for_brings_what_it_stands_on(asked: str, with_java: str, without: str) -> None:
    chosen = runpy.run_path(str(ROOT / ".ci" / "setup.py"))["chosen"]
    assert chosen(asked.split(), lambda: True) == ["", *with_java.split()]
    assert chosen(asked.split(), lambda: False) == ["", *without.split()]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of one as the set-up reads before it installs anything."""
    checkout = tmp_path / "a checkout"
    (checkout / ".ci").mkdir(parents=True)
    for name in ("pyproject.toml", ".ci/setup.py", ".ci/requirements.txt"):
        (checkout / name).write_bytes((ROOT / name).read_bytes())
    return checkout


def test_set_up_leaves_alone_what_a_link_leads_to(checkout: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "kept").touch()
    (checkout / ".venv").symlink_to(theirs)
    done = set_up(checkout / ".ci" / "setup.py")
    assert (done.returncode, done.stderr) == (
        1,
        f"setup: .venv is a link to {theirs}, which may be somebody else's; take the link away, then the same line\n",
    )
    assert (theirs / "kept").exists()


def test_set_up_without_ensurepip_says_what_to_install(checkout: Path) -> None:
    hidden = "import runpy, sys; sys.modules['ensurepip'] = None; sys.argv[1:] = []; runpy.run_path({!r}, run_name='__main__')"
    command = [sys.executable, "-c", hidden.format(str(checkout / ".ci" / "setup.py"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("on Debian and Ubuntu: apt-get install python3-venv, then the same line\n")
    assert not (checkout / ".venv").exists()


def set_up(script: Path, *extras: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(script), *extras], capture_output=True, text=True, check=False)


def test_the_changelog_stays_short() -> None:
    """A line a change: what there is to say beyond is in the manual."""
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    assert len(lines) <= 60


def test_what_a_visitor_sees_runs_is_what_ci_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())
    steps = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in workflow["jobs"].items()}
    assert steps["all"] == ["bash .ci/run"]
    assert steps["bare"][-1].startswith("sudo .ci/bare ")
    named = re.findall(r'Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert workflow["jobs"]["python"]["strategy"]["matrix"]["python"] == named
    assert 'versions=("$@")' in (ROOT / ".ci" / "pythons").read_text()
    assert re.findall(r"-m \"(.*)\"", (ROOT / ".ci" / "pythons").read_text())[:1] == re.findall(
        r"-m \"(.*)\"", steps["python"][-1]
    )
