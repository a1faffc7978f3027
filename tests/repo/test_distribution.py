"""Tests run in forked processes: what shares a server in the same one, and whatever happens there is told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.repo.project import ROOT
from tests.support.kafka.ports import free_ports
from tests.support.patience import PATIENCE_S
from tests.support.run.distribution import LONG, group_of
from tests.support.run.workers import in_groups

MANY = """
import os
import signal
import pytest

def seen(request):
    with open(f"{os.path.dirname(__file__)}/seen.txt", "a") as file:
        file.write(f"{os.getpid()} {request.node.name}\\n")

@pytest.fixture(scope="session")
def server(request):
    yield
    seen(request)

@pytest.mark.parametrize("number", range(3))
def test_passes(server, request, number, tmp_path):
    seen(request)
    assert tmp_path.parent.name == f"popen-{os.environ['PYTEST_XDIST_WORKER']}"

@pytest.fixture
def breaks():
    yield
    raise OSError("broken")

def test_fails(breaks):
    print("what it printed")
    assert {"a": 1} == {"a": 2}

@pytest.mark.skip(reason="some reason")
def test_skipped(): ...
"""
DIES = """
import os
import time
import pytest

@pytest.fixture(scope="session")
def server():
    yield
    raise OSError("the server is broken")

def test_before(): ...
def test_dies(): os._exit(7)
def test_behind(server): ...
"""
ENDLESS = """
import os
import time
import pytest

@pytest.fixture(scope="session")
def server(tmp_path_factory):
    yield
    with open(os.environ["ENDED"], "w") as file:
        file.write(str(os.getpid()))

def test_endless(server):
    print("it runs", file=open(os.environ["BEGUN"], "w"))
    time.sleep(1000)
"""


def run(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Two files of the same tests, by a run of pytest with no other plugin of this suite."""
    for name in "ab":
        (folder / f"test_{name}.py").write_text(source)
    return subprocess.run(line(folder, *arguments), cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def line(folder: Path, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.run.distribution", "-p", "no:cacheprovider", "-c", os.devnull]
    return [*command, "--rootdir", str(folder), "--import-mode=importlib", "-n", "2", *arguments, str(folder)]


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **more}


def test_tests_of_a_file_share_a_process_and_all_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, MANY, "-v", "-rs")
    assert "2 failed, 6 passed, 2 skipped, 2 errors" in done.stdout, done.stdout + done.stderr
    assert "{'a': 1} == {'a': 2}" in done.stdout
    assert "what it printed" in done.stdout
    assert "OSError: broken" in done.stdout
    assert "some reason" in done.stdout
    assert done.returncode == 1

    seen = [text.split(" ") for text in (tmp_path / "seen.txt").read_text().splitlines()]
    names = ["test_passes[0]", "test_passes[1]", "test_passes[2]", ""]
    assert [[name for pid, name in seen if pid == each] for each in sorted({pid for pid, _ in seen})] == [names, names]


def test_who_dies_fails_its_test_alone(tmp_path: Path) -> None:
    done = run(tmp_path, DIES)
    assert "4 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("ended with 7 while it ran this test") == 4  # in the report and in the summary
    assert done.stdout.count("ended with 1 after this test") == 4
    assert "OSError: the server is broken" in done.stderr


def test_a_run_ends_at_the_first_failure_where_that_is_asked(tmp_path: Path) -> None:
    done = run(tmp_path, DIES, "-x", "-v")
    assert "stopping after " in done.stdout, done.stdout + done.stderr
    assert "test_behind" not in done.stdout
    assert done.returncode == 1


def test_an_interrupted_run_ends_its_servers(tmp_path: Path) -> None:
    (tmp_path / "test_endless.py").write_text(ENDLESS)
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    with subprocess.Popen(
        line(tmp_path), cwd=tmp_path, env=environment(BEGUN=str(begun), ENDED=str(ended)), stdout=subprocess.PIPE, text=True
    ) as running:
        until_s = time.monotonic() + PATIENCE_S
        while not begun.exists() and time.monotonic() < until_s:
            time.sleep(0.02)
        running.send_signal(2)
        out, _ = running.communicate(timeout=PATIENCE_S)
    assert "KeyboardInterrupt" in out
    assert running.returncode == 2
    assert not Path(f"/proc/{ended.read_text()}").exists()


def test_what_was_collected_lies_in_the_order_of_its_groups(request: pytest.FixtureRequest) -> None:
    """Else a file or a server would be made by several processes."""
    names = [group_of(item) for item in request.session.items]
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert len(in_groups(names)) == len(set(names))


def test_long_files_are_there() -> None:
    assert [name for name in LONG if not (ROOT / name).is_file()] == []


def test_each_process_looks_for_ports_from_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are forked when the module is there: two that begin at one place take each other's ports."""
    found = []
    for pid in (1, 2, 1):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        found += free_ports(1)
    assert len(set(found)) == 3
    assert abs(found[0] - found[1]) > 100
