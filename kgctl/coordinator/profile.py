"""What differs between the group coordinators of Kafka's versions, a named switch each.

A version's coordinator is `PROFILES`' entry of its name. Handlers ask for a switch, never for a version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kgctl.errors import UsageError, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The switches; their defaults are those of the newest version."""

    version: str
    first_epoch: int = 1
    """The epoch of a group and of its target before anybody has joined (4.3: KIP-1263; 0 before, which each first join bumps)."""
    has_assignment_interval: bool = True
    """A target may be older than the group epoch for a while: its record says when it was made, and members that use the classic
    protocol are called back for a new target only, not for a new group epoch (4.3: KIP-1263)."""
    has_partition_epochs: bool = True
    """Partitions are recorded with the epoch at which the member got them, from which on its commits count (4.3: KIP-1251)."""
    describes_revocations: bool = True
    """ConsumerGroupDescribe counts what a member still has to revoke as its own (4.3: KAFKA-20106)."""
    needs_no_target_to_downgrade: bool = True
    """A member that has never had a target keeps no consumer group from becoming a classic one (4.3)."""
    closes_consumer_groups: bool = True
    """With the migration policy "disabled", nobody joins a consumer group by the classic protocol (4.3: KAFKA-20118)."""
    rejoins_at_epoch_0: bool = True
    """A member of a consumer group may start over with epoch 0 at any time (4.2); before, only one that has owned nothing more."""
    follows_subscriptions: bool = True
    """What a member no longer subscribes to counts as absent from its target at once (4.2)."""
    keeps_epoch_while_revoking: bool = True
    """A member that has given up partitions and has to give up others stays at its epoch (4.2); before, it goes on by one."""
    takes_back_revocations: bool = True
    """A member that still has to revoke a partition may get it back (4.2)."""
    drops_regexes: bool = True
    """A member that drops its expression, or comes back by the classic protocol, which knows none, bumps the group epoch (4.2)."""
    replaces_streams_groups: bool = True
    """A member of the classic protocol takes the place of an empty streams group (4.2)."""
    tolerates_two_owners: bool = True
    """A partition whose owner is at an older epoch may go to another member, which a compacted log can say (4.2)."""
    hashes_topics: bool = True
    """A group keeps a hash of the topics that it subscribes to (4.1: KIP-1101); before, their ids and numbers of partitions."""
    rebalances_on_downgrade: bool = True
    """Whoever makes a consumer group a classic one by coming back gets no target first, and a group whose target would have been
    a new one rebalances (4.1); before, a target is computed and given to nobody."""
    deletes_each_group_once: bool = True
    """DeleteGroups looks at each group that is named once, in the order of a hash set (4.1); before, as often as it is named."""
    keeps_topic_ids: bool = True
    """Commits are recorded with the topic's id (4.1)."""
    deletes_offsets_by_topic_id: bool = True
    """With a topic go the offsets that were committed for it, not those of all its partitions' names (4.3: KAFKA-19862)."""

    def is_since(self, version: str) -> bool:
        """Whether this is the version of this name or a later one; every one is since ""."""
        return _number(self.version) >= _number(version)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)


_4_3 = Profile(version="4.3")
_4_2 = replace(
    _4_3,
    version="4.2",
    first_epoch=0,
    has_assignment_interval=False,
    has_partition_epochs=False,
    describes_revocations=False,
    needs_no_target_to_downgrade=False,
    closes_consumer_groups=False,
    deletes_offsets_by_topic_id=False,
)
_4_1 = replace(
    _4_2,
    version="4.1",
    rejoins_at_epoch_0=False,
    follows_subscriptions=False,
    keeps_epoch_while_revoking=False,
    takes_back_revocations=False,
    drops_regexes=False,
    replaces_streams_groups=False,
    tolerates_two_owners=False,
)
_4_0 = replace(
    _4_1,
    version="4.0",
    hashes_topics=False,
    rebalances_on_downgrade=False,
    deletes_each_group_once=False,
    keeps_topic_ids=False,
)

PROFILES = {profile.version: profile for profile in (_4_0, _4_1, _4_2, _4_3)}
LATEST = _4_3


def profile_of(version: str) -> Profile:
    """Return the profile of a broker version: "4.2", or a release of it as "4.2.0". Raises `UsageError` for one that there is none of."""
    found = PROFILES.get(".".join(version.split(".")[:2]))
    if found is None:
        raise UsageError(f"unknown broker version {version!r}{did_you_mean(version, PROFILES)}; there are {', '.join(PROFILES)}")
    return found
