"""``rolling_restart``: a deployment of the same settings."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.rolling import FIELDS, Rolling

SET = Field(name="set", type=FieldType.CONFIG, help="consumer settings that the new processes have", default={})


def _begin(run: EventRun) -> None:
    Rolling(run, run["set"]).next_batch()


KIND = EventKind(
    name="rolling_restart",
    target=Target.PODS,
    help="Restart pods batch by batch, as a deployment does.",
    begin=_begin,
    fields=(*FIELDS, SET),
)
