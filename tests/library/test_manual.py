"""The examples of the manual's pages for Python run as they stand, in order, in one namespace a page."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import pytest

from kgctl.testing import EmbeddedServer
from tests.repo.project import ROOT

MANUAL = ROOT / "kgctl" / "manual"
RUN = [MANUAL / f"{name}.md" for name in ("python", "testing")]
SPARKS_OWN = {"cookbook", "history", "spark", "tables"}
"""Pages whose examples are lines for a session of Spark, whose types there are not."""
OF_A_PAGE = "import kgctl\nfrom kgctl.testing import EmbeddedServer"


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


TYPED = [page for page in sorted(MANUAL.glob("*.md")) if page.stem not in {*SPARKS_OWN, "adding-things"} and python_blocks(page)]
"""The pages for programs of users; the steps of adding-things are tried in a copy of the project."""


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_examples_in_order(page: Path, request: pytest.FixtureRequest) -> None:
    """One test a page, since later examples use what earlier ones define."""
    namespace: dict[str, Any] = {}
    exec(OF_A_PAGE, namespace)
    blocks = python_blocks(page)
    assert len(blocks) >= 4
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{page.name}, example {number}", "exec"), namespace)
        namespace.pop("producer", None)  # librdkafka goes on looking for a cluster that is gone, and says so
        for name in [name for name in namespace if name.startswith("test_")]:
            run_test(namespace.pop(name), request)
        for case in [value for value in namespace.values() if inspect.isclass(value) and issubclass(value, unittest.TestCase)]:
            assert unittest.defaultTestLoader.loadTestsFromTestCase(case).run(unittest.TestResult()).wasSuccessful()
            del namespace[case.__name__]


def run_test(test: Any, request: pytest.FixtureRequest) -> None:
    """Call a test of a page with a cluster as its markers say, or with the fixtures that it names."""
    marked = {name: value for mark in getattr(test, "pytestmark", ()) for name, value in mark.kwargs.items()}
    names = inspect.signature(test).parameters
    if not marked:
        test(*(request.getfixturevalue(name) for name in names))
        return
    assert list(names) == ["kafka_cluster"]
    with EmbeddedServer(**marked) as cluster:
        test(cluster)


def type_errors(program: str, folder: Path) -> str:
    """What ``mypy --strict`` says of a program."""
    file = folder / "program.py"
    file.write_text(program)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return "" if ran.returncode == 0 else ran.stdout


@pytest.mark.parametrize("page", TYPED, ids=lambda page: page.stem)
def test_examples_are_typed_strictly(page: Path, tmp_path: Path) -> None:
    """Who copies them into a typed program has nothing to mend."""
    assert type_errors("\n".join([OF_A_PAGE, *python_blocks(page)]), tmp_path) == ""


def test_a_wrong_example_is_seen(tmp_path: Path) -> None:
    assert "has no attribute" in type_errors(f"{OF_A_PAGE}\nEmbeddedServer({{}}).no_such_name()", tmp_path)
