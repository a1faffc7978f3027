"""Layers are kept, and starting kgctl stays cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.repo.project import ROOT

HEAVY = (
    "pyspark",
    "pyarrow",
    "confluent_kafka",
    "yaml",
    "pydantic",
    "asyncio",
    "numpy",
    "pandas",
    "sqlite3",
    "crc32c",
    "scramp",
    "vl_convert",
)

LIST_HEAVY = f"""
import sys
try:
    from kgctl.cli.app import run_process
    run_process({{arguments!r}})
except SystemExit:
    pass
print("HEAVY", *sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr)
""".replace(f"{HEAVY!r}", f"set({HEAVY!r})")


def test_import_contracts_hold() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["describe", "--help"], ["describe", "group", "--help"], ["history", "offsets", "--help"]],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIST_HEAVY.format(arguments=arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1:] == ["HEAVY"], done.stderr
