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


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a pytest and nothing else."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = tmp_path / "a checkout"
    (folder / ".ci").mkdir(parents=True)
    (folder / ".ci" / "second_chance.py").write_bytes((ROOT / ".ci" / "second_chance.py").read_bytes())
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  interop\n  kafka\n  pure\n")
    program = folder / ".venv" / "bin" / "pytest"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pytest "$@"\n')
    program.chmod(0o755)
    return folder


def second_chance(checkout: Path, mark: str, count: int = 1, *, always: bool = False) -> subprocess.CompletedProcess[str]:
    """What it does after a run with failures in so many files."""
    for number in range(count):
        (checkout / f"test_it_{number}.py").write_text(TESTS.format(mark=mark, always=always))
    first = subprocess.run([checkout / ".venv" / "bin" / "pytest", "-q"], cwd=checkout, capture_output=True, check=False)
    assert first.returncode == 1
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


def test_many_failures_have_no_second_chance(checkout: Path) -> None:
    ran = second_chance(checkout, "interop", 5)
    assert (ran.returncode, ran.stdout) == (1, "")


def test_nothing_failed_but_the_run_did(checkout: Path) -> None:
    command = [sys.executable, str(checkout / ".ci" / "second_chance.py")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
