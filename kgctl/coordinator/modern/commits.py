"""Whether members that are at an epoch may commit or fetch offsets. Kafka: ConsumerGroup, StreamsGroup, #validateOffsetCommit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import OffsetCommit, OffsetFetch, TxnOffsetCommit

_MEMBER_EPOCH_VERSION = 9
"""OffsetCommit says a member epoch, not a generation, from this version on."""


class CommittingMember(Protocol):
    """What is asked of a member."""

    @property
    def member_epoch(self) -> int:
        """Return the epoch it is at."""
        ...

    @property
    def uses_classic_protocol(self) -> bool:
        """Return whether it knows generations only."""
        ...


C = TypeVar("C", bound=CommittingMember)


def commit_error(
    members: Mapping[str, C], request: OffsetCommit | TxnOffsetCommit, has_owned_all: Callable[[C], bool]
) -> ErrorCode:
    """The error for the whole request, or NONE.

    ``has_owned_all`` says whether the member has owned all that it commits since the older epoch that it names (KIP-1251): a
    commit that was under way while it went on to the next epoch is not lost.
    """
    transactional = isinstance(request, TxnOffsetCommit)
    anonymous = request.generation_id == -1 and not request.member_id and request.group_instance_id is None
    if (request.generation_id < 0 and not members) or (transactional and anonymous):
        return ErrorCode.NONE
    member = members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not transactional and not member.uses_classic_protocol and request.api_version < _MEMBER_EPOCH_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION
    epoch = member.member_epoch
    if request.generation_id == epoch or (request.generation_id < epoch and has_owned_all(member)):
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if transactional or member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH


def fetch_error(members: Mapping[str, C], request: OffsetFetch) -> ErrorCode:
    """The error for the whole fetch, or NONE: anybody may look who does not claim to be a member.

    With an epoch but no member id, Kafka looks for the member null in a map that has no null, and fails.
    """
    if request.member_id is None:
        return ErrorCode.NONE if request.member_epoch < 0 else ErrorCode.UNKNOWN_SERVER_ERROR
    member = members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if request.member_epoch == member.member_epoch:
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
