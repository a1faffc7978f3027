"""The command line in process, against the example cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, example_cluster


@pytest.fixture
def cluster() -> FakeGroupAdmin:
    return example_cluster()


@pytest.fixture
def cli(tmp_path: Path, cluster: FakeGroupAdmin) -> Cli:
    return Cli(tmp_path, cluster)
