"""Conversations about groups: membership and administration."""

from __future__ import annotations

from typing import Any

from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    commit_values,
    create_topic,
    join_values,
    joined,
    sync_values,
)


def finding_coordinators(probe: Probe, version: int, name: str) -> None:
    for key_type in (0, 9):
        for key in (name, ""):
            probe.call(FIND_COORDINATOR, version, {"key": key, "key_type": key_type, "coordinator_keys": [key, "other"]})


def joining(probe: Probe, version: int, name: str) -> None:
    for settings in (
        {"group_id": ""},
        {"session_timeout_ms": 1},
        {"session_timeout_ms": 2_000_000},
        {"member_id": "nosuch"},
        {"protocols": ()},
        {"protocol_type": ""},
        {"group_instance_id": "i", "member_id": "nosuch"},
    ):
        probe.call(JOIN_GROUP, version, join_values(name, **settings))
    body = probe.call(JOIN_GROUP, version, join_values(name))
    if int(body.error_code) == 79:
        body = probe.call(JOIN_GROUP, version, join_values(name, member_id=body.member_id))
    member_id = body.member_id
    probe.call(SYNC_GROUP, min(version, 5), sync_values(name, member_id, 1))
    probe.call(JOIN_GROUP, version, join_values(name, protocols=("other",)))
    probe.call(JOIN_GROUP, version, join_values(name, protocol_type="connect"))
    probe.call(JOIN_GROUP, version, join_values(name, member_id=member_id, protocols=("other",)))
    probe.call(JOIN_GROUP, version, join_values(name, member_id=member_id, group_instance_id="i"))


def static_joining(probe: Probe, version: int, name: str) -> None:
    body = probe.call(JOIN_GROUP, version, join_values(name, group_instance_id="i-1"))
    first = body.member_id
    probe.call(SYNC_GROUP, 3, sync_values(name, first, body.generation_id, group_instance_id="i-1"))
    body = probe.call(JOIN_GROUP, version, join_values(name, group_instance_id="i-1"))
    probe.call(SYNC_GROUP, 3, sync_values(name, body.member_id, 1, group_instance_id="i-1", assignments=[]))
    identity = {"group_id": name, "generation_id": 1, "group_instance_id": "i-1"}
    probe.call(HEARTBEAT, 3, {**identity, "member_id": first})
    probe.call(HEARTBEAT, 3, {**identity, "member_id": body.member_id})
    probe.call(HEARTBEAT, 3, {**identity, "group_instance_id": "i-2", "member_id": body.member_id})
    probe.call(JOIN_GROUP, version, join_values(name, group_instance_id="i-1", member_id=first))
    probe.call(DESCRIBE_GROUPS, 5, {"groups": [name]})


def syncing(probe: Probe, version: int, name: str) -> None:
    for group in ("", name):
        probe.call(SYNC_GROUP, version, sync_values(group, "nosuch", 1))
    body = probe.call(JOIN_GROUP, 3, join_values(name), note=False)
    member_id = body.member_id
    if version >= 5:
        probe.call(SYNC_GROUP, version, sync_values(name, member_id, 1, protocol_name=None))
        probe.call(SYNC_GROUP, version, sync_values(name, member_id, 1, protocol_name="other"))
        probe.call(SYNC_GROUP, version, sync_values(name, member_id, 1, protocol_type="connect"))
    probe.call(SYNC_GROUP, version, sync_values(name, member_id, 7))
    probe.call(SYNC_GROUP, version, sync_values(name, "nosuch", 1))
    probe.call(SYNC_GROUP, version, sync_values(name, member_id, 1))
    probe.call(SYNC_GROUP, version, sync_values(name, member_id, 1, assignments=[]))


def beating(probe: Probe, version: int, name: str) -> None:
    member_id, generation_id = joined(probe, name)
    for group in ("", "nosuch", name):
        for member in (member_id, "nosuch", ""):
            for generation in (generation_id, 9, -1):
                probe.call(HEARTBEAT, version, {"group_id": group, "member_id": member, "generation_id": generation})


TIMES = 4
"""So often a connection repeats a heartbeat: from the second one on kgctl looks it up."""


def beating_on(probe: Probe, version: int, name: str) -> None:
    """The same heartbeat again and again on one connection, while its member leaves and another one comes."""
    first, generation_id = joined(probe, name)
    beat = {"group_id": name, "member_id": first, "generation_id": generation_id}
    for _ in range(TIMES):
        probe.call(HEARTBEAT, version, beat)
    probe.call(LEAVE_GROUP, 3, {"group_id": name, "members": [{"member_id": first}]})
    for _ in range(TIMES):
        probe.call(HEARTBEAT, version, beat)
    second, generation_id = joined(probe, name)
    for member_id in (first, second):
        for _ in range(TIMES):
            probe.call(HEARTBEAT, version, {**beat, "member_id": member_id, "generation_id": generation_id})


def beating_on_as_consumers(probe: Probe, version: int, name: str) -> None:
    """Idle heartbeats again and again on one connection, while another member joins and the first one leaves."""
    create_topic(probe, name)
    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [name], "topic_partitions": []}
    scout = {"group_id": f"{name}-scout", "member_id": "scout", "member_epoch": 0, **joining}
    probe.until(CONSUMER_GROUP_HEARTBEAT, 1, scout, lambda body: bool(body.assignment.topic_partitions))  # the topic is known
    ids = [f"{name}-{number}" for number in range(2)]
    first = probe.call(CONSUMER_GROUP_HEARTBEAT, version, {"group_id": name, "member_id": ids[0], "member_epoch": 0, **joining})
    idle = {"rebalance_timeout_ms": -1, "subscribed_topic_names": None, "topic_partitions": None}
    beat = {"group_id": name, "member_id": first.member_id, "member_epoch": first.member_epoch, **idle}
    for _ in range(TIMES):
        probe.call(CONSUMER_GROUP_HEARTBEAT, version, beat)
    probe.call(CONSUMER_GROUP_HEARTBEAT, version, {"group_id": name, "member_id": ids[1], "member_epoch": 0, **joining})
    for _ in range(TIMES):
        probe.call(CONSUMER_GROUP_HEARTBEAT, version, beat)
    probe.call(CONSUMER_GROUP_HEARTBEAT, version, {**beat, "member_epoch": -1})
    for _ in range(TIMES):
        probe.call(CONSUMER_GROUP_HEARTBEAT, version, beat)


def leaving(probe: Probe, version: int, name: str) -> None:
    member_id, _ = joined(probe, name)
    for group in ("", "nosuch", name):
        for members in (["nosuch"], [""], [member_id], [member_id], ["a", "b"], []):
            values = {
                "group_id": group,
                "member_id": members[0] if members else "x",
                "members": [{"member_id": m} for m in members],
            }
            probe.call(LEAVE_GROUP, version, values)
    probe.call(DESCRIBE_GROUPS, 5, {"groups": [name]})


def describing(probe: Probe, version: int, name: str) -> None:
    joined(probe, name)
    probe.call(OFFSET_COMMIT, 8, {**commit_values("nosuch", None), "group_id": f"{name}-simple"}, note=False)
    topic_id = create_topic(probe, name)
    probe.call(OFFSET_COMMIT, 8, {**commit_values(name, topic_id), "group_id": f"{name}-simple"}, note=False)
    pending = probe.call(JOIN_GROUP, 7, join_values(f"{name}-pending"), note=False)
    assert int(pending.error_code) == 79
    values = {"groups": [f"{name}-pending"]}
    probe.until(DESCRIBE_GROUPS, 5, values, lambda body: body.groups[0].group_state == "Empty")
    groups = [name, f"{name}-simple", f"{name}-pending", "nosuch", "", name]
    for with_operations in (False, True):
        probe.call(DESCRIBE_GROUPS, version, {"groups": groups, "include_authorized_operations": with_operations})
    probe.call(DESCRIBE_GROUPS, version, {"groups": []})


def deleting(probe: Probe, version: int, name: str) -> None:
    member_id, _ = joined(probe, name)
    topic_id = create_topic(probe, name)
    probe.call(OFFSET_COMMIT, 8, {**commit_values(name, topic_id), "group_id": f"{name}-simple"}, note=False)
    groups = [name, f"{name}-simple", "nosuch", "", f"{name}-simple"]
    probe.call(DELETE_GROUPS, version, {"groups_names": groups})
    probe.call(LEAVE_GROUP, 1, {"group_id": name, "member_id": member_id})
    probe.call(DELETE_GROUPS, version, {"groups_names": [name]})
    probe.call(DELETE_GROUPS, version, {"groups_names": []})


def consumer_protocol_describing(probe: Probe, version: int, name: str) -> None:
    joined(probe, name)
    for with_operations in (False, True):
        probe.call(
            CONSUMER_GROUP_DESCRIBE,
            version,
            {"group_ids": [name, "nosuch", ""], "include_authorized_operations": with_operations},
        )
    probe.call(CONSUMER_GROUP_DESCRIBE, version, {"group_ids": []})


EXPRESSIONS = (r"^{}[\d-z]", r"{}(?i)[^a-z\W]", r"{}\pL+", r"{}[[:digit:]]?", r"(?P<a>{})(?P<b>.)")
NO_EXPRESSIONS = ("(", r"\C", r"(?P<a>x)(?P<a>y)", "(?=x)", r"x\1", "x**", "[z-a]", r"\pX")


def subscribing_by_expression(probe: Probe, version: int, name: str) -> None:
    """What each expression stands for, as the assignment of a member that is alone; and what is said of those that are none."""
    stem = f"{name}-orders"
    for ending in ("1", "z", "a", "-", "ab", ""):
        create_topic(probe, stem + ending, 1)
    for number, expression in enumerate(EXPRESSIONS):
        group, member_id = f"{name}-{number}", f"{name}-member-{number}"
        epochs = [_heartbeat(probe, group, member_id, 0, expression.format(stem)).member_epoch]

        def has_partitions(body: Any, group: str = group, member_id: str = member_id, epochs: list[int] = epochs) -> bool:
            epochs.append(_heartbeat(probe, group, member_id, epochs[-1], None).member_epoch)
            return bool(body.groups[0].members[0].assignment.topic_partitions)

        body = probe.until(CONSUMER_GROUP_DESCRIBE, version, {"group_ids": [group]}, has_partitions)
        (member,) = body.groups[0].members
        topics = sorted(topic.topic_name.removeprefix(stem) for topic in member.assignment.topic_partitions)
        probe.answers.append((expression, (member.subscribed_topic_regex, topics)))
        _heartbeat(probe, group, member_id, -1, None)
    for number, expression in enumerate(NO_EXPRESSIONS):
        answer = _heartbeat(probe, f"{name}-none-{number}", f"{name}-member", 0, expression)
        probe.answers.append((expression, (answer.error_code.name, answer.error_message)))


def _heartbeat(probe: Probe, group: str, member_id: str, epoch: int, expression: str | None) -> Any:
    joining: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_regex": expression, "topic_partitions": []}
    staying = {"rebalance_timeout_ms": -1, "topic_partitions": None}
    said = staying if expression is None else joining
    values = {"group_id": group, "member_id": member_id, "member_epoch": epoch, "subscribed_topic_names": None, **said}
    return probe.call(CONSUMER_GROUP_HEARTBEAT, 1, values, note=False)
