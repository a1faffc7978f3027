"""kgctl as a process: start-up, pipes, signals, completion."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S, SOON_S
from tests.support.serve import ServeProcess

HEAVY = ("pyspark", "pyarrow", "numpy", "confluent_kafka", "yaml", "pydantic", "asyncio", "rich")


def kgctl(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run kgctl as a user does, without the user's own configuration."""
    environment = {**os.environ, "KGCTL_CONFIG": os.devnull, **variables}
    return run([sys.executable, "-m", "kgctl", *arguments], environment)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=PATIENCE_S)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["list", "groups", "--help"], ["reset-offsets", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from kgctl.cli.app import run_process\n"
        "code = run_process(sys.argv[1:])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    ran = run([sys.executable, "-c", program, *arguments])
    assert (ran.returncode, ran.stderr) == (0, "[]\n")
    assert ran.stdout


def test_usage_error_contacts_nothing_and_has_no_traceback() -> None:
    ran = kgctl("list", "groups", "--state", "nope", "--bootstrap-server", "127.0.0.1:1")
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)


def test_closed_pipe_is_quiet() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "kgctl", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=PATIENCE_S)) == ("", 0)


@pytest.mark.parametrize("gone", [("stderr",), ("stdout", "stderr")])
def test_a_reader_of_stderr_that_has_gone_does_not_change_the_exit_code(gone: tuple[str, ...]) -> None:
    """As in ``kgctl ... 2>&1 | head``."""
    command = [sys.executable, "-m", "kgctl", "list", "groups", "--state", "nope", "--bootstrap-server", "127.0.0.1:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for name in gone:
            getattr(process, name).close()
        assert process.wait(timeout=PATIENCE_S) == 2


def test_a_full_disk_under_stderr_does_not_change_the_exit_code() -> None:
    command = [sys.executable, "-m", "kgctl", "list", "groups", "--state", "nope", "--bootstrap-server", "127.0.0.1:1"]
    with Path("/dev/full").open("w") as full:
        assert subprocess.run(command, stderr=full, check=False, timeout=PATIENCE_S).returncode == 2


def test_interrupt_exits_with_130_and_without_a_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        with subprocess.Popen(
            [sys.executable, "-m", "kgctl", "--bootstrap-server", address, "--timeout", f"{PATIENCE_S:.0f}", "list", "groups"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            deaf.settimeout(PATIENCE_S)
            connection, _ = deaf.accept()  # from here on it waits for an answer that does not come
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE_S)
            connection.close()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_an_interrupt_while_modules_are_imported_leaves_a_document() -> None:
    """A signal to the process right before its command line is imported."""
    program = (
        "import builtins, os, signal, sys\n"
        "from kgctl.__main__ import main\n"
        "real = builtins.__import__\n"
        "def load(name, *rest, **named):\n"
        "    if name == 'kgctl.cli.app':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest, **named)\n"
        "builtins.__import__ = load\n"
        "sys.argv = ['kgctl', 'list', 'groups', '-o', 'json', '--bootstrap-server', '127.0.0.1:1']\n"
        "main()\n"
    )
    ran = run([sys.executable, "-c", program])
    document = json.loads(ran.stdout)
    assert (ran.returncode, document["exit_code"], document["data"], document["errors"][0]["code"]) == (
        130,
        130,
        [],
        "INTERRUPTED",
    )
    assert ran.stderr == "kgctl: interrupted\n"


def test_an_interrupt_while_a_dataclass_is_made_exits_with_130(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import signal, kgctl.__main__, kgctl.cli.app\n"
        "def interrupted(argv):\n"
        "    try:\n"
        "        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})\n"
        "        exec('import os, signal; os.kill(os.getpid(), signal.SIGINT)\\nwhile True: pass')\n"
        "    except KeyboardInterrupt:\n"
        "        return 130\n"
        "kgctl.cli.app.run_process = interrupted\n"
        "kgctl.__main__.main()\n"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    assert run([sys.executable, "-m", "program"], {**os.environ, "PYTHONPATH": paths}).returncode == 130


def test_unreachable_broker_fails_within_the_time_limit() -> None:
    started = time.monotonic()
    ran = kgctl("list", "groups", "--bootstrap-server", "127.0.0.1:1", "--timeout", "2")
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (7, "", 1)
    assert time.monotonic() - started < SOON_S


def test_broker_that_never_answers_is_a_timeout(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        ran = kgctl("describe", "group", "g", "--bootstrap-server", address, "--timeout", "500ms", "-o", "json")
    assert ran.returncode == 7
    assert '"code": "TIMED_OUT"' in ran.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kgctl ", ["list", "describe", "reset-offsets"]),
        ("kgctl list ", ["groups"]),
        ("kgctl reset-offsets --to-", ["--to-earliest", "--to-latest", "--to-current", "--to-offset", "--to-datetime"]),
    ],
)
def test_completion_of_commands_and_options(words: str, expected: list[str]) -> None:
    count = len(words.split(" ")) - 1
    ran = kgctl(_KGCTL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(count))
    assert ran.returncode == 0
    assert [name for name in expected if name not in ran.stdout.split("\n")] == []


@pytest.mark.interop
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kgctl describe group ", ["payments"]),
        pytest.param("kgctl reset-offsets payments --topic ord", ["orders"], marks=pytest.mark.deep),
    ],
)
def test_completion_of_names_asks_the_cluster(words: str, expected: list[str]) -> None:
    with ServeProcess(topics={"orders": 1, "users": 1}) as server:
        made = ["reset-offsets", "payments", "--topic", "orders", "--to-latest", "--create", "--execute", "--no-backup"]
        assert kgctl(*made, KGCTL_BOOTSTRAP_SERVER=server.bootstrap).returncode == 0
        count = len(words.split(" ")) - 1
        variables = {"COMP_WORDS": words, "COMP_CWORD": str(count), "KGCTL_BOOTSTRAP_SERVER": server.bootstrap}
        ran = kgctl(_KGCTL_COMPLETE="complete_bash", **variables)
    assert (ran.stdout.split(), ran.stderr) == (expected, "")


def test_completion_with_an_unreachable_cluster_is_quick_and_silent() -> None:
    started = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        ran = kgctl(
            _KGCTL_COMPLETE="complete_bash",
            COMP_WORDS="kgctl describe group ",
            COMP_CWORD="3",
            KGCTL_BOOTSTRAP_SERVER=f"127.0.0.1:{deaf.getsockname()[1]}",
        )
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "", "")
    assert time.monotonic() - started < SOON_S


def test_names_that_the_terminal_cannot_show_are_escaped() -> None:
    ran = kgctl("describe", "group", "größe", "-X", "größe", PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (2, "kgctl: -X gr\\xf6\\xdfe: expected key=value\n")


@pytest.mark.parametrize(
    ("command", "searches"), [("list groups", False), ("history build", True), ("serve", True), ("demo", True)]
)
def test_only_long_lived_commands_search_for_reference_cycles(command: str, searches: bool) -> None:
    program = (
        "import gc, sys\n"
        "from kgctl.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(gc.isenabled(), file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ran.stderr == f"{searches}\n"


@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        (">&-", "kgctl: stdout is closed: there is nowhere to write the result\n"),
        ("> /dev/full", "kgctl: cannot write the result: No space left on device\n"),
    ],
)
@pytest.mark.parametrize("line", ["context list -o csv", "describe group '' -o json", "--help"])
def test_stdout_that_takes_nothing_fails_in_one_line(line: str, redirection: str, said: str) -> None:
    ran = shell(f'"{sys.executable}" -m kgctl {line} {redirection}')
    assert (ran.returncode, ran.stdout) == (1, "")
    assert said in ran.stderr.replace("kgctl: [Errno 28]", "kgctl: cannot write the result:")  # where typer wrote it
    assert "Traceback" not in ran.stderr


LAGGING = """\
kgctl: 1
name: lagging
topics: {t: 1}
group: {id: g}
members: {a: {count: 1}}
traffic: {t: 10/s}
warmup: 30s
duration: 20s
allow: [missing, unread]
events: [{at: 1s, crash: a/0}]
"""


@pytest.fixture(scope="module")
def lagging(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a group that is behind."""
    folder = tmp_path_factory.mktemp("lagging")
    (folder / "s.yaml").write_text(LAGGING)
    ran = kgctl("simulate", "run", f"{folder}/s.yaml", "--state-out", f"{folder}/data")
    assert ran.returncode == 0, ran.stderr
    return folder / "data"


@pytest.mark.parametrize("options", ["", "-o json", "-o name", "--watch --interval 1s --iterations 2"])
@pytest.mark.parametrize(("limit", "code"), [(2, 6), (1000, 1)])
def test_a_threshold_raises_the_alarm_though_the_result_cannot_be_written(
    lagging: Path, options: str, limit: int, code: int
) -> None:
    describe = f'"{sys.executable}" -m kgctl --embedded "{lagging}" describe group g --fail-if-lag-over {limit} {options}'
    ran = shell(f"{describe} > /dev/full")
    errors = [line for line in ran.stderr.splitlines() if line.startswith("kgctl: ")]
    assert (ran.returncode, errors) == (
        code,
        ["kgctl: cannot write the result: No space left on device", "kgctl: group 'g': total lag 196 is over 2"][
            : 1 + (code == 6)
        ],
    )


def test_expectations_decide_though_a_result_or_a_file_cannot_be_written(tmp_path: Path) -> None:
    text = "kgctl: 1\nname: x\ntopics: {t: 1}\nmembers: {a: {count: 1}}\nwarmup: 30s\nduration: 10s\n"
    text += "events: [{at: 1s, restart: a}]\nexpect: [max_gap < 1s]\n"
    (tmp_path / "x.yaml").write_text(text)
    run = f'"{sys.executable}" -m kgctl simulate run "{tmp_path}/x.yaml"'
    ran = shell(f"{run} > /dev/full")
    assert (ran.returncode, ran.stderr) == (
        6,
        "kgctl: cannot write the result: No space left on device\nkgctl: 1 of 1 expectations did not hold\n",
    )
    ran = shell(f"{run} --junit /dev/full --metrics /dev/null")
    assert (ran.returncode, ran.stderr) == (
        6,
        "kgctl: /dev/full: No space left on device\nkgctl: 1 of 1 expectations did not hold\n",
    )
    assert " FAIL max_gap < 1s" in ran.stdout
    assert shell(f"{run} --junit /dev/full --check 'max_gap > 1s'").returncode == 1


def test_closed_stderr_leaves_the_exit_code_alone() -> None:
    ran = shell(f'"{sys.executable}" -m kgctl context list --nope 2>&-')
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "")


def test_argument_that_is_no_text_is_a_usage_error() -> None:
    ran = kgctl("describe", "group", "p\udcffy", "--bootstrap-server", "127.0.0.1:1")
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "kgctl: the argument 'p\\xffy' is not UTF-8 text\n")


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of sh, which can close what Python always opens."""
    environment = {**os.environ, "KGCTL_CONFIG": os.devnull}
    return run(["sh", "-c", line], environment)


@pytest.mark.parametrize("place", ["before", "inside"])
def test_a_signal_after_all_was_told_leaves_the_exit_code(place: str) -> None:
    """While Python's exit functions run, those of kgctl itself behind them, and while libraries are unloaded."""
    code = (
        "import atexit, os, signal, sys\n"
        "import kgctl.cli.app as app\n"
        "end = lambda: os.kill(os.getpid(), signal.SIGTERM)\n"
        "def run_process(argv):\n"
        f"    {place!r} == 'inside' and atexit.register(end)\n"
        "    return 3\n"
        "app.run_process = run_process\n"
        f"{place!r} == 'before' and atexit.register(end)\n"
        "from kgctl.__main__ import main\n"
        "main()\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 3
