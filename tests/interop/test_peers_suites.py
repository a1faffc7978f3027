"""kafka-python's own integration tests, as it publishes them, on `kgctl.testing`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.testing import EmbeddedServer
from tests.interop.peers import run_kafka_python

pytestmark = [pytest.mark.interop, pytest.mark.index, pytest.mark.slow, pytest.mark.timeout(480)]

AS_THEIR_BROKER = {"node.id": "0", "num.partitions": "4", "super.users": "User:ANONYMOUS"}
"""What their fixture sets; with an authorizer."""
NOT_HERE = {
    "test_group": "joins with a session of 3 s, and Kafka takes none below 6 s",
}
"""Whatever fails, and why."""
LEAST_PASSED = 50
CODECS = ("[lz4]", "[snappy]")
"""The end of the names of tests that kafka-python skips where it finds no such codec."""


def test_kafka_pythons_own_tests_pass(tmp_path: Path) -> None:
    with EmbeddedServer(config=AS_THEIR_BROKER, acls=()) as cluster:
        found = run_kafka_python(cluster.bootstrap, tmp_path)

    assert found.failed == set(NOT_HERE)
    has_no_codec = {name for name in found.skipped if name.endswith(CODECS)}
    assert len(found.passed | has_no_codec) >= LEAST_PASSED, sorted(found.skipped)
