"""Which Kafka APIs `kgctl serve` answers: one module an API, each with its `SPEC`. ApiVersions is derived from this table."""

from __future__ import annotations

from kgctl.server.api import api_versions, sasl_authenticate, sasl_handshake
from kgctl.server.api.data import fetch, init_producer_id, list_offsets, offset_for_leader_epoch, produce
from kgctl.server.api.groups import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from kgctl.server.api.topics import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    incremental_alter_configs,
    metadata,
)
from kgctl.server.api.transactions import add_offsets_to_txn, add_partitions_to_txn, end_txn, txn_offset_commit
from kgctl.server.request_context import Registry

_SPECS = (
    *(
        api_versions.SPEC,
        metadata.SPEC,
        describe_cluster.SPEC,
        create_topics.SPEC,
        delete_topics.SPEC,
        delete_records.SPEC,
        create_partitions.SPEC,
    ),
    *(describe_configs.SPEC, incremental_alter_configs.SPEC),
    *(sasl_handshake.SPEC, sasl_authenticate.SPEC),
    *(produce.SPEC, fetch.SPEC, list_offsets.SPEC, offset_for_leader_epoch.SPEC, init_producer_id.SPEC),
    *(find_coordinator.SPEC, join_group.SPEC, sync_group.SPEC, heartbeat.SPEC, leave_group.SPEC),
    *(offset_commit.SPEC, offset_fetch.SPEC, offset_delete.SPEC, list_groups.SPEC, describe_groups.SPEC, delete_groups.SPEC),
    *(add_partitions_to_txn.SPEC, add_offsets_to_txn.SPEC, txn_offset_commit.SPEC, end_txn.SPEC),
    *(consumer_group_heartbeat.SPEC, consumer_group_describe.SPEC),
)


def default_registry() -> Registry:
    """Return the table of every API that ``kgctl serve`` answers."""
    return Registry(_SPECS)
