"""What the history answers, held against the book."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.pipeline.answers.history import History
from kgctl.pipeline.answers.series import Exactness, offsets_at
from tests.support.pipeline.truth.ledger import Ledger

LIBRDKAFKAS_END = "\0"
"""librdkafka 2 commits the C string, end included, as metadata of partitions that it reads."""


def certain_answers(history: History, ledger: Ledger, times: Iterable[int]) -> float:
    """Assert that at each time every place has what was committed, and nothing else is there.

    The share of answers for which the book allows one only. Groups commit one after the other, so that however slow the machine
    is only one group's are in doubt at a time: with five groups and more, four fifths are certain.
    """
    certain = []
    for at_ms in times:
        found = {(each.group, each.topic, each.partition): each for each in offsets_at(history, ledger.groups, at_ms)}
        assert {each.exactness for each in found.values()} <= {Exactness.EXACT}
        for place in ledger.entries:
            answer = found.pop(place, None)
            committed = None if answer is None else (answer.offset, (answer.metadata or "").rstrip(LIBRDKAFKAS_END))
            possible = ledger.possible(place, at_ms)
            assert committed in possible, (place, at_ms)
            certain.append(len(possible) == 1)
        assert found == {}
    return sum(certain) / len(certain)
