"""ShareGroupDescribe (KIP-932)."""

from __future__ import annotations

from functools import partial
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share_requests import ShareGroupDescribe
from kgctl.model.share_results import ShareGroupDescribedGroup, ShareGroupDescribedMember, ShareGroupDescribeResult
from kgctl.server.acls import AclOperation, Resource
from kgctl.server.api.consumer_group_describe import UNSEEN, described, named_assignment
from kgctl.server.api.fields import NOT_ASKED
from kgctl.server.cluster import Catalog
from kgctl.server.request_context import SHARE_VERSION, ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each, waited


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """First the groups that the user may not see, then the others in the order of the request."""
    refused, answers = [], []
    for group_id in body.group_ids:
        error = None if context.may(AclOperation.DESCRIBE, Resource.GROUP, group_id) else ErrorCode.GROUP_AUTHORIZATION_FAILED
        if error:
            refused.append(described(ShareGroupDescribedGroup(group_id=group_id, error=error), [], NOT_ASKED))
        else:
            answers.append(_asked(context, group_id))
        yield None
    groups = []
    for answer in answers:
        (group,) = (yield from waited(answer)).groups
        with_operations = body.include_authorized_operations and group.error is ErrorCode.NONE
        operations = context.operations(Resource.GROUP, group.group_id) if with_operations else NOT_ASKED
        if not (yield from _may_see(context, group)):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            group = ShareGroupDescribedGroup(group_id=group.group_id, error=error, error_message=UNSEEN)
            operations = NOT_ASKED
        members = yield from each(group.members, partial(_member, context.services.catalog))
        groups.append(described(group, members, operations))
        yield None
    return {"groups": refused + groups}


def _asked(context: RequestContext, group_id: str) -> Any:
    error = context.not_coordinator(group_id)
    if error is not None:
        return ShareGroupDescribeResult(groups=(ShareGroupDescribedGroup(group_id=group_id, error=error),))
    return context.result(ShareGroupDescribe(**context.core(), group_ids=(group_id,)))


def _may_see(context: RequestContext, group: ShareGroupDescribedGroup) -> Work[bool]:
    """Whether whoever asks may see each topic that the members have."""
    names: set[str] = set()
    for member in group.members if context.services.access.is_asked else ():
        yield None
        topics = (context.services.catalog.by_id(topic_id) for topic_id, _ in member.assignment)
        names.update(topic.name for topic in topics if topic is not None)
    return all(context.may(AclOperation.DESCRIBE, Resource.TOPIC, name) for name in names)


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


def when_off(_: RequestContext, body: Any) -> Values:
    """The broker has share groups, which are not on."""
    off = [ShareGroupDescribedGroup(group_id=group_id, error=ErrorCode.UNSUPPORTED_VERSION) for group_id in body.group_ids]
    return {"groups": [described(group, [], NOT_ASKED) for group in off]}


SPEC = ApiSpec(77, "ShareGroupDescribe", 1, 1, handle, feature=SHARE_VERSION, when_off=when_off)
