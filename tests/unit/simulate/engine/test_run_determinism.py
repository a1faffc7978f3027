"""The same bytes in any process, however it orders its sets."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import json
from kgctl.simulate.metrics.result import run
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, scenario
from kgctl.simulate.scenario.quantities import LogNormal, Uniform
from kgctl.simulate.scenario.application import Callbacks
from kgctl.simulate.scenario.model import Nemesis
from kgctl.simulate.scenario.fields import changed
for config in (RANGE, COOPERATIVE, CONSUMER):
    chaos = scenario(
        event("rolling_restart", "app", at_s=5, settle=3 * S), event("add_partitions", "t", at_s=50, by=3),
        config={**config, "metadata.max.age.ms": "20000"}, rate=50, poll=Uniform(0, 100_000), count=5,
        callbacks=Callbacks(assigned=LogNormal(20_000, 10_000)), duration_s=240,
    )
    result = run(changed(chaos, nemesis=Nemesis(mean_interval_us=20 * S, until_us=120 * S)), 7)
    print(result.digest, json.dumps(result.summary(), sort_keys=True), json.dumps(result.final_assignment()))
"""


def output(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_two_processes_with_other_hash_seeds_give_the_same_bytes() -> None:
    first, second = output("1"), output("2")
    assert first.count("\n") == 3
    assert first == second
