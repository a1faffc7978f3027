"""What callers of the library hand in: every parameter of every public call refuses what a type checker would have refused.

The table is made of the signatures, so that a new public call is in it from its first day.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

import kgctl
from kgctl.errors import UsageError
from kgctl.library.simulation import simulate
from kgctl.testing import EmbeddedServer

Call = Callable[..., Any]

DATA = {"Assigned", "GroupInfo", "GroupSpec", "MemberInfo", "MemberSpec", "TopicSpec"}
DATA |= {"OffsetAndMetadata", "StoredOffset", "TopicPartition"}
"""Plain values: what takes them looks at them. Millions are made."""
INTERFACES = {"Assignor", "GroupAdmin", "OffsetStorage"}
"""What users or backends implement; `kgctl.connect` and `kgctl.Coordinator` hand on what they are given only after a look."""
GIVEN = {"AsyncPlan", "Plan", "Generation"}
"""Made by kgctl alone: their methods are looked at, their making is not."""
KINDS = {"ErrorCode", "GroupState", "GroupType"}

KAFKA_ANSWERS = "Kafka's own answer: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, INCONSISTENT_GROUP_PROTOCOL"
MAY_BE_EMPTY = {
    "Admin reason": "no reason is given",
    "AsyncAdmin reason": "no reason is given",
    **dict.fromkeys((f"{kind} group_id" for kind in ("Coordinator", "AsyncCoordinator")), KAFKA_ANSWERS),
    **dict.fromkeys((f"{kind} group_instance_id" for kind in ("Coordinator", "AsyncCoordinator")), KAFKA_ANSWERS),
    **dict.fromkeys((f"{kind} member_id" for kind in ("Coordinator", "AsyncCoordinator")), "a new member, or Kafka's answer"),
    **dict.fromkeys((f"{kind} protocol_type" for kind in ("Coordinator", "AsyncCoordinator")), KAFKA_ANSWERS),
    **dict.fromkeys((f"{kind} client_id" for kind in ("Coordinator", "AsyncCoordinator", "ConsumerGroup")), "clients need none"),
    "Coordinator reason": "no reason is given",
    "ConsumerGroup rack": "no rack, as in Kafka's client.rack",
    "EmbeddedServer client_id": "the clients that give none",
    "EmbeddedServer key": "an empty key is one, as in Kafka",
    "EmbeddedServer group_id": "there is no such group: NotFoundError, and it has committed nothing",
    "EmbeddedServer member": "there is no such member: NotFoundError",
    "MemoryOffsetStorage group_id": "Kafka stores commits of the group named ''",
    "SqliteOffsetStorage group_id": "Kafka stores commits of the group named ''",
}
"""A class and a parameter of its methods -> why "" is no mistake there."""
REFUSED_ALL_THE_SAME = {
    "EmbeddedServer.commit group_id",
    "EmbeddedServer.consumer_group group_id",
    "EmbeddedServer.wait_for_group group_id",
}


def calls() -> Iterator[tuple[str, Call]]:
    """Every public call by its name, classes by their making."""
    found: Mapping[str, Any] = {name: getattr(kgctl, name) for name in kgctl.__all__} | {"EmbeddedServer": EmbeddedServer}
    for name, value in sorted({**found, "simulate": simulate}.items()):
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and name not in DATA | INTERFACES | KINDS:
            if "__init__" in vars(value) and name not in GIVEN:
                yield name, value.__init__
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if not method.startswith("_"):
                    yield f"{name}.{method}", function


def parameters() -> Iterator[tuple[str, str, Call]]:
    for name, call in calls():
        for parameter in inspect.signature(call).parameters.values():
            is_one = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if parameter.name != "self" and is_one:
                yield name, parameter.name, call


def refused(call: Call, parameter: str, value: object) -> str | None:
    """What `UsageError` says of this one argument; None where it goes further, and fails for want of the others."""
    self = [object()] if "self" in inspect.signature(call).parameters else []
    try:
        answer = call(*self, **{parameter: value})
        if inspect.isawaitable(answer):
            asyncio.run(cast("Any", answer))
    except UsageError as error:
        return error.message
    except (TypeError, AttributeError):
        return None
    return None


def test_a_value_of_another_type_is_refused_by_name() -> None:
    taken = [
        f"{name} {parameter}"
        for name, parameter, call in parameters()
        if not (refused(call, parameter, object()) or "").startswith(f"{parameter} must ")
    ]
    assert taken == ["Generation.start work"]  # which looks by itself: tests/group, test_what_cannot_be_started


def test_an_empty_text_is_refused() -> None:
    taken = {f"{name} {parameter}" for name, parameter, call in parameters() if refused(call, parameter, "") is None}
    meant = {
        f"{name} {parameter}"
        for name, parameter, call in parameters()
        if f"{name.partition('.')[0]} {parameter}" in MAY_BE_EMPTY and takes_text(call, parameter)
    }
    assert taken == meant - REFUSED_ALL_THE_SAME


def takes_text(call: Call, parameter: str) -> bool:
    return str(inspect.signature(call).parameters[parameter].annotation).startswith(("str", "bytes | str", "Value"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: kgctl.assign("range", topics={"o": 1}, members={"a": "o"}),
            r"members\['a'\] is a list of names: \['o'\]",
        ),
        (lambda: kgctl.assign("range", topics={"o": 1}, members=["a", "a"]), "members names 'a' twice"),
        (lambda: kgctl.assign("range", topics={"o": 1}, members=["a"], racks={"z": "r"}), "racks names 'z', which is none of a"),
        (lambda: kgctl.assign("range", topics={"": 1}, members=["a"]), "topics has an empty name"),
        (lambda: kgctl.connect("x:1", timeout_ms=0), "timeout_ms must be more than 0, not 0"),
        (
            lambda: kgctl.connect("x:1", properties={"securty.protocol": "SSL"}),
            "no such property; did you mean",
        ),
        (lambda: kgctl.ConsumerGroup("x:1", "g", ["o"], properties={"security.protocol": "TLS"}), "'TLS' is none of PLAINTEXT"),
        (lambda: kgctl.ConsumerGroup("x:1", "g", pattern="("), r"pattern '\(' is no regular expression"),
        (lambda: kgctl.ConsumerGroup("x:1", "g", ["o"], server_assignor="uniform"), 'server_assignor is for protocol="consumer"'),
        (
            lambda: kgctl.ConsumerGroup("x:1", "g", ["o"], session_timeout_ms=2**31),
            "session_timeout_ms must be at most 2147483647",
        ),
        (lambda: kgctl.ConsumerGroup("x:1", "g", ["o"], rebalance_timeout_ms=2**31), "rebalance_timeout_ms must be at most"),
        (lambda: kgctl.ConsumerGroup("x:1", "g", ["o"], timeout_ms=2**40), "^timeout_ms must be at most 2147483647"),
        (lambda: kgctl.ConsumerGroup("x:1", "g", ["o"], client_id="c" * 40_000), "client_id has a text of 40000 bytes"),
        (
            lambda: kgctl.ConsumerGroup("x:1", "ä" * 20_000, ["o"]),
            "group_id has a text of 40000 bytes, and the protocol's field 32767",
        ),
        (
            lambda: kgctl.ConsumerGroup("x:1", "g", ["o"], protocol="consumer", session_timeout_ms=7_777),
            r'session_timeout_ms is for protocol="classic"; here the cluster says it \(group.consumer.session.timeout.ms\)',
        ),
        (
            lambda: kgctl.ConsumerGroup("x:1", "g", ["o"], protocol="consumer", heartbeat_interval_ms=3_000),
            'heartbeat_interval_ms is for protocol="classic"',
        ),
        (lambda: kgctl.connect("x:1", timeout_ms=2**31), "timeout_ms must be at most 2147483647"),
        (
            lambda: kgctl.Coordinator({"group.max.session.timeout.ms": str(2**31)}),
            "'group.max.session.timeout.ms' must be at most 2147483647, not 2147483648",
        ),
        (
            lambda: EmbeddedServer(config={"group.max.session.timeout.ms": str(2**31)}).__enter__(),
            "Invalid value 2147483648 for configuration group.max.session.timeout.ms",
        ),
        (lambda: kgctl.simulate("crash-detection", runs=0), "runs must be 1 or more, not 0"),
        (lambda: kgctl.Coordinator(topics={"o": 0}), "numbers of partitions from 1 on, not 'o': 0"),
        (lambda: EmbeddedServer({"a b": 1}), "contains one or more characters other than ASCII alphanumerics"),
        (lambda: EmbeddedServer(brokers=0), "brokers must be 1 or more, not 0"),
        (lambda: EmbeddedServer().produce("o", "v", timestamp_ms=-(2**63)), "timestamp_ms must be at least -9223372036854775807"),
    ],
)
def test_values_that_cannot_be(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


NO_UTF_8 = b"pod-\xff".decode(errors="surrogateescape")
"""As Python reads a variable of the environment."""


@pytest.mark.parametrize(
    "call",
    [
        lambda: kgctl.ConsumerGroup("x:1", NO_UTF_8, ["o"]),
        lambda: kgctl.ConsumerGroup("x:1", "g", [NO_UTF_8]),
        lambda: kgctl.ConsumerGroup("x:1", "g", ["o"], client_id=NO_UTF_8),
        lambda: kgctl.connect("x:1").describe_groups([NO_UTF_8]),
        lambda: EmbeddedServer(protocol="SASL_PLAINTEXT", users={"ann": NO_UTF_8}),
        lambda: EmbeddedServer().produce("o", "v", key=NO_UTF_8),
    ],
    ids=("group", "topic", "client", "groups", "password", "key"),
)
def test_bytes_that_are_no_text_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match=r"a text without bytes that are no UTF-8.*, not 'pod-\\udcff'"):
        call()


def test_a_cluster_for_tests_says_what_it_does_not_have() -> None:
    with EmbeddedServer({"orders": 1}) as cluster:
        wrong: list[tuple[Callable[[], object], str]] = [
            (lambda: cluster.create_topic("a/b"), "Topic name is invalid"),
            (lambda: cluster.commit("g", {("orders", 0): -1}), "orders-0: an offset is a number from 0 on, not -1"),
            (
                lambda: cluster.commit("g", {("orders", 0): 2**63}),
                "orders-0: an offset is a number from 0 on, not 9223372036854775808",
            ),
            (lambda: cluster.commit("g", {("orders", 2**31): 1}), r"offsets are of a \(topic, partition\)"),
            (lambda: cluster.describe("g" * 40_000), "group_id has a text of 40000 bytes"),
            (lambda: cluster.lose_broker(2).__enter__(), "there is no broker 2"),
        ]
        for call, message in wrong:
            with pytest.raises(UsageError, match=message):
                call()
        with kgctl.connect(cluster.bootstrap) as admin, pytest.raises(UsageError, match="group_ids has a text of 40000 bytes"):
            admin.describe_groups(["g" * 40_000])
        with kgctl.connect(cluster.bootstrap) as admin, pytest.raises(UsageError, match="orders-0: an offset is a number from 0"):
            admin.alter_offsets("g", {kgctl.TopicPartition("orders", 0): kgctl.OffsetAndMetadata(-1)})
