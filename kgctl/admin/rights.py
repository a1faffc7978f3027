"""Rights: what a user may not see of a cluster, and which right lacks where something is refused.

Brokers leave groups and topics that a user may not describe out of their answers, without an error. Whether they do so for this
user is found out with names that nobody has: a user who may describe everything is told that there is no such thing, any other
that he lacks the right.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from kgctl.admin.results import ItemError, Results
from kgctl.model.error_codes import ErrorCode

NO_SUCH_NAME = "zz.name-that-no-group-and-no-topic-has"
"""Asked for in place of all that a user may not know of."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sight:
    """Whether a user sees every group and every topic; where not, groups, or commits on topics, may be hidden from him.

    One who may describe everything but some topics that are denied to him by name cannot be told from one who sees all.
    """

    all_groups: bool = True
    all_topics: bool = True
    user: str | None = None

    @property
    def lacks_groups(self) -> str:
        """Which right lacks to see every group; "" where none does."""
        return "" if self.all_groups else f"{shown_user(self.user)} lacks the right DESCRIBE on all groups"

    @property
    def lacks_topics(self) -> str:
        """Which right lacks to see the commits on every topic; "" where none does."""
        return "" if self.all_topics else f"{shown_user(self.user)} lacks the right DESCRIBE on all topics"


def shown_user(user: str | None) -> str:
    """``user 'alice'``, or ``this user`` where the name is not known."""
    return f"user {user!r}" if user else "this user"


@dataclass(frozen=True, slots=True)
class Needs:
    """The rights that a request needs: the operation on the group, and that on the topics, by Kafka's names; "" for none."""

    group: str = ""
    topic: str = ""

    def _lacking(self, code: ErrorCode) -> tuple[str, str]:
        if code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return self.group, "group"
        return (self.topic, "topic") if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED else ("", "")

    def told(self, results: Results[K, T], user: str | None) -> Results[K, T]:
        """The results; errors for want of a right name it, and the user."""
        if not any(self._lacking(error.code)[0] for error in results.errors.values()):
            return results
        return replace(results, errors=self.told_errors(results.errors, user))

    def told_errors(self, errors: Mapping[K, ItemError], user: str | None) -> dict[K, ItemError]:
        """As `told`, for the errors alone."""
        return {key: self._told(error, user) for key, error in errors.items()}

    def _told(self, error: ItemError, user: str | None) -> ItemError:
        operation, kind = self._lacking(error.code)
        if not operation:
            return error
        return replace(error, message=f"{error.message}: {shown_user(user)} lacks the right {operation} on the {kind}")


LOOK = Needs("DESCRIBE", "DESCRIBE")
READ = Needs(topic="READ")
COMMIT = Needs("READ", "READ")
DELETE_GROUP = Needs("DELETE")
DELETE_OFFSETS = Needs("DELETE", "READ")
REMOVE_MEMBERS = Needs("READ")
