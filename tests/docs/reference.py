"""The reference of the public API, made from signatures and docstrings: one page a subject."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any

import kgctl.results

REFERENCE: Mapping[str, Sequence[str]] = {
    "reference-clusters": (
        "kgctl.connect", "kgctl.Admin", "kgctl.Plan", "kgctl.GroupAdmin", "kgctl.AsyncAdmin", "kgctl.AsyncPlan",
        "kgctl.TopicPartition",
        "kgctl.OffsetAndMetadata", "kgctl.GroupState", "kgctl.GroupType", "kgctl.ErrorCode",
    ),
    "reference-members": (
        "kgctl.ConsumerGroup", "kgctl.AsyncConsumerGroup", "kgctl.Generation",
         "kgctl.assign", "kgctl.Assigned", "kgctl.Assignor", "kgctl.GroupSpec",
        "kgctl.TopicSpec", "kgctl.MemberSpec", "kgctl.aiokafka_assignor", "kgctl.kafka_python_assignor",
    ),
    "reference-coordinator": (
        "kgctl.Coordinator", "kgctl.AsyncCoordinator", "kgctl.decode_assignment", "kgctl.GroupInfo", "kgctl.MemberInfo",
        "kgctl.OffsetStorage",
        "kgctl.MemoryOffsetStorage", "kgctl.SqliteOffsetStorage", "kgctl.StoredOffset",
    ),
    "reference-results": tuple(f"kgctl.results.{name}" for name in kgctl.results.__all__),
    "reference-testing": (
        "kgctl.testing.EmbeddedServer", "kgctl.testing.Fault", "kgctl.testing.Denial",
        "kgctl.library.simulation.simulate", "kgctl.errors",
    ),
}  # fmt: skip
"""Page -> what it describes, in this order."""

GIVEN = frozenset(
    {
        "kgctl.Admin",
        "kgctl.Plan",
        "kgctl.AsyncPlan",
        "kgctl.Generation",
        "kgctl.GroupInfo",
        "kgctl.MemberInfo",
        "kgctl.Assigned",
        "kgctl.testing.Fault",
        "kgctl.testing.Denial",
    }
)
"""What users are given and never make."""

SHOWN_AS = {"kgctl.library.simulation.simulate": "kgctl.simulate"}
WIDTH = 110
_QUOTED = re.compile(r""" (["'])(.*?)\1""")
_RAISES = re.compile(r"^( *)(Raises(?:, [a-z ]+)?:)\n", re.MULTILINE)


def page(name: str) -> str:
    """What stands between the markers of a page."""
    return "\n".join(_described(path) for path in REFERENCE[name])


def _described(path: str) -> str:
    value, name = _found(path), SHOWN_AS.get(path, path)
    if inspect.ismodule(value):
        return f"## {name}\n\n{_text(value)}\n\n{_slugs(value.KgctlError)}\n"
    if not inspect.isclass(value):
        return f"## {name}\n\n{_signature(name.rpartition('.')[2], value)}\n{_text(value)}\n"
    made = "" if path in GIVEN or path.startswith("kgctl.results.") else _constructor(name.rpartition(".")[2], value)
    parts = [f"## {name}\n\n{made}{_attributes(value)}{_text(value)}\n"]
    parts += [f"### {name.rpartition('.')[2]}.{title}\n\n{body}\n" for title, body in _members(value)]
    return "\n".join(parts)


def _slugs(error: type) -> str:
    """A table of the errors' codes."""
    classes = [error]
    for one in classes:  # it grows meanwhile
        classes += one.__subclasses__()
    own = sorted((one.__name__, one.slug) for one in classes if one.__module__ == error.__module__)  # type: ignore[attr-defined]
    return "| error | `slug` |\n|---|---|\n" + "".join(f"| `{name}` | `{slug}` |\n" for name, slug in own)


def _found(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return import_module(path) if path == "kgctl.errors" else getattr(import_module(module), name)


def _constructor(name: str, value: type) -> str:
    """A class that users make themselves; others (named tuples, protocols, enums) have their attributes told alone."""
    if issubclass(value, Enum | tuple) or getattr(value, "_is_protocol", False):
        return ""
    return (
        f"{_signature(name, value)}\n"
        if any("__init__" in vars(one) for one in own_classes(value)) and not is_dataclass(value)
        else ""
    )


def own_classes(value: type) -> list[type]:
    """The class, and bases of it that have no page, since they are no public names."""
    named = {path.rpartition(".")[2] for paths in REFERENCE.values() for path in paths}
    return [
        one
        for one in value.__mro__
        if one is value
        or (one.__module__.startswith("kgctl.") and one.__name__ not in named and not getattr(one, "_is_protocol", False))
    ]


def _attributes(value: type) -> str:
    """The fields of what users are given, with their types; the members of an enumeration, as they are written."""
    if issubclass(value, Enum) and value.__module__ != "kgctl.model.error_codes":
        return "```text\n" + "".join(f"{one.name}: {str(one.value)!r}\n" for one in value) + "```\n\n"
    if issubclass(value, tuple):
        return "```text\n" + "".join(f"{name}: {_written(kind)}\n" for name, kind in value.__annotations__.items()) + "```\n\n"
    if not is_dataclass(value):
        return ""
    told = [field for field in fields(value) if not field.name.startswith("_")]
    return "```text\n" + "".join(f"{field.name}: {field.type}\n" for field in told) + "```\n\n"


def _written(kind: Any) -> str:
    """As it stands in the source: a named tuple keeps what has not been looked up."""
    return getattr(kind, "__forward_arg__", None) or str(kind)


def _members(value: type) -> Iterator[tuple[str, str]]:
    for name, member in {name: member for one in reversed(own_classes(value)) for name, member in vars(one).items()}.items():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not _is_own(plain, value) or not inspect.getdoc(plain):
            continue
        if isinstance(plain, property):
            yield name, _text(plain)
        elif inspect.isfunction(plain):
            yield name, f"{_signature(name, plain)}\n{_text(plain)}"


def _is_own(member: Any, value: type) -> bool:
    """Whether it is kgctl's, and this class's: what Python gives to every enum has Python's own text, another in each version.

    What a class hands on from another is described with that one, which the text of this one names.
    """
    function = member.fget if isinstance(member, property) else member
    if not inspect.isfunction(function) or not function.__module__.startswith("kgctl."):
        return False
    return isinstance(member, property) or function.__qualname__.partition(".")[0] in {one.__name__ for one in own_classes(value)}


def _signature(name: str, value: Any) -> str:
    found = inspect.signature(value)
    shown = [str(one) for key, one in found.parameters.items() if key not in ("self", "cls")]
    kinds = [one.kind for key, one in found.parameters.items() if key not in ("self", "cls")]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    is_coroutine = "async " if inspect.iscoroutinefunction(value) else ""
    end = "" if inspect.isclass(value) else f" -> {found.return_annotation}"
    line = f"{is_coroutine}{name}({', '.join(shown)}){end}"
    if len(line) > WIDTH:
        line = f"{is_coroutine}{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){end}"
    return f"```text\n{_QUOTED.sub(_unquoted, line)}\n```\n"


def _unquoted(quoted: re.Match[str]) -> str:
    """An annotation, which Python keeps as text; values stay as they are."""
    before = quoted.string[: quoted.start()]
    return f" {quoted[2]}" if before.endswith((":", "->")) else quoted[0]


def _text(value: Any) -> str:
    """The docstring as Markdown: errors become a list."""
    text = inspect.getdoc(value) or ""
    raises = _RAISES.search(text)
    if raises is None:
        return _marked(text)
    head, tail = text[: raises.start()].rstrip(), text[raises.end() :]
    errors = [_marked(" ".join(one.split())) for one in re.split(r"\n(?=    \S)", tail.rstrip("\n"))]
    listed = "\n".join(textwrap.fill(f"- {_coded(one)}", 130, subsequent_indent="  ") for one in errors)
    return f"{_marked(head)}\n\n{raises[2]}\n\n{listed}"


def _coded(error: str) -> str:
    name, colon, rest = error.partition(":")
    return f"`{name}`{colon}{rest}" if "`" not in name else error


def _marked(text: str) -> str:
    return re.sub(r"^::\n\n((?:    .*\n|\n)+)", _code, text.replace("``", "`") + "\n", flags=re.MULTILINE).rstrip()


def _code(block: re.Match[str]) -> str:
    return f"```text\n{textwrap.dedent(block[1]).strip()}\n```\n\n"
