"""The contract of `kgctl.storage.record_log` is tested over both implementations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.storage.folder import DataFolder
from tests.support.storage import KINDS, new_folder


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DataFolder]:
    with new_folder(request.param, tmp_path) as opened:
        yield opened
