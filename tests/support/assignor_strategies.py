"""Hypothesis strategies for groups: documents of FORMAT-assignors.md, the usual ones and the nasty ones."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Document = dict[str, Any]

# Names that Java hashes alike, prefixes of each other, text outside ASCII (whose order by code point is not Java's), and ids as
# clients make them.
_CROWD = [f"{name}{end}" for name in ("AaAaAa", "AaAaBB", "AaBBAa", "AaBBBB", "BBAaAa") for end in ("Aa", "BB")]
_COLLIDING = [f"{a}{b}{c}" for a in ("Aa", "BB") for b in ("Aa", "BB") for c in ("Aa", "BB")]
_ODD = ["a", "a-", "a-1", "ä", "日本", "\U0001f600", "\uffee", "\ud7ff", "", "A", "z", "0"]
_IDS = [f"consumer-{n % 7}-{n * 2654435761 % 2**32:08x}-{n * 40503 % 2**16:04x}" for n in range(1, 60)]
_NUMBERED = [f"c{n}" for n in range(40)]
_TOPICS = [f"topic-{n}" for n in range(12)]
_NAME_POOLS = [_NUMBERED, _IDS, _CROWD, _COLLIDING + [f"{name}1" for name in _COLLIDING], _ODD + _NUMBERED]
_TOPIC_POOLS = [_TOPICS, ["orders", "payments", "audit", "clicks", "events_2", "invoices"], _COLLIDING, _ODD[:3] + _ODD[3:8]]
_RACKS = ["a", "b", "c", "d"]


def _names(pools: Sequence[Sequence[str]], minimum: int, maximum: int) -> SearchStrategy[list[str]]:
    return st.sampled_from(pools).flatmap(
        lambda pool: st.lists(
            st.sampled_from(pool), unique=True, min_size=min(minimum, len(pool)), max_size=min(maximum, len(pool))
        )
    )


def _counts() -> SearchStrategy[int]:
    return st.one_of(st.integers(1, 8), st.integers(0, 24), st.integers(0, 70))


@st.composite
def topics_and_members(draw: DrawFn) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
    """Topics with their sizes, members with their subscriptions: equal or not, with names that do not exist or stand twice."""
    topics = {name: draw(_counts()) for name in draw(_names(_TOPIC_POOLS, 0, 6))}
    known = [*topics, *draw(st.sampled_from([[], [], ["missing"]]))]
    ids = draw(_names(_NAME_POOLS, 1, draw(st.sampled_from([3, 6, 14, 30]))))
    subscription = st.lists(st.sampled_from(known), unique=True) if known else st.just([])
    mode = draw(st.sampled_from(["equal", "equal", "one odd", "unequal", "doubled"]))
    common = draw(st.permutations(known)) if known else []
    members: dict[str, dict[str, Any]] = {}
    for position, member_id in enumerate(ids):
        own = list(common)
        if mode in {"unequal", "doubled"} or (mode == "one odd" and position == 0):
            own = draw(subscription)
        if mode == "doubled" and own and draw(st.booleans()):
            own = [*own, own[0]]
        members[member_id] = {"topics": own}
    return topics, members


@st.composite
def client_documents(draw: DrawFn, assignors: Sequence[str]) -> Document:
    """Groups for the client assignors: racks, static members, old versions, ownership valid and not, user data of all kinds."""
    topics, members = draw(topics_and_members())
    document: Document = {"topics": dict(topics), "members": members, "assignors": list(assignors)}
    if draw(st.integers(0, 2)) == 0:
        _add_racks(draw, document, topics)
    if draw(st.integers(0, 3)) == 0:
        _add_instances(draw, members)
    ownership = draw(st.sampled_from(["none", "valid", "valid", "claims", "phantoms"]))
    if ownership != "none":
        _add_owned(draw, topics, members, ownership)
        _add_generations(draw, members)
    if draw(st.integers(0, 4)) == 0:
        _add_oddities(draw, document)
    return document


@st.composite
def server_documents(draw: DrawFn) -> Document:
    """Groups for the server assignors; present targets are valid: one owner a partition."""
    topics, members = draw(topics_and_members())
    document: Document = {"topics": dict(topics), "members": members, "assignors": ["uniform", "server-range"]}
    if draw(st.integers(0, 2)) == 0:
        _add_instances(draw, members)
    if draw(st.booleans()):
        _add_owned(draw, topics | {"gone": 3}, members, "valid")
    return document


def _add_racks(draw: DrawFn, document: Document, topics: dict[str, int]) -> None:
    racks = st.lists(st.one_of(st.sampled_from(_RACKS), st.sampled_from(_RACKS), st.none()), max_size=3)
    for name, count in topics.items():
        if draw(st.integers(0, 5)):
            few = draw(st.lists(racks, min_size=1, max_size=4))
            document["topics"][name] = {"partitions": count, "racks": [few[p % len(few)] for p in range(count)]}
    for member in document["members"].values():
        rack = draw(st.sampled_from([*_RACKS[:3], *_RACKS[:3], "elsewhere", "", None]))
        if rack is not None:
            member["rack"] = rack


def _add_instances(draw: DrawFn, members: dict[str, dict[str, Any]]) -> None:
    for position, member in enumerate(members.values()):
        if draw(st.booleans()):
            member["instance_id"] = f"{draw(st.sampled_from(['i', 'ä', 'Z']))}{position}"


def _add_owned(draw: DrawFn, topics: dict[str, int], members: dict[str, dict[str, Any]], kind: str) -> None:
    """Who owns what: nearly even, or at random; "claims" lets partitions have several owners, "phantoms" numbers past the end."""
    ids = list(members)
    keep_away = draw(st.booleans())
    for name, count in topics.items():
        size = count + (draw(st.integers(0, 4)) if kind == "phantoms" else 0)
        owners = draw(st.lists(st.integers(0, len(ids) * 2), min_size=1, max_size=7))
        step = draw(st.integers(0, 3))
        for partition in range(size):
            owner = (owners[partition % len(owners)] + partition * step) % (len(ids) * 2 if keep_away else len(ids))
            if owner < len(ids):
                _own(members[ids[owner]], name, partition)
    if kind in {"claims", "phantoms"}:
        for member in members.values():
            for name in draw(st.lists(st.sampled_from([*topics, "unknown"]), max_size=2)):
                for partition in draw(st.lists(st.integers(0, max(topics.get(name, 0), 1)), max_size=4)):
                    _own(member, name, partition)


def _own(member: dict[str, Any], topic: str, partition: int) -> None:
    member.setdefault("owned", {}).setdefault(topic, []).append(partition)


def _add_generations(draw: DrawFn, members: dict[str, dict[str, Any]]) -> None:
    mode = draw(st.sampled_from(["none", "same", "same", "any"]))
    for member in members.values():
        if mode == "same":
            member["generation"] = 5
        elif mode == "any":
            generation = draw(st.sampled_from([None, -1, 0, 3, 4, 5, 5]))
            if generation is not None:
                member["generation"] = generation


def _add_oddities(draw: DrawFn, document: Document) -> None:
    if draw(st.booleans()):
        document["max_generation"] = draw(st.integers(-1, 7))
    for member in document["members"].values():
        if draw(st.booleans()):
            member["version"] = draw(st.integers(0, 3))
        if draw(st.integers(0, 3)) == 0:
            member["user_data"] = draw(_user_data(member.get("owned", {})))


def _user_data(owned: dict[str, list[int]]) -> SearchStrategy[Any]:
    return st.one_of(
        st.none(),
        st.just({"owned": owned}),
        st.integers(-1, 6).map(lambda generation: {"owned": owned, "generation": generation}),
        st.binary(max_size=12).map(lambda data: {"base64": base64.b64encode(data).decode()}),
    )
