"""What a client refuses when it is started."""

from __future__ import annotations

import pytest

from kgctl.member.config import MemberConfig, is_cooperative, refusal


@pytest.mark.parametrize(
    ("profile", "properties", "expected"),
    [
        ("java", {"partition.assignment.strategy": "range,cooperative-sticky"}, None),
        ("java", {"partition.assignment.strategy": "mine:Assignor"}, None),
        (
            "librdkafka",
            {"partition.assignment.strategy": "range,cooperative-sticky"},
            "librdkafka refuses a list that mixes eager and cooperative assignors: range, cooperative-sticky",
        ),
        ("librdkafka", {"partition.assignment.strategy": "cooperative-sticky"}, None),
        (
            "aiokafka",
            {"partition.assignment.strategy": "cooperative-sticky"},
            "aiokafka does not rebalance cooperatively: it has no assignor 'cooperative-sticky'",
        ),
        ("kafka-go", {"group.protocol": "consumer"}, "kafka-go does not speak the consumer protocol (group.protocol=consumer)"),
        (
            "java",
            {"group.protocol": "consumer", "heartbeat.interval.ms": "90000", "session.timeout.ms": "45000"},
            "java refuses session.timeout.ms, heartbeat.interval.ms beside group.protocol=consumer: leave it out (null)",
        ),
        (
            "librdkafka",
            {"group.protocol": "consumer", "partition.assignment.strategy": "range"},
            "librdkafka refuses partition.assignment.strategy beside group.protocol=consumer: leave it out (null)",
        ),
        (
            "java",
            {"group.remote.assignor": "range"},
            "java refuses group.remote.assignor beside group.protocol=classic: leave it out (null)",
        ),
        ("java", {"group.protocol": "consumer"}, None),
        ("librdkafka", {"group.remote.assignor": "range"}, None),
        (
            "java",
            {"heartbeat.interval.ms": "45000"},
            "heartbeat.interval.ms (45000) must be lower than session.timeout.ms (45000)",
        ),
        ("java", {"partition.assignment.strategy": ""}, "partition.assignment.strategy names no assignor"),
        ("java", {"partition.assignment.strategy": "rang"}, "partition.assignment.strategy: unknown assignor 'rang'"),
    ],
)
def test_refusal_says_why(profile: str, properties: dict[str, str], expected: str | None) -> None:
    assert refusal(MemberConfig.from_properties(properties, profile)) == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [(("cooperative-sticky",), True), (("range", "cooperative-sticky"), False), (("sticky",), False), ((), False)],
)
def test_consumer_is_cooperative_when_all_its_assignors_are(strategy: tuple[str, ...], expected: bool) -> None:
    assert is_cooperative(strategy) is expected
