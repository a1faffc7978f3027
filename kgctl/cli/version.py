"""What ``kgctl --version -v`` says of this installation: its commit, its Python, and the libraries it would use."""

from __future__ import annotations

import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import kgctl

PACKAGE = Path(kgctl.__file__).parent
BUILT_FROM = PACKAGE / "commit.txt"
"""Written into a wheel or an sdist by .ci/build_commit.py; a checkout has none."""


def installation() -> dict[str, str]:
    """Return what a report of a fault needs, name by name, libraries in the order of the project file."""
    return {"commit": commit(), "Python": platform.python_version(), "platform": platform.platform(), **libraries()}


def commit() -> str:
    """Return the commit that was built, or that the checkout stands at; ``unknown`` where neither can be told."""
    if BUILT_FROM.exists():
        return BUILT_FROM.read_text(encoding="utf-8").strip()
    if not (PACKAGE.parent / ".git").exists():
        return "unknown"
    command = ["git", "-C", str(PACKAGE.parent), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - words of our own
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def libraries() -> dict[str, str]:
    """Return the version of each library that kgctl asks for, with and without extras; ``-`` where it is not installed."""
    found = {}
    for wanted in _wanted():
        name = re.split(r"[^\w.-]", wanted, maxsplit=1)[0]
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "-"
    return found


def _wanted() -> list[str]:
    try:
        return [each for each in requires("kgctl") or () if "extra == 'dev'" not in each.replace('"', "'")]
    except PackageNotFoundError:  # run from a folder, not installed
        return []
