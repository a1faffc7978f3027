"""What a run tries: by default the same bounded examples on every machine, with ``pytest -m deep`` everything else too.

The marker ``deep`` is for what repeats a default test with more seeds, codecs or programs, and for long searches; a run whose
``-m`` does not name it leaves those out. Under it every test of hypothesis is deep as well: more examples, drawn at random,
each failure with the line that repeats it. What such a run finds becomes an ``@example`` of the test.

No example has a time limit: machines are slow now and then, and the test as a whole has one.
"""

from __future__ import annotations

import pytest
from hypothesis import is_hypothesis_test, settings

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.register_profile("deep", deadline=None, derandomize=False, print_blob=True, max_examples=1_000)


def pytest_configure(config: pytest.Config) -> None:
    """Load the profile before a module of tests takes it as the base of its own settings."""
    settings.load_profile("deep" if is_deep(config) else "repeatable")


def is_deep(config: pytest.Config) -> bool:
    """Whether the run's ``-m`` names the marker."""
    return "deep" in config.option.markexpr.replace("not deep", "")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect deep tests, or mark those of hypothesis as deep too, before pytest looks at ``-m``."""
    if is_deep(config):
        for item in items:
            if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
                item.add_marker("deep")
        return
    deep = [item for item in items if item.get_closest_marker("deep")]
    if deep:
        config.hook.pytest_deselected(items=deep)
        items[:] = [item for item in items if not item.get_closest_marker("deep")]
