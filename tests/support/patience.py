"""How long the tests wait for what must come: so long that a machine ten times slower, or one that others use too, is no failure.

Only what never comes costs this much. How soon something comes is what the benchmarks measure.
"""

from __future__ import annotations

PATIENCE_S = 120.0
PATIENCE_MS = 120_000

SOON_S = 30.0
"""What "does not wait for its time limit" means where that limit is `PATIENCE_S` or more."""

SESSION_MS = 45_000
"""Kafka's own session timeout: nobody is to be taken for dead because the machine was busy."""
