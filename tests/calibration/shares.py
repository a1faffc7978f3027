"""``python -m tests.calibration.shares [--seeds N] [SCENARIO ...]``: how often reality lies where the simulation says it does.

Of each metric of each measured case: whether the measured median lies inside the range of the seeds, and whether the simulated
median lies inside the range of what was measured. Prints what is outside, and what a perfect model would come to with as many
plays and seeds: other seeds of the simulation itself in the place of the plays.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.calibration.cases import Case, all_cases, measured, simulated, spread
from tests.calibration.figures import NAMES, Figures

EXACT = 1e-9
Verdict = tuple[str, bool, bool]
"""A metric, whether the measured median is inside of what is simulated, and the other way round."""


def verdicts(plays: Sequence[Figures], seeds: Sequence[Figures]) -> Iterator[Verdict]:
    """Hold what was measured against what was simulated."""
    real, model = spread(plays), spread(seeds)
    for name in NAMES:
        (low, middle, high), (least, median, most) = real[name], model[name]
        yield name, least - EXACT <= middle <= most + EXACT, low - EXACT <= median <= high + EXACT


def perfect(plays: int, seeds: Sequence[Figures]) -> Iterator[Verdict]:
    """Hold seeds against the others, as many at a time as there are plays: each is in one of the handfuls."""
    for first in range(0, len(seeds) - plays + 1, plays):
        yield from verdicts(seeds[first : first + plays], [*seeds[:first], *seeds[first + plays :]])


def _show(case: Case, plays: Sequence[Figures], seeds: Sequence[Figures], name: str) -> None:
    seen, said = (" ".join(f"{value:9.2f}" for value in spread(each)[name]) for each in (plays, seeds))
    print(f"{case.name:22} {name:12} measured {seen}  simulated {said}")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.shares")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    inside, back = Counter[str](), Counter[str]()
    number, ideal = 0, list[Verdict]()
    for case in all_cases():
        plays = measured().get(case.name)
        if plays is None or (options.cases and case.name.partition(":")[0] not in options.cases):
            continue
        number += 1
        seeds = simulated(case, options.seeds)
        ideal += perfect(len(plays), seeds)
        for name, is_inside, is_back in verdicts(plays, seeds):
            inside[name] += is_inside
            back[name] += is_back
            if not is_inside:
                _show(case, plays, seeds, name)
    for name in NAMES:
        print(f"{name:12} measured median inside {inside[name]:3} of {number}, simulated median inside {back[name]:3}")
    total = number * len(NAMES)
    print(f"all: {inside.total() / total:.0%} and {back.total() / total:.0%} of {total}")
    best = (sum(is_so for _, is_so, _ in ideal), sum(is_so for _, _, is_so in ideal))
    print(f"a perfect model: {best[0] / len(ideal):.0%} and {best[1] / len(ideal):.0%}")


if __name__ == "__main__":
    main()
