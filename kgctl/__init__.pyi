"""What type checkers see of the public API, which `kgctl/__init__.py` imports when it is used."""

from kgctl import errors as errors
from kgctl import results as results
from kgctl import testing as testing
from kgctl.admin import GroupAdmin as GroupAdmin
from kgctl.assignors.spec import Assignor as Assignor
from kgctl.assignors.spec import GroupSpec as GroupSpec
from kgctl.assignors.spec import MemberSpec as MemberSpec
from kgctl.assignors.spec import TopicSpec as TopicSpec
from kgctl.group.async_group import AsyncConsumerGroup as AsyncConsumerGroup
from kgctl.group.consumer_group import ConsumerGroup as ConsumerGroup
from kgctl.group.generation import Generation as Generation
from kgctl.library.assignors import Assigned as Assigned
from kgctl.library.assignors import aiokafka_assignor as aiokafka_assignor
from kgctl.library.assignors import assign as assign
from kgctl.library.assignors import kafka_python_assignor as kafka_python_assignor
from kgctl.library.async_coordinator import AsyncCoordinator as AsyncCoordinator
from kgctl.library.clusters import Admin as Admin
from kgctl.library.clusters import AsyncAdmin as AsyncAdmin
from kgctl.library.clusters import AsyncPlan as AsyncPlan
from kgctl.library.clusters import Plan as Plan
from kgctl.library.clusters import connect as connect
from kgctl.library.coordinator import Coordinator as Coordinator
from kgctl.library.group_info import GroupInfo as GroupInfo
from kgctl.library.group_info import MemberInfo as MemberInfo
from kgctl.library.member_fields import decode_assignment as decode_assignment
from kgctl.library.simulation import simulate as simulate
from kgctl.model.error_codes import ErrorCode as ErrorCode
from kgctl.model.groups import GroupState as GroupState
from kgctl.model.groups import GroupType as GroupType
from kgctl.model.groups import OffsetAndMetadata as OffsetAndMetadata
from kgctl.model.groups import TopicPartition as TopicPartition
from kgctl.storage.folder import MemoryOffsetStorage as MemoryOffsetStorage
from kgctl.storage.folder import OffsetStorage as OffsetStorage
from kgctl.storage.folder import SqliteOffsetStorage as SqliteOffsetStorage
from kgctl.storage.folder import StoredOffset as StoredOffset

__all__: list[str]
__version__: str
_DEPRECATED: dict[str, tuple[str, str]]
