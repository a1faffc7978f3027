"""``delete_topic``: a topic is gone, with its offsets."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Target


def _begin(run: EventRun) -> None:
    if run.event.target not in run.world.image.topics:
        run.without_effect()
        return
    run.world.topics.delete(run.event.target)
    run.over()


KIND = EventKind(name="delete_topic", target=Target.TOPIC, help="The topic is gone, and its offsets with it.", begin=_begin)
