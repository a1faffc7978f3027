"""The scenarios that are timed, as a user would write them."""

from __future__ import annotations

VARIANTS = """
variants:
  eager: {group: {config: {partition.assignment.strategy: [range]}}}
  cooperative: {group: {config: {partition.assignment.strategy: [cooperative-sticky]}}}
  kip848: {group: {config: {group.protocol: consumer}}}
"""


def rolling(members: int, partitions: int, *, restarted: int) -> str:
    """One pod after the other, the first ``restarted`` of them: the built-in ``rolling-restart`` in other sizes."""
    event = f"rolling_restart: app/0..{restarted - 1}, batch: 1, settle: 30s"
    return f"""
kgctl: 1
name: rolling-{members}x{partitions}
topics: {{orders: {{partitions: {partitions}}}}}
group: {{id: orders-app}}
members: {{app: {{count: {members}, boot: 8s, poll: 0ms..100ms}}}}
warmup: 60s
{f"events: [{{at: 0s, {event}}}]" if restarted else "duration: 1s"}
{VARIANTS}"""


def idle(members: int, duration: str) -> str:
    """Nothing happens once all have joined."""
    return f"""
kgctl: 1
name: idle-{members}
topics: {{orders: {{partitions: {members}}}}}
group: {{id: orders-app}}
members: {{app: {{count: {members}}}}}
warmup: 10m
duration: {duration}
{VARIANTS}"""
