"""ShareGroupDescribe (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kgctl.model.share_requests import ShareGroupDescribe
from kgctl.model.share_results import ShareGroupDescribedGroup, ShareGroupDescribedMember, ShareGroupDescribeResult
from kgctl.server.api.consumer_group_describe import GroupDescriptions, assignor_name, named_assignment
from kgctl.server.cluster import Catalog
from kgctl.server.request_context import SHARE_VERSION, ApiSpec
from kgctl.server.runtime import Values


def _topics(catalog: Catalog, group: ShareGroupDescribedGroup) -> Iterator[Iterable[str]]:
    """What the members have."""
    for member in group.members:
        topics = (catalog.by_id(topic_id) for topic_id, _ in member.assignment)
        yield [topic.name for topic in topics if topic is not None]


def _member(catalog: Catalog, member: ShareGroupDescribedMember) -> Values:
    return {
        "member_id": member.member_id,
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": member.subscribed_topic_names,
        "assignment": named_assignment(catalog, member.assignment),
    }


_DESCRIPTIONS = GroupDescriptions(
    ShareGroupDescribe, ShareGroupDescribeResult, ShareGroupDescribedGroup, assignor_name, _member, _topics
)
SPEC = ApiSpec(77, "ShareGroupDescribe", 1, 1, _DESCRIPTIONS.handle, feature=SHARE_VERSION, when_off=_DESCRIPTIONS.when_off)
