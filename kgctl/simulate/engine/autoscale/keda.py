"""KEDA's Kafka scaler (apache-kafka): from the offsets of the partitions to the one number that the HPA gets.

Modelled as in KEDA 2.17: the sum of the lags; a partition without a committed offset counts as 1 record where the group begins at
the end, and as its whole length where it begins at the start; ``allowIdleConsumers``, ``limitToPartitionsWithLag`` and
``excludePersistentLag``; activation, and the way to and from no pods with ``cooldownPeriod``. The cap at the number of partitions
cuts the lag to partitions times target, so that the HPA's tolerance may keep a group below it whatever its lag is (59 of 64).
Not modelled: ``scaleToZeroOnInvalidOffset``, ``partitionLimitation``, ``fallback``, ``idleReplicaCount``, scaling modifiers,
``initialCooldownPeriod``, more than one trigger.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kgctl.simulate.scenario.autoscale import Autoscale


class Offsets(NamedTuple):
    """One partition: its number, its log end offset, what is committed (None: nothing yet)."""

    partition: int
    end: int
    committed: int | None


class Lag(NamedTuple):
    """``total``: what the HPA gets. ``present``: the lag with what ``exclude_persistent_lag`` leaves out, for the activation."""

    total: int
    present: int


class KafkaScaler:
    """One trigger. Remembers the offsets of its last measurement, for ``exclude_persistent_lag``, and when it was last active."""

    def __init__(self, spec: Autoscale, *, from_start: bool) -> None:
        self._spec = spec
        self._from_start = from_start
        self._seen: dict[int, int] = {}
        self._active_us: int | None = None

    def lag(self, offsets: Iterable[Offsets]) -> Lag:
        """One measurement."""
        spec = self._spec
        partitions = with_lag = total = present = 0
        for each in offsets:
            records = self._records(each)
            counted = 0 if self._is_persistent(each) else records
            partitions += 1
            with_lag += counted > 0
            total += counted
            present += records
        if not spec.allow_idle_consumers or spec.limit_to_partitions_with_lag:
            most = with_lag if spec.limit_to_partitions_with_lag else partitions
            if total // spec.target > most:
                total = most * spec.target
        return Lag(total, present)

    def _records(self, each: Offsets) -> int:
        if each.committed is None:
            return each.end if self._from_start else 1
        return each.end - each.committed

    def _is_persistent(self, each: Offsets) -> bool:
        """Whether nothing was committed since the last measurement: then it is taken for a record that nobody can process."""
        if not self._spec.exclude_persistent_lag or each.committed is None:
            return False
        before = self._seen.get(each.partition)
        self._seen[each.partition] = each.committed
        return before == each.committed

    def polled(self, now_us: int, replicas: int, present: int) -> int:
        """KEDA's own loop: how many pods there are to be, which differs from ``replicas`` only on the way from and to 0."""
        spec = self._spec
        if present > spec.activation:
            self._active_us = now_us
            return replicas or max(spec.minimum, 1)
        if spec.minimum:
            return max(replicas, spec.minimum)
        is_over = self._active_us is None or now_us >= self._active_us + spec.cooldown_us
        return 0 if is_over else replicas
