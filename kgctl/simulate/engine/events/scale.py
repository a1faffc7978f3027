"""``scale``: more or fewer pods of a set."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import Countdown, in_a_while
from kgctl.simulate.engine.pods.pod import Pod


def _begin(run: EventRun) -> None:
    pods = run.world.sets[run.event.target]
    present = [pod for pod in pods if pod.is_wanted]
    wanted = run["to"] if run["to"] is not None else max(len(present) + run["by"], 0)
    changes = _to_start(run, present, wanted) if wanted > len(present) else present[wanted:][::-1]
    countdown = Countdown(len(changes), run.over)
    for number, pod in enumerate(changes):
        pod.want(is_wanted=wanted > len(present))
        _change(run, pod, run["over"] * number // len(changes), countdown)


def _to_start(run: EventRun, present: list[Pod], wanted: int) -> list[Pod]:
    """Those with the lowest numbers that are not there, then new ones."""
    pods = run.world.sets[run.event.target]
    idle = [pod for pod in pods if not pod.is_wanted][: wanted - len(present)]
    members = run.world.members(run.event.target)
    return idle + [run.world.add_pod(members) for _ in range(wanted - len(present) - len(idle))]


def _change(run: EventRun, pod: Pod, delay_us: int, countdown: Countdown) -> None:
    def change(_: object) -> None:
        if pod.is_wanted:
            pod.boot(countdown.one)
        elif pod.process is None:
            countdown.one()
        else:
            pod.process.stop(countdown.one)

    in_a_while(run, delay_us, change)


KIND = EventKind(
    name="scale",
    target=Target.MEMBER_SET,
    help="Change the number of pods: the highest numbers go first, new ones come last.",
    begin=_begin,
    fields=(
        Field(name="to", type=FieldType.SIZE, help="so many pods"),
        Field(name="by", type=FieldType.CHANGE, help="so many more, or fewer"),
        Field(name="over", type=FieldType.DURATION, help="spread evenly over this time", default=0),
    ),
    one_of=("to", "by"),
)
