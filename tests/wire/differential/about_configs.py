"""Conversations about settings: of topics, brokers, groups, loggers and subscriptions to clients' metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgctl.server.settings import TOPIC_SETTINGS
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    ALTER_CONFIGS,
    CREATE_TOPICS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    create_topic,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
VALUES = (
    *("", " ", "x", "-3", "-2", "-1", "0", "1", "3", "4", " 9 ", "10", "17", "18", "22", "23", "1e-1", "0.5", "1.5", "+7", "1_0"),
    *("-131073", "-131072", "1048575", "1048576", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808"),
    *("true", " TRUE", "yes", "delete", "compact,delete", "compact , delete", "delete,delete", "delete,", "Compact", "none"),
    *("gzip", "producer", "GZIP", "CreateTime", "createTime", "LogAppendTime", "*", "0:1", "0:1,1:1", "0:1, x", "*,*"),
)
"""What each setting of a topic is set to, one after the other."""

Config = tuple[str, int, str | None]


def incremental(probe: Probe, version: int, *resources: tuple[int, str, Sequence[Config]], validate_only: bool = False) -> None:
    asked = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes],
        }
        for kind, name, changes in resources
    ]
    probe.call(INCREMENTAL_ALTER_CONFIGS, version, {"resources": asked, "validate_only": validate_only})


def settle(probe: Probe, name: str) -> None:
    """Return when the broker has applied what was changed before: a topic made now is there, and changes come in order."""
    create_topic(probe, f"{name}-settled-{len(probe.answers)}", 1)


def describe(probe: Probe, version: int, *resources: tuple[int, str], keys: Sequence[str] | None = None) -> None:
    asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": keys} for kind, name in resources]
    for with_synonyms in (False, True):
        probe.call(DESCRIBE_CONFIGS, version, {"resources": asked, "include_synonyms": with_synonyms})


def shown(probe: Probe, topic: str, *names: str) -> None:
    """What these settings of a topic are now."""
    settle(probe, topic)
    describe(probe, 4, (TOPIC, topic), keys=names or None)


def describing_configs(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name)
    changes: list[Config] = [
        ("retention.ms", SET, " 5 "),
        ("cleanup.policy", SET, "compact , delete"),
        ("preallocate", SET, "TRUE"),
    ]
    incremental(probe, 1, (TOPIC, name, changes))
    settle(probe, name)
    describe(probe, version, (TOPIC, name))
    for topic in ("nosuch", "", "in valid"):
        describe(probe, version, (TOPIC, topic))
    describe(probe, version, (TOPIC, name), (TOPIC, "nosuch"), keys=["retention.ms", "nosuch"])
    describe(probe, version, (TOPIC, name), keys=[])
    for broker in ("", "2", "x", "-1"):
        describe(probe, version, (BROKER, broker))
    describe(probe, version, (BROKER, "1"), keys=["log.retention.hours", "message.max.bytes", "ssl.key.password", "nosuch"])
    for kind, resource in ((LOGGER, ""), (LOGGER, "2"), (CLIENT_METRICS, ""), (CLIENT_METRICS, "nosuch"), (99, "t"), (0, "")):
        describe(probe, version, (kind, resource))
    describe(probe, version, (GROUP, ""))
    describe(probe, version, (GROUP, "nosuch"), keys=["consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"])


def altering_configs(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name)
    wrong: list[list[Config]] = [
        [("retention.ms", SET, None)],
        [("nosuch", SET, "1")],
        [("nosuch", DELETE, None)],
        [("nosuch", APPEND, "1")],
        [("retention.ms", APPEND, "1")],
        [("retention.ms", SUBTRACT, "1")],
        [("retention.ms", 7, "1")],
        [("retention.ms", SET, "5"), ("retention.ms", SET, "6")],
        [("retention.ms", SET, "5"), ("segment.ms", SET, "x")],
        [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")],
        [("remote.storage.enable", SET, "true")],
        [],
    ]
    for changes in wrong:
        incremental(probe, version, (TOPIC, name, changes))
    shown(probe, name)
    for operation, value in (
        (APPEND, "compact"),
        (APPEND, "compact"),
        (SUBTRACT, "delete"),
        (SUBTRACT, "nosuch"),
        (APPEND, "bogus"),
    ):
        incremental(probe, version, (TOPIC, name, [("cleanup.policy", operation, value)]))
        shown(probe, name, "cleanup.policy")
    incremental(probe, version, (TOPIC, name, [("segment.ms", SET, "70000")]), validate_only=True)
    incremental(probe, version, (TOPIC, name, [("retention.ms", SET, "70000")]), (TOPIC, "nosuch", [("retention.ms", SET, "1")]))
    shown(probe, name)
    incremental(probe, version, (TOPIC, name, [("retention.ms", DELETE, "5")]), (TOPIC, "", []), (TOPIC, "in valid", []))
    incremental(probe, version, (TOPIC, name, []), (TOPIC, name, []))
    shown(probe, name)


OUT_OF_BOUNDS = (
    ("log.segment.bytes", "5"),
    ("log.index.size.max.bytes", "3"),
    ("log.flush.interval.messages", "0"),
    ("message.max.bytes", "-1"),
    ("log.index.interval.bytes", "-1"),
    ("log.cleaner.delete.retention.ms", "-1"),
    ("log.cleaner.min.compaction.lag.ms", "-1"),
    ("log.cleaner.max.compaction.lag.ms", "0"),
    ("log.segment.delete.delay.ms", "-1"),
    ("log.cleaner.min.cleanable.ratio", "1.5"),
    ("log.cleanup.policy", "keep"),
    ("log.cleanup.policy", "compact,"),
    ("compression.type", "rar"),
    ("compression.gzip.level", "0"),
    ("compression.lz4.level", "18"),
    ("compression.zstd.level", "23"),
    ("log.message.timestamp.type", "Never"),
    ("log.message.timestamp.before.max.ms", "-1"),
    ("log.message.timestamp.after.max.ms", "-1"),
    ("log.local.retention.ms", "-3"),
    ("log.local.retention.bytes", "-3"),
)


def altering_other_configs(probe: Probe, version: int, name: str) -> None:
    """Of a server that the conversation leaves as it was."""
    retention: list[Config] = [("log.retention.ms", SET, "1000000")]
    topic = f"{name}-t"
    create_topic(probe, topic)
    incremental(probe, version, (BROKER, "1", retention))
    shown(probe, topic, "retention.ms")
    incremental(probe, version, (BROKER, "", [("log.retention.ms", SET, "2000000"), ("log.cleanup.policy", SET, "compact")]))
    shown(probe, topic, "retention.ms", "cleanup.policy")
    describe(probe, 4, (BROKER, ""))
    describe(probe, 4, (BROKER, "1"), keys=["log.retention.ms", "log.cleanup.policy"])
    for broker in ("1", ""):
        gone: list[Config] = [("log.retention.ms", DELETE, None), ("log.cleanup.policy", DELETE, None)]
        incremental(probe, version, (BROKER, broker, gone))
    shown(probe, topic, "retention.ms", "cleanup.policy")
    for key, value in (
        ("log.retention.ms", "x"),
        ("node.id", "5"),
        ("log.retention.hours", "5"),
        ("num.io.threads", "x"),
        *OUT_OF_BOUNDS,
    ):
        incremental(probe, version, (BROKER, "1", [(key, SET, value)]))
    for broker in ("2", "x"):
        incremental(probe, version, (BROKER, broker, retention))
    loggers: list[tuple[str, list[Config]]] = [
        ("1", [("root", SET, "LOUD")]),
        ("1", [("root", APPEND, "INFO")]),
        ("1", [("nosuch.logger", SET, "INFO")]),
        ("", [("root", SET, "INFO")]),
        ("2", [("root", SET, "INFO")]),
    ]
    for broker, changes in loggers:
        incremental(probe, version, (LOGGER, broker, changes))
    wrong = [("nosuch", "1"), ("interval.ms", "1"), ("interval.ms", "x"), ("match", "bad"), ("match", "client_id=a,bad")]
    for key, value in wrong:
        incremental(probe, version, (CLIENT_METRICS, name, [(key, SET, value)]))
    incremental(probe, version, (CLIENT_METRICS, "", [("interval.ms", SET, "1000")]))
    incremental(probe, version, (CLIENT_METRICS, name, [("interval.ms", SET, "1000"), ("metrics", SET, "*")]))
    settle(probe, topic)
    describe(probe, 4, (CLIENT_METRICS, name))
    incremental(probe, version, (CLIENT_METRICS, name, [("interval.ms", DELETE, None), ("metrics", DELETE, None)]))
    session: Config = ("consumer.session.timeout.ms", SET, "1")
    of_groups: list[list[Config]] = [[session], [("nosuch", SET, "1")], [("consumer.session.timeout.ms", APPEND, "45000")]]
    for changes in of_groups:
        incremental(probe, version, (GROUP, name, changes))
    incremental(probe, version, (GROUP, "", [session]))


def replacing_configs(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name)

    def alter(kind: int, resource: str, *configs: tuple[str, str | None]) -> None:
        entries: list[dict[str, Any]] = [{"name": key, "value": value} for key, value in configs]
        resources = [{"resource_type": kind, "resource_name": resource, "configs": entries}]
        probe.call(ALTER_CONFIGS, version, {"resources": resources, "validate_only": False})

    alter(TOPIC, name, ("retention.ms", "1000"), ("cleanup.policy", "compact"))
    alter(TOPIC, name, ("retention.ms", "2000"))
    shown(probe, name)
    wrong: list[list[tuple[str, str | None]]] = [[("nosuch", "1")], [("retention.ms", None)], [], [("a", "1"), ("a", "2")]]
    for configs in wrong:
        alter(TOPIC, name, *configs)
    shown(probe, name)
    for kind, resource in ((TOPIC, "nosuch"), (BROKER, "2"), (LOGGER, "1"), (99, "t")):
        alter(kind, resource)
    alter(BROKER, "1", ("node.id", "5"))
    alter(GROUP, f"{name}-g", ("nosuch", "5"))
    alter(CLIENT_METRICS, f"{name}-m", ("nosuch", "5"))


def values_of_topic_configs(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name)
    for key in TOPIC_SETTINGS:
        for value in VALUES:
            incremental(probe, version, (TOPIC, name, [(key, SET, value)]), validate_only=True)


def creating_with_configs(probe: Probe, version: int, name: str) -> None:
    chosen: list[list[tuple[str, str | None]]] = [
        [("retention.ms", "x")],
        [("nosuch", "1")],
        [("retention.ms", None)],
        [("retention.ms", None), ("nosuch", "1"), ("segment.ms", None)],
        [("retention.ms", "5"), ("retention.ms", "6")],
        [("cleanup.policy", "compact")],
        [("cleanup.policy", "")],
        [("retention.ms", " 7 "), ("max.message.bytes", "1000")],
    ]
    for place, configs in enumerate(chosen):
        for partitions in (0, 1):
            entries = [{"name": key, "value": value} for key, value in configs]
            topic = {"name": f"{name}-{place}", "num_partitions": partitions, "replication_factor": 1, "configs": entries}
            probe.call(CREATE_TOPICS, version, {"topics": [{**topic, "assignments": []}], "timeout_ms": 10_000})


def listing_config_resources(probe: Probe, version: int, name: str) -> None:
    """Lists of a server that others change meanwhile: those of brokers, and what cannot be."""
    if version == 0:
        return
    for kinds in ([BROKER], [LOGGER, BROKER], [99], [BROKER, 0]):
        probe.call(LIST_CONFIG_RESOURCES, version, {"resource_types": kinds})
