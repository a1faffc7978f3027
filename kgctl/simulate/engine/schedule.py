"""When the scenario's events begin: at a time, after another one, again and again; and when all are over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.errors import UsageError
from kgctl.simulate.engine.events.kind import EventKind, EventRun
from kgctl.simulate.engine.events.registry import EVENT_KINDS
from kgctl.simulate.scenario.model import Event

if TYPE_CHECKING:
    from kgctl.simulate.engine.world import World

LAST = "last"
PREVIOUS = "previous"


class Schedule:
    """All events of a scenario. ``open`` counts beginnings that have not come to their end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._events = world.scenario.events
        self._left = [max(event.times, 1) for event in self._events]
        self._followers: list[list[int]] = [[] for _ in self._events]
        self._waits_for: list[int] = [0] * len(self._events)
        self.open = sum(self._left)
        self.last_over_us = world.scenario.warmup_us

    def begin(self) -> None:
        """Put every event with a time of its own into the loop."""
        for position, event in enumerate(self._events):
            before = self._before(position, event)
            self._waits_for[position] = len(before)
            for index in before:
                self._followers[index].append(position)
            if not before:
                self._arm(position, self._world.scenario.warmup_us + event.at_us)

    def _before(self, position: int, event: Event) -> list[int]:
        if event.after is None:
            return []
        if event.after == PREVIOUS:
            return [position - 1] if position else []
        if event.after == LAST:
            return list(range(position))
        found = [index for index, other in enumerate(self._events) if other.name == event.after and index != position]
        if not found:
            raise UsageError(f"no event is named {event.after!r}")
        return found

    def _arm(self, position: int, at_us: int) -> None:
        event = self._events[position]
        for number in range(max(event.times, 1)):
            self._world.loop.at(max(at_us + number * event.every_us, self._world.loop.now_us), self._start, position)

    def _start(self, position: int) -> None:
        event = self._events[position]
        kind = EVENT_KINDS[event.kind]
        if event.when is not None and not event.when.holds(self._world.metrics):
            self._world.log_event(event, "is left out")
            self._over(position)
            return
        self._world.log_event(event, "begins")
        kind.begin(self._run(position, event, kind))

    def _run(self, position: int, event: Event, kind: EventKind) -> EventRun:
        return EventRun(self._world, event, kind, lambda: self._over(position))

    def _over(self, position: int) -> None:
        now_us = self._world.loop.now_us
        self.open -= 1
        self._left[position] -= 1
        self.last_over_us = now_us
        self._world.has_changed = True
        if self._left[position]:
            return
        for follower in self._followers[position]:
            self._waits_for[follower] -= 1
            if not self._waits_for[follower]:
                self._arm(follower, now_us + self._events[follower].at_us)
