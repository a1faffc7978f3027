"""The charting library out of its wheel."""

from __future__ import annotations

import re
import sys

import pytest

from kgctl.charts.page import require_library
from kgctl.errors import UsageError
from kgctl.extras import install_line


def test_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)

    with pytest.raises(UsageError, match=f"^{re.escape('--html needs vl_convert: ' + install_line('html'))}$"):
        require_library()
