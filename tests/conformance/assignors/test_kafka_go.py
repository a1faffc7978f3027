"""kgctl's rack-affinity, kafka-go:range and kafka-go:roundrobin beside kafka-go's own balancers."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.conformance.assignors.kafka_go import CASES_FILE, answered_otherwise, ask_kafka_go, groups


def test_cases_that_kafka_go_has_answered() -> None:
    cases = [json.loads(line) for line in gzip.decompress(CASES_FILE.read_bytes()).splitlines()]

    assert (len(cases), [case for case in cases if answered_otherwise(case, case["answers"])]) == (600, [])


@pytest.mark.deep
@pytest.mark.interop
@pytest.mark.needs("go")
@pytest.mark.parametrize("seed", range(2, 6))
def test_groups_that_kafka_go_answers_now(seed: int) -> None:
    asked = list(groups(seed, 300))

    answers = zip(asked, ask_kafka_go(asked), strict=True)

    assert [group for group, answer in answers if answered_otherwise(group, answer)] == []
