"""The settings of a share group that its partitions follow."""

from __future__ import annotations

from typing import Protocol

from kgctl.model.values import frozen

_LEAST_THROTTLED_COUNT = 2


class ShareConfig(Protocol):
    """The settings of a group, as far as its share partitions follow them."""

    @property
    def share_partition_max_record_locks(self) -> int: ...

    @property
    def share_delivery_count_limit(self) -> int: ...

    @property
    def share_record_lock_duration_ms(self) -> int: ...

    @property
    def share_renew_acknowledge_enable(self) -> bool: ...


@frozen
class ShareSettings:
    """What holds for a group now: its own settings, where it has them, else the broker's (KIP-932, KIP-1240).

    Kafka: ShareGroupConfigProvider, whose names are ``group.share.partition.max.record.locks`` and so on.
    """

    max_record_locks: int = 2_000
    delivery_count_limit: int = 5
    record_lock_duration_ms: int = 30_000
    renew_acknowledge_enable: bool = True

    @classmethod
    def of(cls, config: ShareConfig) -> ShareSettings:
        """What the settings of a group say."""
        return cls(
            max_record_locks=config.share_partition_max_record_locks,
            delivery_count_limit=config.share_delivery_count_limit,
            record_lock_duration_ms=config.share_record_lock_duration_ms,
            renew_acknowledge_enable=config.share_renew_acknowledge_enable,
        )

    @property
    def throttled_count(self) -> int:
        """From this delivery count on, records are delivered in ever smaller numbers, so that a bad one stands alone."""
        return max(_LEAST_THROTTLED_COUNT, (self.delivery_count_limit + 1) // 2)

    @property
    def has_last_attempt(self) -> bool:
        """Whether a record's last delivery is one of its own: not where records are delivered twice at most."""
        return self.delivery_count_limit > _LEAST_THROTTLED_COUNT
