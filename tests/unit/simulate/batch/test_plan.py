"""Runs spread over processes."""

from __future__ import annotations

import os

import pytest

from kgctl.errors import KgctlError
from kgctl.simulate.batch import plan


def test_a_process_that_is_killed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "run_task", os._exit)
    with pytest.raises(KgctlError, match="was killed") as raised:
        plan.run_all([1, 2], 2, lambda _: None)  # type: ignore[list-item]
    assert raised.value.code == "WORKER_KILLED"
