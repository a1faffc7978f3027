"""`kgctl.model.values` against what Java 17 and Kafka's TimelineHashMap gave (java_order.json was printed by them), and its
dataclasses beside the interpreter's own: the same, but for when their methods are made.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kgctl.model.values import (
    HashMap,
    TimelineHashMap,
    bucket,
    copied_map_capacity,
    copied_map_order,
    copied_set_capacity,
    copied_set_order,
    frozen,
    frozen_in_order,
    grown_capacity,
    hash_map_order,
    integer_hash,
    string_hash,
    timeline_bits,
    timeline_bits_expecting,
    timeline_hash_map_order,
    uuid_hash,
)

CASES: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("java_order.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("g", 103),
        ("my-group", -1906497762),
        ("payments", 1382682413),
        ("console-consumer-12345", 158455506),
        ("polygenelubricants", -2147483648),
        ("gruppe-\u00e4", 673522898),
        ("\U0001f600", 1772899),
    ],
)
def test_string_hash_is_java_s(text: str, expected: int) -> None:
    assert string_hash(text) == expected


def test_other_hashes_are_java_s() -> None:
    assert uuid_hash(UUID("11111111-1111-1111-2222-222222222222")) == 0
    assert uuid_hash(UUID("00000000-0000-0001-0000-0000ffffffff")) == -2
    assert integer_hash(-7) == -7


@pytest.mark.parametrize("case", CASES["hash_map"], ids=lambda case: f"{len(case['keys'])}-keys-from-{case['keys'][0]}")
def test_hash_map_orders_keys_as_java_does(case: dict[str, Any]) -> None:
    keys = case["keys"]
    grown: HashMap[str, int] = HashMap()
    for value, key in enumerate(keys):
        grown[key] = value

    assert hash_map_order(keys) == case["put"]
    assert grown.java_order() == case["put"]
    assert grown.java_values() == [keys.index(key) for key in case["put"]]
    assert hash_map_order(keys, newest_first=True) == case["compute"]
    assert copied_map_order(keys) == case["copied_map"]
    assert copied_set_order(keys) == case["copied_set"]


@pytest.mark.parametrize("case", CASES["timeline_hash_map"], ids=lambda case: ",".join(case["operations"][:3]))
def test_timeline_hash_map_orders_keys_as_kafka_does(case: dict[str, Any]) -> None:
    timeline: TimelineHashMap[str, str] = TimelineHashMap(case["expected_size"])
    for operation in case["operations"]:
        if operation.startswith("+"):
            timeline[operation[1:]] = operation
        else:
            del timeline[operation[1:]]

    assert timeline.java_order() == case["order"]
    assert timeline.java_values() == [f"+{key}" for key in case["order"]]


def test_a_hash_map_never_shrinks() -> None:
    keys = [f"k{n}" for n in range(40)]
    shrunk: HashMap[str, None] = HashMap()
    for key in keys:
        shrunk[key] = None
    for key in keys[3:]:
        del shrunk[key]

    assert shrunk.java_order() == hash_map_order(keys[:3], capacity=64)


def test_the_usual_protocols_come_in_the_order_that_breaks_ties_in_kafka() -> None:
    names = ["cooperative-sticky", "roundrobin", "sticky", "range"]

    assert hash_map_order(names) == ["sticky", "range", "roundrobin", "cooperative-sticky"]


def test_capacities_follow_java_17() -> None:
    assert [grown_capacity(n) for n in (0, 12, 13, 24, 25)] == [16, 16, 32, 32, 64]
    assert [copied_map_capacity(n) for n in (0, 1, 2, 3, 6, 12)] == [16, 2, 4, 8, 16, 32]
    assert [copied_set_capacity(n) for n in (0, 11, 12)] == [16, 16, 32]
    assert [timeline_bits(n) for n in (0, 2, 3, 5, 6)] == [1, 1, 2, 2, 3]
    assert [timeline_bits_expecting(n) for n in (0, 1, 2, 3, 4, 6, 7)] == [1, 1, 2, 2, 3, 3, 4]


def test_integers_are_ascending_only_below_the_number_of_buckets() -> None:
    assert hash_map_order([3, 4], capacity=copied_map_capacity(2), hash_of=integer_hash) == [4, 3]
    assert bucket(-1, 16) == 0


def test_timeline_order_of_keys_without_a_map_is_that_of_puts() -> None:
    keys = [f"group-{n}" for n in range(30)]
    timeline: TimelineHashMap[str, None] = TimelineHashMap()
    for key in keys:
        timeline[key] = None

    assert timeline_hash_map_order(keys) == timeline.java_order()


def made_by(decorator: Callable[[type], type]) -> tuple[type, type, type]:
    """Three classes: with fields of every sort; one that has another field on top; one with methods of its own."""

    @decorator
    class Plain:
        topic: str
        partitions: tuple[int, ...] = ()
        secret: str = field(default="", repr=False)
        seen: list[int] = field(default_factory=list, hash=False)
        note: str = field(default="", compare=False)

    @decorator
    class More(Plain):
        offset: int = 0

    @decorator
    class Own:
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.text.lower() == other.text.lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

    return Plain, More, Own


def answers(classes: tuple[type, type, type]) -> list[Any]:
    """What objects of them say: texts, comparisons, hashes, as keys and as copies."""
    plain, more, own = classes
    one, other, third = plain("a", (1,)), plain("a", (1,), note="seen"), plain("b", (1,), secret="s")
    longer, same = more("a", offset=3), more("a", offset=3)
    equal = [one == other, one != other, one == third, longer == same, plain("a") == more("a"), one == "a", own("X") == own("x")]
    keys = [len({one, other, third}), {one: 1}[other], hash(longer) == hash(same), {own("X"): 2}[own("x")]]
    texts = [str(each).rpartition(".")[2] for each in (one, third, longer, replace(longer, offset=4), own("X"))]
    return [equal, keys, texts]


@pytest.mark.parametrize("first", ["equal", "hash", "repr"])
def test_it_answers_as_the_interpreter_s_dataclass_whatever_is_asked_first(first: str) -> None:
    theirs = made_by(dataclass(frozen=True, slots=True))
    ours = made_by(frozen_in_order)
    asked: Callable[[Any], object] = {
        "equal": lambda cls: cls("a") == cls("a"),
        "hash": lambda cls: hash(cls("a")),
        "repr": lambda cls: repr(cls("a")),
    }[first]
    assert [asked(cls) is not None for cls in ours] == [True, True, True]
    assert answers(ours) == answers(theirs)


@frozen
class Named:
    """At the top of a module, where a pickle finds it."""

    topic: str
    offset: int = 0


def test_it_takes_fields_by_name_and_comes_back_from_a_pickle() -> None:
    one = Named(topic="a", offset=2)
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "Named(topic='a', offset=2)"
    with pytest.raises(TypeError, match="positional"):
        Named("a")  # type: ignore[call-arg]


def test_methods_are_made_when_the_first_of_them_is_called() -> None:
    @frozen_in_order
    class Later:
        offset: int

    before = [vars(Later)[name].__code__ for name in ("__repr__", "__eq__", "__hash__")]
    assert Later(1) == Later(1)
    assert [vars(Later)[name].__code__ in before for name in ("__repr__", "__eq__", "__hash__")] == [False, False, False]
