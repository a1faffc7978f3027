"""Matching in linear time: a tree becomes a nondeterministic automaton, which runs over all its states at once.

Sets of states that have been seen are kept with their successors, so most names cost one look-up a character.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from kgctl.coordinator.regex import characters
from kgctl.coordinator.regex.syntax import Assertion, Characters, Choice, Node, Repeat, Sequence, parse

_BEGIN, _END = -1, -2
_MAX_KEPT = 10_000
States = frozenset[int]


@dataclass(slots=True)
class _State:
    """Reads a character of ``mask`` and goes on to ``read_next``, or goes on without reading, where ``condition`` holds."""

    mask: int = 0
    read_next: int = 0
    free_next: tuple[int, ...] = ()
    condition: Assertion | None = None


@dataclass(slots=True)
class _Builder:
    """States are made from the end of the expression to its begin: each knows what comes after it."""

    states: list[_State] = field(default_factory=lambda: [_State()])

    def add(self, state: _State) -> int:
        self.states.append(state)
        return len(self.states) - 1

    def build(self, node: Node, after: int) -> int:
        """The state at which ``node`` begins, when ``after`` is where it ends."""
        if isinstance(node, Characters):
            return self.add(_State(node.mask, after))
        if isinstance(node, Assertion):
            return self.add(_State(free_next=(after,), condition=node))
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                after = self.build(part, after)
            return after
        if isinstance(node, Choice):
            return self.add(_State(free_next=tuple(self.build(option, after) for option in node.options)))
        return self._repeat(node, after)

    def _repeat(self, node: Repeat, after: int) -> int:
        if node.high is None:
            loop = self.add(_State())
            self.states[loop].free_next = (self.build(node.node, loop), after)
            start = loop
        else:
            start = after
            for _ in range(node.high - node.low):
                start = self.add(_State(free_next=(self.build(node.node, start), after)))
        for _ in range(node.low):
            start = self.build(node.node, start)
        return start


class TopicPattern:
    """A compiled expression. `matches` is true for the names that match as a whole.

    Raises `RegexSyntaxError` when made of text that is no expression.
    """

    def __init__(self, regex: str) -> None:
        builder = _Builder()
        start = builder.build(parse(regex), 0)
        self._states = builder.states
        self._start = frozenset((start,))
        self._steps: dict[tuple[States, int, int], States] = {}

    def matches(self, name: str) -> bool:
        """Whether the whole name matches; names with characters beyond ASCII never do."""
        if not name.isascii():
            return False
        states, before = self._start, _BEGIN
        for code in name.encode("ascii"):
            states = self._step(states, before, code)
            if not states:
                return False
            before = code
        return 0 in self._reach(states, before, _END)

    def _step(self, states: States, before: int, code: int) -> States:
        key = (states, before, code)
        found = self._steps.get(key)
        if found is None:
            reached = self._reach(states, before, code)
            found = frozenset(self._states[s].read_next for s in reached if self._states[s].mask >> code & 1)
            if len(self._steps) < _MAX_KEPT:
                self._steps[key] = found
        return found

    def _reach(self, states: States, before: int, after: int) -> set[int]:
        """The states that can be reached without reading, between these two characters."""
        reached: set[int] = set()
        waiting = list(states)
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            reached.add(number)
            state = self._states[number]
            if state.condition is None or _holds(state.condition, before, after):
                waiting.extend(state.free_next)
        return reached


def _is_word(code: int) -> bool:
    return code >= 0 and bool(characters.WORD >> code & 1)


def _holds(condition: Assertion, before: int, after: int) -> bool:
    if condition is Assertion.BEGIN_TEXT:
        return before == _BEGIN
    if condition is Assertion.END_TEXT:
        return after == _END
    if condition is Assertion.BEGIN_LINE:
        return before in (_BEGIN, ord("\n"))
    if condition is Assertion.END_LINE:
        return after in (_END, ord("\n"))
    return (_is_word(before) != _is_word(after)) == (condition is Assertion.WORD_BOUNDARY)


@lru_cache(maxsize=256)
def compiled(regex: str) -> TopicPattern:
    """The pattern of an expression, made once. Raises `RegexSyntaxError`."""
    return TopicPattern(regex)
