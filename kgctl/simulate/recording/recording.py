"""Everything that a run leaves behind: the engine writes it, everybody else reads it and never the engine.

It only grows. While the run goes on its reader is handed to conditions and watchers; once it is closed it can be pickled,
kept and measured again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.groups import GroupMetadataValue, MetadataImage
from kgctl.simulate.recording.history import History, Identity
from kgctl.simulate.recording.owners import PartitionOwners, PartitionTable
from kgctl.simulate.recording.traffic import Ledger
from kgctl.simulate.scenario.model import MemberSet, Scenario

EPOCH_MS = 1_767_225_600_000
"""The coordinator's clock at the beginning of a run: 2026-01-01 00:00 UTC. Records have to have some time."""


class Ending(NamedTuple):
    """How a run ended. ``digest``: of its event log; ``events``: the lines of it; ``tasks``: what the loop did; ``stopped``: the
    limit that ended it, or \"\"."""

    digest: str
    events: int
    tasks: int
    stopped: str


def _has_traffic(scenario: Scenario) -> bool:
    """Whether a record is ever written: ``0/s`` is no traffic."""
    steps = [step for traffic in scenario.traffic for step in traffic.steps]
    steps += [step for event in scenario.events for step in event["rate"] or ()]
    return any(rate_uhz for _, rate_uhz in steps) or any(traffic.wave is not None for traffic in scenario.traffic)


class Recording:
    """One run, so far or whole. Times are microseconds from the run's beginning; ``start_us`` is the end of the warm-up.

    ``step`` grows with whatever is done; ``image``, ``uses_consumer_protocol`` and ``server_heartbeat_ms`` are as of ``now_us``.
    ``records`` are the coordinator's, with their times, where they are kept. ``largest``: the largest GroupMetadata record.
    """

    def __init__(self, scenario: Scenario, seed: int, identity: Identity = Identity.POD) -> None:
        self.scenario = scenario
        self.seed = seed
        self.identity = identity
        self.start_us = scenario.warmup_us
        self.now_us = 0
        self.step = 0
        self.has_traffic = _has_traffic(scenario)
        self.partitions = PartitionTable()
        self.owners = PartitionOwners(self.partitions)
        self.ledger = Ledger()
        self.history = History()
        self.image = MetadataImage()
        self.uses_consumer_protocol = False
        self.server_heartbeat_ms = 0
        self.largest: GroupMetadataValue | None = None
        self.records: list[tuple[int, AppendRecord]] | None = None
        self.ending = Ending("", 0, 0, "")
        self.on_traffic_read: Callable[[], None] | None = None
        """Of a run that goes on: brings the sums of records to the present."""
        self._topics: dict[str, tuple[int, tuple[str, ...]]] = {}

    @property
    def end_us(self) -> int:
        """Return the end of what is measured: now, or the end of the run."""
        return max(self.now_us, self.start_us)

    @property
    def member_sets(self) -> tuple[str, ...]:
        """Return the names of the sets of members."""
        return tuple(members.name for members in self.scenario.members)

    def settle_traffic(self) -> None:
        """Bring the sums of records to the present, if the run goes on."""
        if self.on_traffic_read is not None:
            self.on_traffic_read()

    def topics_of(self, members: MemberSet) -> tuple[str, ...]:
        """Return the topics that there are and that these members subscribe to."""
        version, names = self._topics.get(members.name, (-1, ()))
        if version != self.image.version:
            names = tuple(name for name in self.image.topics if self.subscribes(members, name))
            self._topics[members.name] = self.image.version, names
        return names

    def subscribes(self, members: MemberSet, topic: str) -> bool:
        """Return whether these members subscribe to a topic, should it exist."""
        if members.pattern is not None:
            return re.fullmatch(members.pattern, topic) is not None
        return topic in (members.topics or tuple(each.name for each in self.scenario.topics))

    def log(self) -> list[tuple[int, AppendRecord]]:
        """Return (time, record) of the coordinator's log, in order; empty unless it was kept."""
        return sorted(self.records or (), key=itemgetter(0))
