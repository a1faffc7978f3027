"""kio comes without asyncio and Hypothesis; whoever wants those gets the true ones."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_kio_is_imported_without_asyncio_and_hypothesis() -> None:
    code = """
import sys
from kgctl.wire.light_imports import import_kio
import_kio()
print("kio.serial" in sys.modules, "asyncio" in sys.modules, "hypothesis" in sys.modules)
import asyncio, hypothesis
print(asyncio.StreamWriter.__module__, hypothesis.__name__)
"""

    assert run(code) == "True False False\nasyncio.streams hypothesis"


def test_what_is_already_imported_stays() -> None:
    code = """
import asyncio, sys
from kgctl.wire.light_imports import import_kio
import_kio()
import_kio()
import kio.serial.writers
print(sys.modules["asyncio"] is asyncio is kio.serial.writers.asyncio)
"""

    assert run(code) == "True"
