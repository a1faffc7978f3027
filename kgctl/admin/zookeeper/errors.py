"""What can go wrong with a group in ZooKeeper, as classes of `kgctl.errors`.

::

    NotFoundError
    +-- GroupNotFoundError             there is no such group
    +-- InstanceNotRegisteredError     the instance is not (or no longer) registered
    +-- PartitionNotClaimedError       the partition is not claimed by this instance
    RefusedError
    +-- RunningInstancesError          instances of the group are running
    +-- InstanceRegisteredError        the instance is registered already
    +-- PartitionClaimedError          another instance has claimed the partition
    +-- ChangedMeanwhileError          others kept changing what was to be written
    UnreachableError
    +-- SessionLostError               the session ended: what was ephemeral is gone
    KgctlError
    +-- MalformedNodeError             a node does not hold what it should
"""

from __future__ import annotations

from kgctl.errors import KgctlError, NotFoundError, RefusedError, UnreachableError


class GroupNotFoundError(NotFoundError):
    """ZooKeeper has no group of this name."""

    slug = "GROUP_ID_NOT_FOUND"

    def __init__(self, group: str) -> None:
        super().__init__(f"group {group!r} does not exist in ZooKeeper", group=group)


class InstanceNotRegisteredError(NotFoundError):
    """The instance is not registered, or its session has ended."""

    slug = "INSTANCE_NOT_REGISTERED"

    def __init__(self, group: str, instance: str) -> None:
        super().__init__(f"instance {instance!r} of group {group!r} is not registered", group=group)


class PartitionNotClaimedError(NotFoundError):
    """The partition cannot be released: this instance has not claimed it."""

    slug = "PARTITION_NOT_CLAIMED"

    def __init__(self, group: str, topic: str, partition: int, instance: str) -> None:
        message = f"{topic}-{partition} of group {group!r} is not claimed by instance {instance!r}"
        super().__init__(message, group=group, topic=topic, partition=partition)


class RunningInstancesError(RefusedError):
    """Instances of the group are running, so it must be left alone."""

    slug = "NON_EMPTY_GROUP"

    def __init__(self, group: str, count: int | None = None) -> None:
        running = "instances are" if count is None else f"{count} instance{' is' if count == 1 else 's are'}"
        super().__init__(f"group {group!r} is active: {running} running; stop its consumers first", group=group)


class InstanceRegisteredError(RefusedError):
    """The instance is registered already, by this session or another."""

    slug = "INSTANCE_ALREADY_REGISTERED"

    def __init__(self, group: str, instance: str) -> None:
        super().__init__(f"instance {instance!r} of group {group!r} is registered already", group=group)


class PartitionClaimedError(RefusedError):
    """Another instance (``owner``) has the partition: wait for its release and try again."""

    slug = "PARTITION_CLAIMED_BY_OTHER"

    def __init__(self, group: str, topic: str, partition: int, owner: str) -> None:
        message = f"{topic}-{partition} of group {group!r} is claimed by instance {owner!r}"
        super().__init__(message, group=group, topic=topic, partition=partition)
        self.owner = owner


class ChangedMeanwhileError(RefusedError):
    """Others changed the group at each attempt to write; nothing was written by the last one."""

    slug = "CHANGED_MEANWHILE"

    def __init__(self, group: str, attempts: int) -> None:
        super().__init__(f"group {group!r} was changed by others at each of {attempts} attempts to write", group=group)


class SessionLostError(UnreachableError):
    """ZooKeeper ended the session, and with it this client's registrations and claims."""

    slug = "SESSION_LOST"


class MalformedNodeError(KgctlError):
    """A node holds something that no consumer writes there; ``path`` is the node's."""

    slug = "MALFORMED_NODE"

    def __init__(self, path: str, problem: str, *, group: str | None = None) -> None:
        super().__init__(f"{path}: {problem}", group=group)
        self.path = path
