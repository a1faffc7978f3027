"""What the parts of one run share: time, chance, what the run is about, and where it is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from uuid import UUID

from kgctl.model.groups import MetadataImage
from kgctl.simulate.engine.loop import Loop, Randomness
from kgctl.simulate.recording.history import Identity
from kgctl.simulate.recording.recording import Recording
from kgctl.simulate.recording.trace import EventLog, Observer
from kgctl.simulate.scenario.model import Scenario


class RunContext:
    """One run, as every part of it may see it. Times of the log count from the end of the warm-up.

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
        self.warmup_us = scenario.warmup_us
        self.loop = loop
        self.randomness = Randomness(seed)
        self.request_ids = count(1)
        self.event_log = EventLog(observers)
        self.log = self.event_log.add
        self.recording = Recording(scenario, seed, identity)
        self.partitions = self.recording.partitions
        self.owners = self.recording.owners
        self.ledger = self.recording.ledger
        self.history = self.recording.history
        self.has_traffic = self.recording.has_traffic
        self.keeps_all_commits = keeps_all_commits
        self.changed = changed
        self.running = 0
        self.topic_names: dict[UUID, str] = {}

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
        self.history.disturbances.append(self.loop.now_us)
