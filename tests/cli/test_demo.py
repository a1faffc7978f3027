"""``kgctl demo``, as a new user runs it: a process, a real server, real consumers."""

from __future__ import annotations

import csv
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from kgctl.cli.demo import DemoStage
from kgctl.cli.environment import Environment
from kgctl.extras import install_line
from tests.support.patience import PATIENCE_S, SOON_S

DEMO = [sys.executable, "-m", "kgctl", "demo"]

pytestmark = pytest.mark.interop


def environment(folder: Path) -> dict[str, str]:
    """Nothing of the user's own; a folder for temporary files that the test can look into."""
    return {**os.environ, "KGCTL_CONFIG": str(folder / "none.yaml"), "TMPDIR": str(folder)}


def commands(transcript: str) -> list[str]:
    return [line.removeprefix("$ kgctl ") for line in transcript.splitlines() if line.startswith("$ kgctl ")]


def test_demo_runs_the_main_job_and_leaves_nothing_behind(tmp_path: Path) -> None:
    started = time.monotonic()
    ran = subprocess.run(DEMO, capture_output=True, text=True, env=environment(tmp_path), check=False, timeout=PATIENCE_S)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert time.monotonic() - started < SOON_S
    assert list(tmp_path.iterdir()) == []
    assert commands(ran.stdout)[:5] == [
        "list groups --lag",
        "describe group payments",
        "reset-offsets payments --topic orders --shift-by -50",
        "reset-offsets payments --topic orders --shift-by -50 --execute",
        "describe group payments",
    ]
    assert re.search(r"^payments +Stable +classic +3 +90$", ran.stdout, re.MULTILINE)
    assert len(re.findall(r"^payments +orders +\d +100 +130 +30 +payments-\d-\S+ ", ran.stdout, re.MULTILINE)) == 3
    assert len(re.findall(r"^payments +orders +\d +100 +50 +-50 +80 +planned$", ran.stdout, re.MULTILINE)) == 3
    assert len(re.findall(r"^payments +orders +\d +100 +50 +-50 +80 +reset$", ran.stdout, re.MULTILINE)) == 3
    assert len(re.findall(r"^payments +orders +\d +50 +130 +80\b", ran.stdout, re.MULTILINE)) == 3
    assert commands(ran.stdout)[5:] == ["undo last --execute"]
    assert len(re.findall(r"^payments +orders +\d +50 +100 +50 +30 +reset$", ran.stdout, re.MULTILINE)) == 3
    assert ran.stdout.splitlines()[-1].endswith("--bootstrap-server HOST:PORT list groups --lag")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_kept_demo_answers_until_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [*DEMO, "--keep"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(tmp_path)
    ) as process:
        assert process.stdout is not None
        exported = {}
        for line in process.stdout:
            if found := re.fullmatch(r"export (KGCTL_\w+)=(\S+)\n", line):
                exported[found[1]] = found[2]
            elif exported:
                break
        typed = {**environment(tmp_path), **exported}
        groups = rows(typed, "list", "groups", "--lag")
        resets = rows(typed, "history", "resets", "payments", "--topic", "orders:0")
        process.send_signal(number)
        rest, _ = process.communicate(timeout=PATIENCE_S)
    assert sorted(exported) == ["KGCTL_BOOTSTRAP_SERVER", "KGCTL_WAREHOUSE"]
    assert [(row["group"], row["state"], row["lag"]) for row in groups] == [
        ("payments", "Empty", "120"),
        ("shipping", "Stable", "30"),
    ]
    assert [(row["offset_before"], row["offset_after"]) for row in resets] == [("100", "50"), ("50", "100")]
    assert (process.returncode, rest) == (0, "\n")
    assert list(tmp_path.iterdir()) == []


def rows(variables: Mapping[str, str], *argv: str) -> list[dict[str, str]]:
    """What one command line prints, as CSV."""
    ran = subprocess.run(
        [sys.executable, "-m", "kgctl", *argv, "-o", "csv"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
    return list(csv.DictReader(ran.stdout.splitlines()))


def test_a_kept_demo_without_the_history_s_packages_says_what_brings_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    out = io.StringIO()
    stage = DemoStage(Environment(stdout=out), tmp_path)
    stage.collect()
    assert out.getvalue() == f"(It does not: kgctl history needs deltalake: {install_line('history')})\n"
    assert (stage.worst, stage.exported, list(tmp_path.iterdir())) == (0, {}, [])
