"""``slow``: processing takes longer."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import duration_of, end_after, pods_of
from kgctl.simulate.engine.pods.pod import Pod
from kgctl.simulate.engine.trace import PodChanged

USUAL_PPM = 1_000_000


def _begin(run: EventRun) -> None:
    pods = pods_of(run)
    for pod in pods:
        _set(pod, pod.factor_ppm * run["factor"] // USUAL_PPM)
        run.world.log(PodChanged(run.world.log_time, pod.name, "slow"))
    end_after(run, duration_of(run), lambda: _end(run, pods))


def _end(run: EventRun, pods: list[Pod]) -> None:
    for pod in pods:
        _set(pod, max(pod.factor_ppm * USUAL_PPM // run["factor"], 1))
        run.world.log(PodChanged(run.world.log_time, pod.name, "unslow"))


def _set(pod: Pod, factor_ppm: int) -> None:
    pod.factor_ppm = factor_ppm
    if pod.process is not None:
        pod.process.slow()


KIND = EventKind(
    name="slow",
    target=Target.PODS,
    help="Batches take so many times as long, and so fewer records are processed.",
    begin=_begin,
    fields=(
        Field(name="for", type=FieldType.DISTRIBUTION, help="how long; without it, for good"),
        Field(name="factor", type=FieldType.FACTOR, help="how many times as long", is_required=True),
    ),
)
