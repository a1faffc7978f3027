"""The words of a command line as values of the types that commands name: text, numbers within bounds, paths, choices.

From 0.29 on typer reads each word through pydantic, whose import takes as long as the rest of a short command, and tells mistakes
in that library's words. Versions before that read as it is done here, and have none of the places that this fills.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any, get_origin

import typer


def read_here(parameters: Iterable[Any]) -> None:
    """Have these parameters of a command read by `Reader`, where typer would read them through pydantic."""
    for parameter in parameters:
        if hasattr(parameter, "get_runtime_param"):
            parameter.get_runtime_param = Reader


class Reader:
    """Makes values of words, in the way in which typer's parameters ask for it."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value. Raises `typer.BadParameter`."""
        kind, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if get_origin(kind) is list:
            return list(value)
        try:
            return value if isinstance(value, kind) else _read(value, kind, info.min, info.max)
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx=ctx, param=param) from None


def _read(word: str, kind: Any, least: float | None, most: float | None) -> Any:
    if issubclass(kind, Enum):
        choices = [str(choice.value) for choice in kind]
        if word not in choices:
            raise ValueError(f"{word!r} is not one of {', '.join(map(repr, choices))}.")
        return list(kind)[choices.index(word)]
    if kind is not int:
        return Path(word) if issubclass(kind, Path) else kind(word)
    try:
        number = int(word)
    except ValueError:
        raise ValueError(f"{word!r} is not a valid integer.") from None
    if (least is not None and number < least) or (most is not None and number > most):
        bounds = f"x>={least}" if most is None else f"{least}<=x<={most}"
        raise ValueError(f"{number} is not in the range {bounds}.")
    return number
