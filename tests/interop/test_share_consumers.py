"""Java's KafkaShareConsumer on `kgctl serve`: what it gets, what it is told, what comes again and when."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.kafka import KafkaBroker
from tests.support.kafka.install import POM
from tests.support.maven import compile_java, java_command
from tests.support.serve import ServeFactory

pytestmark = [
    *(pytest.mark.interop, pytest.mark.kafka, pytest.mark.slow),
    pytest.mark.needs("javac"),
    pytest.mark.timeout(300),
]

SOURCE = Path(__file__).parents[1] / "java/share/ShareConsumers.java"
QUICK = {"group.share.record.lock.duration.ms": "2000", "group.share.min.record.lock.duration.ms": "1000"}
OFTEN = {
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
}
"""Members hear of their partitions with their second heartbeat: nothing that is seen here depends on when that is."""
TIMEOUT_S = 240
TOO_LATE = "InvalidRecordStateException: The record state is invalid. The acknowledgement of delivery could not be completed."
SEEN_ON_KAFKA = {
    "implicit": "got v0x1 v1x1 v2x1; nothing more; got v3x1 v4x1; nothing more",
    "explicit": "got v0x1 v1x1 v2x1 v3x1; nothing more; nothing more",
    "release": "got v0x1 v1x1 v2x1; got v0x2 v1x2 v2x2; nothing more",
    "reject": "got v0x1 v1x1; nothing more",
    "renew": f"got v0x1 v1x1; lock 2000; {'renewed [0=ok]; got v0x1 v1x1; ' * 3}accepted [0=ok]; nothing more",
    "lock": "got v0x1 v1x1; got v0x2 v1x2; after a while",
    "limit": "got v0x1; got v0x2; got v0x3; nothing more",
    "two": "100 records; each once",
    "committed": "got v1x1 v3x1; nothing more",
    "close": "got v0x1 v1x1 v2x1; got v1x2 v2x2",
    "sync": f"committed [0=ok]; committed [0=ok]; committed []; got v3x1; too late [0={TOO_LATE}]",
    "async": "told [0:[0, 1]=null]",
    "latest": "nothing more; got v2x1 v3x1",
    "records": "got v0x1 v1x1 v2x1 v3x1; got v0x1 v1x1 v2x1 v3x1 v4x1 v5x1 v6x1 v7x1 v8x1 v9x1",
}
"""Scenario -> what its consumers say on Apache Kafka 4.3.1: each record with the number of its deliveries."""


def seen(bootstrap: str) -> dict[str, str]:
    """What the consumers say on this server."""
    command = java_command(compile_java(POM, [SOURCE]), "ShareConsumers", bootstrap)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_share_consumers_see_what_they_see_on_kafka(kgctl_serve: ServeFactory) -> None:
    assert seen(kgctl_serve(config={**QUICK, **OFTEN}).bootstrap) == SEEN_ON_KAFKA


@pytest.mark.deep
def test_kafka_itself_is_seen_so(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path, overrides=QUICK)
    try:
        broker.start()
        assert seen(broker.bootstrap) == SEEN_ON_KAFKA
    finally:
        broker.stop()
