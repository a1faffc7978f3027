"""Topics that streams groups write for themselves, deleted with a reset or with the group.

Which these are is decided as by kafka-streams-groups.sh: what the topology declares, by a name that Kafka Streams gives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

from kgctl.admin import DeletesTopics, GroupAdmin
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import WHOLE, Column
from kgctl.errors import KgctlError, RefusedError, UnsupportedError, UsageError, plural
from kgctl.model.groups import GroupDescription, GroupType
from kgctl.model.streams import is_inferred_internal

ALL, ONE = "--delete-all-internal-topics", "--delete-internal-topic"
DeleteAll = Annotated[
    bool, flag(ALL, "Delete the topics that streams groups write for themselves, too. No undo brings them back.")
]
DeleteSome = Annotated[list[str] | None, option("TOPIC", "Delete this one of their own topics, too; repeatable.", ONE)]
DELETED = Column("topics_deleted", "how many internal topics were deleted, where that was asked for", WHOLE)


@dataclass(slots=True)
class InternalTopics:
    """What is to go with a change: group -> its own topics that are there, and what came of it."""

    topics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_asked: bool = False
    gone: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    errors: list[KgctlError] = field(default_factory=list)

    @classmethod
    def of(
        cls, admin: GroupAdmin, groups: Iterable[GroupDescription | None], *, everything: bool, named: Sequence[str] = ()
    ) -> Self:
        """Those that the options mean.

        Raises:
            UsageError: a group is no streams group.
            RefusedError: a topic is none of theirs, or a group does not tell which are; nothing was changed.
        """
        if not everything and not named:
            return cls()
        option = ALL if everything else ONE
        if not isinstance(admin, DeletesTopics):
            raise UnsupportedError(f"{option}: topics are deleted on brokers only, by kgctl's own connection")
        own = {group.group_id: _own(group, option) for group in groups if group is not None}
        strange = sorted({*named}.difference(*own.values()))
        if strange:
            of = ", ".join(map(repr, own)) or "no group"
            raise RefusedError(f"topic {strange[0]!r} is none that {of} writes for itself; nothing was changed", topic=strange[0])
        wanted = {group: [topic for topic in topics if everything or topic in named] for group, topics in own.items()}
        there = admin.list_topics(sorted({topic for topics in wanted.values() for topic in topics}))
        return cls({group: [topic for topic in topics if topic in there] for group, topics in wanted.items()}, is_asked=True)

    @property
    def _all(self) -> list[str]:
        return [topic for topics in self.topics.values() for topic in topics]

    @property
    def words(self) -> list[str]:
        """The options that mean them."""
        return [word for topic in self._all for word in (ONE, topic)]

    @property
    def loss(self) -> str:
        """What is lost for good, "" where nothing is."""
        return f"{_named(self._all)} with all records, which no undo brings back" if self._all else ""

    @property
    def summary(self) -> dict[str, int]:
        return {DELETED.key: len(self.gone)} if self.is_asked else {}

    def planned(self) -> list[str]:
        """A line on what would be deleted."""
        return [f"To be deleted: {self.loss}."] if self._all else self._nothing()

    def told(self) -> list[str]:
        """Lines on what became of them."""
        done = [f"Deleted {_named(self.gone)}."] if self.gone else []
        kept = [f"Its group was not changed as planned: {_named(self.kept)} stay."] if self.kept else []
        return [*done, *kept] if self._all else self._nothing()

    def _nothing(self) -> list[str]:
        return ["No internal topic is there."] * self.is_asked

    def delete(self, admin: GroupAdmin, groups: Collection[str]) -> None:
        """Delete those of these groups; those of others stay."""
        for group, topics in self.topics.items():
            if group not in groups:
                self.kept += topics
            elif topics and isinstance(admin, DeletesTopics):
                self._delete(admin, group, topics)

    def _delete(self, admin: DeletesTopics, group: str, topics: Sequence[str]) -> None:
        try:
            found = admin.delete_topics(topics)
        except KgctlError as error:
            self.errors += [_not_deleted(group, topic, f"it may be: {error.message}", error.code) for topic in topics]
            return
        self.gone += found.values
        self.errors += [_not_deleted(group, topic, error.message, error.code.name) for topic, error in found.errors.items()]


def _own(group: GroupDescription, option: str) -> Sequence[str]:
    if group.type is not GroupType.STREAMS:
        raise UsageError(f"{option} is for streams groups, and {group.group_id!r} is a {group.type.value} group")
    if group.topology is None or group.topology.subtopologies is None:
        why = f"the topology of group {group.group_id!r} is not known ({group.state.value}), nor which topics are its own"
        raise RefusedError(f"{why}; nothing was changed", group=group.group_id)
    return [topic for topic in group.topology.internal_topics if is_inferred_internal(topic, group.group_id)]


def _not_deleted(group: str, topic: str, why: str, code: str) -> KgctlError:
    return KgctlError(f"topic {topic!r} was not deleted: {why}", code=code, group=group, topic=topic)


def _named(topics: Sequence[str]) -> str:
    return f"{plural(len(topics), 'internal topic')} ({', '.join(topics)})"
