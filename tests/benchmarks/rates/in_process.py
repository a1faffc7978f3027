"""The coordinator without any wire: requests a second, and what many groups take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from tests.benchmarks.rates.load import bytes_a_member, commit_of, heartbeats, join_all, joined_group, new_coordinator
from tests.benchmarks.rates.rate import Rates, Row, Scale

MEMBERS = 1_000
PARTITIONS = 100


def measure(_: Sequence[str], scale: Scale) -> Sequence[Row]:
    """Requests are made before; the clock of the coordinator stands still."""
    members = 20 if scale.small else MEMBERS
    groups = 5 if scale.small else 1_000
    coordinator = new_coordinator()
    beats = heartbeats(join_all(coordinator, "g", members, 0), members)
    alone = new_coordinator()
    commit = commit_of(PARTITIONS, join_all(alone, "g", 1, 0)[0])
    return [
        _rate(f"Heartbeat, a group of {members:,}", lambda: [coordinator.handle(beat, 2_000) for beat in beats], members, scale),
        _rate(f"JoinGroup and SyncGroup, a group of {members:,}", lambda: joined_group(members), 2 * members, scale),
        _rate(f"OffsetCommit of {PARTITIONS} partitions", lambda: alone.handle(commit, 2_000), 1, scale),
        Row(f"memory of {groups:,} groups x 100 members, bytes a member", (f"{bytes_a_member(groups, 100):,}", "")),
    ]


def _rate(name: str, work: Callable[[], object], requests: int, scale: Scale) -> Row:
    rates = []
    for _ in range(scale.runs):
        times, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < scale.seconds:
            work()
            times += 1
        rates.append(times * requests / elapsed)
    return Row(name, (f"{max(rates):,.0f}", f"{statistics.median(rates):,.0f}"))


RATES = Rates("coordinator", "The coordinator in process", ("a second, best", "median"), measure)
