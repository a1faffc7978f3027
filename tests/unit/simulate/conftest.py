"""What tests of the simulation share."""

from __future__ import annotations

import pytest

from kgctl.simulate.engine import context


@pytest.fixture
def exact_warmup(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warm-up is as long as the scenario says, with every seed: for tests that know when something happens."""
    monkeypatch.setattr(context, "LEAD_US", 0)
