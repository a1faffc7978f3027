"""Thirty librdkafka members of the consumer protocol, coming and going under load."""

from __future__ import annotations

import time

import pytest

from tests.interop.crowd import QUICK, TOPIC, Crowd
from tests.support.patience import PATIENCE_S
from tests.support.serve import ServeFactory

pytestmark = [pytest.mark.interop, pytest.mark.slow]

MEMBERS, PARTITIONS, DEPARTURES = 30, 60, 40


def test_no_record_comes_twice_while_nobody_crashes(kgctl_serve: ServeFactory) -> None:
    """Each commits what it has read before it gives a partition up, with the epoch that it had then (KIP-1251)."""
    server = kgctl_serve(topics={TOPIC: PARTITIONS}, config=QUICK)
    crowd = Crowd(server.bootstrap, MEMBERS, PARTITIONS)
    with crowd.load():
        end = time.monotonic() + PATIENCE_S
        crowd.churn(lambda: len(crowd.gone) >= DEPARTURES or time.monotonic() > end)
    crowd.settle(PATIENCE_S)
    stuck = crowd.close(PATIENCE_S)
    read = crowd.read()

    assert stuck == []
    assert [error for member in crowd.everybody for error in member.errors] == []
    assert {record: crowd.who_read(record) for record, count in read.items() if count > 1} == {}
    assert len(read) == crowd.written
    assert len(crowd.gone) >= DEPARTURES
