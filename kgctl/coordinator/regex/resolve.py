"""The work that a `ResolveRegexes` effect asks of a driver."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.coordinator.effects import ResolveRegexes
from kgctl.coordinator.regex.automaton import compiled
from kgctl.coordinator.regex.syntax import RegexSyntaxError
from kgctl.coordinator.requests import RegexResolved


def resolve_regexes(effect: ResolveRegexes, topics: Iterable[str], request_id: int) -> RegexResolved:
    """The request to hand back to the coordinator: each expression with the names, of all ``topics``, that match it as a whole.

    Costs some microseconds a topic and expression; a driver with many topics may do it in the background. An expression that is
    none, which a log of another broker may hold, stands for no topic.
    """
    names = sorted(topics)
    return RegexResolved(
        request_id=request_id,
        group_id=effect.group_id,
        topics={regex: _matching(regex, names) for regex in effect.regexes},
        started_ms=effect.started_ms,
        metadata_version=effect.metadata_version,
    )


def _matching(regex: str, names: list[str]) -> tuple[str, ...]:
    try:
        pattern = compiled(regex)
    except RegexSyntaxError:
        return ()
    return tuple(name for name in names if pattern.matches(name))
