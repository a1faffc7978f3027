"""RE2's syntax, matched against whole topic names."""

from __future__ import annotations

import time

import pytest

from kgctl.coordinator.effects import ResolveRegexes
from kgctl.coordinator.regex import RegexSyntaxError, TopicPattern, resolve_regexes


@pytest.mark.parametrize(
    ("regex", "name", "matches"),
    [
        ("T[13]", "T1", True),
        ("T[13]", "T2", False),
        ("T.*", "T", True),
        ("T", "T1", False),
        ("a|b", "b", True),
        ("(?i)ABC", "abc", True),
        ("(?i:A)bc", "aBc", False),
        ("(?-i)a", "a", True),
        ("a{2,3}", "aa", True),
        ("a{2,3}", "aaaa", False),
        ("a{,2}", "a{,2}", True),
        ("x{1", "x{1", True),
        (r"\w+-\d{1,2}", "ab-12", True),
        ("[^a-c]x", "dx", True),
        ("[]a]", "]", True),
        ("[[:digit:]]+", "12", True),
        (r"\pL+", "Ab", True),
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b\E", "axb", False),
        (r"\x41", "A", True),
        ("^a$", "a", True),
        ("(?P<n>a)b", "ab", True),
        (r"a\b-\bb", "a-b", True),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_a_name_matches_as_a_whole(regex: str, name: str, *, matches: bool) -> None:
    assert TopicPattern(regex).matches(name) is matches


@pytest.mark.parametrize(
    "regex",
    [
        *["(", "a)", "*a", "a**", "a++", "a{2}{3}", "[a", "[b-a]", "(?=a)", "(?<=a)", "(?>a)", r"\1", "a{1001}", "(a{100}){100}"],
        *["(?P<n", "(?z)", "\\", "[[:foo:]]", r"\p{Foo}", r"\Z", r"\C", "(" * 300],
    ],
)
def test_what_re2_does_not_take_is_an_error(regex: str) -> None:
    with pytest.raises(RegexSyntaxError):
        TopicPattern(regex)


def test_no_expression_takes_long() -> None:
    start = time.perf_counter()

    assert not TopicPattern("(a+)+$").matches("a" * 240 + "b")
    assert not TopicPattern("(a|aa)+b|(.*)*c").matches("a" * 249)

    assert time.perf_counter() - start < 5


def test_expressions_are_resolved_over_all_topics() -> None:
    effect = ResolveRegexes(group_id="g", regexes=("t.*", "u", "("), started_ms=7, metadata_version=3)

    request = resolve_regexes(effect, ["u", "t2", "t1", "v"], request_id=9)

    assert (request.request_id, request.group_id, request.started_ms, request.metadata_version) == (9, "g", 7, 3)
    assert request.topics == {"t.*": ("t1", "t2"), "u": ("u",), "(": ()}
