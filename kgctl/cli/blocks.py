"""Blocks of options that several commands have alike: a dataclass whose fields are options, as one parameter of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def unfolded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the fields of its blocks in the place of each parameter whose type is a dataclass.

    An option's annotation and default are those of the field; the command gets the block, made of what was given.
    """
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters
    blocks = {name: hints[name] for name in given if isinstance(hints[name], type) and is_dataclass(hints[name])}
    if not blocks:
        return command
    parameters: list[inspect.Parameter] = []
    for name, parameter in given.items():
        parameters += _options(blocks[name]) if name in blocks else [parameter.replace(annotation=hints[name])]

    @wraps(command)
    def call(*args: Any, **options: Any) -> Any:
        made = {name: kind(**{each.name: options.pop(each.name) for each in fields(kind)}) for name, kind in blocks.items()}
        return command(*args, **options, **made)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del call.__wrapped__  # typer reads the annotations of what is wrapped otherwise
    return call


def _options(block: type) -> list[inspect.Parameter]:
    hints = get_type_hints(block, include_extras=True)
    return [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in fields(block)
    ]
