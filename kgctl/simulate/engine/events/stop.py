"""``stop``: a clean end, as on SIGTERM."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import Countdown, bring_back, duration_of, processes_of
from kgctl.simulate.engine.events.start import WITH
from kgctl.simulate.engine.pods.pod import Pod

FOR = Field(name="for", type=FieldType.DISTRIBUTION, help="how long they stay down; without it, for good")


def _begin(run: EventRun) -> None:
    processes = processes_of(run)
    countdown = Countdown(len(processes), run.over)
    down_us = duration_of(run)

    def back(pod: Pod) -> None:
        pod.configure(run["with"])
        bring_back(run, pod, down_us, countdown.one)

    for process in processes:
        process.stop(lambda pod=process.pod: back(pod))  # type: ignore[misc]


KIND = EventKind(
    name="stop",
    target=Target.PODS,
    help="Stop pods as SIGTERM does; what on_stop says is done. With for: start them again.",
    begin=_begin,
    fields=(FOR, WITH),
)
