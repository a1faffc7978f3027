"""Which assignor a group gets when its members ask for several."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kgctl.model.requests import ConsumerGroupDescribe, ConsumerGroupDescribeResult
from tests.unit.coordinator.consumer.beats import AT_ONCE, Group

U, R = "uniform", "range"


def used(group: Group) -> str:
    """By what the last of the members got: range goes topic by topic, uniform by all partitions."""
    sizes = sorted(len(target) and sum(map(len, target.values())) for target in group.state.targets.values())
    return R if sizes[-1] - sizes[0] > 1 else U


def join_all(wishes: Sequence[str | None], config: dict[str, str]) -> Group:
    """Topics of 4 and 2 partitions: of two members and a third, range gives the first one 3 of them, uniform 2 each."""
    group = Group({**AT_ONCE, **config})
    for number, wish in enumerate(wishes):
        group.beat(f"m{number}", subscribed_topic_names=("a", "b"), server_assignor=wish)
    return group


@pytest.mark.parametrize(
    ("wishes", "assignor"),
    [
        ((None, None, None), U),
        ((U, U, R), U),
        ((R, R, U), R),
        ((None, U, R), R),
        ((None, R, U), U),
        ((U, R, None), U),
        ((R, U, None), U),
        ((None, None, R), R),
    ],
)
def test_most_wishes_win_and_of_as_many_a_name_that_was_new(wishes: Sequence[str | None], assignor: str) -> None:
    """Without a new name the first in Java's HashMap wins, which is uniform."""
    assert used(join_all(wishes, {})) == assignor


def test_nobody_asks_and_the_first_configured_one_is_used() -> None:
    assert used(join_all((None, None, None), {"group.consumer.assignors": "range,uniform"})) == R


@pytest.mark.parametrize("wishes", [(None, U, R), (None, R, U)])
def test_a_description_knows_no_new_name(wishes: Sequence[str | None]) -> None:
    call = join_all(wishes, {}).harness.send(ConsumerGroupDescribe, group_ids=("g",))

    assert call.result(ConsumerGroupDescribeResult).groups[0].assignor_name == U
