"""A group as it is, as a scenario: one rolling restart of it, and of what it might be instead."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from kgctl.errors import UsageError
from kgctl.member.config import OF_OTHER_PROTOCOL
from kgctl.model.groups import GroupDescription, GroupState, GroupType, MemberDescription
from kgctl.model.values import frozen, frozen_in_order

_HEX_TAIL = re.compile(r"[-_.]?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_NUMBER_TAIL = re.compile(r"[-_.]?\d+$")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_CLIENTS = {
    "rdkafka": "librdkafka",
    "kafka-python-": "kafka-python",
    "aiokafka-": "aiokafka",
    "kgo": "franz-go",
    "consumer-": "java",
}
"""How the client id begins that a client has if it is given none -> its profile."""
_KAFKA_GO = "(github.com/segmentio/kafka-go)"


@frozen
class Observed:
    """``topics``: partitions of what the group reads. ``written``, ``processed``: records a second, where two samples tell.

    ``lag`` is None where it is not known.
    """

    group: GroupDescription
    topics: Mapping[str, int]
    written: Mapping[str, float] = field(default_factory=dict)
    processed: float | None = None
    lag: int | None = None


@frozen_in_order
class _Set:
    name: str
    members: tuple[MemberDescription, ...]


def scenario_text(observed: Observed) -> str:
    """A scenario file, ready to run: one rolling restart, of the group as it is and as it might be instead."""
    group = observed.group
    lines = [
        "kgctl: 1",
        f"name: {_quoted(f'{group.group_id}-rolling-restart')}",
        f"question: {_quoted(f'What does one rolling deploy of {group.group_id} cost, and what would another protocol change?')}",
        "",
        *_topics(observed),
        "",
        "group:",
        f"  id: {_quoted(group.group_id)}",
        "  config:                       # the brokers do not tell the members' timeouts: put yours in",
        *_group_config(group),
        "",
        *_members(observed),
        *_traffic(observed),
        "",
        "warmup: 60s",
        "events:",
        *_events(observed),
        "",
        *_variants(observed),
        "runs: 5",
        "expect:",
        "  - max_gap < 60s",
        "  - {check: duplicates == 0, severity: warn}",
    ]
    return "\n".join(lines) + "\n"


def _topics(observed: Observed) -> list[str]:
    return ["topics:", *(f"  {_quoted(name)}: {{partitions: {count}}}" for name, count in sorted(observed.topics.items()))]


def _group_config(group: GroupDescription) -> list[str]:
    if group.type is GroupType.CONSUMER:
        assignor = [f"    group.remote.assignor: {group.assignor}"] if group.assignor in ("uniform", "range") else []
        return ["    group.protocol: consumer", *assignor]
    lines = [f"    partition.assignment.strategy: [{group.assignor}]"] if group.assignor else []
    return [*lines, "    session.timeout.ms: 45s", "    heartbeat.interval.ms: 3s", "    max.poll.interval.ms: 5m"]


def _members(observed: Observed) -> list[str]:
    lines = ["members:"]
    for each in _sets(observed.group.members):
        lines += [f"  {each.name}:", f"    count: {len(each.members)}"]
        lines += _subscription(each.members[0], observed)
        if all(member.group_instance_id for member in each.members):
            lines.append(f"    instance_id: $name          # static members: {each.members[0].group_instance_id}, ...")
        lines.append(_client(each.members[0].client_id))
        lines.append("    boot: 10s                   # from the start of a process to subscribe(): put yours in")
        if observed.processed:
            rate = max(round(observed.processed / max(len(observed.group.members), 1) * 2), 1)
            lines.append(f"    rate: {rate}/s               # a guess: twice what each processed while this was looked at")
    return lines


def _client(client_id: str) -> str:
    """The client's family. The brokers know it by the client id alone, and by that only where nobody has chosen one."""
    found = profile_of(client_id)
    why = (
        f"by the client id {client_id}"
        if found
        else "the brokers do not tell: or librdkafka, kafka-go, franz-go, kafka-python, aiokafka"
    )
    return f"    client: {found or 'java':<20}# {why}"


def profile_of(client_id: str) -> str | None:
    """The client profile that gives itself such a client id; None: somebody has chosen it."""
    if client_id.endswith(_KAFKA_GO):
        return "kafka-go"
    return next((client for begin, client in _CLIENTS.items() if client_id.startswith(begin)), None)


def _subscription(member: MemberDescription, observed: Observed) -> list[str]:
    if member.subscribed_topic_regex:
        pattern = member.subscribed_topic_regex
        return [f"    subscribe: {_quoted(pattern if pattern.startswith('^') else f'^{pattern}$')}"]
    topics = [topic for topic in member.subscribed_topics or () if topic in observed.topics]
    if not topics or set(topics) == set(observed.topics):
        return []
    return [f"    subscribe: [{', '.join(map(_quoted, topics))}]"]


def _sets(members: Sequence[MemberDescription]) -> list[_Set]:
    """Members that are alike: the same client and the same subscription, called after the client."""
    found: dict[tuple[str, object, object, bool], list[MemberDescription]] = {}
    for member in members:
        key = (
            stem_of(member.group_instance_id or member.client_id),
            member.subscribed_topics,
            member.subscribed_topic_regex,
            member.group_instance_id is not None,
        )
        found.setdefault(key, []).append(member)
    names: dict[str, int] = {}
    result = []
    for (stem, *_), group in found.items():
        names[stem] = names.get(stem, 0) + 1
        result.append(_Set(stem if names[stem] == 1 else f"{stem}-{names[stem]}", tuple(group)))
    return result


def stem_of(name: str) -> str:
    """What a client id or instance id is called without its number: a name for a set of members."""
    name = _NUMBER_TAIL.sub("", _HEX_TAIL.sub("", name))
    return _UNSAFE.sub("-", name).strip("-._") or "app"


def _traffic(observed: Observed) -> list[str]:
    rates = {name: rate for name, rate in sorted(observed.written.items()) if rate > 0}
    lag = f"the lag was {observed.lag}" if observed.lag is not None else ""
    if not rates:
        return ["", f"# {lag}; traffic: TOPIC: 1000/s makes the run tell lag and duplicates"] if lag else []
    return [
        "",
        f"traffic:{f'   # as measured; {lag}' if lag else ''}",
        *(f"  {_quoted(name)}: {max(round(rate), 1)}/s" for name, rate in rates.items()),
    ]


def _events(observed: Observed) -> list[str]:
    sets = _sets(observed.group.members)
    first = f"  - {{at: 0s, rolling_restart: {sets[0].name}, batch: 1, settle: 30s}}"
    return [first, *(f"  - {{after: previous, rolling_restart: {each.name}, batch: 1, settle: 30s}}" for each in sets[1:])]


def _variants(observed: Observed) -> list[str]:
    """As it is, with the other kind of rebalance, with static members, with the other protocol: what the group is not yet."""
    group = observed.group
    other = ("eager", "range") if group.assignor == "cooperative-sticky" else ("cooperative", "cooperative-sticky")
    dynamic = [each.name for each in _sets(group.members) if not all(member.group_instance_id for member in each.members)]
    patches = {}
    if group.type is not GroupType.CONSUMER:
        patches[other[0]] = f"group: {{config: {{partition.assignment.strategy: [{other[1]}]}}}}"
    if dynamic:
        patches["static"] = f"members: {{{', '.join(f'{name}: {{instance_id: $name}}' for name in dynamic)}}}"
    if group.type is not GroupType.CONSUMER:
        others = "".join(f", {name}: null" for name in OF_OTHER_PROTOCOL["consumer"])
        patches["kip848"] = f"group: {{config: {{group.protocol: consumer{others}}}}}"
    lines = [f"  {name}: {{{patch}}}" for name, patch in patches.items()]
    return ["variants:", "  as-is: {}", *lines, ""] if lines else []


def _quoted(text: str) -> str:
    """The text as a YAML scalar: plain where that is safe, else in double quotes, which JSON's strings are."""
    return text if re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", text) and text.lower() not in _WORDS else json.dumps(text)


_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


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
    except (ValueError, TypeError, KeyError, RecursionError):
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
    assignor = next((str(row["assignor"]) for row in rows if row.get("assignor")), None)
    group = GroupDescription(group_ids[0], GroupState.STABLE, kind, assignor=assignor, members=tuple(members))
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
