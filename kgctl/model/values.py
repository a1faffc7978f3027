"""What the model is built of: quick frozen dataclasses and enums, and maps that know the iteration order of Java's.

The interpreter's own frozen dataclasses set each field by a call, so that a request costs three times as much as it would
otherwise, and the simulator and the coordinator make millions. Here the type checker holds everybody to "nobody changes a
field", and nothing is left to do at run time.

Kafka's coordinator and assignors loop over ``HashMap`` and over their own ``TimelineHashMap``; which member becomes leader, which
protocol wins a tie and in which order records are written follow from it. The maps here are ordinary dicts, fast as dicts,
that also remember how large Java's table would be; Java's order is computed only when asked for. Plain iteration over them is
insertion order: use `HashMap.java_order` or `TimelineHashMap.java_order` wherever the order can be seen. The rules are Java
17's. Buckets that Java turns into trees (9 or more keys in one bucket of a table of 64 or more) are not imitated.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field, fields, make_dataclass
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast, dataclass_transform
from uuid import UUID

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def frozen(cls: type[T]) -> type[T]:
    """A dataclass with slots and keyword-only fields, equal and hashed by its fields. Do not change any: mypy says so."""
    return _compiled_in_time(dataclass(slots=True, kw_only=True, repr=False, eq=False)(cls))


@dataclass_transform(frozen_default=True)
def frozen_in_order(cls: type[T]) -> type[T]:
    """Return a dataclass as `frozen` does, but with fields that may be given by position."""
    return _compiled_in_time(dataclass(slots=True, repr=False, eq=False)(cls))


def _compiled_in_time(cls: type[T]) -> type[T]:
    """Have a dataclass's ``__repr__``, ``__eq__`` and ``__hash__`` made when one of them is first called.

    Compiling them takes longer than all else about the class, and a command imports many classes that it never compares.
    """
    own = vars(cls)
    absent = [name for name in ("__repr__", "__eq__", "__hash__") if own.get(name) is None]

    def stand_in(name: str) -> Callable[..., Any]:
        def method(*arguments: Any) -> Any:
            made = vars(_twin(cls))
            for each in absent:
                setattr(cls, each, made[each])
            return made[name](*arguments)

        return method

    for name in absent:
        setattr(cls, name, stand_in(name))
    return cls


def _twin(cls: type) -> type:
    """A dataclass with the same fields and the three methods."""
    same = [(each.name, each.type, field(repr=each.repr, hash=each.hash, compare=each.compare)) for each in fields(cls)]
    return make_dataclass(cls.__name__, same, init=False, unsafe_hash=True)


E = TypeVar("E", bound=Enum)


def quick_enum(enum: type[E]) -> type[E]:
    """A decorator: the same class, with ``name``, ``value`` and hashes that need no Python code.

    No member may be named ``name`` or ``value``. Members that are texts or numbers hash as those do, which they are equal to.
    """
    type.__setattr__(enum, "name", property(attrgetter("_name_")))
    type.__setattr__(enum, "value", property(attrgetter("_value_")))
    base = next((kind for kind in (str, int) if kind in enum.__mro__), object)
    type.__setattr__(enum, "__hash__", base.__hash__)
    return enum


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
HashOf = Callable[[Any], int]

_MASK32 = 0xFFFF_FFFF
_MASK64 = 0xFFFF_FFFF_FFFF_FFFF
_GOLDEN_GAMMA = 0x9E37_79B9_7F4A_7C15
_DEFAULT_CAPACITY = 16


def _signed(value: int) -> int:
    value &= _MASK32
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


@lru_cache(maxsize=1 << 16)
def string_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 units, as a signed 32-bit number.

    Remembered, because a rebalance orders the same member ids again and again.
    """
    units: Iterable[int] = text.encode("ascii") if text.isascii() else array("H", text.encode("utf-16-le", "surrogatepass"))
    value = 0
    for unit in units:
        value = value * 31 + unit
    return _signed(value)


def partition_for(group_id: str, partition_count: int) -> int:
    """The partition of a group among ``partition_count``.

    Kafka: GroupCoordinatorService#partitionFor, with ``Utils.abs``, for which the absolute value of the smallest int is 0.
    """
    value = string_hash(group_id)
    return 0 if value == -(2**31) else abs(value) % partition_count


def uuid_hash(uuid: UUID) -> int:
    """``Uuid.hashCode`` (and ``java.util.UUID``'s): both halves and then both words exclusive-ored."""
    folded = (uuid.int >> 64) ^ (uuid.int & _MASK64)
    return _signed((folded >> 32) ^ folded)


def integer_hash(value: int) -> int:
    """Return ``Integer.hashCode()`` of ``value``, which is the value."""
    return value


def objects_hash(*hashes: int) -> int:
    """``Objects.hash`` (and ``List.hashCode``) of values with these hashes; null has 0."""
    value = 1
    for each in hashes:
        value = value * 31 + each
    return _signed(value)


def power_of_two_at_least(size: int) -> int:
    """The table of a map that is made for this capacity; 1 for none."""
    return 1 << max(size - 1, 0).bit_length()


def grown_capacity(size: int, initial: int = _DEFAULT_CAPACITY) -> int:
    """The table of a ``HashMap`` or ``HashSet`` to which ``size`` keys were put one by one."""
    capacity = initial
    while size > capacity * 3 // 4:
        capacity *= 2
    return capacity


def copied_map_capacity(size: int) -> int:
    """The table of ``new HashMap<>(map)`` for a map of ``size`` entries."""
    return power_of_two_at_least(int(size / 0.75) + 1) if size else _DEFAULT_CAPACITY


def copied_set_capacity(size: int) -> int:
    """The table of ``new HashSet<>(collection)`` for a collection of ``size`` elements."""
    return power_of_two_at_least(max(int(size / 0.75) + 1, _DEFAULT_CAPACITY))


def bucket(key_hash: int, capacity: int) -> int:
    """The bucket of a key with this hash in a ``HashMap`` of ``capacity`` buckets."""
    key_hash &= _MASK32
    return (key_hash ^ (key_hash >> 16)) & (capacity - 1)


def hash_map_order(
    keys: Iterable[K], *, capacity: int | None = None, hash_of: HashOf = string_hash, newest_first: bool = False
) -> list[K]:
    """Distinct ``keys``, given in the order of insertion, as a ``HashMap`` or ``HashSet`` iterates over them.

    ``capacity`` None: the map grew from the default. ``newest_first``: the keys came in by ``computeIfAbsent``, ``compute`` or
    ``merge``, which put a new key in front of its bucket, where ``put`` puts it at the end.
    """
    ordered = list(keys)
    if len(ordered) <= 1:
        return ordered
    # put enlarges the table after the insertion that fills it, computeIfAbsent before the one after.
    table = grown_capacity(len(ordered) - newest_first) if capacity is None else capacity
    if newest_first:
        ordered.reverse()
    mask = table - 1
    if hash_of is integer_hash and _are_small(cast("list[int]", ordered)):
        cast("list[int]", ordered).sort(key=mask.__and__)
        return ordered
    # As in bucket(), whose call would cost as much as the rest.
    ordered.sort(key=lambda key: ((value := hash_of(key) & _MASK32) ^ (value >> 16)) & mask)
    return ordered


def copied_map_order(keys: Collection[K], *, hash_of: HashOf = string_hash) -> list[K]:
    """The keys of a map as ``new HashMap<>(map)`` iterates over them."""
    return hash_map_order(keys, capacity=copied_map_capacity(len(keys)), hash_of=hash_of)


def copied_set_order(keys: Collection[K], *, hash_of: HashOf = string_hash) -> list[K]:
    """A collection as ``new HashSet<>(collection)`` iterates over it. What it has twice counts for the size of the table."""
    return hash_map_order(dict.fromkeys(keys), capacity=copied_set_capacity(len(keys)), hash_of=hash_of)


def _are_small(numbers: list[int]) -> bool:
    """Whether the last bits of each of these are the number of its bucket, as those of partitions are."""
    return min(numbers) >= 0 and max(numbers) <= 0xFFFF


def timeline_hash_map_order(keys: Iterable[K], *, bits: int | None = None, hash_of: HashOf = string_hash) -> list[K]:
    """Distinct ``keys``, given in the order of insertion, as a ``TimelineHashMap`` of 2^``bits`` slots iterates over them."""
    ordered = list(keys)
    shift = 64 - (timeline_bits(len(ordered)) if bits is None else bits)
    ordered.reverse()
    ordered.sort(key=lambda key: (hash_of(key) * _GOLDEN_GAMMA & _MASK64) >> shift)
    return ordered


def timeline_bits(size: int) -> int:
    """The logarithm of the slots of a ``TimelineHashMap`` to which ``size`` keys were put one by one."""
    bits = 1
    while size * 3 > (4 << bits):
        bits += 1
    return bits


def timeline_bits_expecting(size: int) -> int:
    """The logarithm of the slots of a ``TimelineHashMap`` made with this expected size."""
    return max((4 * size + 2) // 3 - 1, 1).bit_length()


class HashMap(dict[K, V], Generic[K, V]):
    """A dict that knows the order of a ``java.util.HashMap`` filled by ``put``: members of a classic group.

    Set entries with ``map[key] = value`` only; ``update`` and ``setdefault`` go unnoticed. Removals never shrink the table.
    """

    def __init__(self, hash_of: HashOf = string_hash) -> None:
        super().__init__()
        self._hash_of = hash_of
        self._capacity = _DEFAULT_CAPACITY
        self._ordered: tuple[int, list[K], list[K]] = (_DEFAULT_CAPACITY, [], [])
        """The last answer and what it was made of: capacity, the keys in the order of insertion, the keys in Java's order."""

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > self._capacity * 3 // 4:
            self._capacity *= 2

    def java_order(self) -> list[K]:
        """Return the keys in the order in which Java iterates over them."""
        keys, (capacity, before, _) = list(self), self._ordered
        if keys != before or capacity != self._capacity:
            ordered = hash_map_order(keys, capacity=self._capacity, hash_of=self._hash_of)
            self._ordered = self._capacity, keys, ordered
        return list(self._ordered[2])

    def java_values(self) -> list[V]:
        """Return the values in the order in which Java iterates over their keys."""
        return list(map(self.__getitem__, self.java_order()))


class TimelineHashMap(dict[K, V], Generic[K, V]):
    """A dict that knows the order of Kafka's ``TimelineHashMap``: groups, offsets, members of a consumer-protocol group.

    Set entries with ``map[key] = value`` only; ``update`` and ``setdefault`` go unnoticed. Removals never shrink the table.
    """

    def __init__(self, expected_size: int = 0, hash_of: HashOf = string_hash) -> None:
        super().__init__()
        self._hash_of = hash_of
        self._bits = timeline_bits_expecting(expected_size)

    def __setitem__(self, key: K, value: V) -> None:
        # Java doubles before every put, also when the key is there already.
        if (len(self) + 1) * 3 > (4 << self._bits):
            self._bits += 1
        super().__setitem__(key, value)

    def java_order(self) -> list[K]:
        """Return the keys in the order in which Java iterates over them."""
        return timeline_hash_map_order(self, bits=self._bits, hash_of=self._hash_of)

    def java_values(self) -> list[V]:
        """Return the values in the order in which Java iterates over their keys."""
        return [self[key] for key in self.java_order()]
