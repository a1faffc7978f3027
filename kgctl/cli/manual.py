"""``kgctl manual``: every page by chapter, in reading order. The help of each command and completion read the same list.

A page is ``kgctl/manual/NAME.md``: a line ``# Title``, then a paragraph of one sentence, its subject. To add one: the file,
and its name in a chapter.
"""

from __future__ import annotations

import io
import re
import shutil
from importlib import resources
from typing import Annotated

from kgctl.cli.completion import complete_pages
from kgctl.cli.environment import Environment
from kgctl.cli.parameters import argument
from kgctl.cli.report import Column, Report, shows
from kgctl.cli.session import Session
from kgctl.errors import NotFoundError, did_you_mean
from kgctl.model.values import frozen_in_order

CHAPTERS: dict[str, tuple[str, ...]] = {
    "live groups": (
        "runbooks", "clusters", "groups", "top", "resets", "zookeeper", "output", "keys", "exit-codes", "errors", "security",
        "completion", "commands", "other-tools",
    ),
    "without a broker": ("serve", "data-folder"),
    "assignors": ("assignors", "group-files"),
    "rehearsals": (
        "simulate", "scenario-files", "events", "expectations", "metrics", "autoscaling", "share-groups", "streams", "brokers",
        "sweeps", "believing-it",
    ),
    "history": ("history", "watch", "tables", "cookbook", "spark"),
    "in programs": (
        *("python", "testing", "reference-clusters", "reference-members", "reference-coordinator"),
        *("reference-results", "reference-testing"),
    ),
    "how it is built": ("architecture", "coordinator", "adding-things", "development", "benchmarks"),
}  # fmt: skip

LIST_COLUMNS = (
    Column("page", "the page's name"),
    Column("subject", "what it is about"),
    Column("chapter", "the chapter that it stands in", wide=True),
)
MAX_WIDTH = 140
PAGE_COLUMNS = (
    LIST_COLUMNS[0],
    Column("title", "the page's title"),
    Column("text", "the page, as Markdown"),
)
_COMMENT = re.compile(r"^<!-- .*? -->\n", re.MULTILINE)


@frozen_in_order
class Page:
    """A page of the manual: its name, the chapter it stands in, its title, its subject in one sentence, and its Markdown."""

    name: str
    chapter: str
    title: str
    subject: str
    text: str


def page_names() -> tuple[str, ...]:
    """Return the names of all pages in reading order, without opening one."""
    return tuple(name for names in CHAPTERS.values() for name in names)


def read_page(name: str) -> Page:
    """Read one page.

    Raises:
        NotFoundError: no page has this name; the message names near ones.
    """
    chapter = next((title for title, names in CHAPTERS.items() if name in names), None)
    if chapter is None:
        near = did_you_mean(name, page_names(), at_most=3)
        raise NotFoundError(f"the manual has no page {name!r}{near} (kgctl manual lists all pages)")
    text = _COMMENT.sub("", (resources.files("kgctl") / "manual" / f"{name}.md").read_text(encoding="utf-8"))
    title, subject = text.split("\n\n", 2)[:2]
    return Page(name, chapter, title.removeprefix("# "), " ".join(subject.split()), text)


@shows(LIST_COLUMNS, PAGE_COLUMNS, examples="kgctl manual resets")
def manual(
    session: Session,
    page: Annotated[str | None, argument("PAGE", "A page; all are listed without it.", complete=complete_pages)] = None,
) -> Report:
    """Show a page of the manual, or list the pages with their subjects.

    A terminal shows a page with headings, tables and colours; a pipe or a file gets its Markdown as it stands.
    """
    if page is None:
        pages = [read_page(name) for name in page_names()]
        rows = [{"page": found.name, "subject": found.subject, "chapter": found.chapter} for found in pages]
        return Report(LIST_COLUMNS, rows, name_keys=("page",))
    found = read_page(page)
    environment = session.environment
    text = _rendered(found.text, environment) if environment.stdout_is_terminal else found.text
    return Report(PAGE_COLUMNS, [{"page": found.name, "title": found.title, "text": found.text}], name_keys=("page",), text=text)


def _rendered(text: str, environment: Environment) -> str:
    """The page as this terminal shows it; folded at its width, or at 140 columns."""
    from rich.console import Console
    from rich.markdown import Markdown

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, _environ=dict(environment.variables))
    console.width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    console.print(Markdown(text, code_theme="ansi_light" if console.color_system else "bw"))
    return stream.getvalue()
