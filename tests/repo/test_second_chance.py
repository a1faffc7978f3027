"""A few tests that failed run once more, aloud; many do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.project import ROOT

TESTS = """
from pathlib import Path
import pytest

@pytest.mark.{mark}
@pytest.mark.parametrize("number", range(2))
def test_fails(number):
    tried = Path(__file__).with_suffix(f".tried-{{number}}")
    is_first = not tried.exists()
    tried.touch()
    assert not is_first and not {always}

@pytest.mark.pure
def test_passes():
    pass
"""


ALWAYS = {
    "ends its process": "os._exit(0)",
    "returns twice": "os.fork() and os.wait()",
}
"""What is to be seen by a process that goes on."""
BREAKS = """
import os

def test_breaks():
    {what}

def test_passes(): ...
"""
CANNOT_END = """
import pytest

@pytest.fixture(scope="session")
def server():
    yield
    raise OSError("the server is broken")

def test_passes(server): ...
def test_behind(): ...
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a pytest that has this suite's processes and nothing else."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder = tmp_path / "a checkout"
    (folder / ".ci").mkdir(parents=True)
    (folder / ".ci" / "second_chance.py").write_bytes((ROOT / ".ci" / "second_chance.py").read_bytes())
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  interop\n  kafka\n  pure\n")
    program = folder / ".venv" / "bin" / "pytest"
    program.parent.mkdir(parents=True)
    plugins = "-p xdist -p tests.support.profiles -p tests.support.run.distribution"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pytest {plugins} "$@"\n')
    program.chmod(0o755)
    return folder


def second_chance(checkout: Path, mark: str, count: int = 1, *, always: bool = False) -> subprocess.CompletedProcess[str]:
    """What it does after a run with failures in so many files."""
    for number in range(count):
        (checkout / f"test_it_{number}.py").write_text(TESTS.format(mark=mark, always=always))
    return once_more(checkout)


def once_more(checkout: Path) -> subprocess.CompletedProcess[str]:
    """What it does after a run of the tests that are there."""
    first = subprocess.run([checkout / ".venv" / "bin" / "pytest", "-q", "-n2"], cwd=checkout, capture_output=True, check=False)
    assert first.returncode == 1, first.stdout
    command = [sys.executable, str(checkout / ".ci" / "second_chance.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_passes_then_is_named_and_the_summary_stays_last(checkout: Path) -> None:
    ran = second_chance(checkout, "kafka")
    lines = ran.stdout.splitlines()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [line for line in lines if line.startswith("FAILED")] == [
        f"FAILED AT FIRST test_it_0.py::test_fails[{number}]" for number in (0, 1)
    ]
    assert [line for line in lines if line.startswith("PASSED")] == [f"PASSED test_it_0.py::test_fails[{n}]" for n in (0, 1)]
    assert " 2 passed" in lines[-1]


def test_what_fails_again_has_failed(checkout: Path) -> None:
    ran = second_chance(checkout, "interop", always=True)
    assert ran.returncode == 1
    assert " 2 failed" in ran.stdout.splitlines()[-1]


@pytest.mark.parametrize("what", ALWAYS.values(), ids=list(ALWAYS))
def test_what_breaks_its_process_fails_again(checkout: Path, what: str) -> None:
    (checkout / "test_breaks.py").write_text(BREAKS.format(what=what))
    ran = once_more(checkout)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "FAILED AT FIRST test_breaks.py::test_breaks\n" in ran.stdout
    assert " 1 failed" in ran.stdout.splitlines()[-1]


def test_the_end_of_a_process_cannot_be_had_again(checkout: Path) -> None:
    (checkout / "test_server.py").write_text(CANNOT_END)
    ran = second_chance(checkout, "kafka")
    assert (ran.returncode, ran.stdout) == (1, "")


def test_many_failures_have_no_second_chance(checkout: Path) -> None:
    ran = second_chance(checkout, "interop", 5)
    assert (ran.returncode, ran.stdout) == (1, "")


def test_nothing_failed_but_the_run_did(checkout: Path) -> None:
    command = [sys.executable, str(checkout / ".ci" / "second_chance.py")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
