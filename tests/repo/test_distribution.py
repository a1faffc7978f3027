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
from tests.support.members import wait_until
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
BREAKS = {
    "os._exit(0)": "ended with 0 while it ran this test",
    "sys.exit(0)": "SystemExit: 0",
    "pytest.exit('enough')": "ended with 1 while it ran this test",
    "os.kill(os.getpid(), signal.SIGKILL)": "ended with -9 while it ran this test",
    "os.kill(os.getpid(), signal.SIGINT)": "ended with 1 while it ran this test",
    "os.closerange(3, 1_000)": "ended with 1 while it ran this test",
    "os.fork() and os.wait()": "returned in a process that the test has forked",
    "interrupt_a_fork()": "returned in a process that the test has forked",
    "leave_no_server(request)": "ended with 1 while it ran this test",
    "leave_a_fork()": "ended with 3 while it ran this test",
    "tell(request, b'\\0\\0\\1\\0junk'); os._exit(4)": "ended with 4 while it ran this test",
    "tell(request, b'\\0\\0\\1\\0junk'); time.sleep(1_000)": "ended with -9 while it ran this test: what it told was no message",
    "tell(request, b'\\0\\0\\0\\4junk'); time.sleep(1_000)": "ended with -9 while it ran this test: what it told was no message",
    "tell(request, b'junk')": "ended with -9 while it ran this test: what it told was no message",
    "never_answer()": "ended with -6 while it ran this test: it said nothing for too long",
    "stop()": "ended with -9 while it ran this test: it said nothing for too long",
    "...  # cannot be told": "ended with 1 while it ran this test",
}
"""What a test does, and what is said of it."""
BREAKING = """
import os
import pytest
import signal
import sys
import time
from pathlib import Path

def interrupt_a_fork():
    if not os.fork():
        raise KeyboardInterrupt
    os.wait()

def leave_no_server(request):
    request.addfinalizer(lambda: [][0])
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1_000)

def leave_a_fork():
    main = os.getppid()
    if os.fork():
        os._exit(3)
    while Path(f"/proc/{main}/cmdline").read_bytes():
        time.sleep(0.05)
    os._exit(0)

def tell(request, told):
    task = next(plugin for plugin in request.config.pluginmanager.get_plugins() if type(plugin).__name__ == "Task")
    task._connection._send(told)

def never_answer():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(1_000)

def stop():
    os.kill(os.getpid(), signal.SIGSTOP)

def test_before(): ...

@pytest.mark.timeout(1)
def test_breaks(request):
    BREAK

def test_behind(): ...
"""
BROKEN_REPORTS = """
from tests.support.run import workers
workers.SILENT_S = workers.INTERRUPTED_S = 5

def pytest_report_to_serializable(report):
    if report.nodeid.startswith("test_LAST.") and "breaks" in report.nodeid:
        raise OSError("cannot be told")
"""
BROKEN_END = """
def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        raise OSError("cannot end")
"""
COUNTING = """
def pytest_testnodedown(node):
    node.config.ended = getattr(node.config, "ended", 0) + 1 + node.workeroutput.get("ended", 0)

def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        session.config.workeroutput["ended"] = getattr(session.config, "ended", 0)

def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.line(f"{config.ended} processes have ended")
"""
VANISHING = """
def pytest_runtest_protocol(item):
    return True if "[1]" in item.name else None
"""


def run(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Two files of the same tests, by a run of pytest with no other plugin of this suite."""
    for name in "ab":
        (folder / f"test_{name}.py").write_text(source)
    return subprocess.run(line(folder, *arguments), cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def line(folder: Path, *arguments: str) -> list[str]:
    plugins = ["-p", "tests.support.profiles", "-p", "tests.support.run.distribution", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "-c", os.devnull]
    return [*command, "--rootdir", str(folder), "--import-mode=importlib", "-n", "2", *arguments, str(folder)]


def is_running(pid: str) -> bool:
    """Not as a zombie, which an orphan stays where the first process is no init."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


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
    assert done.stdout.count("ended with 1 after test_") == 4
    assert "OSError: the server is broken" in done.stderr


def test_a_run_ends_at_the_first_failure_where_that_is_asked(tmp_path: Path) -> None:
    done = run(tmp_path, DIES, "-x", "-v")
    assert "stopping after " in done.stdout, done.stdout + done.stderr
    assert "test_behind" not in done.stdout
    assert done.returncode == 1


def test_whatever_a_test_does_to_its_process_fails_it_alone(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(BROKEN_REPORTS.replace("LAST", str(len(BREAKS) - 1)))
    for number, what in enumerate(BREAKS):
        (tmp_path / f"test_{number}.py").write_text(BREAKING.replace("BREAK", what))
    wide = environment(COLUMNS="400")
    done = subprocess.run(line(tmp_path, "-rf"), cwd=tmp_path, env=wide, capture_output=True, text=True, check=False)

    assert f"{len(BREAKS)} failed, {2 * len(BREAKS)} passed" in done.stdout, done.stdout + done.stderr
    failed = dict(line.removeprefix("FAILED ").split(" - ", 1) for line in done.stdout.splitlines() if line.startswith("FAILED "))
    for number, words in enumerate(BREAKS.values()):
        assert words in failed[f"test_{number}.py::test_breaks"]
    assert "in never_answer" in done.stderr
    assert done.returncode == 1


def test_processes_that_cannot_end_are_told_once_each(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(BROKEN_END)
    done = run(tmp_path, "def test_passes(): ...")
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1


def test_processes_that_end_badly_are_told_whatever_they_have_said(tmp_path: Path) -> None:
    done = run(tmp_path, "import atexit, os\ndef test_passes(): atexit.register(os._exit, 9)")
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("ended with 9 after test_") == 4  # in the report and in the summary
    assert done.returncode == 1


def test_plugins_are_told_once_of_each_process(tmp_path: Path) -> None:
    """Who is forked in the place of another one has what this process had heard of others."""
    (tmp_path / "conftest.py").write_text(COUNTING)
    done = run(tmp_path, "import os\ndef test_dies(): os._exit(7)\ndef test_behind(): ...")
    assert "4 processes have ended" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize("another", ["", "assert n"], ids=["all others pass", "others fail"])
def test_tests_that_vanish_fail_the_run(tmp_path: Path, processes: int, another: str) -> None:
    (tmp_path / "conftest.py").write_text(VANISHING)
    source = f"import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_it(n): ...; {another}"
    done = run(tmp_path, source, f"-n{processes}")
    assert "NOTHING WAS SAID OF 2 TESTS THAT WERE COLLECTED" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("source", "arguments", "code"),
    [
        ("", (), 5),
        ("def test_passes(): ...", ("-k", "nothing"), 5),
        ("def test_passes(): ...", ("--deselect", "test_a.py::test_passes"), 0),
        ("def test_passes(): ...", ("--collect-only",), 0),
        ("def test_passes(): ...", ("--budget", "0"), 0),
        ("def test_fails(): assert False\ndef test_behind(): ...", ("-x",), 1),
        ("import os\nassert not __file__.endswith('b.py')\ndef test_passes(): ...", (), 2),
    ],
)
def test_a_run_of_no_or_not_all_tests_ends_as_that_of_one_process(
    tmp_path: Path, source: str, arguments: tuple[str, ...], code: int
) -> None:
    assert [run(tmp_path, source, *arguments, number).returncode for number in ("-n0", "-n2")] == [code, code]


def test_a_run_that_is_terminated_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "test_endless.py").write_text(ENDLESS.replace("it runs", "{os.getpid()}").replace('print("', 'print(f"'))
    begun = tmp_path / "begun"
    with subprocess.Popen(line(tmp_path), cwd=tmp_path, env=environment(BEGUN=str(begun)), stdout=subprocess.DEVNULL) as running:
        wait_until(lambda: begun.exists() and begun.read_text().endswith("\n"), "the test runs")
        running.terminate()
    assert running.returncode == -15
    wait_until(lambda: not is_running(begun.read_text().strip()), "its process has ended")


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
