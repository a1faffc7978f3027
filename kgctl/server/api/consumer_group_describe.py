"""ConsumerGroupDescribe: groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribedMember,
    ConsumerGroupDescribeResult,
    TopicPartitions,
)
from kgctl.model.share_results import ShareGroupDescribedGroup
from kgctl.server.acls import AclOperation, Resource
from kgctl.server.api.fields import NOT_ASKED
from kgctl.server.cluster import Catalog
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each, waited

UNSEEN = "The group has described topic(s) that the client is not authorized to describe."


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """In the order of the request; a classic group is GROUP_ID_NOT_FOUND here, which makes clients ask DescribeGroups."""
    answers = []
    for group_id in body.group_ids:
        error = context.group_error(AclOperation.DESCRIBE, group_id)
        elsewhere = ConsumerGroupDescribeResult(
            groups=(ConsumerGroupDescribedGroup(group_id=group_id, error=error or ErrorCode.NONE),)
        )
        found = elsewhere if error else context.result(ConsumerGroupDescribe(**context.core(), group_ids=(group_id,)))
        answers.append(found)
        yield None
    groups = []
    for answer in answers:
        (group,) = (yield from waited(answer)).groups
        if not (yield from _may_see(context, group)):
            group = ConsumerGroupDescribedGroup(
                group_id=group.group_id, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=UNSEEN
            )
        with_operations = body.include_authorized_operations and group.error is ErrorCode.NONE
        operations = context.operations(Resource.GROUP, group.group_id) if with_operations else NOT_ASKED
        members = yield from each(group.members, partial(_member, context.services.catalog))
        groups.append(described(group, members, operations))
        yield None
    return {"groups": groups}


def _may_see(context: RequestContext, group: ConsumerGroupDescribedGroup) -> Work[bool]:
    """Whether whoever asks may see each topic that the members subscribe to or have. Kafka: KafkaApis."""
    names: set[str] = set()
    for member in group.members if context.services.access.is_asked else ():
        yield None
        topics = (context.services.catalog.by_id(each) for each, _ in (*member.assignment, *member.target_assignment))
        names.update(member.subscribed_topic_names, (topic.name for topic in topics if topic is not None))
    return all(context.may(AclOperation.DESCRIBE, Resource.TOPIC, name) for name in names)


def described(
    group: ConsumerGroupDescribedGroup | ShareGroupDescribedGroup, members: list[dict[str, Any]], operations: int
) -> dict[str, Any]:
    """The answer of one group, which is the same of share groups."""
    return {
        "error_code": group.error,
        "error_message": group.error_message,
        "group_id": group.group_id,
        "group_state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": group.assignor_name,
        "members": members,
        "authorized_operations": operations,
    }


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


def when_off(_: RequestContext, body: Any) -> Values:
    """The consumer protocol is not among those that the broker is configured for."""
    off = [ConsumerGroupDescribedGroup(group_id=group_id, error=ErrorCode.UNSUPPORTED_VERSION) for group_id in body.group_ids]
    return {"groups": [described(group, [], NOT_ASKED) for group in off]}


SPEC = ApiSpec(69, "ConsumerGroupDescribe", 0, 1, handle, protocol="consumer", when_off=when_off)
