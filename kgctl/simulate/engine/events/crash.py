"""``crash``: the process is gone at once, as by SIGKILL or the loss of its machine."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Target
from kgctl.simulate.engine.events.pods import Countdown, bring_back, duration_of, processes_of
from kgctl.simulate.engine.events.start import WITH
from kgctl.simulate.engine.events.stop import FOR


def _begin(run: EventRun) -> None:
    processes = processes_of(run)
    countdown = Countdown(len(processes), run.over)
    down_us = duration_of(run)
    for process in processes:
        process.die("crash")
        process.pod.configure(run["with"])
        bring_back(run, process.pod, down_us, countdown.one)


KIND = EventKind(
    name="crash",
    target=Target.PODS,
    help="Kill pods: no callbacks, no commit, no LeaveGroup. With for: start them again after that time.",
    begin=_begin,
    fields=(FOR, WITH),
)
