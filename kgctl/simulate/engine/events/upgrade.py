"""``upgrade``: a deployment that changes settings."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.rolling import FIELDS, Rolling

SET = Field(name="set", type=FieldType.CONFIG, help="consumer settings that the new processes have", is_required=True)


def _begin(run: EventRun) -> None:
    Rolling(run, run["set"]).next_batch()


KIND = EventKind(
    name="upgrade",
    target=Target.PODS,
    help="Restart pods batch by batch with other settings.",
    begin=_begin,
    fields=(*FIELDS, SET),
)
