"""What is said to both servers: one function a subject, called for each version that both serve."""

from __future__ import annotations

from tests.wire.differential.about_groups import (
    beating,
    consumer_protocol_describing,
    deleting,
    describing,
    finding_coordinators,
    joining,
    leaving,
    static_joining,
    subscribing_by_expression,
    syncing,
)
from tests.wire.differential.about_offsets import (
    committing,
    committing_as_a_member,
    committing_too_much,
    deleting_offsets,
    fetching_offsets,
)
from tests.wire.differential.about_records import (
    deleting_records,
    fetching,
    leader_epochs,
    listing_offsets,
    producer_ids,
    producing,
    producing_idempotently,
)
from tests.wire.differential.about_topics import (
    automatic_topics,
    bounds_of_growth,
    bounds_of_topics,
    clusters,
    creating_topics,
    deleting_topics,
    growing_topics,
    metadata,
    versions,
)
from tests.wire.differential.about_transactions import END_TXN, fencing, transactional_ids, transactions, wrong_transactions
from tests.wire.differential.talk import (
    API_VERSIONS,
    CONSUMER_GROUP_DESCRIBE,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUPS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    SYNC_GROUP,
    Conversation,
)

CONVERSATIONS: dict[str, tuple[int, Conversation]] = {
    "producing": (PRODUCE, producing),
    "producing idempotently": (PRODUCE, producing_idempotently),
    "fetching": (FETCH, fetching),
    "listing offsets": (LIST_OFFSETS, listing_offsets),
    "leader epochs": (OFFSET_FOR_LEADER_EPOCH, leader_epochs),
    "metadata": (METADATA, metadata),
    "finding coordinators": (FIND_COORDINATOR, finding_coordinators),
    "clusters": (DESCRIBE_CLUSTER, clusters),
    "creating topics": (CREATE_TOPICS, creating_topics),
    "bounds of topics": (CREATE_TOPICS, bounds_of_topics),
    "growing topics": (CREATE_PARTITIONS, growing_topics),
    "bounds of growth": (CREATE_PARTITIONS, bounds_of_growth),
    "deleting topics": (DELETE_TOPICS, deleting_topics),
    "deleting records": (DELETE_RECORDS, deleting_records),
    "producer ids": (INIT_PRODUCER_ID, producer_ids),
    "versions": (API_VERSIONS, versions),
    "committing": (OFFSET_COMMIT, committing),
    "committing too much": (OFFSET_COMMIT, committing_too_much),
    "committing as a member": (OFFSET_COMMIT, committing_as_a_member),
    "fetching offsets": (OFFSET_FETCH, fetching_offsets),
    "deleting offsets": (OFFSET_DELETE, deleting_offsets),
    "joining": (JOIN_GROUP, joining),
    "static joining": (JOIN_GROUP, static_joining),
    "syncing": (SYNC_GROUP, syncing),
    "beating": (HEARTBEAT, beating),
    "leaving": (LEAVE_GROUP, leaving),
    "describing": (DESCRIBE_GROUPS, describing),
    "deleting": (DELETE_GROUPS, deleting),
    "transactions": (END_TXN, transactions),
    "wrong transactions": (END_TXN, wrong_transactions),
    "fencing": (END_TXN, fencing),
    "transactional ids": (INIT_PRODUCER_ID, transactional_ids),
    "describing by the consumer protocol's API": (CONSUMER_GROUP_DESCRIBE, consumer_protocol_describing),
    "subscribing by expression": (CONSUMER_GROUP_DESCRIBE, subscribing_by_expression),
}
"""Subject -> the API whose versions it goes through, and what is said."""

BY_DEFAULT: dict[str, tuple[int, Conversation]] = {"automatic topics": (METADATA, automatic_topics)}
"""The same, for servers that create topics when a client asks for one."""
