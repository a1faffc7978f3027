"""Conversations about where partitions lie, who leads them, and what a cluster knows of itself."""

from __future__ import annotations

from typing import Any

from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    ALTER_CLIENT_QUOTAS,
    ALTER_LOG_DIRS,
    ALTER_REASSIGNMENTS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_QUORUM,
    DESCRIBE_TOPIC_PARTITIONS,
    ELECT_LEADERS,
    LIST_REASSIGNMENTS,
    batch,
    create_topic,
    produce,
)

TOPIC_PRODUCE = 9


def log_dirs(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    produce(probe, TOPIC_PRODUCE, name, topic_id, batch(3))
    for topics in (
        [{"topic": name, "partitions": [0]}],
        [{"topic": name, "partitions": [1, 0, 7, -1, 0]}],
        [{"topic": "nosuch", "partitions": [0]}, {"topic": "in valid", "partitions": [0]}],
        [{"topic": name, "partitions": []}],
        [],
    ):
        probe.call(DESCRIBE_LOG_DIRS, version, {"topics": topics})


def moving_log_dirs(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name)
    here = probe.call(DESCRIBE_LOG_DIRS, 4, {"topics": []}, note=False).results[0].log_dir
    for path, topic, partitions in (
        (here, name, [0, 1, 9]),
        ("/nowhere", name, [0]),
        (here, "nosuch", [0]),
        (here, "in valid", [0]),
        ("", name, [0]),
    ):
        probe.call(ALTER_LOG_DIRS, version, {"dirs": [{"path": path, "topics": [{"name": topic, "partitions": partitions}]}]})


def quorum(probe: Probe, version: int, name: str) -> None:
    right = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    for topics in (
        [right],
        [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 1}]}],
        [{"topic_name": name, "partitions": [{"partition_index": 0}, {"partition_index": 3}]}],
        [right, {"topic_name": name, "partitions": [{"partition_index": 0}]}],
        [],
    ):
        probe.call(DESCRIBE_QUORUM, version, {"topics": topics})


def topic_partitions(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name, 3)
    create_topic(probe, f"{name}-b", 2)

    def ask(*names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None) -> None:
        place = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
        topics = [{"name": topic} for topic in names]
        probe.call(DESCRIBE_TOPIC_PARTITIONS, version, {"topics": topics, "response_partition_limit": limit, "cursor": place})

    ask(name)
    ask(f"{name}-b", name, name)
    for missing in ("nosuch", "in valid", ""):
        ask(missing, name)
    for limit in (-1, 0, 1, 2, 3, 4, 5):
        ask(name, f"{name}-b", limit=limit)
    ask(name, f"{name}-b", cursor=(name, 1))
    ask(name, f"{name}-b", cursor=(name, 1), limit=2)
    ask(name, f"{name}-b", cursor=(f"{name}-b", 0))
    ask(name, cursor=(name, 3))
    ask(name, cursor=(name, 9))
    ask(name, cursor=(name, -1))
    ask(name, cursor=(f"{name}-b", 0))
    ask(name, "nosuch", limit=3)
    ask(name, "zz-nosuch", limit=3)
    ask(name, "zz-nosuch", f"{name}-b", limit=3)


def electing(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name)
    for kind in (0, 1, 2) if version else (0,):
        for topics in (
            [{"topic": name, "partitions": [1, 0, 9, -1]}, {"topic": "nosuch", "partitions": [0]}],
            [{"topic": name, "partitions": []}],
            [],
        ):
            probe.call(ELECT_LEADERS, version, {"election_type": kind, "topic_partitions": topics, "timeout_ms": 10_000})
    for timeout_ms in (0, -1):
        topics = [{"topic": name, "partitions": [1, 9]}]
        probe.call(ELECT_LEADERS, version, {"election_type": 0, "topic_partitions": topics, "timeout_ms": timeout_ms})


def reassigning(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name)

    def move(*partitions: tuple[int, list[int] | None], topic: str = name, **settings: Any) -> None:
        entries = [{"partition_index": index, "replicas": replicas} for index, replicas in partitions]
        topics = [{"name": topic, "partitions": entries}]
        probe.call(ALTER_REASSIGNMENTS, version, {"timeout_ms": 10_000, "topics": topics, **settings})

    move((0, [1]))
    move((0, None), (1, [1]), (7, [1]), (-1, None))
    move((0, [9]))
    move((0, []))
    move((0, [1, 1]))
    move((0, [1, 9]))
    move((0, [1]), topic="nosuch")
    move((0, [1]), (9, [1]), timeout_ms=0)
    move((0, [1]), timeout_ms=-1)
    if version:
        move((0, [1]), allow_replication_factor_change=False)
        move((0, []), allow_replication_factor_change=False)
    for topics in (None, [], [{"name": name, "partition_indexes": [0, 9]}], [{"name": "nosuch", "partition_indexes": [0]}]):
        probe.call(LIST_REASSIGNMENTS, 0, {"timeout_ms": 10_000, "topics": topics})


QuotaValues = dict[str, float | None]
Entity = dict[str, str | None]
WRONG_QUOTAS: tuple[tuple[Entity, QuotaValues], ...] = (
    ({}, {"producer_byte_rate": 1.0}),
    ({"user": ""}, {"producer_byte_rate": 1.0}),
    ({"group": "g"}, {"producer_byte_rate": 1.0}),
    ({"ip": "127.0.0.1", "user": "u"}, {"connection_creation_rate": 1.0}),
    ({"ip": "no such host at all"}, {"connection_creation_rate": 1.0}),
    ({"ip": "127.0.0.1"}, {"producer_byte_rate": 1.0}),
    ({"ip": "127.0.0.1"}, {"connection_creation_rate": 2.0**33}),
    ({"user": "u"}, {"connection_creation_rate": 1.0}),
    ({"user": "u"}, {"producer_byte_rate": 0.0}),
    ({"user": "u"}, {"producer_byte_rate": -1.0}),
    ({"user": "u"}, {"producer_byte_rate": 1.5}),
    ({"user": "u"}, {"producer_byte_rate": 1e19}),
    ({"user": "u"}, {"controller_mutation_rate": 0.5}),
    ({"user": None, "client-id": None}, {"producer_byte_rate": 5.0}),
)
FILTERS: tuple[tuple[tuple[str, int, str | None], ...], ...] = (
    (("user", 0, None),),
    (("user", 1, "x"),),
    (("user", 2, "x"),),
    (("user", 7, None),),
    (("", 0, "x"),),
    (("group", 0, "x"),),
    (("ip", 0, "127.0.0.9"), ("user", 2, None)),
    (("ip", 0, "127.0.0.9"),),
)


def quotas(probe: Probe, version: int, name: str) -> None:
    def alter(*entries: tuple[Entity, QuotaValues], validate_only: bool = False) -> None:
        rows = [
            {
                "entity": [{"entity_type": kind, "entity_name": value} for kind, value in entity.items()],
                "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in values.items()],
            }
            for entity, values in entries
        ]
        probe.call(ALTER_CLIENT_QUOTAS, 1, {"entries": rows, "validate_only": validate_only})

    def ask(*components: tuple[str, int, str | None], strict: bool = False) -> None:
        parts = [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in components]
        probe.call(DESCRIBE_CLIENT_QUOTAS, version, {"components": parts, "strict": strict})

    def is_there(count: int) -> None:
        """A real broker learns of it from its controller."""
        values = {"components": [{"entity_type": "user", "match_type": 0, "match": name}], "strict": False}
        probe.until(DESCRIBE_CLIENT_QUOTAS, 1, values, lambda body: len(body.entries or ()) == count)

    mine, ours = ("user", 0, name), ("client-id", 2, None)
    alter(({"user": name}, {"producer_byte_rate": 1024.0, "consumer_byte_rate": 7.0}))
    alter(({"user": name, "client-id": "c"}, {"request_percentage": 12.5}))
    is_there(2)
    ask(mine)
    ask(mine, strict=True)
    ask(mine, ours)
    ask(mine, ("client-id", 1, None))
    ask(mine, ("user", 2, None))
    for components in FILTERS:
        ask(*components)
    for entry in WRONG_QUOTAS:
        alter(entry, validate_only=True)
    alter(({"user": name}, {"producer_byte_rate": 1.0}), ({"user": name}, {"producer_byte_rate": 2.0}), validate_only=True)
    alter(({"user": name}, {"producer_byte_rate": None, "consumer_byte_rate": None, "request_percentage": None}))
    is_there(1)
    ask(mine)
    alter(({"user": name, "client-id": "c"}, {"request_percentage": None}))
    is_there(0)
