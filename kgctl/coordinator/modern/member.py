"""Members that are told what to own: their states, and how a request of theirs is refused.

Kafka: ModernGroupMember, MemberState.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from types import MappingProxyType

from kgctl.assignors.spec import Target
from kgctl.coordinator.group import Group
from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import copied_set_order, quick_enum


@quick_enum
class MemberState(IntEnum):
    """A member's state, with the number that its record has."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of_record(cls, value: int) -> MemberState:
        """The state a record says; UNKNOWN for a number of a newer broker."""
        return _MEMBER_STATES.get(value, cls.UNKNOWN)


_MEMBER_STATES = {int(state): state for state in MemberState}

NO_TARGET: Target = MappingProxyType({})
LEAVE_EPOCH = -1


def topic_order(names: Sequence[str]) -> tuple[str, ...]:
    """A list of names as the ``HashSet`` copied from it iterates over them."""
    return tuple(copied_set_order(names))


def java_string_order(text: str) -> bytes:
    """A key that sorts as Java compares strings, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    """Raised while a request is looked at; its handler answers with it. ``message`` goes to the client."""

    def __init__(self, error: ErrorCode, message: str = "") -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def missing(kind: type[Group], group_id: str, found: Group | None) -> str:
    """What Kafka says of an id of which there is no group of this type, but ``found``."""
    return f"Group {group_id} not found." if found is None else f"Group {group_id} is not a {kind.type} group."


def check_blank(name: str, value: str | None) -> None:
    """Refuse a text that is there but says nothing. Raises `Refusal`."""
    if value is not None and not value.strip():
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def require(message: str, holds: bool) -> None:  # noqa: FBT001 - reads as an assertion
    """Refuse a request of which this does not hold. Raises `Refusal`."""
    if not holds:
        raise Refusal(ErrorCode.INVALID_REQUEST, message)
