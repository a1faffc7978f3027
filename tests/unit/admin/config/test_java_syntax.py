"""The syntax of Java's property files, case by case as ``java.util.Properties#load`` documents it."""

from __future__ import annotations

import pytest

from kgctl.admin.config.java_syntax import Property, parse_properties
from kgctl.errors import UsageError


def parsed(text: str) -> list[tuple[str, str]]:
    return [(entry.key, entry.value) for entry in parse_properties(text, "f")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Truth = Beauty", [("Truth", "Beauty")]),
        (" Truth:Beauty", [("Truth", "Beauty")]),
        ("Truth                    :Beauty", [("Truth", "Beauty")]),
        ("Truth Beauty and more", [("Truth", "Beauty and more")]),
        ("fruits    apple, \\\n     banana, \\\n     pear", [("fruits", "apple, banana, pear")]),
        ("cheeses", [("cheeses", "")]),
        ("cheeses=", [("cheeses", "")]),
        ("# no\n! no\n\n   \t\na=1", [("a", "1")]),
        ("a=1 # not a comment", [("a", "1 # not a comment")]),
        ("a\\:b\\=c\\ d=1", [("a:b=c d", "1")]),
        ("a=\\t\\n\\r\\f\\q\\\\", [("a", "\t\n\r\fq\\")]),
        ("a=\\u0041\\u00e9", [("a", "Aé")]),
        ("a==1", [("a", "=1")]),
        ("a=b=c", [("a", "b=c")]),
        ("a=1\r\nb=2\rc=3", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("a=x\\\\\nb=2", [("a", "x\\"), ("b", "2")]),
        ("a=x\\\n# goes on\nb=2", [("a", "x# goes on"), ("b", "2")]),
        ("a=1\\", [("a", "1")]),
        ("a=trailing ", [("a", "trailing ")]),
        ("", []),
    ],
)
def test_files_are_read_as_java_reads_them(text: str, expected: list[tuple[str, str]]) -> None:
    assert parsed(text) == expected


def test_each_entry_has_the_line_it_begins_on() -> None:
    assert parse_properties("# one\na=1,\\\n  2\n\nb=3\n", "f") == [Property("a", "1,2", 2), Property("b", "3", 5)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12G4", "\\uzzzz=1"])
def test_a_malformed_unicode_escape_names_file_and_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^f:2: malformed \\u escape"):
        parse_properties(f"x=1\n{text}", "f")
