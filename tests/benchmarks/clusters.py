"""The clusters that subjects are measured against: Apache Kafka, and kgctl's own coordinator."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.kafka import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating
from tests.support.kafka.install import JVM
from tests.support.kafka.processes import start_process, stop_process

KGCTL = (sys.executable, "-m", "kgctl")
READY_LINE = "listening on "
# Room for a thousand groups of a hundred commits.
LARGE_JVM = tuple("-Xmx1g" if flag.startswith("-Xmx") else flag for flag in JVM)


@dataclass(frozen=True)
class Cluster:
    """Something that speaks Kafka's protocol; ``with_java`` says whether Kafka's own tools are compared too."""

    name: str
    bootstrap: str
    with_java: bool


@contextlib.contextmanager
def apache_kafka(folder: Path) -> Iterator[Cluster]:
    """One node of Apache Kafka.

    Raises:
        Unavailable: it cannot be had on this machine.
    """
    broker = KafkaBroker(folder / "kafka", jvm=LARGE_JVM)
    try:
        broker.start()
        wait_until_coordinating(broker.bootstrap)
        yield Cluster("Apache Kafka 4.3.1", broker.bootstrap, with_java=True)
    finally:
        broker.stop()


@contextlib.contextmanager
def kgctl_serve(folder: Path) -> Iterator[Cluster]:
    """``kgctl serve`` with its log in memory."""
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / "serve.log"
    process = start_process(
        [*KGCTL, "serve", "--listen", "127.0.0.1:0", "--config", "group.initial.rebalance.delay.ms=0"], output
    )
    try:
        yield Cluster("kgctl serve", _address(process, output), with_java=False)
    finally:
        stop_process(process)


def _address(process: subprocess.Popen[bytes], output: Path) -> str:
    while process.poll() is None:
        printed = output.read_text()
        if READY_LINE in printed and printed.endswith("\n"):
            return printed.split(READY_LINE, 1)[1].split()[0]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    raise RuntimeError(f"kgctl serve did not start:\n{output.read_text()}")


CLUSTERS = {"kafka": apache_kafka, "serve": kgctl_serve}


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards: benchmarks leave nothing behind."""
    with tempfile.TemporaryDirectory(prefix="kgctl-benchmarks-") as folder:
        yield Path(folder)
