"""The world before the first step: topics, settings, perhaps a group of members, perhaps a log of groups of every kind."""

from __future__ import annotations

from typing import Any

from kgctl.coordinator.config import BROKER_VERSION
from kgctl.coordinator.profile import LATEST, Profile
from tests.differential.choices import DRAWN, INSTANCES, TOPIC_IDS, Choice
from tests.differential.old_records import CLASSIC, CONSUMER, EMPTY, OFFSETS, SHARE, STREAMS, STREAMS_MEMBERS, Logged

Given = dict[str, Any]


def given_world(choice: Choice, profile: Profile) -> Given:
    """The "given" of a sequence."""
    topics: dict[str, dict[str, Any]] = {
        name: {"partitions": choice.number(1, 5), "id": TOPIC_IDS[name]} for name in ("T1", "T2", "T3")
    }
    if choice.chance(4):
        topics["T3"]["partitions"] = choice.of((17, 33))
    given: Given = {"topics": topics, "config": choice.settings(profile), "ids": list(DRAWN)}
    if profile is not LATEST:
        given["config"][BROKER_VERSION] = profile.version
    if choice.chance(3):
        given["group"] = _given_group(choice, topics["T1"]["partitions"])
    if choice.chance(5):
        logs = (_old_classic, _old_consumer, _share, _streams) if profile.is_since("4.1") else (_old_classic, _old_consumer)
        logs = (*logs, _streams_members) if profile.is_since("4.2") else logs
        given["records"] = choice.of(logs)(choice)
    return given


def _given_group(choice: Choice, partitions: int) -> Given:
    """A Stable classic group to begin with."""
    size = choice.number(1, 3)
    ids = ["a0", "b1", "Aa"][:size]
    protocols = choice.of((["range"], ["range", "roundrobin"], ["cooperative-sticky", "range"]))
    members = []
    for place, member_id in enumerate(ids):
        member: Given = {"id": member_id, "session": choice.of((10_000, 30_000)), "rebalance": 20_000}
        member |= {
            "protocols": protocols,
            "topics": choice.of((["T1"], ["T1", "T2"])),
            "assignment": [f"T1-{place}"] if place < partitions or choice.chance(6) else [],
        }
        if choice.chance(3):
            member["instance"] = INSTANCES[place]
        members.append(member)
    offsets = {"T1-0": 3} if choice.chance(2) else {}
    group = {"type": "classic", "state": "Stable", "generation": choice.of((3, 1)), "protocol_type": "consumer"}
    return {**group, "protocol": protocols[-1], "leader": ids[0], "members": members, "offsets": offsets}


def _old_classic(choice: Choice) -> Logged:
    """Groups that a broker of long ago wrote down: members, offsets, or both."""
    version = choice.of(list(CLASSIC))
    log = {version: CLASSIC[version]} if choice.chance(2) else {}
    log |= {name: OFFSETS[name] for name in choice.some(list(OFFSETS))}
    return {**log, **EMPTY} if choice.chance(3) or not log else log


def _old_consumer(choice: Choice) -> Logged:
    """A consumer group of a broker before 4.1 (topics) or 4.3 (no epochs of assignment)."""
    left_out = {choice.of(("consumer current", "consumer current pending"))}
    left_out |= set(choice.some(("consumer topics", "consumer regex")))
    return {name: record for name, record in CONSUMER.items() if name not in left_out}


def _share(choice: Choice) -> Logged:
    left_out = choice.some(list(SHARE)[1:])
    return {name: record for name, record in SHARE.items() if name not in left_out}


def _streams(choice: Choice) -> Logged:
    left_out = choice.some(list(STREAMS)[1:])
    return {name: record for name, record in STREAMS.items() if name not in left_out}


def _streams_members(choice: Choice) -> Logged:
    """With members, of whose records some may be missing; in 4.1 such groups are a preview of another kind."""
    ways = [name for name in STREAMS_MEMBERS if name.startswith("streams current")]
    left_out = {*ways} - {choice.of(ways)} | {*choice.some(["streams target", "streams other member"])}
    if choice.chance(3):
        left_out |= {"streams validated", choice.of(("streams topology", "streams other current"))}
    log = {**STREAMS, **STREAMS_MEMBERS}
    return {name: record for name, record in log.items() if name not in left_out}
