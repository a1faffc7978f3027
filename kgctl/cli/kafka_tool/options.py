"""The options of kafka-consumer-groups.sh, read as its parser reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
TARGETS = ("to-offset", "shift-by", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "from-file")
_FLAGS = (
    *("list", "describe", "delete", "reset-offsets", "delete-offsets", "all-groups", "all-topics"),
    *("dry-run", "execute", "export", "to-earliest", "to-latest", "to-current", "members", "verbose", "offsets"),
)
_WITH_VALUE = (
    *("bootstrap-server", "group", "topic", "timeout", "command-config", "validate-regex"),
    *("to-offset", "from-file", "to-datetime", "by-duration", "shift-by"),
)
_WITH_OPTIONAL_VALUE = ("state", "type")
_ONLY_WITH = {
    **dict.fromkeys(("members", "verbose", "offsets"), ("describe",)),
    "state": ("describe", "list"),
    "type": ("list",),
}
_NUMBERS = ("timeout", "to-offset", "shift-by")
DEFAULT_TIMEOUT_MS = 5_000


class WrongUse(Exception):  # noqa: N818 - it is what Kafka's tool prints before its usage
    """A line that Kafka's tool answers with a sentence and its usage, and ends with 1."""


@dataclass(frozen=True)
class ToolOptions:
    """What was given: name -> its values, an empty list for a flag."""

    given: Mapping[str, Sequence[str]]

    def has(self, name: str) -> bool:
        return name in self.given

    def values(self, name: str) -> Sequence[str]:
        return self.given.get(name, ())

    def value(self, name: str) -> str | None:
        return self.given[name][-1] if self.given.get(name) else None

    @property
    def action(self) -> str:
        return next(name for name in ACTIONS if self.has(name))


def parsed(words: Sequence[str]) -> ToolOptions:
    """Read the words of a line.

    Raises:
        WrongUse: as Kafka's tool sees it.
    """
    given: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        word, sign, value = rest.pop(0).partition("=")
        name = _name(word)
        values = given.setdefault(name, [])
        if name in _WITH_VALUE and not sign:
            if not rest:
                raise WrongUse(f"Option {name} requires an argument")
            values.append(rest.pop(0))
        elif name in _WITH_OPTIONAL_VALUE and not sign and rest and not rest[0].startswith("-"):
            values.append(rest.pop(0))
        elif sign:
            values.append(value)
    options = ToolOptions(given)
    _check(options)
    return options


def _name(word: str) -> str:
    """An option may be cut short where that means one only."""
    known = (*_FLAGS, *_WITH_VALUE, *_WITH_OPTIONAL_VALUE)
    name = word.lstrip("-")
    if not word.startswith("-") or not name:
        raise WrongUse(f"Cannot parse arguments: {word}")
    meant = [each for each in known if each == name] or [each for each in known if each.startswith(name)]
    if len(meant) != 1:
        raise WrongUse(f"{name} is not a recognized option")
    return meant[0]


def _check(options: ToolOptions) -> None:
    for name in _NUMBERS:
        for text in options.values(name):
            if not text.lstrip("+-").isdecimal():
                raise WrongUse(f"Cannot parse argument '{text}' of option {name}")
    for name, others in _ONLY_WITH.items():
        if options.has(name) and not any(map(options.has, others)):
            raise WrongUse(f"Option(s) [{name}] are unavailable given other options on the command line")
    if not options.has("validate-regex") and not options.has("bootstrap-server"):
        raise WrongUse('Missing required argument "[bootstrap-server]"')
    _check_action(options)
    if sum(map(options.has, ACTIONS)) != 1:
        raise WrongUse(f"Command must include exactly one action: {', '.join(f'--{name}' for name in ACTIONS)}")


_WRONG: Sequence[tuple[Callable[[ToolOptions], bool], str]] = (
    (
        lambda given: given.has("describe") and sum(map(given.has, ("members", "offsets", "state"))) > 1,
        "Option [describe] takes at most one of these options: [members], [offsets], [state]",
    ),
    (
        lambda given: given.has("describe") and given.value("state") is not None,
        "Option [describe] does not take a value for [state]",
    ),
    (
        lambda given: given.has("delete") and given.has("topic"),
        "The consumer does not support topic-specific offset deletion from a consumer group.",
    ),
    (
        lambda given: given.has("delete-offsets") and not (given.has("group") and given.has("topic")),
        "Option [delete-offsets] takes the following options: [group], [topic]",
    ),
    (
        lambda given: given.has("reset-offsets") and given.has("dry-run") and given.has("execute"),
        "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
    ),
    (lambda given: given.has("group") and given.has("list"), 'Option "[group]" can\'t be used with option "[list]"'),
)


def _check_action(options: ToolOptions) -> None:
    for action in ("describe", "delete", "reset-offsets"):
        if options.has(action) and not (options.has("group") or options.has("all-groups")):
            raise WrongUse(f"Option [{action}] takes one of these options: [group], [all-groups]")
    for is_so, told in _WRONG:
        if is_so(options):
            raise WrongUse(told)
    _exclude(options, ("group", "all-groups"))
    if options.has("reset-offsets"):
        _exclude(options, TARGETS)


def _exclude(options: ToolOptions, names: Sequence[str]) -> None:
    given = [name for name in names if options.has(name)]
    if len(given) > 1:
        raise WrongUse(f'Option "[{given[0]}]" can\'t be used with option "[{given[1]}]"')
