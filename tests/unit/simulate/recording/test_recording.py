"""A recording stands on its own: it can be kept and measured again."""

from __future__ import annotations

import pickle

from kgctl.simulate.metrics.result import RunResult, run
from tests.support.simulated import S, event, scenario


def test_a_recording_that_was_kept_gives_the_same_metrics() -> None:
    result = run(scenario(event("crash", "app/1", 5, for_us=10 * S), rate=100), 1, keeps_records=True)

    kept = RunResult(pickle.loads(pickle.dumps(result.recording)))  # our own bytes

    assert (kept.summary(), kept.digest, kept.lanes()) == (result.summary(), result.digest, result.lanes())
    assert kept.records() == result.records()
