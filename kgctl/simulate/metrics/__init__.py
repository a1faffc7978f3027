"""What a run comes to: each metric is a function with all that is known of it (`kgctl.simulate.scenario.metric`) above it."""

from kgctl.simulate.metrics import availability, movement, rebalances, records, shares, tasks

__all__ = ["availability", "movement", "rebalances", "records", "shares", "tasks"]
