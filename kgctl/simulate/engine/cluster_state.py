"""What a run leaves in its cluster: the coordinator's records, the topics, and how much was written to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.partitions import TopicMetadata, TopicPartition
from kgctl.simulate.engine.traffic.arrivals import UNIT_PR
from kgctl.simulate.engine.world import World


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster at ``now_ms`` on the coordinator's clock, the end of a run.

    ``records`` are all that the coordinator wrote, with their times on that clock, in order. ``end_offsets`` has each partition
    of ``topics``. ``properties``: the broker configs of the scenario.
    """

    now_ms: int
    records: tuple[tuple[int, AppendRecord], ...]
    topics: Mapping[str, TopicMetadata]
    end_offsets: Mapping[TopicPartition, int]
    properties: Mapping[str, str]


def cluster_state(world: World) -> ClusterState:
    """The cluster of a run as it is now. The run must have kept its records."""
    assert world.records is not None, "the run was not asked to keep its records"
    now_us = world.loop.now_us
    clock_ms = world.broker.clock_ms
    existing = (number for number, deleted_us in enumerate(world.partitions.deleted_us) if deleted_us is None)
    return ClusterState(
        now_ms=clock_ms(now_us),
        records=tuple((clock_ms(at_us), effect) for at_us, effect in sorted(world.records, key=itemgetter(0))),
        topics=dict(world.image.topics),
        end_offsets={
            world.partitions.names[number]: world.ledger.arrivals.total_pr(number, now_us) // UNIT_PR for number in existing
        },
        properties=dict(world.scenario.cluster.config),
    )
