"""Layers are kept, and starting kgctl stays cheap."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import get_annotations

import pytest

from kgctl.simulate.scenario.fields import Section
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
    "google_crc32c",
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
    [
        ["--help"],
        ["--version"],
        ["describe", "--help"],
        ["describe", "group", "--help"],
        ["history", "offsets", "--help"],
        ["simulate", "run", "--help"],
        ["simulate", "list"],
    ],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIST_HEAVY.format(arguments=arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1:] == ["HEAVY"], done.stderr


MOST_MODULES = 167
"""So many modules with code a reader of ``simulate run`` has before him, for one rebalance of one protocol. The last: share
and streams groups, which the coordinator has whether a run has them or not; what is of one type of groups; what is doubtful in
the file; how text files are read; which expectations no run can break."""
MOST_MODULES_OF_A_CHECK = 59

COUNT_MODULES = """
import sys
from kgctl.cli.app import run_process
run_process(["simulate", sys.argv[1], "-"])
found = [name for name, module in sys.modules.items() if name.startswith("kgctl.") and not hasattr(module, "__path__")]
print(*sorted(found), file=sys.stderr)
"""
SCENARIO = (
    "kgctl: 1\nname: one\nwarmup: 10s\nduration: 30s\ntopics: {t: 2}\n"
    "members: {app: {count: 1}}\nevents: [{at: 10s, restart: app}]\n"
)


def _entered_by(command: str) -> list[str]:
    call = [sys.executable, "-c", COUNT_MODULES, command]
    return (
        subprocess.run(call, cwd=ROOT, input=SCENARIO, capture_output=True, text=True, check=False)
        .stderr.splitlines()[-1]
        .split()
    )


def test_a_run_enters_what_one_rebalance_needs() -> None:
    modules = _entered_by("run")
    assert "kgctl.simulate.engine.run" in modules
    assert len(modules) <= MOST_MODULES, modules


def test_a_check_enters_nothing_that_only_a_run_needs() -> None:
    modules = _entered_by("check")
    assert "kgctl.simulate.lint.rules" in modules
    assert len(modules) <= MOST_MODULES_OF_A_CHECK, modules


def test_no_section_of_a_scenario_has_its_annotations_as_text() -> None:
    """pydantic evaluates texts when it makes a class, those of all its bases anew: a third of what the model takes to import."""
    import_module("kgctl.simulate.scenario.model")
    assert [each.__name__ for each in _below(Section) if any(isinstance(one, str) for one in _annotations(each))] == []


def _below(section: type[Section]) -> Iterator[type[Section]]:
    for each in section.__subclasses__():
        yield each
        yield from _below(each)


def _annotations(section: type[Section]) -> Iterable[object]:
    """Return those of the class itself: in Python 3.14 they are made when they are asked for."""
    return get_annotations(section).values()
