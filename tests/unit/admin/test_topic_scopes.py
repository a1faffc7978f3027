"""What a command line names, and what of it is not there."""

from __future__ import annotations

import pytest

from kgctl.admin.topic_scopes import absent, parse_topic_scopes
from kgctl.model.groups import TopicPartition

THERE = [TopicPartition("orders", number) for number in (4, 0, 1)] + [TopicPartition("jobs", 9)]


@pytest.mark.parametrize(
    ("named", "missing"),
    [
        (["orders", "jobs"], []),
        (["orders:0-1,4"], []),
        (["ordrs", "orders", "ordrs:3"], ["ordrs"]),
        (["orders:0-9"], ["orders:2-3,5-9"]),
        (["orders:3", "jobs:9,11"], ["orders:3", "jobs:11"]),
        (["nosuch:0,2-3"], ["nosuch:0,2-3"]),
    ],
)
def test_what_is_named_and_not_there_is_told_as_it_is_written(named: list[str], missing: list[str]) -> None:
    assert [str(scope) for scope in absent(parse_topic_scopes(named), THERE)] == missing
