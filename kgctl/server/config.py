"""What ``kgctl serve`` is asked to do, its broker configs by Kafka's names, and the settings that single groups have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields
from pathlib import Path
from typing import Any

from kgctl.coordinator.config import CoordinatorConfig, GroupConfig, setting_names
from kgctl.errors import UsageError, did_you_mean
from kgctl.model.values import frozen_in_order
from kgctl.server.access import AUTHORIZER
from kgctl.server.listeners import PROTOCOL_MAP, BrokerListener
from kgctl.server.settings import broker_settings, check_brokers
from kgctl.share.state.config import ShareCoordinatorConfig, share_settings
from kgctl.storage.files import Documents, OnDamage


@frozen_in_order
class ServeOptions:
    """One run of the server.

    ``data`` None keeps everything in memory. ``topics`` maps names to partition counts; topics
    that are there already are left alone (more partitions than they have are added). ``config`` has Kafka's broker configs by
    name. ``import_log`` has segment files of a ``__consumer_offsets`` to begin with. ``brokers`` is how many brokers the cluster
    seems to have, each with all of ``listeners``, at ports of its own. ``on_damage`` is for a data folder that is damaged,
    ``metrics`` where a page of metrics is.
    ``acls``: access rules as `kgctl.server.acls.parse_acl` has them; given, also none of them, there is an authorizer.
    ``compacts``: the program around it asks for compaction (`kgctl.server.cleaner.compact`).
    """

    listeners: Sequence[BrokerListener] = (BrokerListener(port=9092),)
    data: Path | None = None
    import_log: Path | None = None
    topics: Mapping[str, int] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    brokers: int = 1
    metrics: tuple[str, int] | None = None
    on_damage: OnDamage = OnDamage.REFUSE
    verbose: bool = False
    acls: Sequence[str] | None = None
    compacts: bool = False


OFFSETS_PARTITIONS = "offsets.topic.num.partitions"
MAX_INT32 = 2**31 - 1
MAX_OFFSETS_PARTITIONS = 9_999
"""What Kafka's controller makes in one request, which is how ``__consumer_offsets`` comes to be."""


def _setting(name: str, default: bool | int, at_least: int = 1) -> Any:  # noqa: FBT001 - a default of either type
    return field(default=default, metadata={"name": name, "at_least": at_least})


@frozen_in_order
class BrokerConfig:
    """The configs outside the coordinator, by Kafka's names and with Kafka's defaults.

    ``kgctl.offsets.topic.older.values`` is kgctl's own: whoever reads ``__consumer_offsets`` sees commits in version 3.
    """

    auto_create_topics_enable: bool = _setting("auto.create.topics.enable", default=True)
    num_partitions: int = _setting("num.partitions", 1)
    default_replication_factor: int = _setting("default.replication.factor", 1)
    socket_request_max_bytes: int = _setting("socket.request.max.bytes", 104_857_600)
    queued_max_request_bytes: int = _setting("queued.max.request.bytes", 268_435_456)
    max_connections: int = _setting("max.connections", 2_147_483_647)
    connections_max_idle_ms: int = _setting("connections.max.idle.ms", 600_000)
    node_id: int = _setting("node.id", 1, at_least=0)
    broker_id: int = _setting("broker.id", -1, at_least=0)
    fetch_max_bytes: int = _setting("fetch.max.bytes", 57_671_680)
    delete_topic_enable: bool = _setting("delete.topic.enable", default=True)
    transaction_max_timeout_ms: int = _setting("transaction.max.timeout.ms", 900_000)
    log_retention_check_interval_ms: int = _setting("log.retention.check.interval.ms", 300_000)
    kgctl_offsets_topic_older_values: bool = _setting("kgctl.offsets.topic.older.values", default=False)

    @property
    def first_node_id(self) -> int:
        """The id of the first broker; those of the others follow."""
        return self.node_id if self.broker_id < 0 else self.broker_id


SHARE_SETTINGS_WITH_EFFECT = (
    "state.topic.num.partitions",
    "snapshot.update.records.per.snapshot",
    "state.topic.prune.interval.ms",
    "cold.partition.snapshot.interval.ms",
)
"""After ``share.coordinator.``; the others are for threads, disks and replicas."""


def effective_names() -> set[str]:
    """The settings of brokers that do something here, but for those that topics follow."""
    own = (item.metadata["name"] for item in fields(BrokerConfig))
    share = (f"share.coordinator.{name}" for name in SHARE_SETTINGS_WITH_EFFECT)
    return {*own, *setting_names(), *share, AUTHORIZER, PROTOCOL_MAP}


def split_config(config: Mapping[str, str]) -> tuple[BrokerConfig, dict[str, str]]:
    """The broker's own configs, and the rest, which is the coordinator's.

    Raises UsageError for a name that neither knows and for a value that is none.
    """
    own = {item.metadata["name"]: item for item in fields(BrokerConfig)}
    theirs = set(setting_names())
    known = [*own, *theirs, *share_settings(), *broker_settings()]
    for name in config:
        if name not in known:
            raise UsageError(f"unknown setting {name!r}{did_you_mean(name, known, at_most=3)}")
    if _is_above(config.get(OFFSETS_PARTITIONS, ""), MAX_OFFSETS_PARTITIONS):
        raise UsageError(f"setting {OFFSETS_PARTITIONS!r} must be at most {MAX_OFFSETS_PARTITIONS}")
    values = {own[name].name: _parsed(name, value, own[name]) for name, value in config.items() if name in own}
    check_brokers(config)
    return BrokerConfig(**values), {name: value for name, value in config.items() if name in theirs}


def share_config(config: Mapping[str, str]) -> ShareCoordinatorConfig:
    """The share coordinator's configs among these. Raises `UsageError` for a value that is none."""
    return ShareCoordinatorConfig.from_properties({name: value for name, value in config.items() if name in share_settings()})


def _is_above(number: str, limit: int) -> bool:
    return number.isascii() and number.isdigit() and int(number[:20]) > limit


def _parsed(name: str, value: str, item: Field[Any]) -> Any:
    if isinstance(item.default, bool):
        if value.lower() not in ("true", "false"):
            raise UsageError(f"setting {name!r} must be true or false, not {value!r}")
        return value.lower() == "true"
    try:
        number = int(value)
    except ValueError:
        raise UsageError(f"setting {name!r} must be a whole number, not {value!r}") from None
    if not item.metadata["at_least"] <= number <= MAX_INT32:
        bound = f"at least {item.metadata['at_least']}" if number < item.metadata["at_least"] else f"at most {MAX_INT32}"
        raise UsageError(f"setting {name!r} must be {bound}, not {number}")
    return number


FILE_NAME = "group-configs.json"


class GroupConfigs:
    """Group id to its own settings by Kafka's names; written at once, a whole file at a time."""

    def __init__(self, broker: CoordinatorConfig, documents: Documents) -> None:
        self.broker = broker
        self._documents = documents
        self._configs: dict[str, dict[str, str]] = dict(documents.read(FILE_NAME) or {})

    def all(self) -> Mapping[str, Mapping[str, str]]:
        return self._configs

    def of(self, group_id: str) -> dict[str, str]:
        return dict(self._configs.get(group_id, {}))

    def check(self, config: Mapping[str, str]) -> GroupConfig:
        """The settings that a group with these has. Raises UsageError where Kafka answers INVALID_CONFIG."""
        return GroupConfig.from_properties(config, self.broker)

    def put(self, group_id: str, config: Mapping[str, str]) -> None:
        """Replace a group's settings; the caller has checked them. Raises `StorageError`; then they are as before."""
        configs = {name: kept for name, kept in self._configs.items() if name != group_id}
        if config:
            configs[group_id] = dict(config)
        self._documents.write(FILE_NAME, configs)
        self._configs = configs
