"""The simple assignor beside Kafka's own: the same targets, in the same order, round by round."""

from __future__ import annotations

import pytest

from tests.conformance.assignors.share_assignments import FAILS, differences, group_documents, own_answer
from tests.support.java_assignors import JavaAssignors


@pytest.mark.kafka
@pytest.mark.parametrize("groups", [60, pytest.param(2_000, marks=pytest.mark.deep)])
def test_share_groups_that_change_are_answered_as_kafka_does(java_assignors: JavaAssignors, groups: int) -> None:
    for seed in range(groups):
        assert differences(java_assignors, seed) == []


def test_the_groups_have_what_they_should() -> None:
    answers = [own_answer(document) for seed in range(30) for document in group_documents(seed)]
    given = [answer for answer in answers if not isinstance(answer, str)]
    readers = [[name for member in answer.values() for name in member] for answer in given]

    assert any(answer == FAILS for answer in answers)
    assert any(len(names) > len(set(names)) for names in readers)
    assert any(not numbers for answer in given for member in answer.values() for numbers in member.values())
