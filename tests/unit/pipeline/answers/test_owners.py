"""Files of owners: ids before patterns, the first pattern that fits, and what is no such file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.errors import UsageError
from kgctl.pipeline.answers.owners import Owners


def test_an_id_comes_before_patterns_and_the_first_pattern_counts(tmp_path: Path) -> None:
    path = tmp_path / "owners.csv"
    path.write_text("\ufeffteam,group,owner\r\ncore,pay*,ana\r\n,pay-late*,ben\r\nrisk,pay-late,\r\nall,*[1],eve\r\n")
    owners = Owners.read(path)
    groups = ("payments", "pay-late", "pay-late-2", "x[1]", "x1")
    assert [tuple(owners.of(group).values()) for group in groups] == [
        ("ana", "core"),
        (None, "risk"),
        ("ana", "core"),
        ("eve", "all"),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("group,ower\n", "no column may be called 'ower'; did you mean owner? (group, owner, team may)"),
        ("owner,team\n", "the first line names the columns: group, and one of owner and team at least"),
        ("", "the first line names the columns"),
        ("group,owner\n,ana\n", "line 2: no group"),
        ("group,owner\ng,ana,core\n", "line 2: more cells than columns"),
        ('group,owner\n"g,ana\n', "is no file of comma-separated values in UTF-8"),
    ],
)
def test_what_is_no_file_of_owners(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "owners.csv"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        Owners.read(path)
    assert words in raised.value.message
    with pytest.raises(UsageError, match="gone: No such file or directory"):
        Owners.read(tmp_path / "gone")


def test_names_and_patterns_that_are_no_groups_are_found() -> None:
    names = ("a", "a*", "b", "c-*", "d[1]", "e?", "*")
    owners = Owners([(name, {}) for name in names])
    assert owners.of_no_group(["a", "d[1]", "ef"]) == ["b", "c-*", "e?"]
    assert owners.of_no_group([]) == []
