"""What handlers reach: the parts of one running server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kgctl.server.catalog import Catalog
    from kgctl.server.cluster import Cluster
    from kgctl.server.group_configs import GroupConfigs
    from kgctl.server.options import BrokerConfig
    from kgctl.server.partition_data import PartitionData
    from kgctl.server.producers.sequences import Producers
    from kgctl.server.producers.transactions import Transactions
    from kgctl.server.registry import Registry
    from kgctl.server.runtime import CoordinatorRuntime


@dataclass(slots=True)
class Services:
    """The parts, wired once by `kgctl.server.service`."""

    registry: Registry
    config: BrokerConfig
    cluster: Cluster
    catalog: Catalog
    runtime: CoordinatorRuntime
    data: PartitionData
    producers: Producers
    transactions: Transactions
    group_configs: GroupConfigs
    given_config: Mapping[str, str]
