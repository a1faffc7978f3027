"""A history to ask, the same for all tests: written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.harness import Cli
from tests.support.pipeline.example import example_history, minute


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "warehouse"
    example_history(folder)
    return folder


@pytest.fixture
def cli(cli: Cli, example: Path) -> Cli:
    cli.variables["KGCTL_WAREHOUSE"] = str(example)
    cli.now_ms = minute(60)
    return cli
