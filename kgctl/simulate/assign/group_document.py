"""A document that describes a group, checked, and what each assignor sees of it.

The format is in the manual, page group-files. Client assignors see what a leader sees after the subscriptions went over the
wire: without what the subscription's version cannot carry. (The wire also sorts owned partitions; no assignor depends on that.)
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from kgctl.assignors.spec import NOTHING, GroupSpec, MemberSpec, PartitionsByTopic, StickyClaim, TopicSpec
from kgctl.simulate.assign.checks import (
    DocumentError,
    Place,
    check_mapping,
    check_names,
    integer,
    optional_text,
    owned_partitions,
)

DEFAULT_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
SERVER_ASSIGNORS = ("uniform", "server-range")
_DOCUMENT_KEYS = frozenset({"id", "assignors", "max_generation", "topics", "members", "title", "tag"})
_MEMBER_KEYS = frozenset({"topics", "rack", "instance_id", "owned", "generation", "version", "user_data"})
_TOPIC_KEYS = frozenset({"partitions", "racks", "id"})
_USER_DATA_KEYS = frozenset({"owned", "generation", "base64"})
_NEWEST_VERSION = 3


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a document. ``user_data``: bytes, a claim, None for none, or ``...`` for what Kafka's client would send."""

    member_id: str
    topics: tuple[str, ...] = ()
    owned: PartitionsByTopic | None = None
    generation: int | None = None
    version: int = _NEWEST_VERSION
    rack: str | None = None
    instance_id: str | None = None
    user_data: Any = ...


@dataclass(frozen=True, slots=True)
class GroupDocument:
    """One group of a file."""

    id: str | int
    topics: Mapping[str, TopicSpec]
    members: Sequence[Member]
    assignors: tuple[str, ...] | None = None
    max_generation: int = -1

    def group(self, assignor: str) -> GroupSpec:
        """What the assignor of this name is given.

        Raises:
            DocumentError: a server assignor is asked, and the present target cannot be one.
        """
        if assignor in SERVER_ASSIGNORS:
            self._check_target()
            return GroupSpec(self.topics, [_as_target(member) for member in self.members])
        return GroupSpec(self.topics, [_on_the_wire(member, assignor) for member in self.members], self.max_generation)

    def after_round(self, owned: Mapping[str, PartitionsByTopic], generation: int) -> GroupDocument:
        """The group when its members have what ``owned`` says, since this generation, and join again."""
        members = [replace(m, owned=owned[m.member_id], generation=generation, user_data=...) for m in self.members]
        return replace(self, members=members)

    def _check_target(self) -> None:
        taken: dict[str, set[int]] = {}
        for member in self.members:
            for name, partitions in (member.owned or NOTHING).items():
                place = ("members", member.member_id, "owned", name)
                topic = self.topics.get(name)
                if topic is not None and partitions and max(partitions) >= topic.partition_count > 0:
                    raise DocumentError(place, f"partition {max(partitions)} does not exist, so no target has it")
                others = taken.setdefault(name, set())
                if not others.isdisjoint(partitions):
                    twice = min(others.intersection(partitions))
                    raise DocumentError(place, f"partition {twice} has another owner, too; a target has one owner a partition")
                others.update(partitions)


def parse_document(raw: Any, number: int) -> GroupDocument:
    """Checks a document, the ``number``-th of its file.

    Raises:
        DocumentError: what is wrong, and where in the document.
    """
    document = check_mapping(raw, (), _DOCUMENT_KEYS)
    assignors = document.get("assignors")
    topics = check_mapping(document.get("topics"), ("topics",))
    members = check_mapping(document.get("members"), ("members",))
    maximum = document.get("max_generation")
    return GroupDocument(
        document_id(raw, number),
        {name: _topic(name, topic) for name, topic in topics.items()},
        _members(members),
        None if assignors is None else tuple(check_names(assignors, ("assignors",))),
        -1 if maximum is None else integer(maximum, ("max_generation",)),
    )


def document_id(raw: Any, number: int) -> str | int:
    """The document's id, or its number."""
    given = raw.get("id") if isinstance(raw, Mapping) else None
    if given is None:
        return number
    return given if isinstance(given, str) or type(given) is int else str(given)


def _topic(name: str, raw: Any) -> TopicSpec:
    place = ("topics", name)
    if not isinstance(raw, Mapping):
        return TopicSpec(integer(raw, (*place, "partitions"), minimum=0))
    topic = check_mapping(raw, place, _TOPIC_KEYS)
    count = integer(topic.get("partitions"), (*place, "partitions"), minimum=0)
    return TopicSpec(count, _racks(topic.get("racks"), count, (*place, "racks")), _topic_id(topic.get("id"), (*place, "id")))


def _racks(raw: Any, count: int, place: Place) -> tuple[tuple[str, ...], ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list) or len(raw) != count:
        found = len(raw) if isinstance(raw, list) else repr(raw)
        raise DocumentError(place, f"one list is needed for each of the {count} partitions, not {found}")
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = []
    for racks in raw:
        if racks is not None and not isinstance(racks, list):
            raise DocumentError(place, f"a list of racks is needed for each partition, not {racks!r}")
        # A replica whose rack is null has none.
        present = tuple(optional_text(rack, place) or "" for rack in racks or () if rack is not None)
        result.append(known.setdefault(present, present))
    return tuple(result)


def _topic_id(raw: Any, place: Place) -> UUID | None:
    if raw is None:
        return None
    try:
        return UUID(bytes=base64.b64decode(f"{raw}==", altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        raise DocumentError(place, f"{raw!r} is no topic id: 22 letters of URL-safe base64") from None


def _members(raw: Mapping[str, Any]) -> list[Member]:
    members: list[Member] = []
    last: Any = None
    names: tuple[str, ...] = ()
    for member_id, entry in raw.items():
        place = ("members", member_id)
        member = check_mapping(entry, place, _MEMBER_KEYS)
        # Members of large groups mostly subscribe alike: one tuple for all makes comparing them cheap.
        if (listed := member.get("topics")) != last or last is None:
            last, names = listed, tuple(check_names(listed, (*place, "topics")))
        members.append(_member(member_id, member, names, place))
    return members


def _member(member_id: str, member: Mapping[str, Any], topics: tuple[str, ...], place: Place) -> Member:
    owned = member.get("owned")
    generation = member.get("generation")
    version = member.get("version")
    return Member(
        member_id,
        topics,
        None if owned is None else owned_partitions(owned, (*place, "owned")),
        None if generation is None else integer(generation, (*place, "generation")),
        _NEWEST_VERSION if version is None else integer(version, (*place, "version"), minimum=0, maximum=_NEWEST_VERSION),
        optional_text(member.get("rack"), (*place, "rack")),
        optional_text(member.get("instance_id"), (*place, "instance_id")),
        _user_data(member["user_data"], (*place, "user_data")) if "user_data" in member else ...,
    )


def _user_data(raw: Any, place: Place) -> bytes | StickyClaim | None:
    if raw is None:
        return None
    data = check_mapping(raw, place, _USER_DATA_KEYS)
    if "base64" in data:
        try:
            return base64.b64decode(str(data["base64"]), validate=True)
        except (ValueError, binascii.Error):
            raise DocumentError((*place, "base64"), f"{data['base64']!r} is not base64") from None
    generation = data.get("generation")
    return StickyClaim(
        owned_partitions(data.get("owned"), (*place, "owned")),
        None if generation is None else integer(generation, (*place, "generation")),
    )


def _as_target(member: Member) -> MemberSpec:
    return MemberSpec(member.member_id, member.topics, member.owned or NOTHING, instance_id=member.instance_id)


def _on_the_wire(member: Member, assignor: str) -> MemberSpec:
    owned = member.owned or NOTHING
    return MemberSpec(
        member.member_id,
        member.topics,
        owned if member.version >= 1 else NOTHING,
        generation=member.generation if member.generation is not None and member.version >= 2 else -1,
        rack=member.rack if member.version >= 3 else None,
        instance_id=member.instance_id,
        user_data=_default_user_data(member, owned, assignor) if member.user_data is ... else _given(member.user_data, assignor),
    )


def _given(data: bytes | StickyClaim | None, assignor: str) -> bytes | StickyClaim | None:
    """What a document gives as user data. The cooperative form is the four bytes of a generation; without one it is not there."""
    if assignor == "cooperative-sticky" and isinstance(data, StickyClaim) and data.generation is None:
        return None
    return data


def _default_user_data(member: Member, owned: PartitionsByTopic, assignor: str) -> StickyClaim | None:
    """What Kafka's client sends: the sticky assignor ownership and generation, the cooperative one the generation."""
    if member.generation is not None:
        return StickyClaim(owned, member.generation)
    if member.owned is not None and assignor != "cooperative-sticky":
        return StickyClaim(owned)
    return None
