"""Conversations about streams groups (KIP-1071): members, their topologies and tasks, topics that are missing and are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from tests.wire.differential.about_share_groups import beat_values as share_values
from tests.wire.differential.about_share_groups import configure, member_of, settle
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_PARTITIONS,
    DELETE_GROUPS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    JOIN_GROUP,
    LIST_GROUPS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_DESCRIBE,
    STREAMS_GROUP_HEARTBEAT,
    commit_values,
    create_topic,
    join_values,
)

Values = dict[str, Any]
Tasks = Mapping[str, Sequence[int]]
Info = tuple[str, int, int, Mapping[str, str]]
AT_ONCE = {"streams.initial.rebalance.delay.ms": "0", "streams.assignment.interval.ms": "0"}
JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2
MISSING_INTERNAL_TOPICS = 3
LATEST = 0


def info(name: str, partitions: int = 0, replicas: int = 0, **configs: str) -> Values:
    """A topic of the application's own; in the names of settings "_" stands for "."."""
    pairs = [{"key": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "partitions": partitions, "replication_factor": replicas, "topic_configs": pairs}


def subtopology(
    number: str,
    sources: Sequence[str] = (),
    *,
    sinks: Sequence[str] = (),
    between: Sequence[Values] = (),
    changelogs: Sequence[Values] = (),
    together: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
    patterns: Sequence[str] = (),
) -> Values:
    """``between``: topics that another one writes; ``together``: indexes of sources and of these, to have as many partitions."""
    groups = [
        {"source_topics": list(each), "source_topic_regex": [], "repartition_source_topics": list(own)} for each, own in together
    ]
    return {
        "subtopology_id": number,
        "source_topics": list(sources),
        "source_topic_regex": list(patterns),
        "state_changelog_topics": list(changelogs),
        "repartition_sink_topics": list(sinks),
        "repartition_source_topics": list(between),
        "copartition_groups": groups,
    }


def topology(*subtopologies: Values, epoch: int = 0) -> Values:
    return {"epoch": epoch, "subtopologies": list(subtopologies)}


def reading(*topics: str) -> Values:
    """One subtopology that reads these, without a state."""
    return topology(subtopology("0", topics))


def counting(name: str, **settings: Any) -> Values:
    """Two subtopologies, a topic between them and a state."""
    between, changelog = f"{name}-words-repartition", f"{name}-counts-changelog"
    return topology(
        subtopology("0", [name], sinks=[between]),
        subtopology(
            "1",
            between=[info(between, **{"cleanup_policy": "delete", "retention_ms": "-1", **settings})],
            changelogs=[info(changelog, cleanup_policy="compact", **settings)],
        ),
    )


def tasks(given: Tasks | None) -> list[Values] | None:
    if given is None:
        return None
    return [{"subtopology_id": number, "partitions": list(partitions)} for number, partitions in given.items()]


def beat(group: str, number: int = 0, epoch: int = JOIN, **settings: Any) -> Values:
    """What a member says; of the first time if its epoch is 0. ``active``, ``standby``, ``warmup``: its tasks."""
    joins = epoch == JOIN
    active, standby, warmup = (settings.pop(kind, {} if joins else None) for kind in ("active", "standby", "warmup"))
    return {
        "group_id": group,
        "member_id": member_of(group, number),
        "member_epoch": epoch,
        "endpoint_information_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 60_000 if joins else -1,
        "topology": reading(group) if joins else None,
        "active_tasks": tasks(active),
        "standby_tasks": tasks(standby),
        "warmup_tasks": tasks(warmup),
        "process_id": f"process-{number}" if joins else None,
        "user_endpoint": None,
        "client_tags": [] if joins else None,
        "task_offsets": None,
        "task_end_offsets": None,
        "shutdown_application": False,
        **settings,
    }


class App:
    """A group of which the conversation plays the members; it is assigned at once."""

    def __init__(self, probe: Probe, name: str, **settings: str) -> None:
        self.probe, self.name = probe, name
        wanted = {**AT_ONCE, **{key.replace("_", "."): value for key, value in settings.items()}}
        known = {key: value for key, value in wanted.items() if not configure(probe, name, {key: value}).responses[0].error_code}
        settle(probe, name, known)
        self.epochs: dict[int, int] = {}

    def beat(self, number: int = 0, *, note: bool = True, **settings: Any) -> Any:
        """A heartbeat with the epoch that the member knows."""
        epoch = settings.pop("epoch", self.epochs.get(number, JOIN))
        body = self.probe.call(STREAMS_GROUP_HEARTBEAT, LATEST, beat(self.name, number, epoch, **settings), note=note)
        if body.error_code == 0:
            self.epochs[number] = body.member_epoch
        return body

    def until(self, is_there: Callable[[Any], bool], number: int = 0) -> Any:
        """Beat until the answer is as wanted; nothing is noted."""
        values = beat(self.name, number, self.epochs[number])
        body = self.probe.until(STREAMS_GROUP_HEARTBEAT, LATEST, values, is_there)
        self.epochs[number] = body.member_epoch
        return body

    def describe(self, **settings: Any) -> Any:
        values = {"group_ids": [self.name], "include_authorized_operations": False, **settings}
        return self.probe.call(STREAMS_GROUP_DESCRIBE, LATEST, values)


def is_well(body: Any) -> bool:
    """Whether nothing is missing."""
    return body.error_code == 0 and not body.status


def streams_beating_wrongly(probe: Probe, version: int, name: str) -> None:
    del version
    create_topic(probe, name)
    wrong: Sequence[Values] = (
        {"group_id": ""},
        {"member_id": ""},
        {"member_id": "m" * 50, "member_epoch": 3, "topology": None},
        {"instance_id": "here"},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topology": None},
        {"topology": topology()},
        {"topology": topology(epoch=-1)},
        {"topology": topology(subtopology("0"), subtopology("0"))},
        {"topology": topology(subtopology("0", patterns=["a.*"]))},
        {"topology": reading("__consumer_offsets", "__transaction_state", name)},
        {"topology": reading("not a name", "..", name)},
        {"topology": topology(subtopology("0", [name], changelogs=[info("changed", 3)]))},
        {"topology": topology(subtopology("0", [name], together=[([5], [])]))},
        {"active_tasks": tasks({"0": [0]})},
        {"standby_tasks": tasks({"0": [0]})},
        {"warmup_tasks": tasks({"0": [0]})},
        {"active_tasks": None},
        {"task_offsets": []},
        {"task_end_offsets": [{"subtopology_id": "0", "partition": 0, "offset": 1}]},
        {"member_epoch": 1},
        {"member_epoch": 1, "topology": None},
        {"member_epoch": LEAVE, "topology": None},
        {"member_epoch": LEAVE_FOR_A_WHILE, "topology": None},
        {"member_epoch": -3, "topology": None},
    )
    for settings in wrong:
        probe.call(STREAMS_GROUP_HEARTBEAT, LATEST, {**beat(name), **settings})


def streams_beating(probe: Probe, version: int, name: str) -> None:
    del version
    create_topic(probe, name)
    app = App(probe, name)
    app.beat()
    epoch = app.epochs[0]
    for settings in (
        {"active": {"0": [0, 1]}, "standby": {}, "warmup": {}},
        {},
        {"active": {"0": [0, 1]}},
        {"active": {"0": [7]}, "standby": {}, "warmup": {}},
        {"active": {"7": [0]}, "standby": {}, "warmup": {}},
        {"epoch": epoch + 4},
        {"epoch": epoch - 1},
        {"epoch": JOIN},
        {"topology": reading(name)},
        {"process_id": "elsewhere"},
        {"rack_id": "a"},
        {"rebalance_timeout_ms": 10_000},
        {"client_tags": [{"key": "zone", "value": "a"}]},
    ):
        app.beat(**settings)
    app.beat(epoch=JOIN, topology=topology(subtopology("0", [name]), epoch=1))
    app.beat(epoch=JOIN, topology=topology(subtopology("0", [name], changelogs=[info(f"{name}-changelog")])))
    app.beat(1, epoch=3)
    app.beat(1, epoch=LEAVE)
    app.beat(0, epoch=LEAVE_FOR_A_WHILE)
    app.beat(0, epoch=LEAVE)
    app.beat(0, epoch=LEAVE)
    app.describe()


def streams_two_members(probe: Probe, version: int, name: str) -> None:
    """Tasks go from one to another, who gets them when they were given up."""
    del version
    create_topic(probe, name, 4)
    app = App(probe, name)
    app.beat(0)
    app.beat(0, active={"0": [0, 1, 2, 3]}, standby={}, warmup={})
    app.beat(1)
    app.describe()
    given_up = app.beat(0)
    kept = {each.subtopology_id: list(each.partitions) for each in given_up.active_tasks or ()}
    app.beat(1)
    app.beat(0, active=kept, standby={}, warmup={})
    app.beat(1)
    app.beat(1, active={"0": sorted({0, 1, 2, 3} - {*kept.get("0", ())})}, standby={}, warmup={})
    app.describe()
    app.beat(2)
    app.beat(0, epoch=LEAVE)
    for number in (1, 2, 1, 2):
        app.beat(number)
    app.describe()


def streams_standbys(probe: Probe, version: int, name: str) -> None:
    del version
    create_topic(probe, name)
    app = App(probe, name, streams_num_standby_replicas="1")
    states = topology(subtopology("0", [name], changelogs=[info(f"{name}-changelog", cleanup_policy="compact")]))
    app.beat(topology=states)
    app.until(is_well)
    app.beat(1, topology=states)
    for number in (0, 1, 0, 1):
        app.beat(number)
    app.describe()


def streams_internal_topics(probe: Probe, version: int, name: str) -> None:
    """They are made as the topology says, beside the heartbeat that misses them."""
    del version
    create_topic(probe, name, 3)
    app = App(probe, name)
    wanted = counting(name, segment_bytes="1048576")
    app.beat(topology=wanted, epoch=JOIN)
    app.until(is_well)
    made = [f"{name}-counts-changelog", f"{name}-words-repartition"]
    for topic in made:
        probe.call(METADATA, 12, {"topics": [{"name": topic}]})
        asked = {"resource_type": 2, "resource_name": topic, "configuration_keys": None}
        probe.call(DESCRIBE_CONFIGS, 4, {"resources": [asked], "include_synonyms": False, "include_documentation": False})
    app.describe()
    app.beat()


def streams_topics_that_cannot_be_made(probe: Probe, version: int, name: str) -> None:
    """Why is told with the next heartbeat, of three topics at most."""
    del version
    for topic in (name, f"{name}.dots"):
        create_topic(probe, topic)
    cases: Sequence[Sequence[Values]] = (
        [info(f"{name}-copies", replicas=3)],
        [info(f"{name}-policy", cleanup_policy="nonsense")],
        [info(f"{name}-settings", no_such="1")],
        [info(f"{name}-size", retention_ms="long")],
        [info(f"{name}_dots")],
        [info(f"{name}-{number}", replicas=3) for number in range(3)],
        [info(f"{name}-more-{number}", replicas=3) for number in range(8)],
    )
    for number, changelogs in enumerate(cases):
        app = App(probe, f"{name}-{number}", streams_heartbeat_interval_ms="15000")
        wanted = topology(subtopology("0", [name], changelogs=changelogs))
        app.beat(topology=wanted, epoch=JOIN)
        app.until(lambda body: any("Creation failed" in each.status_detail for each in body.status))
        app.beat()
        app.describe()


def streams_missing_topics(probe: Probe, version: int, name: str) -> None:
    """Topics that the application reads are not there, come, grow, go, or are not as many parts as others."""
    del version
    app = App(probe, name)
    sources = [f"{name}-a", f"{name}-b"]
    together = topology(subtopology("0", sources, together=[([0, 1], [])]))
    app.beat(topology=together)
    app.describe()
    create_topic(probe, sources[1], 2)
    app.until(lambda body: sources[1] not in body.status[0].status_detail)
    app.beat(0)
    create_topic(probe, sources[0], 3)
    app.until(lambda body: bool(body.status) and body.status[0].status_code != 1)
    app.beat(0)
    app.describe()
    probe.call(CREATE_PARTITIONS, 3, _grown(sources[1], 3), note=False)
    app.until(is_well)
    app.beat(0)
    app.describe()
    probe.call(DELETE_TOPICS, 6, {"topics": [{"name": sources[0], "topic_id": None}], "timeout_ms": 10_000}, note=False)
    app.until(lambda body: bool(body.status))
    app.beat(0)
    app.describe()


def _grown(topic: str, count: int) -> Values:
    entry = {"name": topic, "count": count, "assignments": None}
    return {"topics": [entry], "timeout_ms": 10_000, "validate_only": False}


def streams_partition_counts(probe: Probe, version: int, name: str) -> None:
    """How many partitions internal topics have: as said, as their sources have, as those read together with them."""
    del version
    small, large = f"{name}-small", f"{name}-large"
    create_topic(probe, small, 2)
    create_topic(probe, large, 3)
    one, two = f"{name}-one", f"{name}-two"
    cases: Sequence[Sequence[Values]] = (
        [
            subtopology("0", [small, large], sinks=[one]),
            subtopology("1", between=[info(one)], changelogs=[info(f"{name}-store")]),
        ],
        [subtopology("0", [small], sinks=[one]), subtopology("1", [large], between=[info(one)], together=[([0], [0])])],
        [subtopology("0", [small], sinks=[one]), subtopology("1", [large], between=[info(one, 5)], together=[([0], [0])])],
        [subtopology("0", [small], sinks=[one]), subtopology("1", between=[info(two)])],
        [
            subtopology("0", [small], sinks=[one, two]),
            subtopology("1", between=[info(one, 4), info(two)], together=[([], [0, 1])]),
        ],
        [
            subtopology("0", [small], sinks=[one, two]),
            subtopology("1", between=[info(one, 4), info(two, 5)], together=[([], [0, 1])]),
        ],
        [subtopology("0", between=[info(one)], sinks=[one])],
        [subtopology("0", [large, large]), subtopology("1", [large], changelogs=[info(f"{name}-more")])],
    )
    for number, each in enumerate(cases):
        app = App(probe, f"{name}-{number}")
        app.beat(topology=topology(*each), epoch=JOIN)
        app.describe()
        for topic in (one, two):
            gone = {"topics": [{"name": topic, "topic_id": None}], "timeout_ms": 10_000}
            probe.until(DELETE_TOPICS, 6, gone, lambda body: body.responses[0].error_code == 3)


def streams_shutting_down(probe: Probe, version: int, name: str) -> None:
    """One member wants all to end: each is told."""
    del version
    create_topic(probe, name)
    app = App(probe, name)
    for number in (0, 1):
        app.beat(number)
    app.beat(1, shutdown_application=True)
    for number in (0, 1, 0):
        app.beat(number)
    for number in (0, 1):
        app.beat(number, epoch=LEAVE)
    app.describe()
    app.beat(0, epoch=JOIN)


def streams_endpoints(probe: Probe, version: int, name: str) -> None:
    """Who can be asked for the state of which partitions."""
    del version
    create_topic(probe, name)
    app = App(probe, name)
    app.beat(0, user_endpoint={"host": "one", "port": 1}, client_tags=[{"key": "zone", "value": "a"}])
    app.beat(1, user_endpoint={"host": "two", "port": 65_535})
    known = app.beat(0).endpoint_information_epoch
    app.beat(0, endpoint_information_epoch=known, active={"0": [0]}, standby={}, warmup={})
    app.beat(1, endpoint_information_epoch=known)
    app.beat(0, endpoint_information_epoch=known + 1)
    app.beat(1, endpoint_information_epoch=-1)
    app.describe()
    gone = {"topics": [{"name": name, "topic_id": None}], "timeout_ms": 10_000}
    probe.until(DELETE_TOPICS, 6, gone, lambda body: body.responses[0].error_code == 3)
    known = {"epoch": app.epochs[0], "endpoint_information_epoch": known + 1}
    probe.until(STREAMS_GROUP_HEARTBEAT, LATEST, beat(name, 0, **known), lambda body: body.status or body.error_code)
    app.beat(0, **known)
    app.beat(1)


def streams_describing(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name)
    app = App(probe, name)
    for groups in (["nosuch"], [""], [f"{name}-c"], [name, "nosuch", name], []):
        probe.call(STREAMS_GROUP_DESCRIBE, version, {"group_ids": groups, "include_authorized_operations": True})
    app.beat(rack_id="a", client_tags=[{"key": "b", "value": "2"}, {"key": "a", "value": "1"}])
    app.describe(include_authorized_operations=True)
    probe.call(DESCRIBE_GROUPS, 6, {"groups": [name], "include_authorized_operations": False})
    probe.call(CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [name], "include_authorized_operations": False})
    listing = {"states_filter": [], "types_filter": ["streams"]}
    body = probe.call(LIST_GROUPS, 5, listing, note=False)
    probe.answers.append(
        ("listed", [(each.group_state, each.group_type, each.protocol_type) for each in body.groups if each.group_id == name])
    )


def streams_commits(probe: Probe, version: int, name: str) -> None:
    """Members commit by their epoch; nobody else while there are any."""
    del version
    topic_id = create_topic(probe, name)
    app = App(probe, name)
    member, epoch = member_of(name), app.beat().member_epoch

    def commit(**settings: Any) -> None:
        values = {"generation_id_or_member_epoch": epoch, "member_id": member, "group_instance_id": None, **settings}
        probe.call(OFFSET_COMMIT, 9, {**commit_values(name, topic_id), **values})

    commit()
    for settings in (
        {"generation_id_or_member_epoch": epoch + 1},
        {"generation_id_or_member_epoch": epoch - 1},
        {"member_id": "nobody"},
        {"generation_id_or_member_epoch": -1, "member_id": ""},
    ):
        commit(**settings)
    for settings in ({}, {"member_id": member, "member_epoch": epoch}, {"member_id": member, "member_epoch": epoch + 1}):
        asked = {"member_id": None, "member_epoch": -1, **settings}
        probe.call(OFFSET_FETCH, 9, {"groups": [{"group_id": name, "topics": None, **asked}], "require_stable": True})
    deleted = {"group_id": name, "topics": [{"name": name, "partitions": [{"partition_index": 0}]}]}
    probe.call(OFFSET_DELETE, 0, deleted)
    probe.call(DELETE_GROUPS, 2, {"groups_names": [name]})
    app.beat(epoch=LEAVE)
    commit(generation_id_or_member_epoch=-1, member_id="")
    probe.call(OFFSET_DELETE, 0, deleted)
    probe.call(DELETE_GROUPS, 2, {"groups_names": [name]})
    app.describe()


def streams_among_others(probe: Probe, version: int, name: str) -> None:
    """A group of one kind is not joined by members of another; empty ones make room for some."""
    del version
    create_topic(probe, name)
    consumer: Values = {"rack_id": None, "instance_id": None, "subscribed_topic_names": [name], "subscribed_topic_regex": None}
    consumer |= {"member_epoch": 0, "rebalance_timeout_ms": 60_000, "server_assignor": None, "topic_partitions": []}
    app = App(probe, name)
    for is_empty in (False, True):
        app.beat(epoch=LEAVE if is_empty else JOIN)
        who = {"group_id": name, "member_id": member_of(name, 7)}
        probe.call(CONSUMER_GROUP_HEARTBEAT, 1, {**consumer, **who})
        probe.call(SHARE_GROUP_HEARTBEAT, 1, share_values(name, who["member_id"], 0, [name]))
        probe.call(JOIN_GROUP, 9, {**join_values(name, member_id="x"), "reason": None})
        app.describe()
    other, group = f"{name}-other", {"group_id": f"{name}-other", "member_id": member_of(name, 8)}
    probe.call(CONSUMER_GROUP_HEARTBEAT, 1, {**consumer, **group})
    probe.call(STREAMS_GROUP_HEARTBEAT, LATEST, beat(other))
    probe.call(STREAMS_GROUP_DESCRIBE, LATEST, {"group_ids": [other], "include_authorized_operations": False})
    probe.call(CONSUMER_GROUP_HEARTBEAT, 1, {**consumer, **group, "member_epoch": LEAVE})
    probe.call(STREAMS_GROUP_HEARTBEAT, LATEST, beat(other))


def streams_settings(probe: Probe, version: int, name: str) -> None:
    """What a group may set, and how it is refused."""
    del version
    for settings in (
        {"streams.session.timeout.ms": "50000"},
        {"streams.session.timeout.ms": "1"},
        {"streams.session.timeout.ms": "60001"},
        {"streams.heartbeat.interval.ms": "15000"},
        {"streams.heartbeat.interval.ms": "4999"},
        {"streams.heartbeat.interval.ms": "15001"},
        {"streams.num.standby.replicas": "2"},
        {"streams.num.standby.replicas": "3"},
        {"streams.num.standby.replicas": "-1"},
        {"streams.initial.rebalance.delay.ms": "-1"},
        {"streams.initial.rebalance.delay.ms": "many"},
        {"streams.assignment.interval.ms": "15001"},
        {"share.auto.offset.reset": "earliest"},
    ):
        configure(probe, name, settings)
    settle(probe, name, {"share.auto.offset.reset": "earliest"})
    asked = {"resource_type": 32, "resource_name": name, "configuration_keys": None}
    probe.call(DESCRIBE_CONFIGS, 4, {"resources": [asked], "include_synonyms": True, "include_documentation": False})


def of_streams_groups(name: str, _topic_id: UUID, _version: Callable[[int], int]) -> Iterator[tuple[int, Values]]:
    """What a member asks that never joined, whose topology has topics that it may not see, or may not make."""
    for group in (f"{name}-t", f"{name}-no"):
        yield STREAMS_GROUP_HEARTBEAT, {**beat(group, epoch=9)}
        for topics in ([name], [name, f"{name}-no"], ["__consumer_offsets"]):
            yield STREAMS_GROUP_HEARTBEAT, {**beat(group, epoch=9), "topology": reading(*topics)}
        yield STREAMS_GROUP_DESCRIBE, {"group_ids": [group, name], "include_authorized_operations": True}
    yield STREAMS_GROUP_DESCRIBE, {"group_ids": [f"{name}-u"], "include_authorized_operations": True}
    group, states = f"{name}-t", [info(f"{name}-{state}") for state in ("n-made", "made", "other")]
    yield STREAMS_GROUP_HEARTBEAT, beat(group, topology=topology(subtopology("0", [name], changelogs=states)))
    yield STREAMS_GROUP_DESCRIBE, {"group_ids": [group], "include_authorized_operations": True}
    yield STREAMS_GROUP_HEARTBEAT, beat(group, epoch=LEAVE)
