"""What differs between the group coordinators of Kafka's versions, a named switch each.

A version's coordinator is `PROFILES`' entry of its name; handlers ask for a switch, never for a version. 4.0 to 4.3 are held
against each version's own GroupCoordinatorShard. 3.9's consumer groups are a preview, and are here as far as its code tells; its
classic groups, which another coordinator has there, are held against its brokers.
"""

from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any

from kgctl.errors import UsageError, did_you_mean
from kgctl.model.values import frozen

VERSIONS = ("3.9", "4.0", "4.1", "4.2", "4.3")


def switch(since: str, source: str, meaning: str) -> Any:
    """A dataclass field that is on in the broker versions from this one on, with where Kafka says so and what it does."""
    return field(metadata={"since": since, "source": source, "meaning": meaning})


@frozen
class Profile:
    """One version and its switches, the latest ones first."""

    version: str
    begins_at_epoch_1: bool = switch(
        "4.3",
        "ModernGroup",
        "A group and its target are at epoch 1 before anybody has joined; before, at 0, which a join leaves.",
    )
    has_assignment_interval: bool = switch(
        "4.3",
        "KIP-1263",
        "A target may be older than the group epoch for a while: its record says when it was made, and members that use the"
        " classic protocol are called back for a new target, not for a new group epoch.",
    )
    has_partition_epochs: bool = switch(
        "4.3", "KIP-1251", "Partitions are recorded with the epoch at which the member got them, from which on its commits count."
    )
    describes_revocations: bool = switch(
        "4.3", "KAFKA-20431", "ConsumerGroupDescribe counts what a member still has to revoke as its own."
    )
    needs_no_target_to_downgrade: bool = switch(
        "4.3",
        "ClassicGroup#fromConsumerGroup",
        "A member that has never had a target keeps no consumer group from becoming a classic one.",
    )
    closes_consumer_groups: bool = switch(
        "4.3", "KAFKA-20640", "With the migration policy `disabled`, nobody joins a consumer group by the classic protocol."
    )
    deletes_offsets_by_topic_id: bool = switch(
        "4.3",
        "OffsetMetadataManager#onTopicsDeleted",
        "With a topic go the offsets that were committed for it, not all that bear the names of its partitions.",
    )
    passes_streams_settings_on: bool = switch(
        "4.3",
        "GroupCoordinatorConfig#extractStreamsGroupConfigMap",
        "A group with a setting of its own has the broker's settings of streams groups for the others; before, Kafka's defaults.",
    )
    caches_endpoints: bool = switch(
        "4.3",
        "StreamsGroup#buildEndpointToPartitions",
        "What can be queried at a streams member's endpoint is worked out anew only when the member or the topology changes.",
    )
    rejoins_at_epoch_0: bool = switch(
        "4.2", "KAFKA-19233", "A member of a consumer group may start over with epoch 0 at any time."
    )
    follows_subscriptions: bool = switch(
        "4.2", "KAFKA-19431", "What a member no longer subscribes to counts as absent from its target at once."
    )
    keeps_epoch_while_revoking: bool = switch(
        "4.2",
        "CurrentAssignmentBuilder#build",
        "A member that has given up partitions and has to give up others stays at its epoch; before, it goes on by one.",
    )
    takes_back_revocations: bool = switch("4.2", "KAFKA-19449", "A member that still has to revoke a partition may get it back.")
    drops_regexes: bool = switch(
        "4.2",
        "GroupMetadataManager#maybeUpdateRegularExpressions",
        "A member that drops its expression, or comes back by the classic protocol, which knows none, bumps the group epoch.",
    )
    replaces_streams_groups: bool = switch(
        "4.2",
        "GroupMetadataManager#maybeDeleteEmptyStreamsGroup",
        "A member of the classic protocol takes the place of an empty streams group.",
    )
    tolerates_two_owners: bool = switch(
        "4.2",
        "KAFKA-19862",
        "A partition whose owner is at an older epoch may go to another member, as a compacted log can say.",
    )
    resolves_topic_ids: bool = switch(
        "4.2", "KafkaApis#handleOffsetCommitRequest", "The broker looks up the topic's id for a commit that names none."
    )
    hashes_topics: bool = switch(
        "4.1",
        "KIP-1101",
        "A group keeps a hash of the topics that it subscribes to; before, their ids and numbers of partitions.",
    )
    rebalances_on_downgrade: bool = switch(
        "4.1",
        "GroupMetadataManager#convertToClassicGroup",
        "Whoever makes a consumer group a classic one by coming back gets no target first, and the group rebalances where its"
        " target would have been a new one; before, a target is computed and given to nobody.",
    )
    deletes_each_group_once: bool = switch(
        "4.1",
        "GroupCoordinatorService#deleteGroups",
        "DeleteGroups looks at each group once, in the order of a hash set; before, as often as it is named.",
    )
    keeps_topic_ids: bool = switch("4.1", "OffsetCommitValue.json", "Commits are recorded with the topic's id, if it is known.")
    subscribes_to_nothing: bool = switch(
        "4.0", "GroupMetadataManager", "A member of a consumer group may join without naming a topic."
    )
    tells_why_not_upgraded: bool = switch(
        "4.0",
        "GroupMetadataManager#validateOnlineUpgrade",
        "A member of the consumer protocol hears why it cannot join a classic group.",
    )
    downgrades_by_replacing: bool = switch(
        "4.0",
        "GroupMetadataManager#validateOnlineDowngradeWithReplacedMember",
        "A consumer group becomes a classic one also where a classic member takes the last consumer member's place.",
    )
    keeps_groups_without_offsets: bool = switch(
        "4.0",
        "GroupCoordinatorShard#cleanupGroupMetadata",
        "An empty group outlives the last offset that OffsetDelete takes, until the next cycle of expiry.",
    )

    def is_since(self, version: str) -> bool:
        """Whether this is the version of this name or a later one; every one is since ""."""
        return not version or VERSIONS.index(self.version) >= VERSIONS.index(version)


def switches() -> tuple[Field[Any], ...]:
    """All switches: their names, and in ``metadata`` what `switch` was told of them."""
    return tuple(entry for entry in fields(Profile) if entry.metadata)


def _profile(version: str) -> Profile:
    place = VERSIONS.index(version)
    return Profile(version=version, **{entry.name: place >= VERSIONS.index(entry.metadata["since"]) for entry in switches()})


PROFILES = {version: _profile(version) for version in VERSIONS}
LATEST = PROFILES[VERSIONS[-1]]


def profile_of(version: str) -> Profile:
    """Return the profile of a broker version: "4.2", or a release of it as "4.2.0". Raises `UsageError` for others."""
    found = PROFILES.get(".".join(version.split(".")[:2]))
    if found is None:
        raise UsageError(f"unknown broker version {version!r}{did_you_mean(version, PROFILES)}; there are {', '.join(PROFILES)}")
    return found
