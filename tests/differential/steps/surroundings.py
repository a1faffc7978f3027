"""Steps about groups as a whole, and about what is around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgctl.coordinator.config import group_setting_names
from kgctl.coordinator.group import Group
from tests.differential.choices import AGAIN, TOPIC_IDS

if TYPE_CHECKING:
    from tests.differential.sequences import SequenceBuilder

Step = dict[str, Any]
_STATES = ("stable", " Empty ", "Dead", "PreparingRebalance", "completingrebalance", "Assigning", "reconciling", "x")
_GROUP_SETTINGS = {
    "consumer.session.timeout.ms": (45_000, 50_000, 60_000),
    "consumer.heartbeat.interval.ms": (5000, 15_000),
    "consumer.assignment.interval.ms": (0, 1000, 15_000),
    "streams.session.timeout.ms": (45_000, 50_000, 60_000),
    "streams.heartbeat.interval.ms": (5000, 15_000),
    "streams.assignment.interval.ms": (0, 1000, 15_000),
    "streams.num.standby.replicas": (0, 1, 2),
    "streams.initial.rebalance.delay.ms": (0, 500, 3000),
    "share.session.timeout.ms": (45_000, 50_000, 60_000),
    "share.heartbeat.interval.ms": (5000, 15_000),
    "share.assignment.interval.ms": (0, 1000, 15_000),
}


def look(builder: SequenceBuilder, _: Group | None) -> Step:
    """A request that changes nothing."""
    choice = builder.choice
    name = choice.of(("describe_consumer_groups", "describe_groups", "list_groups"))
    if name == "list_groups":
        return {"op": name, "states": choice.some(_STATES), "types": choice.some(("Consumer", "classic", "share", "x"))}
    step: Step = {"op": name, "groups": choice.some(builder.groups)}
    return step | {"v": choice.of((6, 5))} if name == "describe_groups" else step


def delete_groups(builder: SequenceBuilder, _: Group | None) -> Step:
    """DeleteGroups."""
    return {"op": "delete_groups", "groups": builder.choice.some(builder.groups) or ["g"]}


def set_group_config(builder: SequenceBuilder, _: Group | None) -> Step:
    """A group gets settings of its own, instead of those it had."""
    choice = builder.choice
    known = [name for name in _GROUP_SETTINGS if name in group_setting_names(builder.profile)]
    config = {name: choice.of(_GROUP_SETTINGS[name]) for name in choice.some(known)}
    return {"op": "group_config", "config": config}


def change_topics(builder: SequenceBuilder, _: Group | None) -> Step:
    """A topic comes, grows or goes; one that comes again has another id."""
    choice = builder.choice
    name = choice.of(("T1", "T2", "T4", "t3"))
    exists = name in builder.world.topics
    if exists and choice.chance(2):
        builder.recreated.add(name)
        return {"op": "delete_topic", "topic": name}
    topic_id = (AGAIN if name in builder.recreated else TOPIC_IDS)[name]
    count = builder.world.driver.image.topics[name].partition_count if exists else 0
    return {"op": "set_topic", "topic": name, "id": topic_id, "partitions": count + choice.number(1, 3)}


def reload(_: SequenceBuilder, __: Group | None) -> Step:
    """The coordinator is unloaded and loaded again."""
    return {"op": "reload"}
