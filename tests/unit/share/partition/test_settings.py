"""From which delivery on records come in smaller numbers."""

from __future__ import annotations

import pytest

from kgctl.share.partition import ShareSettings


@pytest.mark.parametrize(("limit", "throttled"), [(2, 2), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (10, 5)])
def test_half_of_the_limit_rounded_up_and_at_least_two(limit: int, throttled: int) -> None:
    assert ShareSettings(delivery_count_limit=limit).throttled_count == throttled


@pytest.mark.parametrize(("limit", "has"), [(2, False), (3, True)])
def test_records_that_are_delivered_twice_at_most_have_no_attempt_of_their_own(limit: int, has: bool) -> None:
    assert ShareSettings(delivery_count_limit=limit).has_last_attempt is has
