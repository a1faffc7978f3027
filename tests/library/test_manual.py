"""The examples of the manual's page for Python run as they stand, in order, in one namespace."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from tests.repo.project import ROOT

PAGE = ROOT / "kgctl" / "manual" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def namespace() -> dict[str, Any]:
    return {}


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 8


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example(number: int, namespace: dict[str, Any], request: pytest.FixtureRequest) -> None:
    exec("import kgctl\nfrom kgctl.testing import EmbeddedCluster", namespace)
    exec(compile(BLOCKS[number], f"python.md, example {number + 1}", "exec"), namespace)
    namespace.pop("producer", None)  # librdkafka goes on looking for a cluster that is gone, and says so
    for name in [name for name in namespace if name.startswith("test_")]:
        test = namespace.pop(name)
        test(*(request.getfixturevalue(parameter) for parameter in inspect.signature(test).parameters))
