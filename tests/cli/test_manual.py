"""``kgctl manual``: pages, the list, and what a page that is not there gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.cli.completion import complete_pages
from kgctl.cli.manual import CHAPTERS, page_names, read_page
from tests.cli.harness import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_list_has_every_page_with_its_subject(cli: Cli) -> None:
    ran = cli("manual -o json")
    assert ran.code == 0
    assert [row["page"] for row in ran.data] == list(page_names())
    assert {row["chapter"] for row in ran.data} == set(CHAPTERS)
    assert all(row["subject"].endswith(".") for row in ran.data)


def test_pipe_gets_the_page_as_markdown(cli: Cli) -> None:
    ran = cli("manual resets")
    assert (ran.code, ran.out, ran.err) == (0, read_page("resets").text, "")
    assert ran.out.startswith("# Resets\n\n")


def test_terminal_gets_the_page_rendered(cli: Cli) -> None:
    cli.terminal = True
    ran = cli("manual resets")
    assert ran.code == 0
    assert "\x1b[" in ran.out
    assert "```" not in ran.out
    assert "| --- |" not in ran.out


def test_envelope_of_a_page_has_its_markdown(cli: Cli) -> None:
    cli.terminal = True
    (row,) = cli("manual exit-codes -o json").data
    assert row == {"page": "exit-codes", "title": "Exit codes", "text": read_page("exit-codes").text}


def test_unknown_page_is_not_found_and_near_ones_are_named(cli: Cli) -> None:
    ran = cli("manual rests")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == "kgctl: the manual has no page 'rests'; did you mean resets? (kgctl manual lists all pages)\n"


def test_path_is_no_page(cli: Cli) -> None:
    assert cli("manual ../manual/resets").code == 4


@pytest.mark.parametrize(("typed", "offered"), [("exit", ["exit-codes"]), ("no", []), ("", sorted(page_names()))])
def test_completion_offers_pages(typed: str, offered: list[str]) -> None:
    assert complete_pages(None, [], typed) == offered  # type: ignore[arg-type]
