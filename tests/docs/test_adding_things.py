"""The page for contributors is followed: the things that it adds do what it shows, and the files that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.adding import PAGE, followed
from tests.docs.pages import MANUAL, ROOT

TEXT = (MANUAL / f"{PAGE}.md").read_text(encoding="utf-8")


def test_the_examples_do_what_the_page_shows(tmp_path: Path) -> None:
    assert TEXT.count("```python") == 7
    assert followed(TEXT, tmp_path) == TEXT


def test_every_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`((?:kgctl|tests)/[\w/.-]+)`", TEXT))
    assert sorted(path for path in named if not (ROOT / path).exists() and "NAME" not in path) == []


def test_every_registry_that_the_page_names_is_in_its_file() -> None:
    named = re.findall(r"`(_?[A-Za-z]+)`(?: or `([A-Z_]+)`| and `([A-Z_]+)`)? of `(kgctl/[\w/.]+)`", TEXT)
    assert len(named) > 10
    missing = [
        (name, path) for *names, path in named for name in names if name and name not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert missing == []
