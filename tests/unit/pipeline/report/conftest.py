"""The example's history, opened, and a page of it."""

from __future__ import annotations

import pytest

from kgctl.admin.times import format_instant
from kgctl.pipeline.answers.history import History
from kgctl.pipeline.report.page import Asked, Content, content
from tests.support.pipeline.example import END_AT, example_history, minute


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("report") / "warehouse"
    example_history(folder)
    return History.open(folder)


@pytest.fixture(scope="session")
def example(history: History) -> Content:
    return content([Asked(history)], minute(0), minute(END_AT) + 1, format_instant)
