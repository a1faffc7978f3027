"""Regular expressions of RE2's syntax over topic names, in time linear in the name: for KIP-848's subscriptions by pattern.

Topic names are ASCII, so a class of characters is a 128-bit number here; what stands for other characters matches nothing.
"""

from __future__ import annotations

from kgctl.coordinator.regex.automaton import TopicPattern
from kgctl.coordinator.regex.resolve import resolve_regexes
from kgctl.coordinator.regex.syntax import RegexSyntaxError

__all__ = ["RegexSyntaxError", "TopicPattern", "resolve_regexes"]
