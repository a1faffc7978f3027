"""Conversations about topics, brokers and versions."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    API_VERSIONS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    METADATA,
    NO_TOPIC_ID,
    create_topic,
)


def metadata(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    asked: list[dict[str, Any]] = [{"name": name}, {"name": "nosuch"}, {"name": "in valid"}, {"name": ""}, {"name": "x" * 250}]
    for topic in asked:
        probe.call(METADATA, version, {"topics": [topic], "allow_auto_topic_creation": True})
    probe.call(METADATA, version, {"topics": asked[:2]})
    if version >= 1:
        probe.call(METADATA, version, {"topics": []})
    flags = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    probe.call(METADATA, version, {"topics": asked[:1], **flags})
    if version >= 12:
        probe.call(METADATA, version, {"topics": [{"name": None, "topic_id": topic_id}]})
        probe.call(METADATA, version, {"topics": [{"name": "", "topic_id": topic_id}]})
        probe.call(METADATA, version, {"topics": [{"name": None, "topic_id": topic_id}, {"name": "none"}]})
        probe.call(METADATA, version, {"topics": [{"name": None, "topic_id": UUID(NO_TOPIC_ID)}]})


def automatic_topics(probe: Probe, version: int, name: str) -> None:
    """For servers that make topics when a client asks for one, as Kafka does unless told otherwise."""

    def ask(*topics: str, allowed: bool) -> None:
        values = {"topics": [{"name": topic} for topic in topics], "allow_auto_topic_creation": allowed}
        probe.call(METADATA, version, values)

    if version >= 4:
        ask(f"{name}-never", allowed=False)
        ask(f"{name}-never", allowed=False)
    ask(f"{name}-a", "in valid", f"{name}-b", allowed=True)
    is_there = {"topics": [{"name": f"{name}-a"}, {"name": f"{name}-b"}], "allow_auto_topic_creation": False}
    probe.until(METADATA, 12, is_there, lambda body: not any(topic.error_code for topic in body.topics))
    ask(f"{name}-a", f"{name}-b", allowed=True)
    for each in (f"{name}_a", f"{name}.a"):
        ask(each, allowed=True)
    probe.until(METADATA, 12, {**is_there, "topics": [{"name": f"{name}_a"}]}, lambda body: not body.topics[0].error_code)
    ask(f"{name}.a", allowed=True)
    ask(f"{name}.a", f"{name}_a", allowed=True)


def clusters(probe: Probe, version: int, name: str) -> None:
    for with_operations in (False, True):
        for endpoint_type in (1, 2, 7):
            values = {"include_cluster_authorized_operations": with_operations, "endpoint_type": endpoint_type}
            probe.call(DESCRIBE_CLUSTER, version, values)


def creating_topics(probe: Probe, version: int, name: str) -> None:
    def create(topic: str, partitions: int = 2, replicas: int = 1, *, validate_only: bool = False, **settings: Any) -> None:
        entry = {"name": topic, "num_partitions": partitions, "replication_factor": replicas, "assignments": [], "configs": []}
        timeout_ms = settings.pop("timeout_ms", 10_000)
        topics = [{**entry, **settings}] * settings.pop("times", 1)
        probe.call(CREATE_TOPICS, version, {"topics": topics, "timeout_ms": timeout_ms, "validate_only": validate_only})

    create(name)
    create(name)
    create(f"{name}-b", validate_only=True)
    create(f"{name}-c", 0)
    create(f"{name}-c", -5)
    create(f"{name}-c", 2, 3)
    create(f"{name}-c", 2, 0)
    create("in valid")
    create("")
    create("..")
    create(f"{name}-d", assignments=[{"partition_index": 0, "broker_ids": [1]}], partitions=-1, replicas=-1)
    create(f"{name}-e", assignments=[{"partition_index": 1, "broker_ids": [1]}], partitions=-1, replicas=-1)
    create(f"{name}-e", assignments=[{"partition_index": 0, "broker_ids": [1]}])
    chosen: list[list[list[int]]] = [[[9]], [[]], [[1, 1]], [[1], [9]], [[1, 9]], [[9], [8]]]
    for place, replicas in enumerate(chosen):
        assigned = [{"partition_index": index, "broker_ids": ids} for index, ids in enumerate(replicas)]
        create(f"{name}-m{place}", assignments=assigned, partitions=-1, replicas=-1)
    create(f"{name}.n_o")
    for topic in (f"{name}_n.o", f"{name}.n.o", f"{name}-n_o"):  # metrics could not tell the first two from it
        create(topic, validate_only=True)
        create(topic, 0)
        create(topic)
    create(f"{name}.n_o")
    create(f"{name}-f", times=2)
    for timeout_ms in (0, -1):
        create(f"{name}-h", timeout_ms=timeout_ms)
        create(f"{name}-f", times=2, timeout_ms=timeout_ms)
    if version >= 4:
        create(f"{name}-g", -1, -1)


def bounds_of_topics(probe: Probe, version: int, name: str) -> None:
    def create(*partitions: int, configs: int = 0) -> None:
        settings = [{"name": "retention.ms", "value": "1"}] * configs
        topics = [
            {"name": f"{name}-{n}", "num_partitions": count, "replication_factor": 1, "assignments": [], "configs": settings}
            for n, count in enumerate(partitions)
        ]
        probe.call(CREATE_TOPICS, version, {"topics": topics, "timeout_ms": 10_000, "validate_only": True})

    for counts in (
        (10_001,),
        (2**31 - 1,),
        (2**31 - 1, 2**31 - 1),
        (6_000, 6_000),
        (20_000, 1),
        (-5, 20_000),
        (10_000,),
        (9_999,),
    ):
        create(*counts)
    create(5_000, 4_998)
    create(5_000, 4_999)
    create(0, 10_000)
    create(9_999, configs=1)
    create(9_998, configs=1)


def bounds_of_growth(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name, 1)
    create_topic(probe, f"{name}-b", 1)

    def grow(*counts: int) -> None:
        names = (name, f"{name}-b")
        topics = [{"name": topic, "count": count, "assignments": None} for topic, count in zip(names, counts, strict=False)]
        probe.call(CREATE_PARTITIONS, version, {"topics": topics, "timeout_ms": 10_000, "validate_only": True})

    for counts in (
        (10_001,),
        (10_002,),
        (2**31 - 1,),
        (-5,),
        (6_000, 6_000),
        (2**31 - 1, 2**31 - 1),
        (10_002, 5),
        (5, 10_002),
        (-5, 20_000),
    ):
        grow(*counts)
    again = [{"name": name, "count": count, "assignments": None} for count in (2, 3)]
    probe.call(CREATE_PARTITIONS, version, {"topics": again, "timeout_ms": 10_000, "validate_only": True})


def growing_topics(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name, 2)

    def grow(topic: str, count: int, *, assignments: Any = None, **settings: Any) -> None:
        topics = [{"name": topic, "count": count, "assignments": assignments}]
        probe.call(CREATE_PARTITIONS, version, {"topics": topics, "timeout_ms": 10_000, "validate_only": False, **settings})

    grow(name, 2)
    grow(name, 1)
    grow(name, 0)
    grow(name, 4, validate_only=True)
    grow(name, 3)
    grow(name, 4, assignments=[{"broker_ids": [1]}])
    grow(name, 6, assignments=[{"broker_ids": [1]}])
    wrong: list[list[int]] = [[9], [], [1, 1], [1, 9], [-1]]
    for replicas in wrong:
        grow(name, 5, assignments=[{"broker_ids": replicas}])
    grow(name, 6, assignments=[{"broker_ids": [0]}, {"broker_ids": [9]}])
    grow(name, 3, assignments=[{"broker_ids": [9]}])
    grow("nosuch", 4)
    grow(name, 9, timeout_ms=0)
    grow("nosuch", 9, timeout_ms=-1)


def deleting_topics(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    if version >= 6:
        strange: list[list[dict[str, Any]]] = [
            [{"name": name, "topic_id": topic_id}],
            [{"name": name}, {"name": name}],
            [{"name": None, "topic_id": topic_id}] * 2,
            [{"name": name}, {"name": None, "topic_id": topic_id}],
            [{"name": None}],
        ]
        for topics in strange:
            probe.call(DELETE_TOPICS, version, {"topics": topics, "timeout_ms": 10_000})
        for timeout_ms in (0, -1):
            probe.call(DELETE_TOPICS, version, {"topics": [{"name": name}], "timeout_ms": timeout_ms})
            probe.call(DELETE_TOPICS, version, {"topics": [{"name": name}] * 2, "timeout_ms": timeout_ms})
        for topic in ({"name": "nosuch"}, {"name": None, "topic_id": UUID(NO_TOPIC_ID)}, {"name": None, "topic_id": topic_id}):
            probe.call(DELETE_TOPICS, version, {"topics": [topic], "timeout_ms": 10_000})
    else:
        for names, timeout_ms in (
            ([name], 0),
            ([name] * 2, 10_000),
            ([name], 10_000),
            ([name], 10_000),
            (["nosuch"], 10_000),
            ([], 0),
        ):
            probe.call(DELETE_TOPICS, version, {"topic_names": names, "timeout_ms": timeout_ms})


def versions(probe: Probe, version: int, name: str) -> None:
    for software, software_version in (("", "1"), ("-x", "1"), ("kgctl", ""), ("a b", "1")):
        if version >= 3:
            probe.call(API_VERSIONS, version, {"client_software_name": software, "client_software_version": software_version})
    for bad in (5, 77, 32_767, -1):
        probe.payload(struct.pack(">hhih", 18, bad, 9, -1) + b"\x00", 18, 0)
    for api_key, bad in ((3, 14), (3, -1), (1, 3), (8, 1), (999, 0), (-1, 0), (12, 5), (68, 9)):
        probe.payload(struct.pack(">hhih", api_key, bad, 9, -1) + bytes(50), 18, 0)
