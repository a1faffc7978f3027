"""The registry: names, a user's own assignors, and what is wrong with a name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kgctl.assignors import assignor_names, get_assignor
from kgctl.assignors.spec import GroupSpec
from kgctl.errors import UsageError


class EverythingToTheFirst:
    """An assignor of a user's own."""

    name = "first"

    def assign(self, group: GroupSpec) -> Mapping[str, Mapping[str, list[int]]]:
        first, *others = group.members
        topics = {topic: list(range(group.topics[topic].partition_count)) for topic in first.topics}
        return {first.member_id: topics, **{member.member_id: {} for member in others}}


class NoAssignor:
    """Has no method ``assign``."""


def test_names_are_kafkas_then_others() -> None:
    assert assignor_names()[:4] == ("range", "roundrobin", "sticky", "cooperative-sticky")
    assert {"uniform", "server-range", "rack-affinity", "kafka-go:range", "kafka-go:roundrobin"} <= set(assignor_names())
    assert "librdkafka:cooperative-sticky" in assignor_names()


@pytest.mark.parametrize("name", assignor_names())
def test_every_name_leads_to_the_assignor_of_that_name(name: str) -> None:
    assert get_assignor(name).name == name


def test_each_call_gives_a_new_assignor() -> None:
    assert get_assignor("sticky") is not get_assignor("sticky")


@pytest.mark.parametrize(("name", "hint"), [("stiky", "did you mean sticky?"), ("", "known: range, roundrobin"), (":x", "known")])
def test_unknown_name_lists_the_known_ones(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match="unknown assignor") as raised:
        get_assignor(name)

    assert hint in raised.value.message
    assert "uniform" in raised.value.message


def test_module_and_class_give_a_users_own_assignor() -> None:
    assert get_assignor(f"{__name__}:EverythingToTheFirst").name == "first"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no.such.module:X", "cannot load the assignor 'no.such.module:X': ModuleNotFoundError"),
        (f"{__name__}:Nothing", "AttributeError"),
        (f"{__name__}:NoAssignor", "is no assignor: it needs an attribute 'name' and a method 'assign"),
    ],
)
def test_what_cannot_be_loaded_is_explained(name: str, problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        get_assignor(name)

    assert problem in raised.value.message
