"""What the manual says of releases of Apache Kafka is so: `tests.admin.broker_matrix` on a broker of each."""

from __future__ import annotations

import json

import pytest

from tests.admin.broker_matrix import CHECKS, RESULTS, look_at
from tests.support.kafka.releases import RELEASES

EVERY_TIME = ("1.1.1", "3.9.1", "4.0.1")
"""The others are for deep runs."""


@pytest.mark.kafka
@pytest.mark.needs("javac")
@pytest.mark.parametrize(
    "release", [each if each in EVERY_TIME else pytest.param(each, marks=pytest.mark.deep) for each in RELEASES]
)
def test_a_release_is_as_recorded(release: str) -> None:
    assert look_at(release) == json.loads(RESULTS.read_text())[release]


def test_every_release_is_recorded() -> None:
    recorded = json.loads(RESULTS.read_text())
    assert (list(recorded), {tuple(found) for found in recorded.values()}) == (list(RELEASES), {tuple(CHECKS)})
