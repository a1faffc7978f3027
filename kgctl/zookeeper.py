"""Consumer groups in ZooKeeper, for programs of one's own: the registry of groups, and a running consumer. Extra ``zookeeper``.

::

    from kgctl.zookeeper import ConsumerGroup, Registry

    with Registry.connect("zk1:2181/kafka") as registry:
        for group in registry.groups():
            print(group.name, len(group.instances()), group.offsets())

Everything is documented where it is defined, in `kgctl.admin.zookeeper`. Without kazoo the import raises
`kgctl.errors.UsageError`, with the line that installs it.
"""

from __future__ import annotations

from kgctl.admin.zookeeper import (
    ChangedMeanwhileError,
    GroupNotFoundError,
    InstanceNotRegisteredError,
    InstanceRegisteredError,
    MalformedNodeError,
    PartitionClaimedError,
    PartitionNotClaimedError,
    Pattern,
    Registration,
    RunningInstancesError,
    SessionLostError,
)
from kgctl.admin.zookeeper.consumer import ConsumerGroup, assign_range
from kgctl.admin.zookeeper.registry import Group, Instance, Registry

__all__ = [
    "ChangedMeanwhileError",
    "ConsumerGroup",
    "Group",
    "GroupNotFoundError",
    "Instance",
    "InstanceNotRegisteredError",
    "InstanceRegisteredError",
    "MalformedNodeError",
    "PartitionClaimedError",
    "PartitionNotClaimedError",
    "Pattern",
    "Registration",
    "Registry",
    "RunningInstancesError",
    "SessionLostError",
    "assign_range",
]
