"""``pause_process``: SIGSTOP, a long garbage collection, a starved node: no heartbeats either."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import duration_of, in_a_while, processes_of
from kgctl.simulate.engine.pods.process import Process


def _begin(run: EventRun) -> None:
    processes = processes_of(run)
    for process in processes:
        process.suspend()
    in_a_while(run, duration_of(run) or 0, lambda _: _end(run, processes))


def _end(run: EventRun, processes: list[Process]) -> None:
    for process in processes:
        process.resume()
    run.over()


KIND = EventKind(
    name="pause_process",
    target=Target.PODS,
    help="The processes are frozen: no heartbeats, no polls; then they go on as if nothing had been.",
    begin=_begin,
    fields=(Field(name="for", type=FieldType.DISTRIBUTION, help="how long", is_required=True),),
)
