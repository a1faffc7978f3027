"""Apache Kafka from Maven Central, and what makes its start quick: a formatted folder and a class data archive, both kept."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support import maven
from tests.support.kafka.config import CLUSTER_ID, NodePorts, combined_node
from tests.support.machine import find_java

POM = Path(__file__).with_name("pom.xml")
RELEASE = "4.3.1"
"""The release that is meant where none is named."""
JVM = ("-Xmx256m", *maven.FAST_JVM, "-Xlog:disable")
ARCHIVE_JVM = ("-Xshare:auto",)


@functools.cache
def kafka_class_path(release: str = RELEASE) -> str:
    """The class path of the broker and the tools of a release of Apache Kafka, 3.0 or later.

    Raises:
        Unavailable: it cannot be had on this machine.
    """
    return maven.class_path(POM) if release == RELEASE else maven.class_path(POM, kafka_version=release)


def kafka_command(
    main_class: str, *arguments: str, jvm: Sequence[str] = JVM, archive: Path | None = None, release: str = RELEASE
) -> list[str]:
    """The command line of a class of Kafka; with ``archive`` its classes come ready made from there."""
    extra = (*ARCHIVE_JVM, f"-XX:SharedArchiveFile={archive}") if archive and archive.exists() else ()
    return maven.java_command(kafka_class_path(release), main_class, *arguments, jvm=(*jvm, *extra))


def cache_key() -> str:
    """Depends on Kafka's jars, their times (an archive does) and the Java that runs them."""
    jars = kafka_class_path()
    times = [str(Path(jar).stat().st_mtime_ns) for jar in jars.split(os.pathsep)]
    java = find_java()
    return maven.digest(jars, *times, str(java.resolve()), str(java.stat().st_size))


def formatted_checkpoint(scram: Sequence[str] = (), release: str = RELEASE) -> bytes:
    """The ``bootstrap.checkpoint`` of a formatted log folder: feature levels and SCRAM users; nothing before 3.3, which has none.

    It suits any cluster id and node id, so the tool that writes it runs once for all tests to come.
    """
    key = f"checkpoint-{maven.digest(kafka_class_path(release), *scram)}"
    kept = maven.cache_folder() / key
    with maven.cache_lock(key):
        if not kept.exists():
            maven.write_atomically(kept, _format(scram, release))
    return kept.read_bytes()


def _format(scram: Sequence[str], release: str) -> bytes:
    with tempfile.TemporaryDirectory() as work:
        log_dir = Path(work) / "log"
        config = combined_node(log_dir, NodePorts({"PLAINTEXT": 1}, 2))
        properties = maven.write_properties(Path(work) / "server.properties", config)
        users = [part for user in scram for part in ("-S", user)]
        arguments = ("format", "-t", CLUSTER_ID, "-c", str(properties), *users)
        command = kafka_command("kafka.tools.StorageTool", *arguments, release=release)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"StorageTool:\n{done.stdout}{done.stderr}"
        checkpoint = log_dir / "bootstrap.checkpoint"
        return checkpoint.read_bytes() if checkpoint.exists() else b""
