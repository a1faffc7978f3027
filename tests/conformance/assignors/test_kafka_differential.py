"""The same generated groups to Kafka's own assignors and to kgctl's: the same answers.

``python -m tests.support.assignor_differential`` asks many more and keeps what differs as a golden file.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.assignor_differential import CLIENT_ASSIGNORS, SERVER_ASSIGNORS, differences
from tests.support.assignor_histories import history
from tests.support.assignor_strategies import client_documents, server_documents
from tests.support.java_assignors import JavaAssignors

pytestmark = pytest.mark.kafka

_SETTINGS = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


@_SETTINGS
@given(document=client_documents(CLIENT_ASSIGNORS))
def test_client_assignors_answer_as_kafkas(java_assignors: JavaAssignors, document: dict[str, Any]) -> None:
    assert differences(java_assignors, document) == []


@_SETTINGS
@given(document=server_documents())
def test_server_assignors_answer_as_kafkas(java_assignors: JavaAssignors, document: dict[str, Any]) -> None:
    assert document["assignors"] == list(SERVER_ASSIGNORS)
    assert differences(java_assignors, document) == []


@pytest.mark.parametrize(
    ("follows", "assignors"),
    [("sticky", CLIENT_ASSIGNORS), ("cooperative-sticky", CLIENT_ASSIGNORS), ("uniform", SERVER_ASSIGNORS)],
)
@pytest.mark.parametrize(("seed", "scale"), [*((seed, 1) for seed in range(20)), (100, 4), (101, 4)])
def test_groups_that_change_are_answered_as_kafka_does(
    java_assignors: JavaAssignors, follows: str, assignors: tuple[str, ...], seed: int, scale: int
) -> None:
    for document in history(seed, follows, assignors, scale=scale):
        assert differences(java_assignors, document) == []
