"""The APIs that kgctl speaks as a client, and the versions of each that it knows how to use."""

from __future__ import annotations

from typing import NamedTuple

from kgctl.errors import UnsupportedError


class Api(NamedTuple):
    """An API key and the lowest and highest version in use here."""

    key: int
    name: str
    lowest: int
    highest: int


FETCH = Api(1, "Fetch", 4, 12)  # from version 13 on topics have ids, no names
LIST_OFFSETS = Api(2, "ListOffsets", 1, 9)
METADATA = Api(3, "Metadata", 1, 12)
OFFSET_COMMIT = Api(8, "OffsetCommit", 2, 9)  # from version 10 on topics have ids, no names
OFFSET_FETCH = Api(9, "OffsetFetch", 2, 9)  # null for all topics since version 2; ids from 10 on
FIND_COORDINATOR = Api(10, "FindCoordinator", 0, 6)
JOIN_GROUP = Api(11, "JoinGroup", 0, 9)
HEARTBEAT = Api(12, "Heartbeat", 0, 4)
LEAVE_GROUP = Api(13, "LeaveGroup", 3, 5)  # several members since version 3
SYNC_GROUP = Api(14, "SyncGroup", 0, 5)
DESCRIBE_GROUPS = Api(15, "DescribeGroups", 0, 6)
LIST_GROUPS = Api(16, "ListGroups", 0, 5)
SASL_HANDSHAKE = Api(17, "SaslHandshake", 1, 1)
API_VERSIONS = Api(18, "ApiVersions", 0, 3)
SASL_AUTHENTICATE = Api(36, "SaslAuthenticate", 0, 2)
DELETE_GROUPS = Api(42, "DeleteGroups", 0, 2)
OFFSET_DELETE = Api(47, "OffsetDelete", 0, 0)
DESCRIBE_CLUSTER = Api(60, "DescribeCluster", 0, 2)
CONSUMER_GROUP_HEARTBEAT = Api(68, "ConsumerGroupHeartbeat", 0, 1)
CONSUMER_GROUP_DESCRIBE = Api(69, "ConsumerGroupDescribe", 0, 1)


class BrokerVersions:
    """What a broker said it serves."""

    def __init__(self, ranges: dict[int, tuple[int, int]], broker: str) -> None:
        self._ranges = ranges
        self._broker = broker

    def has(self, api: Api) -> bool:
        """Whether there is a version that both sides know."""
        return self._common(api) is not None

    def pick(self, api: Api) -> int:
        """The highest version that both sides know; raises `UnsupportedError`."""
        version = self._common(api)
        if version is None:
            raise UnsupportedError(f"{self._broker} does not serve {api.name} in a version that kgctl knows")
        return version

    def _common(self, api: Api) -> int | None:
        lowest, highest = self._ranges.get(api.key, (0, -1))
        version = min(highest, api.highest)
        return version if version >= max(lowest, api.lowest) else None
