"""A document that describes a group, checked, and what each assignor sees of it.

The format is in the README, section "Assignors". Client assignors see what a leader sees after the subscriptions went over the
wire: sorted, and without what the subscription's version cannot carry.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kgctl.assignors.partition_space import sorted_like_java
from kgctl.assignors.spec import GroupSpec, MemberSpec, StickyClaim, TopicSpec
from kgctl.errors import UsageError
from kgctl.simulate.checks import check_keys, check_mapping, check_names, integer, optional_text, owned_partitions

DEFAULT_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
SERVER_ASSIGNORS = ("uniform", "server-range")
_DOCUMENT_KEYS = frozenset({"id", "assignors", "max_generation", "topics", "members", "tag", "title"})
_MEMBER_KEYS = frozenset({"topics", "rack", "instance_id", "owned", "generation", "version", "user_data"})
_TOPIC_KEYS = frozenset({"partitions", "racks", "id"})
_NO_OWNED: Mapping[str, Sequence[int]] = {}

Owned = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a document. ``user_data``: bytes, a claim, None for none, or ``...`` for what Kafka's client would send."""

    member_id: str
    topics: tuple[str, ...]
    owned: Owned | None
    generation: int | None
    version: int
    rack: str | None
    instance_id: str | None
    user_data: Any


@dataclass(frozen=True, slots=True)
class GroupDocument:
    """One group of a file."""

    id: str
    assignors: tuple[str, ...] | None
    topics: Mapping[str, TopicSpec]
    members: Sequence[Member]
    max_generation: int

    def group(self, assignor: str) -> GroupSpec:
        """What the assignor of this name is given."""
        if assignor in SERVER_ASSIGNORS:
            return GroupSpec(self.topics, [_as_target(member) for member in self.members])
        return GroupSpec(self.topics, [_on_the_wire(member, assignor) for member in self.members], self.max_generation)


def parse_document(raw: Any, number: int) -> GroupDocument:
    """Checks a document, the ``number``-th of its file.

    Raises:
        UsageError: what is wrong, and where in the document.
    """
    document = check_mapping(raw, "the document")
    check_keys(document, _DOCUMENT_KEYS, "the document")
    assignors = document.get("assignors")
    return GroupDocument(
        str(document.get("id", number)),
        None if assignors is None else tuple(check_names(assignors, "assignors")),
        {name: _topic(name, topic) for name, topic in check_mapping(document.get("topics", {}), "topics").items()},
        [_member(member_id, member) for member_id, member in check_mapping(document.get("members", {}), "members").items()],
        integer(document.get("max_generation", -1), "max_generation"),
    )


def _topic(name: str, raw: Any) -> TopicSpec:
    where = f"topic {name!r}"
    if not isinstance(raw, Mapping):
        return TopicSpec(integer(raw, f"{where}: partitions", minimum=0))
    check_keys(raw, _TOPIC_KEYS, where)
    if "partitions" not in raw:
        raise UsageError(f"{where}: partitions is missing")
    count = integer(raw["partitions"], f"{where}: partitions", minimum=0)
    return TopicSpec(count, _racks(raw.get("racks"), count, where), _topic_id(raw.get("id"), where))


def _racks(raw: Any, count: int, where: str) -> tuple[tuple[str, ...], ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list) or len(raw) != count:
        found = f"{len(raw)} lists" if isinstance(raw, list) else type(raw).__name__
        raise UsageError(f"{where}: racks needs one list for each of the {count} partitions, not {found}")
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = []
    for racks in raw:
        if racks is not None and not isinstance(racks, list):
            raise UsageError(f"{where}: racks needs one list for each partition, found {racks!r}")
        # A replica whose rack is null has none.
        present = tuple(str(rack) for rack in racks or () if rack is not None)
        result.append(known.setdefault(present, present))
    return tuple(result)


def _topic_id(raw: Any, where: str) -> UUID | None:
    if raw is None:
        return None
    try:
        return UUID(bytes=base64.urlsafe_b64decode(str(raw) + "=="))
    except (ValueError, binascii.Error):
        raise UsageError(f"{where}: id {raw!r} is no topic id: 22 letters of URL-safe base64 expected") from None


def _member(member_id: str, raw: Any) -> Member:
    where = f"member {member_id!r}"
    member = check_mapping(raw, where)
    check_keys(member, _MEMBER_KEYS, where)
    owned = member.get("owned")
    generation = member.get("generation")
    return Member(
        member_id,
        tuple(check_names(member.get("topics") or [], f"{where}: topics")),
        None if owned is None else owned_partitions(owned, f"{where}: owned"),
        None if generation is None else integer(generation, f"{where}: generation"),
        integer(member.get("version", 3), f"{where}: version", minimum=0, maximum=3),
        optional_text(member.get("rack"), f"{where}: rack"),
        optional_text(member.get("instance_id"), f"{where}: instance_id"),
        _user_data(member["user_data"], where) if "user_data" in member else ...,
    )


def _user_data(raw: Any, where: str) -> bytes | StickyClaim | None:
    where = f"{where}: user_data"
    if raw is None:
        return None
    check_keys(check_mapping(raw, where), frozenset({"owned", "generation", "base64"}), where)
    if "base64" in raw:
        try:
            return base64.b64decode(str(raw["base64"]), validate=True)
        except (ValueError, binascii.Error):
            raise UsageError(f"{where}: {raw['base64']!r} is not base64") from None
    generation = raw.get("generation")
    return StickyClaim(
        owned_partitions(raw.get("owned") or {}, f"{where}: owned"),
        None if generation is None else integer(generation, f"{where}: generation"),
    )


def _as_target(member: Member) -> MemberSpec:
    return MemberSpec(member.member_id, member.topics, member.owned or _NO_OWNED, instance_id=member.instance_id)


def _on_the_wire(member: Member, assignor: str) -> MemberSpec:
    owned = _sorted(member.owned)
    return MemberSpec(
        member.member_id,
        member.topics,
        owned if member.version >= 1 else _NO_OWNED,
        generation=member.generation if member.generation is not None and member.version >= 2 else -1,
        rack=member.rack if member.version >= 3 else None,
        instance_id=member.instance_id,
        user_data=_default_user_data(member, owned, assignor) if member.user_data is ... else _for(member.user_data, assignor),
    )


def _sorted(owned: Owned | None) -> Owned:
    """Owned partitions as they stand in a subscription: by topic, then number."""
    if not owned:
        return _NO_OWNED
    return {name: sorted(owned[name]) for name in sorted_like_java(owned)}


def _for(given: bytes | StickyClaim | None, assignor: str) -> bytes | StickyClaim | None:
    """What a document gives as user data. The cooperative form has four bytes for the generation, or is not there."""
    if assignor == "cooperative-sticky" and isinstance(given, StickyClaim) and given.generation is None:
        return None
    return given


def _default_user_data(member: Member, owned: Owned, assignor: str) -> StickyClaim | None:
    """What Kafka's client sends: the sticky assignor ownership and generation, the cooperative one the generation."""
    if member.generation is not None:
        return StickyClaim(owned, member.generation)
    if member.owned is not None and assignor != "cooperative-sticky":
        return StickyClaim(owned)
    return None
