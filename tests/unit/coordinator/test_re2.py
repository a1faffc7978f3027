"""RE2's syntax, matched against whole topic names."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kgctl.coordinator.effects import ResolveRegexes
from kgctl.coordinator.re2 import RegexSyntaxError, TopicPattern, resolve_regexes
from tests.support.re2j import answer

RECORDED = Path(__file__).with_name("re2j.json")
"""Expressions, names, and what RE2/J 1.8 said about them."""


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
        (r"^orders[\d-z]", "orders7", True),
        (r"^orders[\d-z]", "orders-", True),
        (r"^orders[\d-z]", "ordersy", False),
        (r"\é|a", "a", True),
        (r"[^\é]", "a", True),
        (r"\P{Unknown}", "a", True),
        ("(?i)\u212a", "k", True),
        ("(?:a{100}){11}", "a" * 1100, True),
        ("(?:a{100}){11}", "a" * 1101, False),
        ("(?:a{300}){3,5}", "a" * 1200, True),
        ("(?:a{400}){3,}", "a" * 2000, True),
        ("(?:a{400}){3,}", "a" * 800, False),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_a_name_matches_as_a_whole(regex: str, name: str, *, matches: bool) -> None:
    assert TopicPattern(regex).matches(name) is matches


@pytest.mark.parametrize(
    "regex",
    [
        *["(", "a)", "*a", "a**", "a++", "a{2}{3}", "[a", "[b-a]", "(?=a)", "(?<=a)", "(?>a)", r"\1", "a{1001}"],
        *[
            "(?P<n",
            "(?z)",
            "\\",
            "[[:foo:]]",
            r"\p{Foo}",
            r"\Z",
            r"\C",
            "(" * 300,
            "(?P<n>a)(?P<n>b)",
            "(?<é>a)",
            "{*",
            r"\p{Kawi}",
        ],
    ],
)
def test_what_re2_does_not_take_is_an_error(regex: str) -> None:
    with pytest.raises(RegexSyntaxError):
        TopicPattern(regex)


def test_recorded_answers_of_re2j_are_ours() -> None:
    recorded = {case["regex"]: (case["names"].split(), case["re2j"]) for case in json.loads(RECORDED.read_text())}

    assert {regex: answer(regex, names) for regex, (names, _) in recorded.items()} == {
        r: theirs for r, (_, theirs) in recorded.items()
    }


def test_re2j_words_for_what_is_wrong_reach_the_client() -> None:
    with pytest.raises(RegexSyntaxError, match=r"^missing closing \)$"):
        TopicPattern("(orders")


def test_no_expression_takes_long() -> None:
    start = time.perf_counter()

    for bomb in ("(((a{1000}){1000}){1000}){1000}", r"(\pL{1000}){1000}"):
        with pytest.raises(RegexSyntaxError):
            TopicPattern(bomb)

    assert not TopicPattern("(a+)+$").matches("a" * 240 + "b")
    assert not TopicPattern("(a|aa)+b|(.*)*c").matches("a" * 249)

    assert time.perf_counter() - start < 5


def test_expressions_are_resolved_over_all_topics() -> None:
    effect = ResolveRegexes(group_id="g", regexes=("t.*", "u", "("), started_ms=7, metadata_version=3)

    request = resolve_regexes(effect, ["u", "t2", "t1", "v"], request_id=9)

    assert (request.request_id, request.group_id, request.started_ms, request.metadata_version) == (9, "g", 7, 3)
    assert request.topics == {"t.*": ("t1", "t2"), "u": ("u",), "(": ()}
