"""A missing tool skips a test, and the end says so; where nothing may be missing it fails; nobody forgets to ask."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.project import ROOT
from tests.support.gates import GATES, INSTALL
from tests.support.machine import NEEDS

ASKED = """
import pytest

@pytest.mark.needs("fish", "go")
def test_asked():
    raise AssertionError("it ran")

@pytest.mark.needs("go")
def test_asked_for_less():
    raise AssertionError("it ran")
"""
OUT_OF_REACH = """
import pytest
from tests.support.machine import Unavailable

@pytest.fixture(scope="session")
def jars():
    raise Unavailable("Maven Central cannot be reached")

def test_by_a_fixture(jars): ...
def test_by_a_fixture_again(jars): ...

def test_in_its_body():
    raise Unavailable("Maven Central cannot be reached")
"""
NOT_ASKED = """
import subprocess
import pytest
from tests.support.gates import uses

@pytest.mark.needs("go")
def test_who_asks_may():
    uses("go")
    subprocess.run(["go"], check=True)

def test_a_program():
    subprocess.run(["go", "build"], check=False)

def test_a_program_behind_setpriv():
    subprocess.run(["setpriv", "--pdeathsig", "KILL", "go"], check=False)

def test_what_an_earlier_run_made():
    uses("javac")
"""


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """All the programs that the inner run finds."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def inner(tmp_path: Path, source: str, *arguments: str, ci: str = "") -> subprocess.CompletedProcess[str]:
    """A run of pytest with no other plugin of this suite."""
    (tmp_path / "test_inner.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.gates", "-p", "no:cacheprovider", "-c", os.devnull]
    environment = {"PATH": str(tmp_path / "bin"), "PYTHONPATH": str(ROOT), "CI": ci}
    line = [*command, "--rootdir", str(tmp_path), *arguments, str(tmp_path / "test_inner.py")]
    return subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("bin_folder")
def test_the_end_of_a_run_tells_what_was_missing(tmp_path: Path) -> None:
    ran = inner(tmp_path, ASKED)
    told = f"tests skipped: 2. {INSTALL} installs what they need, -v names each of them:\n     1 Go, fish\n     1 Go\n"
    assert told in ran.stdout
    assert (ran.returncode, "SKIPPED" in ran.stdout) == (0, False)
    assert "test_inner.py:4: needs Go, fish" in inner(tmp_path, ASKED, "-v").stdout


@pytest.mark.usefixtures("bin_folder")
def test_where_nothing_may_be_missing_they_fail(tmp_path: Path) -> None:
    ran = inner(tmp_path, ASKED, ci="true")
    assert (ran.returncode, "2 errors" in ran.stdout, "it ran" in ran.stdout) == (1, True, False)
    assert "needs Go, fish" in ran.stdout


@pytest.mark.parametrize(("ci", "code", "outcome"), [("", 0, "3 skipped"), ("true", 1, "1 failed, 2 errors")])
@pytest.mark.usefixtures("bin_folder")
def test_what_turns_out_to_be_out_of_reach(ci: str, code: int, outcome: str, tmp_path: Path) -> None:
    ran = inner(tmp_path, OUT_OF_REACH, ci=ci)
    assert (ran.returncode, outcome in ran.stdout) == (code, True), ran.stdout
    assert "cannot have: Maven Central cannot be reached" in ran.stdout


def test_who_has_not_asked_fails_though_it_is_there(bin_folder: Path, tmp_path: Path) -> None:
    for name in ("go", "setpriv"):
        (bin_folder / name).symlink_to("/bin/true")
    ran = inner(tmp_path, NOT_ASKED)
    assert "3 failed, 1 passed" in ran.stdout
    assert ran.stdout.count("this test uses 'go' and has not asked for it: @pytest.mark.needs('go')") == 2
    assert "this test uses 'javac' and has not asked for it" in ran.stdout


@pytest.mark.usefixtures("bin_folder")
def test_a_need_that_there_is_not_is_told(tmp_path: Path) -> None:
    ran = inner(tmp_path, '@__import__("pytest").mark.needs("rust")\ndef test_it(): ...\n')
    assert (ran.returncode, "needs(rust): there are java, maven" in ran.stdout + ran.stderr) == (4, True)


def test_every_name_of_the_table_is_one() -> None:
    assert set().union(*map(set, GATES.values())) <= NEEDS.keys()


def test_no_test_skips_itself() -> None:
    """It would be skipped in silence where nothing may be missing. Runs inside of a test have some to tell of."""
    forbidden = re.compile(r"pytest\.(?:skip|fail|importorskip|xfail)\(|mark\.skip(?:if)?\b|unittest\.skip|SkipTest")
    sources = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    found = {name: forbidden.findall(text) for name, text in sources.items()}
    assert sorted(name for name, words in found.items() if words) == [
        "tests/repo/test_distribution.py",
        "tests/repo/test_gates.py",
        "tests/support/gates.py",
    ]


def test_tests_are_found_without_what_they_may_lack() -> None:
    """What a machine has not got skips tests, and ends no run where files are imported: none needs PySpark to begin."""
    program = (
        "import sys, pytest\n"
        "sys.modules['pyspark'] = None\n"
        "sys.exit(pytest.main(['--collect-only', '-q', '-n0', '-p', 'no:cacheprovider', *sys.argv[1:]]))\n"
    )
    files = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if "spark" in path.read_text().lower())
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
