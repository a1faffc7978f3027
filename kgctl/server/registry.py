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

_MODULES = (
    *(api_versions, metadata, describe_cluster, create_topics, delete_topics, delete_records, create_partitions),
    *(describe_configs, incremental_alter_configs),
    *(sasl_handshake, sasl_authenticate),
    *(produce, fetch, list_offsets, offset_for_leader_epoch, init_producer_id),
    *(find_coordinator, join_group, sync_group, heartbeat, leave_group),
    *(offset_commit, offset_fetch, offset_delete, list_groups, describe_groups, delete_groups),
    *(add_partitions_to_txn, add_offsets_to_txn, txn_offset_commit, end_txn),
    *(consumer_group_heartbeat, consumer_group_describe),
)


def default_registry() -> Registry:
    """Return the table of every API that ``kgctl serve`` answers."""
    return Registry(module.SPEC for module in _MODULES)
