"""The examples of the manual's page for Python run as they stand, in order, in one namespace."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from tests.repo.project import ROOT

PAGE = ROOT / "kgctl" / "manual" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 8


def test_examples_in_order(request: pytest.FixtureRequest) -> None:
    """One test, since later examples use what earlier ones define."""
    namespace: dict[str, Any] = {}
    exec("import kgctl\nfrom kgctl.testing import EmbeddedServer", namespace)
    for number, block in enumerate(BLOCKS, 1):
        exec(compile(block, f"python.md, example {number}", "exec"), namespace)
        namespace.pop("producer", None)  # librdkafka goes on looking for a cluster that is gone, and says so
        for name in [name for name in namespace if name.startswith("test_")]:
            test = namespace.pop(name)
            test(*(request.getfixturevalue(parameter) for parameter in inspect.signature(test).parameters))
