"""The broker's settings for the state of share groups: Kafka's names, defaults and bounds."""

from __future__ import annotations

import pytest

from kgctl.errors import UsageError
from kgctl.share.state.config import ShareCoordinatorConfig, share_settings

PREFIX = "share.coordinator."
DEFAULTS = {
    "state.topic.num.partitions": (50, 1, 2**31 - 1),
    "state.topic.replication.factor": (3, 1, 2**15 - 1),
    "state.topic.min.isr": (2, 1, 2**15 - 1),
    "state.topic.segment.bytes": (104_857_600, 1, 2**31 - 1),
    "threads": (1, 1, 2**31 - 1),
    "snapshot.update.records.per.snapshot": (500, 0, 500),
    "write.timeout.ms": (5_000, 1, 2**31 - 1),
    "load.buffer.size": (5_242_880, 1, 2**31 - 1),
    "state.topic.compression.codec": (0, 0, 4),
    "append.linger.ms": (-1, -1, 2**31 - 1),
    "state.topic.prune.interval.ms": (300_000, 1, 2**31 - 1),
    "cold.partition.snapshot.interval.ms": (300_000, 1, 2**31 - 1),
    "cached.buffer.max.bytes": (1_048_588, 524_288, 2**31 - 1),
}


def test_defaults_and_bounds_are_kafkas() -> None:
    found = {
        name: (getattr(ShareCoordinatorConfig(), entry.name), entry.metadata["at_least"], entry.metadata["at_most"])
        for name, entry in share_settings().items()
    }

    assert found == {PREFIX + name: facts for name, facts in DEFAULTS.items()}
    assert [PREFIX + entry.name.replace("_", ".") for entry in share_settings().values()] == list(share_settings())


def test_properties_replace_defaults() -> None:
    config = ShareCoordinatorConfig.from_properties({"share.coordinator.snapshot.update.records.per.snapshot": " 7 "})

    assert config == ShareCoordinatorConfig(snapshot_update_records_per_snapshot=7)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("threads", "0", "setting 'share.coordinator.threads' must be at least 1, not 0"),
        (
            "snapshot.update.records.per.snapshot",
            "501",
            "setting 'share.coordinator.snapshot.update.records.per.snapshot' must be at most 500, not 501",
        ),
        ("threads", "many", "setting 'share.coordinator.threads' must be a whole number, not 'many'"),
        ("thread", "1", "unknown setting 'share.coordinator.thread'"),
    ],
)
def test_what_no_broker_would_take_is_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ShareCoordinatorConfig.from_properties({PREFIX + name: text})
