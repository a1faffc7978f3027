"""How long a client waits before it tries again: longer each time, up to a limit, and never quite the same as the others."""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.member.api import Rng
from kgctl.member.config import MemberConfig
from kgctl.member.runtime import draw

_JITTER_PERCENT = 20


@dataclass(slots=True)
class Backoff:
    """``retry.backoff.ms`` doubled with each attempt up to ``retry.backoff.max.ms``, give or take a fifth (KIP-580)."""

    config: MemberConfig
    rng: Rng
    attempts: int = 0

    def next_us(self) -> int:
        """How long to wait before the next attempt."""
        first_us, limit_us = self.config.retry_backoff_ms * 1000, self.config.retry_backoff_max_ms * 1000
        base_us = min(first_us << min(self.attempts, 16), max(limit_us, first_us))
        self.attempts += 1
        spread_us = base_us * _JITTER_PERCENT // 100
        return base_us - spread_us + draw(self.rng, 2 * spread_us)

    def reset(self) -> None:
        """It has worked."""
        self.attempts = 0
