"""``python -m tests.calibration.shares [--seeds N] [SCENARIO ...]``: how often reality lies where the simulation says it does.

Of each metric of each measured case: whether the measured median lies inside the range of the seeds, and whether the simulated
median lies inside the range of what was measured. Prints what is outside.
"""

from __future__ import annotations

import argparse
from collections import Counter

from tests.calibration.cases import all_cases, measured, simulated, spread
from tests.calibration.figures import NAMES

EXACT = 1e-9


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.shares")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    inside, back = Counter[str](), Counter[str]()
    number = 0
    for case in all_cases():
        if case.name not in measured() or (options.cases and case.name.partition(":")[0] not in options.cases):
            continue
        number += 1
        real, model = spread(measured()[case.name]), spread(simulated(case, options.seeds))
        for name in NAMES:
            (low, middle, high), (least, median, most) = real[name], model[name]
            inside[name] += least - EXACT <= middle <= most + EXACT
            back[name] += low - EXACT <= median <= high + EXACT
            if not least - EXACT <= middle <= most + EXACT:
                seen, said = (" ".join(f"{value:9.2f}" for value in each[name]) for each in (real, model))
                print(f"{case.name:22} {name:12} measured {seen}  simulated {said}")
    for name in NAMES:
        print(f"{name:12} measured median inside {inside[name]:3} of {number}, simulated median inside {back[name]:3}")
    total = number * len(NAMES)
    print(f"all: {inside.total() / total:.0%} and {back.total() / total:.0%} of {total}")


if __name__ == "__main__":
    main()
