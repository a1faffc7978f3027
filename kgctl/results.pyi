from kgctl.admin import ItemError as ItemError
from kgctl.admin import Results as Results
from kgctl.admin import Sight as Sight
from kgctl.admin.offset_reset import Clamp as Clamp
from kgctl.admin.offset_reset import ResetResult as ResetResult
from kgctl.admin.offset_reset import ResetRow as ResetRow
from kgctl.assignors.spec import StickyClaim as StickyClaim
from kgctl.library.group_info import MemberPhase as MemberPhase
from kgctl.library.simulation import Run as Run
from kgctl.library.simulation import Simulated as Simulated
from kgctl.model.groups import ByPartition as ByPartition
from kgctl.model.groups import Committable as Committable
from kgctl.model.groups import GroupDescription as GroupDescription
from kgctl.model.groups import GroupListing as GroupListing
from kgctl.model.groups import LogOffsets as LogOffsets
from kgctl.model.groups import MemberDescription as MemberDescription
from kgctl.model.groups import Node as Node
from kgctl.model.requests import AwaitedMember as AwaitedMember
from kgctl.model.requests import CoordinatorStatistics as CoordinatorStatistics
from kgctl.model.requests import JoinGroupMember as JoinGroupMember
from kgctl.model.requests import JoinGroupResult as JoinGroupResult
from kgctl.model.requests import RebalanceStatus as RebalanceStatus
from kgctl.storage.record_log import CommitEntry as CommitEntry

__all__: list[str]
