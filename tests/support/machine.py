"""What tests need of a machine beside Python's packages: how each is looked for, and what Debian's package is called.

The one list: `tests.support.gates` skips by it, and `.ci/tools` installs what it names. Standard library only, since that runs
before anything is set up.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

MINIMUM_JAVA = 17
_P = ParamSpec("_P")
_T = TypeVar("_T")

DEBIANS_JARS = Path("/usr/share/java")


class Unavailable(Exception):  # noqa: N818 - a condition of the machine, not an error of the caller
    """Something that was asked for cannot be had on this machine, or from here; the message says why in one line."""


def once(ask: Callable[_P, _T]) -> Callable[_P, _T]:
    """`functools.cache` that keeps a refusal too: what is `Unavailable` is not asked for again by this process."""

    @functools.cache
    def asked(*args: Any, **kwargs: Any) -> tuple[Any, str]:
        try:
            return ask(*args, **kwargs), ""
        except Unavailable as missing:
            return None, str(missing)

    @functools.wraps(ask)
    def answer(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        found, refusal = asked(*args, **kwargs)  # type: ignore[arg-type]  # hashable by the word of whoever decorates
        if refusal:
            raise Unavailable(refusal)
        kept: _T = found
        return kept

    return answer


@dataclass(frozen=True, slots=True)
class Need:
    """``label``: what people call it. ``packages``: Debian's, empty for what no package brings. ``programs``: what it starts."""

    label: str
    is_there: Callable[[], bool]
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


@functools.cache
def java_version(program: Path) -> int:
    """The major version that ``program -version`` prints; 0 where it prints none."""
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r"(?:version \"|javac )(\d+)", answer.stdout + answer.stderr)
    return int(found.group(1)) if found else 0


@functools.cache
def find_java(program: str = "java") -> Path:
    """``java`` or ``javac`` of version 17 or later, from JAVA_HOME or the PATH.

    Raises:
        Unavailable: there is none, or it is older.
    """
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / program)] if home else []
    for candidate in [*candidates, program]:
        found = shutil.which(candidate)
        if found and java_version(Path(found)) >= MINIMUM_JAVA:
            return Path(found)
    raise Unavailable(f"no {program} of version {MINIMUM_JAVA} or later on this machine")


def _has_java(program: str) -> bool:
    try:
        find_java(program)
    except Unavailable:
        return False
    return True


def _has_jars(*patterns: str) -> bool:
    return all(any(DEBIANS_JARS.glob(pattern)) for pattern in patterns)


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def _modules(label: str, *names: str) -> Need:
    return Need(label, lambda: all(importlib.util.find_spec(name) for name in names))


def _programs(label: str, packages: str, *programs: str) -> Need:
    return Need(label, lambda: all(map(shutil.which, programs)), tuple(packages.split()), programs)


NEEDS = {
    "java": Need("Java 17 or later", lambda: _has_java("java"), ("default-jre-headless",), ("java",)),
    "maven": _programs("Maven", "maven", "mvn"),
    "javac": Need("its compiler (a JDK)", lambda: _has_java("javac"), ("default-jdk-headless",), ("javac",)),
    "zookeeper": Need("ZooKeeper", lambda: _has_jars("zookeeper.jar", "slf4j-nop.jar"), ("zookeeper",)),
    "netty": Need("Netty for ZooKeeper", lambda: _has_jars("netty-*.jar"), ("libnetty-java",)),
    "burrow": _programs("Burrow", "burrow", "Burrow"),
    "node": _programs("Node.js and npm", "nodejs npm", "node", "npm"),
    "go": _programs("Go", "golang-go", "go"),
    "chromium": _programs("Chromium", "chromium fonts-dejavu-core", "chromium"),
    "zsh": _programs("zsh", "zsh", "zsh"),
    "fish": _programs("fish", "fish", "fish"),
    "shellcheck": _programs("shellcheck", "shellcheck", "shellcheck"),
    "pyspark": _modules("Spark (.ci/setup.py dev brings it where Java is)", "pyspark"),
    "frames": _modules("pandas and polars (.ci/setup.py ci)", "pandas", "polars"),
    "root": Need("root's rights", lambda: os.getuid() == 0),
    "ipv6": Need("IPv6 on the loopback interface", _has_ipv6),
}
"""All there are. Those with packages are what a full machine has, and under ``CI=true`` has to have."""


@functools.cache
def is_there(name: str) -> bool:
    """Whether this machine has it."""
    return NEEDS[name].is_there()


def missing_packages() -> list[str]:
    """Debian's packages of all that is not there."""
    return list(dict.fromkeys(package for name, need in NEEDS.items() if not is_there(name) for package in need.packages))


if __name__ == "__main__":
    print(*missing_packages())
