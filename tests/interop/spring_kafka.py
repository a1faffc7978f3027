"""Tests of Spring for Apache Kafka that ask a broker, as their project publishes them, on Apache Kafka and on ``kgctl serve``.

``python -m tests.interop.spring_kafka SOURCE [--on kafka|kgctl]`` runs them from a checkout of its repository (any git directory
that has the release's tag; nothing of it is kept here) against the release's jars. `KIT` stands on the class path in front of the
one class, of Kafka's, that starts a broker in the tests' own process: it starts one of `SERVERS` instead, with the settings that
it is given. Nothing else is replaced. A class of which something failed is run once more by itself. What passed goes to
`suites.RESULTS`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.interop.peers import Outcomes, outcomes_of
from tests.interop.suites import record
from tests.support.machine import find_java
from tests.support.maven import class_path, compile_java

NAME = "spring-kafka"
RELEASE = "4.1.1"
LEFT_OUT = (
    "share groups, which nobody has run here; what asks no broker; Kotlin's; `testKStreams` of `KafkaStreamsTests`, which asks "
    "the broker's object in its own process"
)
FOLDER = Path(__file__).with_name("spring")
POM = FOLDER / "pom.xml"
KIT = FOLDER / "KafkaClusterTestKit.java"
TESTS = "spring-kafka/src/test"
PACKAGE = "org.springframework.kafka."
SERVERS = {
    "kafka": [sys.executable, "-m", "tests.interop.kafka_node"],
    "kgctl": [str(Path(sys.executable).with_name("kgctl")), "serve", "--for-tests"],
}
"""Commands that take ``--config``, and tell where they serve."""
FLAGS = ("-Xmx1536m", "-XX:+UseSerialGC", "-Djunit.jupiter.execution.timeout.default=PT10M")


def compiled(source: Path, folder: Path) -> tuple[str, Collection[str]]:
    """Return a class path with the release's tests, and the names of those classes that start a broker."""
    packed = subprocess.run(["git", "-C", str(source), "archive", f"v{RELEASE}", TESTS], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    java, classes, jars = folder / TESTS / "java", folder / "classes", class_path(POM, spring_version=RELEASE)
    files = sorted(java.rglob("*.java"))
    options = ("-nowarn", "-proc:none", "-parameters", "-encoding", "UTF-8", "-d", str(classes), "-cp", jars)
    subprocess.run([str(find_java("javac")), *options, *map(str, files)], check=True, capture_output=True)
    starting = [file for file in files if "EmbeddedKafka" in file.read_text() and "Share" not in file.name]
    names = [".".join(file.relative_to(java).with_suffix("").parts) for file in starting]
    return os.pathsep.join([str(classes), str(folder / TESTS / "resources"), jars]), names


def run(server: str, classes: str, names: Collection[str], folder: Path) -> Outcomes:
    """Run these classes in one process."""
    folder.mkdir()
    launcher = [str(find_java()), *FLAGS, "-cp", classes, "org.junit.platform.console.ConsoleLauncher", "execute"]
    chosen = [*(f"--select-class={name}" for name in names), "--exclude-methodname=.*KafkaStreamsTests#testKStreams"]
    shown = ["--include-classname=.*", f"--reports-dir={folder}", "--details=verbose", "--disable-ansi-colors"]
    variables = {**os.environ, "SERVER": " ".join(SERVERS[server])}
    with (folder / "output.log").open("w") as output:
        subprocess.run([*launcher, *chosen, *shown], env=variables, stdout=output, stderr=output, check=False)
    return outcomes_of(folder / "TEST-junit-jupiter.xml", full_name)


def full_name(case: Mapping[str, str]) -> str:
    """A test's class, without the package that all share, and its method."""
    return f"{case['classname'].removeprefix(PACKAGE)}#{case['name']}"


def played(source: Path, server: str, folder: Path) -> Outcomes:
    """Run all on one server, and once more what failed."""
    classes, names = compiled(source, folder)
    classes = compile_java(POM, [KIT], spring_version=RELEASE).partition(os.pathsep)[0] + os.pathsep + classes
    first = run(server, classes, names, folder / "first")
    once_more = {PACKAGE + name.partition("#")[0].partition("$")[0] for name in first.failed}
    again = run(server, classes, once_more, folder / "again") if once_more else first
    return Outcomes(first.passed | (first.failed & again.passed), first.failed - again.passed, first.skipped)


def main() -> None:
    """Run it on one server, or on both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="a checkout of the project, with the release's tag")
    parser.add_argument("--on", choices=SERVERS, action="append")
    given = parser.parse_args()
    for server in given.on or SERVERS:
        folder = Path(tempfile.mkdtemp(prefix=f"{NAME}-{server}-"))
        print(f"{NAME} on {server}, in {folder}", file=sys.stderr)
        found = played(given.source, server, folder)
        record(NAME, RELEASE, server, found)
        print(f"{len(found.passed)} passed, {len(found.skipped)} skipped, failed: {sorted(found.failed)}", file=sys.stderr)


if __name__ == "__main__":
    main()
