"""What the parts of one run share: time, chance, what the run is about, and where it is written down.

The loop says what is due, by time and order of scheduling. Nothing else decides what comes next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from random import Random  # noqa: TID251  # the one place where a run's seed becomes numbers
from typing import Any, Concatenate, ParamSpec, TypeAlias
from uuid import UUID

from kgctl.member.api import Rng
from kgctl.member.runtime import draw
from kgctl.model.groups import MetadataImage
from kgctl.simulate.recording.folds import Histories
from kgctl.simulate.recording.log import EventLog
from kgctl.simulate.recording.recording import Recording
from kgctl.simulate.recording.trace import Disturbed, Observer, TraceEvent
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.vocabulary import Identity

Task: TypeAlias = Callable[[Any], None]
_Told = ParamSpec("_Told")


class Loop:
    """Virtual time in microseconds. What is scheduled for one moment happens in the order of scheduling.

    Members of a group are answered at the same moment and do the same next, so a moment has many tasks: the heap holds each
    moment once.
    """

    __slots__ = ("_due", "executed", "has_changed", "looks", "moments", "now_us")

    def __init__(self) -> None:
        self.moments: list[int] = []
        """A heap: the first is when the next task is due."""
        self._due: dict[int, list[tuple[Task, Any]]] = {}
        """Moment -> its tasks with their arguments, in the order of scheduling."""
        self.now_us = 0
        self.executed = 0
        self.looks = 0
        """How often somebody looked though nothing was due."""
        self.has_changed = False
        """Whether something that metrics depend on is different since whoever looks at them has taken this back."""

    def at(self, time_us: int, task: Task, argument: Any = None) -> None:
        """Call ``task(argument)`` at this time, which is now or later."""
        due = self._due.get(time_us)
        if due is None:
            self._due[time_us] = [(task, argument)]
            heappush(self.moments, time_us)
        else:
            due.append((task, argument))

    @property
    def next_us(self) -> int | None:
        """When the next task is due; None: there is none."""
        return self.moments[0] if self.moments else None

    def run(self, until_us: int, most: int, look_at: int) -> None:
        """Do what is due up to this time, moment after moment, what it leads to at the same moment included.

        It ends behind the first moment that has set ``has_changed`` or brought ``executed`` to ``look_at``, and in the middle of
        one when ``executed`` reaches ``most``: the loop can then not go on.
        """
        moments, tasks, executed = self.moments, self._due, self.executed
        while moments and moments[0] <= until_us:
            moment_us = self.now_us = heappop(moments)
            for task, argument in tasks[moment_us]:  # the list may grow
                if executed >= most:
                    self.executed = executed
                    return
                executed += 1
                task(argument)
            self.executed = executed
            del tasks[moment_us]
            if self.has_changed or executed >= look_at:
                return


class Randomness:
    """Gives each purpose of a run a random stream of its own, all from one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def stream(self, *names: str) -> Rng:
        """A new stream for this name. Python seeds it by SHA-512 of the text: the same on every machine."""
        return Random(f"kgctl/{self._seed}/{'/'.join(names)}")  # noqa: S311  # a simulation, no secret


def draw_uuid(rng: Rng) -> UUID:
    return UUID(int=rng.getrandbits(128), version=4)


LEAD_US = 15_000_000
"""A warm-up is longer by up to so much, as the seed has it: an event falls anywhere between two heartbeats (every 3 or 5 s), two
automatic commits (5 s) and two calls of poll(), as it does in a group that has run for days.
"""


class RunContext:
    """One run, as every part of it may see it. What happens is said once, to ``emit``. Times of events count from the end of
    the warm-up.

    ``changed``: to be called when something that metrics depend on is different. ``running`` is the number of processes that
    run a consumer. Of commits in times in which nothing else happens the recording keeps the last, or (``keeps_all_commits``)
    all.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        observers: Sequence[Observer],
        loop: Loop,
        identity: Identity,
        *,
        keeps_all_commits: bool,
        changed: Callable[[], None],
    ) -> None:
        self.scenario = scenario
        self.group_id = scenario.group_id
        self.randomness = Randomness(seed)
        lead_us = draw(self.randomness.stream("warm-up"), LEAD_US) if scenario.warmup_us else 0
        self.warmup_us = scenario.warmup_us + lead_us
        self.loop = loop
        self.request_ids = count(1)
        self.recording = Recording(scenario, seed, identity, lead_us=lead_us)
        self.event_log = EventLog(Histories(self.recording), observers)
        self.partitions = self.recording.partitions
        self.owners = self.recording.owners
        self.ledger = self.recording.ledger
        self.history = self.recording.history
        self.has_traffic = self.recording.has_traffic
        self.keeps_all_commits = keeps_all_commits
        self.changed = changed
        self.running = 0
        self.topic_names: dict[UUID, str] = {}

    def emit(self, kind: Callable[Concatenate[int, _Told], TraceEvent], *told: _Told.args, **named: _Told.kwargs) -> None:
        """An event of this kind happens now; what it tells beside the time."""
        self.event_log.emit(kind(self.loop.now_us - self.warmup_us, *told, **named))

    @property
    def log_time(self) -> int:
        """Now, as the log counts."""
        return self.loop.now_us - self.warmup_us

    @property
    def image(self) -> MetadataImage:
        """The topics that there are."""
        return self.recording.image

    def disturbed(self) -> None:
        """Something was done to pods, topics or brokers."""
        self.emit(Disturbed)
