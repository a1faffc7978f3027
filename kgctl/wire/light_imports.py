"""kio without what a short-lived command never uses.

kio imports asyncio for one type annotation of its writers (25 ms, a sixth of the time that ``describe group`` may take), and
Hypothesis, where that is installed, to register strategies for its tests (170 ms). Neither has any part in reading messages.
So for the moment of kio's import, both are kept out: asyncio by a stand-in that has the annotated class, Hypothesis by being
absent. What is already imported stays as it is, and both can be imported as usual afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


def import_kio() -> None:
    """Import kio once; does nothing when it is there already. Call it before any other thread may import asyncio."""
    if "kio.serial" in sys.modules:
        return
    stand_in = ModuleType("asyncio")
    stand_in.StreamWriter = type("StreamWriter", (), {})  # type: ignore[attr-defined]
    with _instead("asyncio", stand_in), _instead("hypothesis", None):
        import kio.serial  # noqa: F401 - for its side effect


@contextmanager
def _instead(name: str, module: ModuleType | None) -> Iterator[None]:
    """``module`` under this name, or no module at all; not when the true one has been imported."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = module  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
