"""``start``: pods that do not run are started."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import Countdown, pods_of

WITH = Field(name="with", type=FieldType.CONFIG, help="consumer settings from this start on", default={})


def _begin(run: EventRun) -> None:
    pods = [pod for pod in pods_of(run) if pod.process is None]
    countdown = Countdown(len(pods), run.over)
    for pod in pods:
        pod.configure(run["with"])
        pod.boot(countdown.one)


KIND = EventKind(
    name="start",
    target=Target.PODS,
    help="Start pods that do not run; it is over when they have subscribed.",
    begin=_begin,
    fields=(WITH,),
)
