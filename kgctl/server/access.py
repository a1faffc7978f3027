"""The authorizer of the server: which rules there are, whether any are asked, and what a test denies on top of them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgctl.errors import UsageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.values import frozen_in_order
from kgctl.server.acls import CLUSTER_NAME, Acl, Rules, Who, parse_acl
from kgctl.storage.files import ACLS_FILE, Documents

AUTHORIZER = "authorizer.class.name"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS, BY_DEFAULT = "super.users", "allow.everyone.if.no.acl.found"


@frozen_in_order
class AccessConfig:
    """The settings that an Apache Kafka broker has for its authorizer. ``rules`` are there from the start."""

    is_on: bool = False
    super_users: frozenset[str] = frozenset()
    by_default: bool = False
    rules: tuple[Acl, ...] = ()


def split_access(config: Mapping[str, str], rules: Iterable[str] | None = None) -> tuple[AccessConfig, dict[str, str]]:
    """The settings of the authorizer, and all others. ``rules``, as `parse_acl` has them, turn it on. Raises `UsageError`."""
    rest = dict(config)
    users = rest.pop(SUPER_USERS, "")
    by_default = rest.pop(BY_DEFAULT, "false").lower()
    if by_default not in ("true", "false"):
        raise UsageError(f"setting {BY_DEFAULT!r} must be true or false, not {by_default!r}")
    if rules is not None:
        rest.setdefault(AUTHORIZER, STANDARD)
    name = rest.get(AUTHORIZER, "")
    if name not in ("", STANDARD):
        raise UsageError(f"setting {AUTHORIZER!r}: there is one authorizer, {STANDARD}, and not {name!r}")
    if not name and (users or by_default == "true"):
        raise UsageError(f"setting {SUPER_USERS if users else BY_DEFAULT!r} needs {AUTHORIZER}={STANDARD}, or an access rule")
    names = frozenset(user.strip() for user in users.split(";") if user.strip())
    if wrong := sorted(user for user in names if ":" not in user):
        raise UsageError(f"setting {SUPER_USERS!r}: {wrong[0]!r} is no principal such as 'User:{wrong[0]}'")
    parsed = tuple(acl for text in rules or () for acl in parse_acl(text))
    return AccessConfig(bool(name), names, by_default == "true", parsed), rest


@dataclass(eq=False)
class Denial:
    """What is denied to whoever asks, whatever the rules say, for as long as it lasts. ``hits``: how often it was."""

    rules: tuple[Acl, ...]
    hits: int = 0

    def _denies(self, who: Who, operation: AclOperation, resource: Resource, name: str) -> bool:
        found = any(rule.is_about(resource, name) and rule.concerns(*who, operation) for rule in self.rules)
        self.hits += found
        return found


class AccessControl:
    """Who may do what. Rules are in ``acls.json`` of a data folder, or in memory; asked from any thread, changed from any."""

    def __init__(self, config: AccessConfig, documents: Documents) -> None:
        self.config = config
        self.super_users = config.super_users
        self._documents = documents
        self._writing = threading.Lock()
        self._denials: tuple[Denial, ...] = ()
        self.owner = ""
        """A principal that may do everything, whatever is denied."""
        self.rules = Rules(Acl(*row) for row in (documents.read(ACLS_FILE) or {}).get("acls", ()))
        self.is_asked = config.is_on
        """Whether there is anything that could be refused."""
        if config.rules:
            self.put((*self.rules, *config.rules))

    @property
    def is_on(self) -> bool:
        """Whether there is an authorizer, whose rules clients see and alter."""
        return self.config.is_on

    def put(self, rules: Iterable[Acl]) -> None:
        """Replace all rules. Raises `StorageError`: all as before."""
        made = Rules(rules)
        with self._writing:
            self._documents.write(ACLS_FILE, {"acls": [list(rule) for rule in made]})
            self.rules = made

    def begin(self, denial: Denial) -> None:
        """From now on it holds."""
        self._set(*self._denials, denial)

    def end(self, denial: Denial) -> None:
        """It holds no longer."""
        self._set(*(each for each in self._denials if each is not denial))

    def _set(self, *denials: Denial) -> None:
        self._denials = denials
        self.is_asked = bool(denials) or self.is_on

    def allows(self, who: Who, operation: AclOperation, resource: Resource, name: str = CLUSTER_NAME) -> bool:
        """Whether somebody may do this."""
        if who.principal == self.owner:
            return True
        denials = [each for each in self._denials if each._denies(who, operation, resource, name)]
        if denials or not self.is_on:
            return not denials
        return who.principal in self.super_users or self.rules.allow(
            who, operation, resource, name, by_default=self.config.by_default
        )

    def allows_any(self, who: Who, operation: AclOperation, resource: Resource) -> bool:
        """Whether there is some resource of this kind with which somebody may do this, whatever its name."""
        return self.allows(who, operation, resource, _SOME_NAME) or (
            self.is_on and self.rules.allow_any(who, operation, resource)
        )


_SOME_NAME = "hardcode"
"""Kafka's own, with which it finds super users and what is allowed by default."""
