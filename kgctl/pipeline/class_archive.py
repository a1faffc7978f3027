"""An archive of the classes that Spark loads (the JVM's class data sharing): with it, Spark starts in half the time.

One file for each build of Java and of Spark, in the user's cache. It is written once, by a process in the background, after the
first use of Spark; nothing depends on it. A JVM that cannot use it goes on without. ``KGCTL_SPARK_ARCHIVE=off`` does without.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from kgctl.pipeline.java import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_ATTEMPTS = 3


def cache_folder() -> Path:
    """Where kgctl keeps what it can make again: KGCTL_CACHE_DIR, else the user's cache folder."""
    import platformdirs

    return Path(os.environ.get("KGCTL_CACHE_DIR") or platformdirs.user_cache_path("kgctl")) / "spark"


@dataclass(frozen=True, slots=True)
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
        """How long a JVM may take to end."""
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
        """It is of no use; the next run makes another."""
        if self.path is not None and not self.is_being_made:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)

    def make_in_background(self) -> None:
        """Start a process that writes it, unless it is there, or being written, or could not be written before."""
        if self.path is None or self.is_being_made or self._is_whole() or not self._claim():
            return
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        command = [sys.executable, "-m", "kgctl.pipeline.class_archive", str(self.path)]
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

    Raises:
        OSError: another process holds it, or the folder cannot be written.
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
    spark.sparkContext.parallelize(range(2), 2).map(str).collect()
    table = spark.range(100).selectExpr("id % 7 AS key", "cast(id AS string) AS text")
    table.write.parquet(f"{folder}/table")
    spark.read.parquet(f"{folder}/table").groupBy("key").count().orderBy("key").collect()


if __name__ == "__main__":
    os.nice(19)
    write(Path(sys.argv[1]))
