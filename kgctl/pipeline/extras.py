"""Packages that a plain `pip install kgctl` does not bring: named in one line when a command needs them and lacks them."""

from __future__ import annotations

import importlib.util

from kgctl.errors import UsageError


def require(what: str, *modules: str, extra: str = "spark") -> None:
    """Answer if all ``modules`` can be imported; nothing is imported. ``what``: who needs them, ``kgctl history``.

    Raises:
        UsageError: one is missing; the message has the line that installs it.
    """
    missing = [name for name in modules if not is_there(name)]
    if missing:
        raise UsageError(f"{what} needs {' and '.join(missing)}: pip install 'kgctl[{extra}]'")


def is_there(module: str) -> bool:
    """Whether a top-level module can be imported; it is not imported."""
    return importlib.util.find_spec(module) is not None
