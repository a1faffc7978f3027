"""``python -m tests.calibration [-n TIMES] [--save] [SCENARIO[:VARIANT] ...]``: reality and simulation side by side.

``-n 0`` simulates only; ``--save`` adds what was measured to measured.json; ``--table`` prints the table of page believing-it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from tests.calibration import figures, outages
from tests.calibration.cases import MEASURED, Case, all_cases, measured, simulated, spread
from tests.calibration.table import table
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating


def real(case: Case, times: int) -> list[figures.Figures]:
    """The metrics for each time, with a broker that has the scenario's settings, or with brokers that go away."""
    found = []
    if outages.has_outage(case.scenario):
        for figures_of_one in outages.played(case.scenario, times):
            found.append(figures_of_one)
            print("   ", json.dumps(figures_of_one), flush=True)
        return found
    settings = {"group.initial.rebalance.delay.ms": "3000", **case.scenario.cluster.config}
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder), overrides=settings)
        broker.start()
        wait_until_coordinating(broker.bootstrap)
        try:
            for _ in range(times):
                found.append(figures.played(case.scenario, broker.bootstrap))
                print("   ", json.dumps(found[-1]), flush=True)
        finally:
            broker.stop()
    return found


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("-n", "--times", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        print(table(options.seeds))
        return
    for case in all_cases():
        if not options.cases or case.name in options.cases or case.name.partition(":")[0] in options.cases:
            _compare(case, options.times, options.seeds, saves=options.save)


def _compare(case: Case, times: int, seeds: int, *, saves: bool) -> None:
    print(case.name, flush=True)
    found = real(case, times)
    model, world = spread(simulated(case, seeds)), spread(found or measured().get(case.name, []))
    for metric in figures.NAMES:
        seen = " ".join(f"{value:9.2f}" for value in world.get(metric, ()))
        print(f"  {metric:12} real {seen:29}   simulated", *(f"{value:9.2f}" for value in model[metric]))
    if saves:
        everything = measured()
        everything.setdefault(case.name, []).extend(found)
        MEASURED.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
