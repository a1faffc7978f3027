"""ConsumerGroupDescribe: groups of the consumer protocol (KIP-848); and how its like for other types of groups are answered.

A classic group is GROUP_ID_NOT_FOUND here, which makes clients ask DescribeGroups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from kgctl.model.access import NOT_TOLD, AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribedMember,
    ConsumerGroupDescribeResult,
    TopicPartitions,
)
from kgctl.model.share_results import ShareGroupDescribedGroup
from kgctl.server.cluster import Catalog
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each, waited

TOPICS_DESCRIBED = "The group has described topic(s) that the client is not authorized to describe."


class GroupDescriptions(NamedTuple):
    """One of these APIs: its coordinator's request, result and group, and what it says of a group and of a member."""

    request: Callable[..., Any]
    result: Callable[..., Any]
    group: Callable[..., Any]
    own: Callable[[Any], Values]
    """What only groups of this type have, but for the members."""
    member: Callable[[Catalog, Any], Values]
    topics: Callable[[Catalog, Any], Iterable[Iterable[str]]]
    """The names of a group's topics, in steps: who may not see each of them is told nothing."""
    unseen: str = TOPICS_DESCRIBED
    forbidden_first: bool = True
    """Whether groups that the user may not see come before all others; else all are in the order of the request."""

    def handle(self, context: RequestContext, body: Any) -> Work[Values]:
        """Every group is asked for before the first one is waited for."""
        forbidden, answers = [], []
        for group_id in body.group_ids:
            error = context.group_error(AclOperation.DESCRIBE, group_id)
            if error is ErrorCode.GROUP_AUTHORIZATION_FAILED and self.forbidden_first:
                forbidden.append(self._rendered(self.group(group_id=group_id, error=error)))
            elif error:
                answers.append(self.result(groups=(self.group(group_id=group_id, error=error),)))
            else:
                answers.append(context.result(self.request(**context.core(), group_ids=(group_id,))))
            yield None
        groups = []
        for answer in answers:
            (group,) = (yield from waited(answer)).groups
            if not (yield from self._may_see(context, group)):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                group = self.group(group_id=group.group_id, error=error, error_message=self.unseen)
            with_operations = body.include_authorized_operations and group.error is ErrorCode.NONE
            operations = context.operations(Resource.GROUP, group.group_id) if with_operations else NOT_TOLD
            members = yield from each(group.members, partial(self.member, context.services.catalog))
            groups.append(self._rendered(group, members, operations))
            yield None
        return {"groups": forbidden + groups}

    def _may_see(self, context: RequestContext, group: Any) -> Work[bool]:
        names: set[str] = set()
        for some in self.topics(context.services.catalog, group) if context.services.access.is_asked else ():
            names.update(some)
            yield None
        return all(context.may(AclOperation.DESCRIBE, Resource.TOPIC, name) for name in names)

    def _rendered(self, group: Any, members: Sequence[Values] = (), operations: int = NOT_TOLD) -> Values:
        return {
            "error_code": group.error,
            "error_message": group.error_message,
            "group_id": group.group_id,
            "group_state": group.state,
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            **self.own(group),
            "members": members,
            "authorized_operations": operations,
        }

    def when_off(self, _: RequestContext, body: Any) -> Values:
        """The broker has no groups of this type, or they are not on."""
        off = (self.group(group_id=group_id, error=ErrorCode.UNSUPPORTED_VERSION) for group_id in body.group_ids)
        return {"groups": [self._rendered(group) for group in off]}


def _topics(catalog: Catalog, group: ConsumerGroupDescribedGroup) -> Iterator[Iterable[str]]:
    """What the members subscribe to or have."""
    for member in group.members:
        topics = (catalog.by_id(each) for each, _ in (*member.assignment, *member.target_assignment))
        yield (*member.subscribed_topic_names, *(topic.name for topic in topics if topic is not None))


def assignor_name(group: ConsumerGroupDescribedGroup | ShareGroupDescribedGroup) -> Values:
    """The one thing that is said of groups whose members have partitions only."""
    return {"assignor_name": group.assignor_name}


def _member(catalog: Catalog, member: ConsumerGroupDescribedMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": member.subscribed_topic_names,
        "subscribed_topic_regex": member.subscribed_topic_regex,
        "assignment": named_assignment(catalog, member.assignment),
        "target_assignment": named_assignment(catalog, member.target_assignment),
        "member_type": member.member_type,
    }


def named_assignment(catalog: Catalog, topic_partitions: TopicPartitions) -> dict[str, Any]:
    """Topics that are gone have no name any more and are left out, as in Kafka."""
    known = [(catalog.by_id(topic_id), partitions) for topic_id, partitions in topic_partitions]
    return {
        "topic_partitions": [
            {"topic_id": topic.topic_id, "topic_name": topic.name, "partitions": partitions}
            for topic, partitions in known
            if topic is not None
        ]
    }


_DESCRIPTIONS = GroupDescriptions(
    ConsumerGroupDescribe,
    ConsumerGroupDescribeResult,
    ConsumerGroupDescribedGroup,
    assignor_name,
    _member,
    _topics,
    forbidden_first=False,
)
SPEC = ApiSpec(69, "ConsumerGroupDescribe", 0, 1, _DESCRIPTIONS.handle, protocol="consumer", when_off=_DESCRIPTIONS.when_off)
