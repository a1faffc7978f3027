"""What access control lists allow: rules, filters over them, and the decision. No file, no clock, no connection.

Kafka: StandardAuthorizerData, Authorizer#authorizeByResourceType, ResourcePatternFilter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from kgctl.errors import UsageError, did_you_mean
from kgctl.model.access import AclOperation, Resource

ANY = 1
"""In a filter of every kind: whatever it is."""


class AclPattern(IntEnum):
    """What the name of a rule stands for; MATCH, in filters alone: every rule that concerns a resource of this name."""

    MATCH, LITERAL, PREFIXED = range(2, 5)


class Permission(IntEnum):
    """Whether a rule gives a right or takes it away."""

    DENY, ALLOW = range(2, 4)


CLUSTER_NAME = "kafka-cluster"
"""The only name of a cluster."""
WILDCARD = "*"
EVERYONE = "User:*"
_IMPLY = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}
"""Who may do one of these may do that, too. A rule that denies one of them denies nothing else."""


class Acl(NamedTuple):
    """One rule, its fields in the order of the protocol."""

    resource: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    def concerns(self, principal: str, host: str, operation: AclOperation) -> bool:
        """Whether it says anything about who does what; its resource has been looked at."""
        return (
            self.principal in (principal, EVERYONE)
            and self.host in (host, WILDCARD)
            and (
                self.operation in (operation, AclOperation.ALL)
                or (self.permission == Permission.ALLOW and self.operation in _IMPLY.get(operation, ()))
            )
        )

    def is_about(self, resource: Resource, name: str) -> bool:
        """Whether it is a rule for this resource."""
        if self.resource != resource:
            return False
        return name.startswith(self.name) if self.pattern == AclPattern.PREFIXED else self.name in (name, WILDCARD)


class AclFilter(NamedTuple):
    """Which rules are meant: None is any name, principal or host, `ANY` any of the others."""

    resource: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches(self, rule: Acl) -> bool:
        """Whether the rule passes all parts."""
        return (
            self.resource in (ANY, rule.resource)
            and self.pattern in (ANY, AclPattern.MATCH, rule.pattern)
            and self._names(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (ANY, rule.operation)
            and self.permission in (ANY, rule.permission)
        )

    def _names(self, rule: Acl) -> bool:
        if self.name is None or self.name == rule.name:
            return True
        return self.pattern == AclPattern.MATCH and rule.is_about(Resource(rule.resource), self.name)


class Rules:
    """Rules, found by the resources that they are about."""

    def __init__(self, rules: Iterable[Acl] = ()) -> None:
        self._all = dict.fromkeys(rules)
        self._named: dict[tuple[int, int, str], list[Acl]] = {}
        for rule in self._all:
            self._named.setdefault((rule.resource, rule.pattern, rule.name), []).append(rule)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def about(self, resource: Resource, name: str) -> Iterator[Acl]:
        """Those for a resource of this name: of the name itself, of all names, of each beginning of it."""
        for literal in dict.fromkeys((name, WILDCARD)):
            yield from self._named.get((resource, AclPattern.LITERAL, literal), ())
        for end in range(len(name) + 1):
            yield from self._named.get((resource, AclPattern.PREFIXED, name[:end]), ())

    def allow(self, who: Who, operation: AclOperation, resource: Resource, name: str, *, by_default: bool) -> bool:
        """Whether somebody may do this. One that denies it is enough; ``by_default``: where no rule is about it."""
        about = list(self.about(resource, name))
        permissions = {rule.permission for rule in about if rule.concerns(who.principal, who.host, operation)}
        if Permission.DENY in permissions:
            return False
        return Permission.ALLOW in permissions or (by_default and not about)

    def allow_any(self, who: Who, operation: AclOperation, resource: Resource) -> bool:
        """Whether there is some resource of this kind with which somebody may do this: no rule that allows it is all denied."""
        rules = [
            rule
            for rule in self._all
            if rule.resource == resource
            and rule.principal in (who.principal, EVERYONE)
            and rule.host in (who.host, WILDCARD)
            and rule.operation in (operation, AclOperation.ALL)
        ]
        denials = {(rule.pattern, rule.name) for rule in rules if rule.permission == Permission.DENY}
        allowed = {(rule.pattern, rule.name) for rule in rules if rule.permission == Permission.ALLOW}
        everything = (AclPattern.LITERAL, WILDCARD)
        if everything in denials:
            return False
        return any(each == everything or not _is_denied(each, denials) for each in allowed)


def _is_denied(allowed: tuple[int, str], denials: set[tuple[int, str]]) -> bool:
    pattern, name = allowed
    beginnings = (name[:end] for end in range(1, len(name) + 1))
    return (pattern == AclPattern.LITERAL and allowed in denials) or any(
        (AclPattern.PREFIXED, each) in denials for each in beginnings
    )


class Who(NamedTuple):
    """Who asks: a principal as ``User:alice``, and the address that it comes from."""

    principal: str
    host: str


def parse_acl(text: str) -> list[Acl]:
    """``allow|deny PRINCIPAL[@HOST] OPERATION[,OPERATION...] RESOURCE:NAME`` as rules, one an operation.

    Words are Kafka's, in any case. A principal without ``User:`` is a user; the name ends in ``*`` for all that begin so; the
    cluster needs no name. Raises `UsageError`.
    """
    words = text.split()
    if len(words) < len(("permission", "who", "operations", "resource")):
        raise UsageError(f"{text!r} is no access rule such as 'allow User:alice read,describe topic:orders'")
    permission = _word("permission", Permission, words[0])
    principal, _, host = " ".join(words[1:-2]).partition("@")  # names in certificates have spaces
    principal = principal if ":" in principal else f"User:{principal}"
    kind, _, name = words[-1].partition(":")
    resource = Resource(_word("resource", Resource, kind))
    name = name or (CLUSTER_NAME if resource is Resource.CLUSTER else "")
    if not name or (resource is Resource.CLUSTER and name != CLUSTER_NAME):
        raise UsageError(
            f"access rule {text!r}: say which {kind.lower()}, as in '{kind.lower()}:{_EXAMPLE.get(resource, 'name')}'"
        )
    is_prefix = name.endswith(WILDCARD) and name != WILDCARD
    pattern, name = (AclPattern.PREFIXED, name[:-1]) if is_prefix else (AclPattern.LITERAL, name)
    operations = [_word("operation", AclOperation, each) for each in words[-2].split(",")]
    return [Acl(resource, name, pattern, principal, host or WILDCARD, each, permission) for each in operations]


_EXAMPLE = {Resource.CLUSTER: CLUSTER_NAME}


def _word(what: str, words: type[IntEnum], text: str) -> int:
    known = {each.name: each for each in words}
    name = text.upper().replace("-", "_")
    found = known.get(name) or known.get(_RUN_TOGETHER.get(name, ""))
    if found is None:
        raise UsageError(f"{what} {text!r} is none{did_you_mean(name, known)}")
    return found


_RUN_TOGETHER = {each.name.replace("_", ""): each.name for each in (*AclOperation, *Resource)}
"""As kafka-acls.sh writes them: ``DescribeConfigs``, ``TransactionalId``."""
