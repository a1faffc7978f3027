"""``restart``: all pods at once are stopped cleanly and started again."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import Countdown, bring_back, duration_of, pods_of
from kgctl.simulate.engine.events.start import WITH
from kgctl.simulate.engine.pods.pod import Pod


def _begin(run: EventRun) -> None:
    pods = pods_of(run)
    countdown = Countdown(len(pods), run.over)
    down_us = duration_of(run) or 0

    def back(pod: Pod) -> None:
        pod.configure(run["with"])
        bring_back(run, pod, down_us, countdown.one)

    for pod in pods:
        if pod.process is None:
            back(pod)
        else:
            pod.process.stop(lambda pod=pod: back(pod))  # type: ignore[misc]


KIND = EventKind(
    name="restart",
    target=Target.PODS,
    help="Stop these pods, all at the same time, and start each again when it has stopped.",
    begin=_begin,
    fields=(
        Field(name="for", type=FieldType.DISTRIBUTION, help="how long they are down between", default=0),
        WITH,
    ),
)
