"""Generated sequences of requests, each step chosen in the light of what the core holds at that moment.

A sequence is built by running it: the next step names members that are there, epochs and generations that are right or just
wrong, and times on, before and after the next timer. What comes out is a case of the conformance tests' format without its
"expect": Kafka writes that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kgctl.coordinator.consumer.member import Partitions
from kgctl.coordinator.group import Group
from kgctl.coordinator.profile import LATEST, Profile
from tests.conformance.notation import START_MS
from tests.conformance.world import World
from tests.differential.beginnings import given_world
from tests.differential.choices import GROUPS, Choice
from tests.differential.steps.classic import heartbeat, join, leave, sync
from tests.differential.steps.consumer import consumer_heartbeat, consumer_join, consumer_leave
from tests.differential.steps.moves import move
from tests.differential.steps.offsets import commit, delete_offsets, end_txn, fetch, txn_commit
from tests.differential.steps.share import (
    alter_offsets,
    delete_share_offsets,
    look_at_shares,
    persister,
    share_heartbeat,
    share_join,
    share_leave,
)
from tests.differential.steps.streams import (
    internal_topics,
    look_at_streams,
    streams_commit,
    streams_heartbeat,
    streams_join,
    streams_leave,
)
from tests.differential.steps.surroundings import change_topics, delete_groups, look, reload, set_group_config

Step = dict[str, Any]
NextStep = Callable[["SequenceBuilder", Group | None], Step]

_ANY_DELTAS = (0, 1, 10, 250, 999, 1000, 1001, 5000, 10_000, 10_001, 30_000, 45_000)
_SHORT_DELTAS = (0, 1, 10, 250, 999, 1000, 1001, 3000)
_OTHERS = (look, delete_groups, change_topics, reload, leave, txn_commit, end_txn, fetch, delete_offsets, set_group_config)
_CONSUMER = (consumer_join,) * 5 + (consumer_heartbeat,) * 12 + (consumer_leave,) * 2
_CLASSIC = (join,) * 7 + (sync,) * 5 + (heartbeat,) * 3 + (leave,)
_COMMITS = (commit,) * 4
Theme = tuple[NextStep, ...]
_MIXED: Theme = (*_CONSUMER, *_CLASSIC, *_COMMITS, *_OTHERS)
_CONSUMERS: Theme = (*_CONSUMER, *_CONSUMER, *_COMMITS, *_OTHERS)
_CLASSICS: Theme = (*_CLASSIC, *_CLASSIC, *_COMMITS, *_OTHERS)
_MIGRATING: Theme = (*_CONSUMER, *_CLASSIC, *_CLASSIC, *_COMMITS, reload, look)
_OFFSETS: Theme = (*_CONSUMER, *_CLASSIC, *_COMMITS * 5, *((txn_commit, end_txn, fetch, delete_offsets) * 4), *_OTHERS)
THEMES: tuple[Theme, ...] = (_MIXED, _CONSUMERS, _CLASSICS, _MIGRATING, _OFFSETS)
"""What a sequence is mostly about."""
_SHARE = (share_join,) * 5 + (share_heartbeat,) * 10 + (share_leave,) * 2 + (persister,) * 7
_SHARE_ADMIN = (look_at_shares,) * 2 + (alter_offsets,) * 2 + (delete_share_offsets,) * 2 + (delete_groups, change_topics)
SHARES: tuple[Theme, ...] = (
    (*_SHARE, *_SHARE_ADMIN, *_OTHERS),
    (*_SHARE, *_SHARE, look_at_shares, change_topics, reload),
    (*_SHARE, *_SHARE_ADMIN, *_SHARE_ADMIN, share_leave, share_leave),
    (*_SHARE, *_SHARE_ADMIN, *_CONSUMER, *_CLASSIC, *_COMMITS, *_OTHERS),
)
"""Share groups: with all that concerns any group, by themselves, as administrators see them, beside groups of the same names."""
_STREAMS = (streams_join,) * 5 + (streams_heartbeat,) * 12 + (streams_leave,) * 2 + (internal_topics,) * 5
_STREAMS_ASIDE = (look_at_streams,) * 2 + (streams_commit,) * 3
STREAMS: tuple[Theme, ...] = (
    (*_STREAMS, *_STREAMS_ASIDE, *_OTHERS),
    (*_STREAMS, *_STREAMS, *_STREAMS_ASIDE, change_topics, reload, set_group_config),
    (*_STREAMS, *_STREAMS, streams_join, streams_leave, look_at_streams),
    (streams_join,) * 4 + (streams_heartbeat,) * 16 + (internal_topics,) * 3 + (streams_leave, streams_commit),
    (*_STREAMS, *_STREAMS_ASIDE, *_CONSUMER, *_CLASSIC, *_COMMITS, *_OTHERS),
)
"""Streams groups: with all that concerns any group, with topics that change, by themselves, beside groups of the same names."""
MOVES: tuple[Theme, ...] = (
    (move,) * 12 + (consumer_heartbeat,) * 3 + (sync,) * 3 + (heartbeat, join, leave, consumer_leave, look, commit),
)
"""Static members go to and fro between the protocols."""
KINDS: dict[str, tuple[Theme, ...]] = {
    "anything": THEMES,
    "classic": (_CLASSICS,),
    "consumer": (_CONSUMERS,),
    "mixed": (_MIXED, _MIGRATING),
    "offsets": (_OFFSETS,),
    "moves": MOVES,
    "share": SHARES,
    "streams": STREAMS,
}
"""By the name that `tests.differential.search` takes."""


class SequenceBuilder:
    """One sequence under construction, with the core that has done its steps so far."""

    def __init__(self, choice: Choice, themes: Sequence[tuple[NextStep, ...]] = THEMES, profile: Profile = LATEST) -> None:
        self.choice = choice
        self.profile = profile
        given = given_world(choice, profile)
        self.case: dict[str, Any] = {"id": "generated", "given": given, "steps": [], "expect": [], "end": 0}
        self.world = World(self.case)
        self.now = 1
        self.recreated: set[str] = set()
        self.shape: list[Any] = []
        logged = sorted({group for group, _, _ in given.get("records", {}).values()})
        self.groups = sorted({*GROUPS, *logged})
        self.protocol_type = choice.often("consumer", "consumer", "consumer", "consumer", "connect")
        self._asked = (*GROUPS, *logged, *logged)
        self._theme = choice.of(themes)
        self._deltas = choice.of((_ANY_DELTAS, _SHORT_DELTAS))

    @property
    def topics(self) -> list[str]:
        """Topics that exist, and one that does not."""
        return [*sorted(self.world.topics), "gone"]

    @property
    def existing(self) -> list[str]:
        """Partitions that exist."""
        topics = self.world.driver.image.topics.values()
        return sorted(f"{topic.name}-{number}" for topic in topics for number in range(min(topic.partition_count, 3)))

    def some_topics(self) -> list[str]:
        """To subscribe to."""
        return self.choice.some(self.topics)

    def names(self, partitions: Partitions) -> list[str]:
        """Partitions in the notation of the steps."""
        names = self.world.topic_names
        return sorted(f"{names[topic_id]}-{number}" for topic_id, epochs in partitions.items() for number in epochs)

    def group(self, group_id: str) -> Group | None:
        """The group as the core has it."""
        return self.world.driver.coordinator.shard.groups.get(group_id)

    def build(self, length: int) -> dict[str, Any]:
        """The whole sequence."""
        for number in range(1, length + 1):
            self.now += self._delta()
            step = {"step": number, "at": self.now, **self._next_step()}
            self.case["steps"].append(step)
            self.world.take(step)
        self.case["end"] = self.now + self.choice.of((0, 1000, 60_000, 400_000))
        self.world.finish(self.case["end"])
        return self.case

    def _delta(self) -> int:
        """To the next timer, or just before or behind it, or some time on."""
        deadline_ms = self.world.driver.coordinator.next_deadline_ms()
        if deadline_ms is not None and self.choice.chance(4 if self._deltas is _ANY_DELTAS else 12):
            return max(deadline_ms - START_MS - self.now + self.choice.of((0, -1, 1)), 0)
        return self.choice.of(self._deltas)

    def _next_step(self) -> Step:
        group_id = self.choice.of(self._asked)
        step = self.choice.of(self._theme)(self, self.group(group_id))
        if group_id != "g" and step["op"] not in _WITHOUT_GROUP:
            step.setdefault("group", group_id)
        return step


_WITHOUT_GROUP = {
    "end_txn",
    "describe_consumer_groups",
    "describe_share_groups",
    "describe_streams_groups",
    "persister",
    "describe_groups",
    "list_groups",
    "delete_groups",
    "set_topic",
    "delete_topic",
    "reload",
}
