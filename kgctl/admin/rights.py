"""The rights that requests need, and errors for want of one, which name it and the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kgctl.admin import ItemError, K, Results, T, shown_user
from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import frozen_in_order


@frozen_in_order
class Needs:
    """The rights that a request needs: the operation on the group, and that on the topics, by Kafka's names; "" for none."""

    group: str = ""
    topic: str = ""

    def _lacking(self, code: ErrorCode) -> tuple[str, str]:
        if code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return self.group, "group"
        return (self.topic, "topic") if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED else ("", "")

    @property
    def group_bit(self) -> int:
        """Return what stands for the operation on the group where a broker tells what a user may do; 0 for none."""
        return AclOperation[self.group].bit if self.group else 0

    @property
    def topic_bit(self) -> int:
        """As `group_bit`, of that on the topics."""
        return AclOperation[self.topic].bit if self.topic else 0

    def told(self, results: Results[K, T], user: str | None) -> Results[K, T]:
        """The results; errors for want of a right name it, and the user."""
        if not any(self._lacking(error.code)[0] for error in results.errors.values()):
            return results
        return replace(results, errors=self.told_errors(results.errors, user))

    def told_errors(self, errors: Mapping[K, ItemError], user: str | None) -> dict[K, ItemError]:
        """Return what `told` returns, of the errors alone."""
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
DELETE_TOPICS = Needs(topic="DELETE")
