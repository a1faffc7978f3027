"""What callers of the library hand in, held against the signature: a wrong type is told where it was made, and nothing is done.

`checked` wraps a public function. It reads the annotations when it is first called, and refuses with `UsageError` what a type
checker would have refused: most programs have none. Containers are looked into; what has no run-time form (type variables, names
that only type checkers import) is not looked at.
"""

from __future__ import annotations

import collections.abc
import inspect
import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin

from kgctl.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")

Check = Callable[[object], str | None]
"""Says what a value should have been instead, as the end of "NAME is ..."; None: it is that."""

_NOT_EMPTY = "__not_empty__"

FEW = 1_000
"""So many elements of a container are looked at: mistakes are in all of them, or among the first."""


def checked(*, not_empty: Collection[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: calls with arguments of the wrong type raise `UsageError`.

    ``not_empty``: parameters that may not be "", nor hold it as an element or a key.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        wanted = frozenset(not_empty) | getattr(function, _NOT_EMPTY, frozenset())  # of a checked function that this one wraps
        guarded = _guarded(function, wanted)
        setattr(guarded, _NOT_EMPTY, wanted)
        return guarded

    return decorate


def _guarded(function: Callable[P, R], not_empty: frozenset[str]) -> Callable[P, R]:
    checks: dict[str, Check] = {}
    names: list[str] = []

    def look(arguments: tuple[object, ...], options: Mapping[str, object]) -> None:
        if not names:
            parameters = inspect.signature(function).parameters
            checks.update({name: check for name, each in parameters.items() if (check := _check_of(function, each, not_empty))})
            names.extend(name for name, each in parameters.items() if each.kind is not each.KEYWORD_ONLY)
        for name, value in zip(names, arguments, strict=False):
            if name in checks and (expected := checks[name](value)) is not None:
                raise UsageError(name + _joined(expected))
        for name, value in options.items():
            if name in checks and (expected := checks[name](value)) is not None:
                raise UsageError(name + _joined(expected))

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def call_later(*arguments: P.args, **options: P.kwargs) -> Any:
            look(arguments, options)
            return await cast("Any", function(*arguments, **options))

        return cast("Callable[P, R]", call_later)

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        look(arguments, options)
        return function(*arguments, **options)

    return call


def _check_of(function: Callable[..., object], parameter: inspect.Parameter, not_empty: frozenset[str]) -> Check | None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.annotation is parameter.empty:
        return None
    check = check_of(_resolved(parameter.annotation, function), "a number of milliseconds" if _is_time(parameter) else None)
    if check is not None:
        check = _fitting(parameter.name, check)
    if check is None or parameter.name not in not_empty:
        return check

    def is_given(value: object) -> str | None:
        if value == "":
            return "must not be empty"
        expected = check(value)
        if expected is None and isinstance(value, collections.abc.Collection) and not isinstance(value, str) and "" in value:
            return "has an empty name"
        return expected

    return is_given


def _is_time(parameter: inspect.Parameter) -> bool:
    return parameter.name.endswith("_ms")


MOST_BYTES = 2**15 - 1
"""What a text on the wire can have, as UTF-8."""
_IDS = ("group_id", "member_id", "group_instance_id")
_MORE = ("client_id", "client_host", "rack", "server_assignor", "protocol_type", "reason", "pattern")
TEXTS = frozenset((*_IDS, *(f"{name}s" for name in _IDS), *_MORE))
"""Parameters that go into requests as texts, or as lists of them."""


def _fitting(name: str, check: Check) -> Check:
    """A check of the type, and then of what the protocol's field can hold."""
    if name in TEXTS:
        return lambda value: check(value) or _text_problem(value)
    bits = 63 if name.endswith("timestamp_ms") else 31
    if name.endswith("_ms"):
        return lambda value: check(value) or _time_problem(value, 2**bits - 1)
    return check


def _time_problem(value: object, most: int) -> str | None:
    if not isinstance(value, int) or -most <= value <= most:
        return None
    bound = f"at most {most}" if value > most else f"at least {-most}"
    return f"must be {bound}, what the protocol's field holds, not {value}"


def _text_problem(value: object) -> str | None:
    texts = [value] if isinstance(value, str) else value if isinstance(value, (list, tuple, set, frozenset)) else ()
    most = max((len(text.encode(errors="replace")) for text in texts if isinstance(text, str)), default=0)
    return f"has a text of {most} bytes, and the protocol's field {MOST_BYTES}" if most > MOST_BYTES else None


def _resolved(annotation: object, function: Callable[..., object]) -> object:
    """The type that an annotation names; Any for what only type checkers import."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(vars(sys.modules[function.__module__])))  # noqa: S307 - a signature of kgctl's own
    except NameError:
        return Any


def check_of(kind: object, number: str | None = None) -> Check | None:
    """Return what holds a value against a type; None where everything goes. ``number``: what whole numbers are here."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of([check_of(each, number) for each in get_args(kind)])
    if origin is not None:
        make = _OF_ORIGIN.get(origin)
        return None if make is None else make(get_args(kind))
    if kind is None or kind is types.NoneType:
        return lambda value: None if value is None else _not("None", value)
    return _instance(kind, number) if isinstance(kind, type) and kind not in (object, Any) else None


def _joined(expected: str) -> str:
    """What follows a name: a place inside of it, or the rest of the sentence."""
    return expected if expected.startswith("[") else f" {expected}"


def _not(expected: str, value: object) -> str:
    return f"must be {expected}, not {value!r}"


_NAMES: dict[object, str] = {str: "a text", int: "a number", bytes: "bytes", bool: "True or False", float: "a number"}


def _instance(kind: type, number: str | None) -> Check:
    if kind in (int, float):
        types_of, expected = (int, number or "a whole number") if kind is int else (int | float, "a number")
        return lambda value: None if isinstance(value, types_of) and not isinstance(value, bool) else _not(expected, value)
    if getattr(kind, "_is_protocol", False):
        methods = [name for name, each in vars(kind).items() if callable(each) and not name.startswith("_")]
        return lambda value: _lacks(value, methods)
    if kind is str:
        return _text
    name = _NAMES.get(kind) or ("an " if kind.__name__[0] in "AEIOU" else "a ") + kind.__name__
    return lambda value: None if isinstance(value, kind) else _not(name, value)


def _text(value: object) -> str | None:
    """A text, and one that can be sent: what Python makes of bytes that are no UTF-8 (in ``os.environ``, say) cannot."""
    if not isinstance(value, str):
        return _not("a text", value)
    return None if value.isascii() or not _SURROGATES.search(value) else _not("a text without bytes that are no UTF-8", value)


_SURROGATES = re.compile("[\ud800-\udfff]")


def _lacks(value: object, methods: Sequence[str]) -> str | None:
    missing = [name for name in methods if not callable(getattr(value, name, None))]
    return f"must have the method {missing[0]}(), and {value!r} has none" if missing else None


def _one_of(checks: Sequence[Check | None]) -> Check | None:
    found = [check for check in checks if check is not None]
    if len(found) < len(checks):
        return None

    def check(value: object) -> str | None:
        answers = [each(value) for each in found]
        if None in answers:
            return None
        # What looked furthest into the value says most: the others only say that it is something else.
        told = [answer for answer in answers if answer is not None and not answer.startswith("must be None")]
        deep = [answer for answer in told if not answer.startswith("must be ")]
        expected = " or ".join(dict.fromkeys(answer.removeprefix("must be ").rpartition(", not ")[0] for answer in told))
        return deep[0] if deep else _not(expected, value)

    return check


def _literal(choices: tuple[object, ...]) -> Check:
    return lambda value: None if value in choices else _not(f"one of {', '.join(map(str, choices))}", value)


def _mapping(arguments: tuple[object, ...]) -> Check:
    of_key, of_value = map(check_of, arguments)

    def check(value: object) -> str | None:
        if not isinstance(value, Mapping):
            return _not("a mapping", value)
        for each, stored in _some(value.items()):
            if of_key is not None and (expected := of_key(each)) is not None:
                return f"has a key that {expected}"
            if of_value is not None and (expected := of_value(stored)) is not None:
                return f"[{each!r}]{_joined(expected)}"
        return None

    return check


def _several(arguments: tuple[object, ...], origin: type = collections.abc.Collection) -> Check:
    """A list, tuple or the like; texts are sequences of letters, which nobody means. Iterators are not used up here."""
    of_element, any_iterable = check_of(arguments[0]), origin is collections.abc.Iterable

    def check(value: object) -> str | None:
        if isinstance(value, str):
            return f"is a list of names: [{value!r}], not {value!r}"
        if not isinstance(value, origin) or isinstance(value, bytes) or (isinstance(value, Mapping) and not any_iterable):
            return _not("a list", value)
        if of_element is None or not isinstance(value, collections.abc.Collection):
            return None
        return next((f"has an element that {expected}" for each in _some(value) if (expected := of_element(each))), None)

    return check


def _tuple(elements: tuple[object, ...]) -> Check:
    if elements[1:] == (...,):
        return _several(elements)
    checks = [check_of(each) for each in elements]

    def check(value: object) -> str | None:
        is_right = isinstance(value, tuple) and len(value) == len(checks)
        if is_right and all(each is None or each(part) is None for each, part in zip(checks, cast("Any", value), strict=True)):
            return None
        return _not(f"({', '.join(_NAMES.get(each, getattr(each, '__name__', str(each))) for each in elements)})", value)

    return check


def _some(values: Iterable[R]) -> Iterable[R]:
    return (value for value, _ in zip(values, range(FEW), strict=False))


def _callable(_: tuple[object, ...]) -> Check:
    return lambda value: None if callable(value) else _not("a function", value)


_OF_ORIGIN: dict[object, Callable[[tuple[object, ...]], Check]] = {
    Literal: _literal,
    dict: _mapping,
    collections.abc.Mapping: _mapping,
    list: _several,
    collections.abc.Sequence: _several,
    collections.abc.Collection: _several,
    collections.abc.Iterable: lambda arguments: _several(arguments, collections.abc.Iterable),
    tuple: _tuple,
    type: lambda _: lambda value: None if isinstance(value, type) else _not("a class", value),
    collections.abc.Callable: _callable,
}
"""Origin of a generic type -> what makes its check of its arguments."""
