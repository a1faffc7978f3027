"""The charting library out of its wheel."""

from __future__ import annotations

import sys

import pytest

from kgctl.charts.page import require_library
from kgctl.errors import UsageError


def test_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)

    with pytest.raises(UsageError, match=r"^--html needs the extra `html`: pip install 'kgctl\[html\]'$"):
        require_library()
