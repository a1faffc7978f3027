"""Who a member is to the metrics: the pod, or the id that the coordinator knows it by."""

from __future__ import annotations

from enum import StrEnum

MemberKey = tuple[int, int]
"""A pod's number, and which of its lives is meant: always 0 where the pod is all that counts."""


class Identity(StrEnum):
    """What makes an owner another one: a pod that comes back with a new ``member.id`` is the same by POD only."""

    POD = "pod"
    MEMBER_ID = "member-id"
