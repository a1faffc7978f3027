"""kgctl's librdkafka:cooperative-sticky beside a leader of librdkafka."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.conformance.assignors.librdkafka import CASES_FILE, ask_kgctl, ask_librdkafka, groups


def test_cases_that_librdkafka_has_answered() -> None:
    cases = [json.loads(line) for line in gzip.decompress(CASES_FILE.read_bytes()).splitlines()]

    assert (len(cases), [case for case in cases if ask_kgctl(case) != case["answer"]]) == (600, [])


@pytest.mark.deep
@pytest.mark.interop
@pytest.mark.parametrize("seed", range(2, 6))
def test_groups_that_librdkafka_answers_now(seed: int) -> None:
    asked = groups(seed, 300)

    answers = zip(asked, ask_librdkafka(asked), strict=True)

    assert [group for group, answer in answers if ask_kgctl(group) != answer] == []
