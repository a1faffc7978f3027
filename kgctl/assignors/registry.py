"""The list of assignors, and where a user's own come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, TypeGuard

from kgctl.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from kgctl.assignors.spec import Assignor

ENTRY_POINTS = "kgctl.assignors"

CLIENT_ASSIGNORS: Mapping[str, str] = {
    "range": "kgctl.assignors.range:RangeAssignor",
    "roundrobin": "kgctl.assignors.round_robin:RoundRobinAssignor",
    "sticky": "kgctl.assignors.sticky:StickyAssignor",
    "cooperative-sticky": "kgctl.assignors.sticky:CooperativeStickyAssignor",
    "rack-affinity": "kgctl.assignors.kafka_go:RackAffinityAssignor",
    "kafka-go:range": "kgctl.assignors.kafka_go:KafkaGoRange",
    "kafka-go:roundrobin": "kgctl.assignors.kafka_go:KafkaGoRoundRobin",
    "librdkafka:cooperative-sticky": "kgctl.assignors.librdkafka:LibrdkafkaCooperativeSticky",
}
"""Name -> the class, which is imported when somebody asks for it. Members run these."""
SERVER_ASSIGNORS: Mapping[str, str] = {
    "uniform": "kgctl.assignors.uniform:UniformAssignor",
    "server-range": "kgctl.assignors.range:ServerRangeAssignor",
}
"""The same, for those that the coordinator runs."""
_BUILT_IN: Mapping[str, str] = {**CLIENT_ASSIGNORS, **SERVER_ASSIGNORS}


def assignor_names() -> tuple[str, ...]:
    """The names that `get_assignor` knows: kgctl's own, in their order, then those of installed packages, sorted."""
    return (*_BUILT_IN, *sorted(set(_installed()) - set(_BUILT_IN)))


def has_assignor(name: str) -> bool:
    """Whether `assignor_names` has it. Installed packages are looked at only where it is none of kgctl's own."""
    return name in _BUILT_IN or name in _installed()


def get_assignor(name: str) -> Assignor:
    """A new assignor: by name, or ``module:Class`` for one of the user's own.

    Those are behind a border (`kgctl.assignors.own`), which checks what they answer.

    Packages offer assignors as entry points of the group ``kgctl.assignors``: a class without arguments.

    Raises:
        UsageError: nothing has that name (the message lists what has), or it cannot be loaded or is no assignor.
    """
    if name in _BUILT_IN:
        return _make(name, lambda: _load(*_BUILT_IN[name].split(":")))
    installed = _installed()
    if name in installed:
        return _behind_a_border(_make(name, installed[name]), name)
    module, separator, attribute = name.partition(":")
    if separator and module and attribute and not module.startswith(("kafka-go", "librdkafka")):
        return _behind_a_border(_make(name, lambda: _load(module, attribute)), name)
    raise UsageError(f"unknown assignor {name!r}{did_you_mean(name, assignor_names())} (known: {', '.join(assignor_names())})")


def _behind_a_border(made: Assignor, name: str) -> Assignor:
    from kgctl.assignors.own import OwnAssignor

    return OwnAssignor(made, name)


def protocol_name(name: str) -> str:
    """Return the name that members of a group offer this assignor by: its own, without what tells kgctl whose it is."""
    return get_assignor(name).name.rpartition(":")[2]


@cache
def _installed() -> dict[str, Callable[[], object]]:
    """What is installed does not change while a program runs; looking it up reads files."""
    from importlib.metadata import entry_points

    return {point.name: point.load for point in entry_points(group=ENTRY_POINTS)}


def _load(module: str, attribute: str) -> object:
    found: object = import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def _make(name: str, load: Callable[[], object]) -> Assignor:
    try:
        found = load()
        made = found() if callable(found) else found
    except Exception as error:
        raise UsageError(f"cannot load the assignor {name!r}: {type(error).__name__}: {error}") from error
    if not _is_assignor(made):
        raise UsageError(f"{name!r} is no assignor: it needs an attribute 'name' and a method 'assign(group)'")
    return made


def _is_assignor(made: object) -> TypeGuard[Assignor]:
    return hasattr(made, "name") and callable(getattr(made, "assign", None))
