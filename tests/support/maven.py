"""Java for the tests: a class path from a pom of the suite, and small Java programs compiled against it.

Everything is kept in the user's cache folder, keyed by what it was made from, so that a second run asks
neither Maven nor the network.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import platformdirs

from tests.support.gates import uses
from tests.support.machine import Unavailable, find_java, java_version, once

RESOLVE_TIMEOUT_S = 900
COMPILE_TIMEOUT_S = 300
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

# Small programs are over before a second compiler tier or a parallel collector pays for itself.
FAST_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def cache_folder() -> Path:
    """The folder that outlives a test run: class paths, compiled programs, class data archives."""
    folder = platformdirs.user_cache_path("kgctl-tests")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def cache_lock(name: str) -> Iterator[None]:
    """Lets one process at a time make what ``name`` stands for; others wait and then find it made."""
    with (cache_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(*parts: str | bytes) -> str:
    """A short key for a cache entry made from ``parts``."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()[:20]


def class_path(pom: Path, **properties: str) -> str:
    """The jars that ``pom`` names and theirs, as one class path sorted by path (a class data archive needs one fixed order).

    ``properties`` are Maven's, with "_" for ".": ``kafka_version="4.2.0"`` takes another Kafka than the pom says.

    Raises:
        Unavailable: no Maven here, or Maven Central cannot be reached.
    """
    uses("maven")
    given = tuple(f"-D{name.replace('_', '.')}={value}" for name, value in properties.items())
    return asked_once(pom.resolve(), pom.read_text(), given)


def kept_class_path(pom: Path, content: str, properties: tuple[str, ...] = ()) -> str:
    """Return it from the cache folder, where an earlier run left it, else from Maven."""
    key = f"classpath-{digest(content, *properties)}"
    kept = cache_folder() / f"{key}.txt"
    with cache_lock(key):
        if not _complete(kept):
            _resolve(pom, properties, kept)
    return kept.read_text()


asked_once = once(kept_class_path)


def _complete(kept: Path) -> bool:
    return kept.exists() and all(Path(jar).exists() for jar in kept.read_text().split(os.pathsep))


def _resolve(pom: Path, properties: tuple[str, ...], kept: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("no Maven (mvn) on this machine")
    with tempfile.TemporaryDirectory() as work:
        output = Path(work) / "classpath"
        command = [maven, "-B", "-q", "-f", str(pom), f"{DEPENDENCY_PLUGIN}:build-classpath", f"-Dmdep.outputFile={output}"]
        problem = _run_maven([*command, *properties], work)
        if problem:
            raise Unavailable(f"Maven Central cannot be reached for {pom.name} of {pom.parent.name}: {problem}")
        jars = sorted(output.read_text().strip().split(os.pathsep))
    write_atomically(kept, os.pathsep.join(jars))


def _run_maven(command: Sequence[str], work: str) -> str | None:
    try:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, timeout=RESOLVE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"no answer within {RESOLVE_TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    errors = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
    return errors[0].removeprefix("[ERROR] ") if errors else f"mvn ended with {done.returncode}"


def compile_java(
    pom: Path, sources: Sequence[Path], replaced: Mapping[str, str] = MappingProxyType({}), **properties: str
) -> str:
    """A class path with ``sources`` compiled in front of the jars of ``pom``, which takes ``properties`` as `class_path` does.

    ``replaced`` are texts of the sources that stand for others: a package that another version of a library has elsewhere.

    Raises:
        Unavailable: as `class_path`, or there is no javac.
        AssertionError: the sources do not compile; the compiler's words are in the message.
    """
    uses("javac")
    jars = class_path(pom, **properties)
    javac = find_java("javac")
    texts = {path.name: _replace(path.read_text(encoding="utf-8"), replaced) for path in sorted(sources)}
    key = "classes-" + digest(jars, str(java_version(javac)), *(part for named in texts.items() for part in named))
    classes = cache_folder() / key
    with cache_lock(key):
        if not classes.exists():
            _compile(javac, jars, texts, classes)
    return f"{classes}{os.pathsep}{jars}"


def _replace(text: str, replaced: Mapping[str, str]) -> str:
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text


def _compile(javac: Path, jars: str, texts: Mapping[str, str], classes: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
        output = Path(work) / "classes"
        sources = [Path(work) / name for name in texts]
        for path, text in zip(sources, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        command = [str(javac), "-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", str(output), "-cp", jars, *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_TIMEOUT_S)
        assert done.returncode == 0, f"javac:\n{done.stdout}{done.stderr}"
        output.rename(classes)


def java_command(classes: str, main_class: str, *arguments: str, jvm: Sequence[str] = FAST_JVM) -> list[str]:
    """The command line that runs ``main_class`` with the class path ``classes``."""
    return [str(find_java()), *jvm, "-cp", classes, main_class, *arguments]


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes ``path`` so that another process sees the old content or the new, never a part."""
    data = content.encode() if isinstance(content, str) else content
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    Path(temporary).replace(path)


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Writes a Java properties file; values are one line each."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path
