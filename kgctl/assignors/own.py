"""The border to an assignor of the user's own: what it answers is checked, and what it raises is told as its own.

Whoever runs an assignor (`kgctl.assign`, a simulation, a live leader, other clients' leaders) gets it from
`kgctl.assignors.registry.get_assignor`, behind this border: nothing that fails goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgctl.assignors.spec import (
    Assignor,
    AssignorError,
    GroupAssignment,
    GroupSpec,
    MemberSpec,
    PartitionsByTopic,
    Promises,
    promises_of,
    subscribed_space,
)
from kgctl.errors import UserCodeError, defined_at, users_code


class OwnAssignor:
    """An `Assignor` around another, which is not kgctl's. ``user_data`` is there where the other one has it."""

    def __init__(self, made: Assignor, called: str) -> None:
        self._made = made
        self._called = f"the assignor {called}"
        self.name: str = made.name
        self.promises: Promises = promises_of(made)
        self.left_over = 0
        """How many partitions that somebody subscribes to its last answer gave to nobody; a cooperative one may."""
        said = getattr(made, "user_data", None)
        if said is not None:
            self.user_data: Callable[[MemberSpec], bytes | None] = self._said

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Return the assignment, checked: members only, each partition to one subscriber, partitions that exist.

        Raises:
            UserCodeError: it raised, or answered something else; with its exception as the cause.
            AssignorError: as Kafka's throw.
        """
        with users_code(self._called, lets_by=(AssignorError,)):
            found: object = self._made.assign(group)
            checked = self._checked(group, found)
        if not self.promises.is_cooperative:
            self.left_over = checked.space.total - sum(len(checked.ids(member_id)) for member_id in checked)
        return checked

    def _said(self, member: MemberSpec) -> bytes | None:
        with users_code(f"{self._called}, user_data()"):
            found: object = self._made.user_data(member)  # type: ignore[attr-defined]
        if found is not None and not isinstance(found, bytes):
            answered = f"user_data() answers {_shown(found)}, not bytes"
            raise UserCodeError(f"{self._called}{defined_at(self._made.user_data)}: {answered}")  # type: ignore[attr-defined]
        return found

    def _checked(self, group: GroupSpec, found: object) -> GroupAssignment:
        if not isinstance(found, Mapping):
            raise self._wrong(f"assign() answers {_shown(found)}, not a mapping of member -> topic -> partitions")
        members = {member.member_id: member for member in group.members}
        stranger = next((str(each) for each in found if each not in members), None)
        if stranger is not None:
            raise self._wrong(f"gives partitions to {stranger!r}, which is no member")
        space, owners = subscribed_space(group), dict[tuple[str, int], str]()
        for member_id, topics in found.items():
            for topic, partitions in self._topics(member_id, topics):
                if topic not in members[member_id].topics or topic not in space.index:
                    raise self._wrong(f"gives member {member_id!r} topic {topic!r}, which is not its own")
                for partition in self._partitions(member_id, topic, partitions):
                    if not 0 <= partition < group.topics[topic].partition_count:
                        raise self._wrong(f"gives {topic}-{partition} to {member_id!r}, but it does not exist")
                    other = owners.setdefault((topic, partition), member_id)
                    if other != member_id:
                        raise self._wrong(f"gives {topic}-{partition} to {member_id!r} and {other!r}")
        numbers = {member_id: space.numbers(_in_order(found.get(member_id) or {})) for member_id in members}
        return GroupAssignment(space, numbers)

    def _topics(self, member_id: str, topics: object) -> Sequence[tuple[str, object]]:
        if topics is not None and not isinstance(topics, Mapping):
            raise self._wrong(f"gives member {member_id!r} {_shown(topics)}, not a mapping of topic -> partitions")
        return list((topics or {}).items())

    def _partitions(self, member_id: str, topic: str, partitions: object) -> Sequence[int]:
        try:
            found: list[int] = list(partitions)  # type: ignore[call-overload]
        except TypeError:
            found = [partitions]  # type: ignore[list-item]
        if not {int}.issuperset(map(type, found)):
            raise self._wrong(f"gives member {member_id!r} {_shown(partitions)} of topic {topic!r}, not a list of numbers")
        return found

    def _wrong(self, what: str) -> UserCodeError:
        return UserCodeError(f"{self._called}{defined_at(self._made.assign)}: {what}")


def _in_order(topics: PartitionsByTopic) -> dict[str, list[int]]:
    """Each partition once."""
    return {topic: list(dict.fromkeys(partitions)) for topic, partitions in topics.items()}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}..."
