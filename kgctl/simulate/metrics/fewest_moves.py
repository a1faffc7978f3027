"""The fewest moves to a balance where members subscribe to different topics: a flow of least cost, by cancelling negative cycles.

Of all assignments that respect the subscriptions the balanced ones have the smallest sum of squared loads; of those, the one that
moves least is wanted. Arcs are partitions that could go from one member to another; the sink takes and gives a member's load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

Held = tuple[int, str]
"""A partition as far as it matters: who had it (negative: somebody who is gone), and its topic."""

LARGEST = 60_000
"""Members squared times partitions, up to which it is worked out."""


def is_small(members: int, partitions: int) -> bool:
    """Whether `fewest_moves` answers soon enough to be asked after each run."""
    return members * members * partitions <= LARGEST


def fewest_moves(partitions: Sequence[Held], readers: Mapping[str, Sequence[int]], members: int) -> int:
    """How many of these have to move. ``readers``: topic -> the members, 0 to ``members`` - 1, that subscribe to it."""
    holds: list[Counter[Held]] = [Counter() for _ in range(members)]
    loads = [0] * members
    for home, topic in partitions:
        able = readers.get(topic, ())
        if able:
            holder = home if home in able else min(able, key=lambda member: loads[member])
            holds[holder][home, topic] += 1
            loads[holder] += 1
    while cycle := _negative_cycle(holds, loads, readers):
        for giver, taker, held in cycle:
            holds[giver][held] -= 1
            holds[taker][held] += 1
            loads[giver] -= 1
            loads[taker] += 1
    return sum(count for member, held in enumerate(holds) for (home, _), count in held.items() if home != member)


def _negative_cycle(
    holds: Sequence[Counter[Held]], loads: Sequence[int], readers: Mapping[str, Sequence[int]]
) -> list[tuple[int, int, Held]]:
    """(giver, taker, what) of a cycle that makes it better; empty if there is none."""
    sink = len(holds)
    weight = 4 * (sink + 1)
    arcs: dict[tuple[int, int], tuple[int, Held]] = {}
    for giver, held in enumerate(holds):
        for (home, topic), count in held.items():
            for taker in readers[topic] if count else ():
                cost = (taker != home) - (giver != home) if home >= 0 else 0
                if taker != giver and ((giver, taker) not in arcs or cost < arcs[giver, taker][0]):
                    arcs[giver, taker] = cost, (home, topic)
    costs = {ends: cost for ends, (cost, _) in arcs.items()}
    costs |= {(member, sink): weight * (2 * load + 1) for member, load in enumerate(loads)}
    costs |= {(sink, member): -weight * (2 * load - 1) for member, load in enumerate(loads) if load}
    nodes = _cycle_of(costs, sink + 1)
    return [(giver, taker, arcs[giver, taker][1]) for giver, taker in nodes if sink not in (giver, taker)]


def _cycle_of(costs: Mapping[tuple[int, int], int], nodes: int) -> list[tuple[int, int]]:
    """The arcs of a cycle whose costs come to less than nothing (Bellman and Ford)."""
    distance, before = [0] * nodes, [-1] * nodes
    last = -1
    for _ in range(nodes):
        last = -1
        for (first, second), cost in costs.items():
            if distance[first] + cost < distance[second]:
                distance[second] = distance[first] + cost
                before[second] = last = first
        if last < 0:
            return []
    for _ in range(nodes):
        last = before[last]
    found, node = [], last
    while True:
        found.append((before[node], node))
        node = before[node]
        if node == last:
            return found
