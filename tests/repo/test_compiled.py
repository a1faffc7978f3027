"""Annotations that hold: the core compiled by mypyc, where a lie is a TypeError, answers as the sources do."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kgctl.simulate.scenario.sources import builtin_names
from tests.repo.project import ROOT

TESTED = [f"tests/unit/{room}" for room in ("coordinator", "member", "model", "assignors", "serde", "simulate")]
TESTED += ["tests/conformance", "tests/stateful", "tests/group"]
NOT_TESTED = {
    "tests/unit/serde/test_coordinator_records.py::test_null_where_the_format_has_none_is_refused": "no annotation lets it by",
    "tests/unit/simulate/engine/test_invariants.py::test_a_large_group_is_looked_at_as_a_whole": "replaces a method",
    "tests/group/test_users_code.py": "frames of compiled code have other names",
    "tests/unit/simulate/against/test_play.py": "a play's classes inherit from compiled ones, which mypyc does not have",
    "tests/unit/simulate/recording/test_recording.py": "pickles, which compiled classes are not made for",
    "tests/conformance/assignors/test_upstream_cases.py": "isinstance of a compiled class with an abstract base",
}
"""What cannot pass on a compiled core, and why."""


@pytest.fixture(name="compiling")
def _compiling() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ci_compile", ROOT / ".ci" / "compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_compiled_is_there_and_its_classes_are_seen_by_mypyc(compiling: ModuleType, tmp_path: Path) -> None:
    package = ROOT / "kgctl"
    core = compiling.core(package)
    names = {str(path.relative_to(package)) for path in core}
    assert {"model/requests.py", "coordinator/coordinator.py", "simulate/engine/simulation.py", "serde/record_schema.py"} <= names
    assert not names & set(compiling.AS_THEY_ARE)
    for path in core:
        copy = tmp_path / path.name
        copy.write_text(path.read_text())
        text = compiling.rewritten(copy).read_text()
        assert not re.search(r"^\s*@frozen", text, re.MULTILINE), path
        compile(text, str(path), "exec")


def test_the_decorators_of_the_copy_are_those_of_the_sources(compiling: ModuleType) -> None:
    """Said twice, as mypyc reads words and not values: so they are compared."""
    text = (ROOT / "kgctl/model/values.py").read_text()
    for name, decorator in compiling.DECORATORS.items():
        (given,) = re.findall(rf"def {name[1:]}\(.*?return \w+\((dataclass\(.*?\))\(cls\)\)", text, re.DOTALL)
        assert decorator == f"@{given}".replace("repr=False, eq=False", "unsafe_hash=True"), "the other methods are the twin's"
    assert re.findall(r"make_dataclass\(.*(unsafe_hash=True)\)", text)


def test_what_is_not_tested_on_the_compiled_core_is_there() -> None:
    for name in NOT_TESTED:
        file, _, function = name.partition("::")
        assert f"def {function}" in (ROOT / file).read_text()


@pytest.mark.deep
@pytest.mark.timeout(3_600)
def test_the_compiled_core_answers_as_the_sources_do(tmp_path: Path) -> None:
    """Its tests pass on it, and each built-in comes out to the byte."""
    made = subprocess.run([sys.executable, ROOT / ".ci/compile.py", tmp_path], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-2_000:]

    def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)

    where = run(tmp_path, "-c", "from kgctl.coordinator import coordinator; print(coordinator.__file__)")
    assert where.stdout.startswith(str(tmp_path))
    assert where.stdout.rstrip().endswith(".so")
    for name in builtin_names():
        words = ["-m", "kgctl", "simulate", "run", name, "--runs", "2", "-o", "json"]
        compiled, pure = run(tmp_path, *words), run(ROOT, *words)
        assert (compiled.returncode, compiled.stdout) == (pure.returncode, pure.stdout), (name, compiled.stderr)
    left_out = [word for name in NOT_TESTED for word in ("--deselect", name)]
    tested = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *left_out, *TESTED)
    assert tested.returncode == 0, tested.stdout[-4_000:]
