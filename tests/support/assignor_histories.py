"""Larger groups that change step by step: members join, leave, restart and subscribe anew, topics grow, come and go.

What the members own comes from the assignment of the step before, so that these groups look like real ones.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from kgctl.assignors import get_assignor
from kgctl.assignors.spec import AssignorError
from kgctl.simulate.assign.groups import SERVER_ASSIGNORS, parse_document

Document = dict[str, Any]


def history(seed: int, assignor: str, assignors: Sequence[str], *, steps: int = 6, scale: int = 1) -> Iterator[Document]:
    """The group before each rebalance. It follows ``assignor``; every document asks all of ``assignors``."""
    random = Random(seed)
    group = _Group(random, scale)
    away = 0.0 if assignor in SERVER_ASSIGNORS else 0.05
    for generation in range(1, steps + 1):
        document = {"topics": group.topics, "members": group.members, "assignors": list(assignors)}
        yield copy.deepcopy(document)
        try:
            assignment = get_assignor(assignor).assign(parse_document(document, 1).group(assignor))
        except AssignorError:
            return
        for member_id, topics in assignment.items():
            # A member that was away says what it had before, in its old generation. A target always is the newest.
            if random.random() >= away:
                group.members[member_id] |= {"owned": dict(topics), "generation": generation}
        group.change()


class _Group:
    def __init__(self, random: Random, scale: int) -> None:
        self._random = random
        self._made = 0
        self._has_racks = random.random() < 0.3
        self._is_equal = random.random() < 0.4
        self.topics: dict[str, Any] = {}
        self.members: dict[str, dict[str, Any]] = {}
        for _ in range(random.randint(1, 8 * scale)):
            self._add_topic()
        for _ in range(random.randint(1, 20 * scale)):
            self._add_member()

    def change(self) -> None:
        """Some of what happens to a group between two rebalances."""
        random = self._random
        for _ in range(random.randint(1, 3)):
            what = random.choice(
                ["join", "join", "leave", "leave", "restart", "resubscribe", "grow", "new topic", "delete topic"]
            )
            some = random.randint(1, max(1, len(self.members) // 4))
            if what == "join":
                for _ in range(some):
                    self._add_member()
            elif what in {"leave", "restart"}:
                for member_id in random.sample(sorted(self.members), min(some, len(self.members) - 1)):
                    del self.members[member_id]
                    if what == "restart":
                        self._add_member()
            elif what == "resubscribe":
                for member_id in random.sample(sorted(self.members), min(some, len(self.members))):
                    self.members[member_id]["topics"] = self._subscription()
            else:
                self._change_topics(what)

    def _change_topics(self, what: str) -> None:
        if what == "grow" and self.topics:
            name = self._random.choice(sorted(self.topics))
            topic = self.topics[name]
            if isinstance(topic, int):
                self.topics[name] = topic + self._random.randint(1, 5)
        elif what == "delete topic" and len(self.topics) > 1:
            del self.topics[self._random.choice(sorted(self.topics))]
        else:
            self._add_topic()

    def _add_topic(self) -> None:
        self._made += 1
        count = self._random.choice([1, 3, 6, 12, 24, self._random.randint(1, 60)])
        topic: Any = count
        if self._has_racks and self._random.random() < 0.9:
            topic = {"partitions": count, "racks": [self._random.sample("abc", self._random.randint(1, 2)) for _ in range(count)]}
        self.topics[f"{self._random.choice(['orders', 'payments', 'audit', 'ä'])}-{self._made}"] = topic

    def _add_member(self) -> None:
        self._made += 1
        member: dict[str, Any] = {"topics": self._subscription()}
        if self._has_racks and self._random.random() < 0.9:
            member["rack"] = self._random.choice("abcd")
        self.members[f"consumer-{self._made}-{self._random.getrandbits(64):016x}"] = member

    def _subscription(self) -> list[str]:
        names = sorted(self.topics)
        if self._is_equal and self._random.random() < 0.97:
            return names
        return self._random.sample(names, self._random.randint(0, len(names)))
