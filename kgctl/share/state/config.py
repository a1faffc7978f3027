"""The broker's settings for the state of share groups, under Kafka's names and with Kafka's defaults (4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Self

from kgctl.errors import UsageError, did_you_mean
from kgctl.model.settings import parse_setting, setting
from kgctl.model.values import frozen


@frozen
class ShareCoordinatorConfig:
    """One field for each setting. Those that only matter to threads and disks are accepted: a broker's file can be used."""

    state_topic_num_partitions: int = setting("share.coordinator.state.topic.num.partitions", 50, 1)
    state_topic_replication_factor: int = setting("share.coordinator.state.topic.replication.factor", 3, 1, 32_767)
    state_topic_min_isr: int = setting("share.coordinator.state.topic.min.isr", 2, 1, 32_767)
    state_topic_segment_bytes: int = setting("share.coordinator.state.topic.segment.bytes", 104_857_600, 1)
    threads: int = setting("share.coordinator.threads", 1, 1)
    snapshot_update_records_per_snapshot: int = setting("share.coordinator.snapshot.update.records.per.snapshot", 500, 0, 500)
    write_timeout_ms: int = setting("share.coordinator.write.timeout.ms", 5_000, 1)
    load_buffer_size: int = setting("share.coordinator.load.buffer.size", 5_242_880, 1)
    state_topic_compression_codec: int = setting("share.coordinator.state.topic.compression.codec", 0, 0, 4)
    append_linger_ms: int = setting("share.coordinator.append.linger.ms", -1, -1)
    state_topic_prune_interval_ms: int = setting("share.coordinator.state.topic.prune.interval.ms", 300_000, 1)
    cold_partition_snapshot_interval_ms: int = setting("share.coordinator.cold.partition.snapshot.interval.ms", 300_000, 1)
    cached_buffer_max_bytes: int = setting("share.coordinator.cached.buffer.max.bytes", 1_048_588, 512 * 1024)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """The settings with these values instead of the defaults, names and texts as in a broker's properties file.

        Raises `UsageError` naming a setting that does not exist (and near ones), a value of the wrong kind or out of bounds.
        """
        known = share_settings()
        for name in properties:
            if name not in known:
                raise UsageError(f"unknown setting {name!r}{did_you_mean(name, known, at_most=3)}")
        values: dict[str, Any] = {known[name].name: parse_setting(known[name], text) for name, text in properties.items()}
        return cls(**values)


@cache
def share_settings() -> Mapping[str, Any]:
    """The fields by Kafka's names."""
    return {entry.metadata["name"]: entry for entry in fields(ShareCoordinatorConfig)}
