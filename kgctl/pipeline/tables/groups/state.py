"""What playing back knows of a group, as text: an incremental build goes on from it.

Values are dataclasses, texts, bytes, numbers and containers of them; JSON has a mark for each kind that it lacks. Nothing is
executed when it is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any
from uuid import UUID

from kgctl.model import records
from kgctl.pipeline.tables.groups.causes import Cause
from kgctl.pipeline.tables.groups.consumer import Changes
from kgctl.pipeline.tables.groups.history import Arrival, AssignmentSpan, Generation, MemberInfo, MemberSpan
from kgctl.pipeline.tables.groups.place import Place

_OWN = (Arrival, AssignmentSpan, Changes, Generation, MemberInfo, MemberSpan, Place)
_CLASSES: Mapping[str, type] = {
    each.__name__: each
    for each in (*_OWN, *(found for found in vars(records).values() if isinstance(found, type) and is_dataclass(found)))
}


def text_of(state: Any) -> str:
    """The same text for equal states."""
    return json.dumps(_marked(state), separators=(",", ":"))


def state_of(text: str) -> Any:
    """What `text_of` was given."""
    return _unmarked(json.loads(text))


def _marked(value: Any) -> Any:
    write = _WRITTEN.get(type(value))
    return _fields(value) if write is None else write(value)


def _fields(value: Any) -> Any:
    return {"class": type(value).__name__, "fields": [_marked(getattr(value, each.name)) for each in fields(value)]}


def _in_order(value: Any) -> Any:
    return {type(value).__name__: [_marked(each) for each in value]}


def _sorted(value: Any) -> Any:
    return {type(value).__name__: sorted((_marked(each) for each in value), key=json.dumps)}


_WRITTEN: Mapping[type, Callable[[Any], Any]] = {
    **dict.fromkeys((type(None), bool, int, str), lambda value: value),
    **dict.fromkeys((list, tuple), _in_order),
    **dict.fromkeys((set, frozenset), _sorted),
    Cause: lambda value: {"cause": value.value},
    bytes: lambda value: {"bytes": value.hex()},
    UUID: lambda value: {"uuid": value.hex},
    dict: lambda value: {"dict": [[_marked(key), _marked(each)] for key, each in value.items()]},
}


def _unmarked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "class" in value:
        return _CLASSES[value["class"]](*(_unmarked(each) for each in value["fields"]))
    ((kind, found),) = value.items()
    return _READ[kind](found)


def _all(kind: Callable[[Iterable[Any]], Any], found: Iterable[Any]) -> Any:
    return kind(_unmarked(each) for each in found)


_READ: Mapping[str, Callable[[Any], Any]] = {
    "cause": Cause,
    "bytes": bytes.fromhex,
    "uuid": UUID,
    "dict": lambda found: {_unmarked(key): _unmarked(each) for key, each in found},
    **{kind.__name__: partial(_all, kind) for kind in (list, tuple, set, frozenset)},
}
