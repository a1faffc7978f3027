"""Parameters of commands: blocks of options that several have alike, and the words of a command line as values.

A block is a dataclass whose fields are options, as one parameter. Values are of the types that commands name: text, numbers in
bounds, paths, choices. From 0.29 on typer reads each word through pydantic, whose import takes as long as the rest of a short
command, and tells mistakes in that library's words. Versions before that read as it is done here, and have none of the places
that this fills.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import typer

from kgctl.cli.session import Session, session_of


def flag(*names_and_text: str, **others: Any) -> Any:
    """Declare an option without a value: its names, and its line in the help."""
    *names, text = names_and_text
    return typer.Option(*names, help=text, **others)


def option(metavar: str, text: str, *names: str, **others: Any) -> Any:
    """Declare an option with a value: called ``metavar`` in the help, "" for its choices, and named as its parameter unless
    given."""
    return typer.Option(*names, metavar=metavar or None, help=text, **_given(**others))


def argument(metavar: str, text: str, **others: Any) -> Any:
    """Declare an argument."""
    return typer.Argument(metavar=metavar, help=text, **_given(**others))


def declared(signature: Callable[..., None]) -> list[Any]:
    """Return the parameters that a function declares, as typer makes them of its signature; nothing calls it."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(signature)
    return list(typer.main.get_command(app).params)


def _given(complete: Callable[..., Any] | Iterable[str] | None = None, **others: Any) -> dict[str, Any]:
    """``complete`` is what a shell offers: names, or what finds them (`kgctl.cli.completion`)."""
    return {"autocompletion": complete if complete is None or callable(complete) else lambda: list(complete), **others}


def unfolded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the fields of its blocks in the place of each parameter whose type is a dataclass.

    An option's annotation and default are those of the field; the command gets the block, made of what was given. A parameter
    that is a `Session` is this run's.
    """
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters
    blocks = {name: hints[name] for name in given if isinstance(hints[name], type) and is_dataclass(hints[name])}
    sessions = [name for name in given if hints[name] is Session]
    parameters: list[inspect.Parameter] = []
    for name, parameter in given.items():
        annotation = typer.Context if name in sessions else hints[name]
        parameters += _options(blocks[name]) if name in blocks else [parameter.replace(annotation=annotation)]

    @wraps(command)
    def call(**options: Any) -> Any:
        made = {name: kind(**{each.name: options.pop(each.name) for each in fields(kind)}) for name, kind in blocks.items()}
        return command(**{**options, **made, **{name: session_of(options[name]) for name in sessions}})

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


def read_here(parameters: Iterable[Any]) -> None:
    """Have these parameters of a command read by `WordReader`, where typer would read them through pydantic."""
    for parameter in parameters:
        if hasattr(parameter, "get_runtime_param"):
            parameter.get_runtime_param = WordReader


class WordReader:
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
