"""A group from what ``kgctl describe group G --members -o json`` has printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kgctl.errors import UsageError
from kgctl.model.groups import GroupDescription, GroupState, GroupType, MemberDescription
from kgctl.simulate.scenario.from_group import Observed


def observed_in(text: str, source: str) -> Observed:
    """The group of the file's rows, with the partitions that its members own.

    Raises:
        UsageError: it is no such file, or has no members.
    """
    try:
        document = json.loads(text)
        rows = document["data"]
        members = [_member(row) for row in rows if row["consumer_id"] is not None]
        group_ids = list(dict.fromkeys(str(row["group"]) for row in rows))
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{source} is not what `kgctl describe group G --members -o json` prints") from None
    if len(group_ids) != 1:
        raise UsageError(f"{source} has {len(group_ids)} groups; a scenario is about one")
    if not members:
        raise UsageError(f"{source} has no members", group=group_ids[0])
    topics: dict[str, int] = {}
    for member in members:
        for topic, partitions in (member.assignment or {}).items():
            topics[topic] = max(topics.get(topic, 0), max(partitions, default=-1) + 1)
    consumer = any(row.get("member_epoch") is not None for row in rows)
    kind = GroupType.CONSUMER if consumer else GroupType.CLASSIC
    group = GroupDescription(group_ids[0], GroupState.STABLE, kind, members=tuple(members))
    return Observed(group=group, topics=topics or {"topic": len(members)})


def _member(row: Mapping[str, Any]) -> MemberDescription:
    assignment: dict[str, tuple[int, ...]] = {}
    for part in (row.get("assignment") or "").split(";"):
        topic, _, numbers = part.rpartition(":")
        if topic:
            assignment[topic] = tuple(int(number) for number in numbers.split(","))
    return MemberDescription(
        str(row["consumer_id"]),
        str(row.get("client_id") or ""),
        group_instance_id=row.get("group_instance_id"),
        assignment=assignment,
        subscribed_topics=tuple(row["subscribed_topics"]) if row.get("subscribed_topics") else None,
        rack_id=row.get("rack"),
    )
