"""kafka-python's own integration tests, as it publishes them, on `kgctl.testing`."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
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
REQUEST = re.compile(r"(\w+) v\d+ from \S+ \((.+)\)")
AT_THE_START = (["ApiVersions", "Metadata"], ["ApiVersions", "Metadata", "ApiVersions"])


def test_kafka_pythons_own_tests_pass(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kgctl.server")
    with EmbeddedServer(config=AS_THEIR_BROKER, acls=()) as cluster:
        found = run_kafka_python(cluster.bootstrap, tmp_path)
        silent = {name for name in found.failed - set(NOT_HERE) if fell_silent(name, requests(caplog.messages))}
        again = run_kafka_python(cluster.bootstrap, tmp_path, only=silent) if silent else found
    passed = found.passed | (silent & again.passed)
    failed = found.failed - passed

    told = "\n\n".join(f"{name}:\n{again.why.get(name) or found.why[name]}" for name in sorted(failed - set(NOT_HERE)))
    assert failed == set(NOT_HERE), told
    has_no_codec = {name for name in found.skipped if name.endswith(CODECS)}
    assert len(passed | has_no_codec) >= LEAST_PASSED, sorted(found.skipped)


def requests(lines: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """What each client has asked, by its id, as the server's log has it."""
    found: dict[str, list[str]] = {}
    for api, client_id in (line.groups() for line in map(REQUEST.fullmatch, lines) if line is not None):
        found.setdefault(client_id, []).append(api)
    return found


def fell_silent(test: str, asked: Mapping[str, Sequence[str]]) -> bool:
    """Whether a consumer of this test has asked for nothing but what a start takes: no topic, no records, nothing anew.

    kafka-python 3.0.12 forgets that topics were subscribed to while its first Metadata was under way (``ClusterMetadata``: what
    comes back takes ``_need_update`` away), and asks again after 5 minutes. On Apache Kafka it does the same.
    """
    return any(client.startswith(f"{test}_") and [*apis] in AT_THE_START for client, apis in asked.items())


def test_who_fell_silent_is_told_from_who_was_not_served() -> None:
    asked = requests(
        [
            *(
                "ApiVersions v4 from /127.0.0.1 (test_a[1]_Q)",
                "Metadata v13 from /127.0.0.1 (test_a[1]_Q)",
                "127.0.0.1:4 connected",
            ),
            *("ApiVersions v4 from /127.0.0.1 (test_b_Q)", "Metadata v13 from /127.0.0.1 (test_b_Q)"),
            *(
                "ApiVersions v4 from /127.0.0.1 (test_b_Q)",
                "Metadata v13 from /127.0.0.1 (test_b_Q)",
                "Fetch v12 from /::1 (test_b_Q)",
            ),
        ]
    )

    assert [name for name in ("test_a[1]", "test_a", "test_b", "test_c") if fell_silent(name, asked)] == ["test_a[1]"]
