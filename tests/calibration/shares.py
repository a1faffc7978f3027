"""``python -m tests.calibration.shares [--seeds N] [SCENARIO ...]``: how often reality lies where the simulation says it does.

Of each metric of each measured case: whether the measured median lies inside the range of the seeds, and whether the simulated
median lies inside the range of what was measured. Prints what is outside, and what a perfect model would come to with as many
plays and seeds (other seeds of the simulation itself in the place of the plays), of all metrics and without those that are 0 in
every play and seed, about which nobody can be wrong; of members that work, and of those that only poll and rebalance.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tests.calibration.cases import Case, all_cases, measured, simulated, spread
from tests.calibration.figures import NAMES, Figures

EXACT = 1e-9
LONG_US = 500_000
"""Who pauses for longer than that in the mean, between two polls, works."""


class Verdict(NamedTuple):
    """A metric: whether the measured median is inside of what is simulated, the other way round, and whether all is 0."""

    name: str
    is_inside: bool
    is_back: bool
    is_nothing: bool


def verdicts(plays: Sequence[Figures], seeds: Sequence[Figures]) -> Iterator[Verdict]:
    """Hold what was measured against what was simulated."""
    real, model = spread(plays), spread(seeds)
    for name in NAMES:
        (low, middle, high), (least, median, most) = real[name], model[name]
        is_inside = least - EXACT <= middle <= most + EXACT
        yield Verdict(name, is_inside, low - EXACT <= median <= high + EXACT, high == most == 0)


def perfect(plays: int, seeds: Sequence[Figures]) -> Iterator[Verdict]:
    """Hold seeds against the others, as many at a time as there are plays: each is in one of the handfuls."""
    for first in range(0, len(seeds) - plays + 1, plays):
        yield from verdicts(seeds[first : first + plays], [*seeds[:first], *seeds[first + plays :]])


def works(case: Case) -> bool:
    """Whether some of its members take time for records, or for what stands for it."""
    return any(each.rate_uhz is not None or each.poll.mean_us >= LONG_US for each in case.scenario.members)


def _show(case: Case, plays: Sequence[Figures], seeds: Sequence[Figures], name: str) -> None:
    seen, said = (" ".join(f"{value:9.2f}" for value in spread(each)[name]) for each in (plays, seeds))
    print(f"{case.name:22} {name:12} measured {seen}  simulated {said}")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.shares")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    found, ideal = list[Verdict](), list[Verdict]()
    kinds: dict[bool, tuple[list[Verdict], list[Verdict]]] = {False: ([], []), True: ([], [])}
    for case in all_cases():
        plays = measured().get(case.name)
        if plays is None or (options.cases and case.name.partition(":")[0] not in options.cases):
            continue
        seeds = simulated(case, options.seeds)
        own, others = list(verdicts(plays, seeds)), list(perfect(len(plays), seeds))
        found += own
        ideal += others
        kinds[works(case)][0].extend(own)
        kinds[works(case)][1].extend(others)
        for each in own:
            if not each.is_inside:
                _show(case, plays, seeds, each.name)
    inside, back = Counter(each.name for each in found if each.is_inside), Counter(each.name for each in found if each.is_back)
    for name in NAMES:
        number = len(found) // len(NAMES)
        print(f"{name:12} measured median inside {inside[name]:3} of {number}, simulated median inside {back[name]:3}")
    for words, kept in (("all", (False, True)), ("without what is 0 in both", (False,))):
        print(f"{words}: {_shares(found, kept)}; a perfect model: {_shares(ideal, kept)}")
    for words, (some, other) in zip(("polls and rebalances alone", "members that work"), kinds.values(), strict=True):
        if some:
            print(f"{words}, without what is 0 in both: {_shares(some, (False,))}; a perfect model: {_shares(other, (False,))}")


def _shares(found: Iterable[Verdict], kept: Sequence[bool]) -> str:
    counted = [each for each in found if each.is_nothing in kept]
    inside, back = (sum(flags) / len(counted) for flags in zip(*(each[1:3] for each in counted), strict=True))
    return f"{inside:.0%} and {back:.0%} of {len(counted)}"


if __name__ == "__main__":
    main()
