"""How long a client waits before it tries again."""

from __future__ import annotations

from random import Random  # the seeded source that members are handed

from kgctl.member.config import MemberConfig
from kgctl.member.runtime import Backoff


def test_backoff_doubles_up_to_its_limit_give_or_take_a_fifth() -> None:
    backoff = Backoff(MemberConfig(), Random(1))
    waits = [backoff.next_us() for _ in range(8)]

    for wait_us, base_ms in zip(waits, [100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000], strict=True):
        assert base_ms * 800 <= wait_us <= base_ms * 1_200
    backoff.reset()
    assert backoff.next_us() <= 120_000
