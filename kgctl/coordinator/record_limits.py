"""Requests whose names no record could hold.

Strings of a record's key and of a classic group's value begin with an int16 length, so none is longer than 32,767 bytes. Requests
of flexible versions can carry longer ones. Kafka finds out when it serialises the records, and answers UNKNOWN_SERVER_ERROR with
nothing changed; the core applies a record as it is made, so it looks before. Kafka: GroupCoordinatorRecordSerde.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kgctl.coordinator.requests import ConsumerGroupHeartbeat, JoinGroup, OffsetCommit, Request, TxnOffsetCommit

MAX_STRING_BYTES = 32_767
_MEMBER_ID_SUFFIX_BYTES = len("-00000000-0000-0000-0000-000000000000")
_PADDING = "-" * _MEMBER_ID_SUFFIX_BYTES
_SURELY_SHORT = (MAX_STRING_BYTES - _MEMBER_ID_SUFFIX_BYTES) // 4  # no UTF-8 character has more than four bytes


def fits_records(request: Request) -> bool:
    """Whether every name that ``request`` may put into a record fits; requests that write no names always do."""
    names = _NAMES.get(type(request))
    if names is not None:
        for name in names(request):
            if name is not None and len(name) > _SURELY_SHORT and not _fits(name):
                return False
    return True


def _fits(name: str) -> bool:
    return len(name.encode()) <= MAX_STRING_BYTES


def _names_of_join(request: JoinGroup) -> Iterable[str | None]:
    """A new member's id is its client id or instance id with a UUID behind it, and has to fit as well."""
    new_ids = (request.client_id + _PADDING, (request.group_instance_id or "") + _PADDING)
    return (request.group_id, request.member_id, request.protocol_type, *new_ids, *[one.name for one in request.protocols])


def _names_of_commit(request: OffsetCommit | TxnOffsetCommit) -> Iterable[str | None]:
    return (request.group_id, *{partition.topic: None for partition in request.partitions})


def _names_of_consumer_heartbeat(request: ConsumerGroupHeartbeat) -> Iterable[str | None]:
    return (request.group_id, request.member_id, request.subscribed_topic_regex)


_NAMES: dict[type[Request], Callable[[Any], Iterable[str | None]]] = {
    JoinGroup: _names_of_join,
    OffsetCommit: _names_of_commit,
    TxnOffsetCommit: _names_of_commit,
    ConsumerGroupHeartbeat: _names_of_consumer_heartbeat,
}
