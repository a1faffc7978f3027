"""A filter that a metric takes counts for it: one that is declared and not looked at would be taken and change nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgctl.simulate.metrics.measured import Measured
from kgctl.simulate.metrics.result import run
from kgctl.simulate.recording.recording import Counted, Recording, TaskHistory
from kgctl.simulate.scenario.checks import Filters
from kgctl.simulate.scenario.fields import Commit, CommitMode
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.scenario.quantities import Constant
from tests.support.simulate.shared import run_text
from tests.support.simulated import CONSUMER, RANGE, S, event, scenario
from tests.unit.simulate.metrics.test_metrics import at, consumed, gap, recorded
from tests.unit.simulate.metrics.test_tasks import of_application

STATISTICS = ("mean", "max", "min", "peak", "worst")
WORDS = ("event", "callback", "error", "series", "api")
FIELDS = {
    **{name: name for name in ("selector", "cause", "during", "step", "percentile", "share")},
    **{name: f"{name}_us" for name in ("after", "before", "at")},
    "topic": "topics",
    **dict.fromkeys(STATISTICS, "statistic"),
    **dict.fromkeys(WORDS, "words"),
}
"""Kind of filter -> the field of `Filters` that it is. ``owners(partition)`` says with it what it counts, and goes by nothing."""
LOOKED_AT: set[str] = set()


class NotingFilters(Filters):
    """Keeps what of it was looked at."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> object:
        LOOKED_AT.add(name)
        return super().__getattribute__(name)


def by_hand() -> Recording:
    found = of_application(recorded())
    probe, copy = Counted(70 * S, 1, 1), Counted(60 * S, 70, 1, "0_1")
    found.tasks = TaskHistory(tasks={"0_0": (0, 1), "0_1": (2,)}, restored=[copy], copied=[copy], warmups=[copy], probes=[probe])
    found.history.fenced.append(probe)
    consumed(found)
    gap(found, 2, 12, 20, by=1, then=0)
    at(found, 100)
    return found


def recordings() -> Iterator[Recording]:
    """In which something of everything has happened."""
    events = (event("pause_process", "app/1", 10, for_us=Constant(60 * S)), event("crash", "app/2", 20))
    commit = Commit(mode=CommitMode.BEFORE_BATCH)
    for config in ({**RANGE, "session.timeout.ms": "6000"}, CONSUMER):
        yield run(scenario(*events, config=config, duration_s=200, rate=100, rate_uhz=50 * S, commit=commit), 1).recording
    yield by_hand()
    text = "members: {app: {count: 2, process_time: 10ms}}\ntraffic: {orders: 4/s}\nduration: 10s\n"
    shared = run_text(f"{text}events: [{{at: 5s, crash: app/0}}]\nallow: [unread]\n")
    shared.share.refused.append(Counted(shared.recording.end_us, 1, 0, "orders"))
    yield shared.recording


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    return [Measured(each) for each in recordings()]


@pytest.mark.parametrize("name", metric_kinds())
def test_every_filter_that_a_metric_takes_is_looked_at(name: str, measured: list[Measured]) -> None:
    kind = metric_kinds()[name]
    LOOKED_AT.clear()
    for run_ in measured:
        if run_.knows(kind):
            kind.compute(run_, NotingFilters())
    assert {each for each in kind.filters if each != "partition"} <= {each for each in FIELDS if FIELDS[each] in LOOKED_AT}
