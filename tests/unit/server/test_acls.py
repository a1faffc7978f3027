"""What access rules allow, one decision at a time; tests/wire/test_rights_same_as_kafka.py asks Apache Kafka the same."""

from __future__ import annotations

import pytest

from kgctl.errors import UsageError
from kgctl.model.access import AclOperation, Resource
from kgctl.server.access import BY_DEFAULT, STANDARD, AccessControl, split_access
from kgctl.server.acls import ANY, Acl, AclFilter, AclPattern, Rules, Who, parse_acl
from kgctl.storage.files import Documents

ALICE = Who("User:alice", "10.0.0.1")


def rules(*texts: str) -> Rules:
    return Rules(acl for text in texts for acl in parse_acl(text))


def may(found: Rules, operation: AclOperation, name: str, *, who: Who = ALICE, by_default: bool = False) -> bool:
    return found.allow(who, operation, Resource.TOPIC, name, by_default=by_default)


@pytest.mark.parametrize(
    ("rule", "operation", "name", "is_allowed"),
    [
        ("allow alice read topic:orders", AclOperation.READ, "orders", True),
        ("allow alice read topic:orders", AclOperation.READ, "orders-2", False),
        ("allow alice read topic:orders*", AclOperation.READ, "orders-2", True),
        ("allow alice read topic:orders*", AclOperation.READ, "order", False),
        ("allow alice read topic:*", AclOperation.READ, "anything", True),
        ("allow alice read topic:orders", AclOperation.DESCRIBE, "orders", True),
        ("allow alice alter topic:orders", AclOperation.DESCRIBE, "orders", True),
        ("allow alice create topic:orders", AclOperation.DESCRIBE, "orders", False),
        ("allow alice alter-configs topic:orders", AclOperation.DESCRIBE_CONFIGS, "orders", True),
        ("allow alice alterconfigs topic:orders", AclOperation.DESCRIBE, "orders", False),
        ("allow alice all topic:orders", AclOperation.WRITE, "orders", True),
        ("allow alice write topic:orders", AclOperation.READ, "orders", False),
        ("allow bob read topic:orders", AclOperation.READ, "orders", False),
        ("allow User:* read topic:orders", AclOperation.READ, "orders", True),
        ("allow alice@10.0.0.1 read topic:orders", AclOperation.READ, "orders", True),
        ("allow alice@10.0.0.2 read topic:orders", AclOperation.READ, "orders", False),
        ("allow alice read group:orders", AclOperation.READ, "orders", False),
    ],
)
def test_one_rule(rule: str, operation: AclOperation, name: str, is_allowed: bool) -> None:
    assert may(rules(rule), operation, name) is is_allowed


def test_a_denial_wins_and_implies_nothing() -> None:
    found = rules("allow alice all topic:*", "deny alice read topic:or*")

    assert not may(found, AclOperation.READ, "orders")
    assert may(found, AclOperation.DESCRIBE, "orders")
    assert may(found, AclOperation.READ, "invoices")


def test_the_default_is_for_what_no_rule_is_about() -> None:
    found = rules("allow bob read topic:orders")

    assert may(found, AclOperation.READ, "invoices", by_default=True)
    assert not may(found, AclOperation.READ, "orders", by_default=True)


@pytest.mark.parametrize(
    ("texts", "is_allowed"),
    [
        (("allow alice write topic:orders",), True),
        (("allow alice write topic:orders", "deny alice write topic:orders"), False),
        (("allow alice write topic:orders", "deny User:* all topic:or*"), False),
        (("allow alice write topic:orders*", "deny alice write topic:orders"), True),
        (("allow alice write topic:*", "deny alice write topic:o*"), True),
        (("allow alice write topic:orders", "deny alice write topic:*"), False),
        (("allow alice write group:orders",), False),
        (("allow alice@10.9.9.9 write topic:orders",), False),
        ((), False),
    ],
)
def test_some_topic_or_other(texts: tuple[str, ...], is_allowed: bool) -> None:
    assert rules(*texts).allow_any(ALICE, AclOperation.WRITE, Resource.TOPIC) is is_allowed


@pytest.mark.parametrize(
    ("pattern", "name", "count"),
    [(ANY, None, 4), (ANY, "or", 1), (AclPattern.MATCH, "orders", 3), (AclPattern.LITERAL, "orders", 1)],
)
def test_filters(pattern: int, name: str | None, count: int) -> None:
    found = rules("allow a read topic:orders", "allow a read topic:or*", "allow a read topic:*", "allow a read topic:x")

    assert sum(AclFilter(Resource.TOPIC, name, pattern, None, None, ANY, ANY).matches(rule) for rule in found) == count


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("allow alice read", "is no access rule such as"),
        ("permit alice read topic:x", "permission 'permit' is none"),
        ("allow alice raed topic:x", "operation 'raed' is none; did you mean READ?"),
        ("allow alice read table:x", "resource 'table' is none"),
        ("allow alice read topic", "say which topic, as in 'topic:name'"),
        ("allow alice alter cluster:other", "say which cluster, as in 'cluster:kafka-cluster'"),
    ],
)
def test_what_is_no_rule(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_acl(text)
    assert words in caught.value.message


def test_a_rule_as_kafka_has_it() -> None:
    assert parse_acl("allow Group:staff@10.1.1.1 Read,DescribeConfigs TransactionalId:pay-*") == [
        Acl(5, "pay-", 4, "Group:staff", "10.1.1.1", operation, 3) for operation in (3, 10)
    ]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"authorizer.class.name": "com.example.Own"}, "there is one authorizer"),
        ({"super.users": "User:admin"}, "needs authorizer.class.name"),
        ({BY_DEFAULT: "true"}, "needs authorizer.class.name"),
        ({"authorizer.class.name": STANDARD, BY_DEFAULT: "yes"}, "must be true or false"),
        ({"authorizer.class.name": STANDARD, "super.users": "admin"}, "'admin' is no principal such as 'User:admin'"),
    ],
)
def test_settings_that_do_not_go_together(config: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_access(config)
    assert words in caught.value.message


def test_super_users_may_do_everything_and_nobody_else() -> None:
    config, rest = split_access({"super.users": "User:root;User:admin"}, ["deny User:* all topic:*"])
    access = AccessControl(config, Documents())

    assert rest == {"authorizer.class.name": STANDARD}
    assert access.allows(Who("User:admin", "h"), AclOperation.READ, Resource.TOPIC, "t")
    assert not access.allows(ALICE, AclOperation.READ, Resource.TOPIC, "t")
