"""README.md and the pages of the manual: their examples, and the parts that are made from the code.

`python -m tests.docs.update` writes both; the tests compare. What differs from run to run (ports, ids) is made the same first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.docs.generated import GENERATED

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
MANUAL = ROOT / "kgctl" / "manual"
PAGES = (README, *sorted(MANUAL.glob("*.md")))


class Runner(Protocol):
    """Where examples run: a folder for their files, and what shows a command line's output."""

    def write(self, path: str, text: str) -> None: ...

    def run(self, line: str) -> str: ...


STORY = "story"
_BLOCK = re.compile(r"^```console(?: (?P<mark>\w+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (?P<line>(?:.*\\\n)*.*)\n", re.MULTILINE)
_FILE = re.compile(r"^```yaml\n# (?P<path>[\w./-]+\.yaml)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"^ *(?:- run: |\$ )?(?:\.venv/bin/)?(kgctl .*)$", re.MULTILINE)

_VARYING = (
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r"\d{8}T\d{6}Z-([a-z]+(?:-[a-z]+)*)(-\d+)?\b"), r"NOW-\1"),  # a number where two fall into one second
    (re.compile(r"means \S+Z \(UTC\)"), "means NOW"),
    (re.compile(r"^process \d+, up .*$", re.MULTILINE), "process NUMBER"),
    (re.compile(r"^\S+( \S+)?: \d+ s(, (looked at )?[\d,]+ of [\d,]+ \w+)?\n", re.MULTILINE), ""),  # told every 30 s, if it lasts
    (re.compile(r" {2,}"), "  "),
)


def blocks(text: str) -> list[str]:
    """All examples of a page, each with its fences."""
    return [block[0] for block in _BLOCK.finditer(text)]


def with_output(text: str, shell: Runner, has: Callable[[str], bool] = lambda _: False) -> str:
    """The page with every example run, in order, and its output put behind each command.

    A block "console story" is one command whose output has prompts of its own. One that needs something more, as "console spark",
    is run only where the machine ``has`` it. A YAML block whose first line is a comment with a path is a file for the examples.
    """

    def run(block: re.Match[str]) -> str:
        mark, body = block["mark"], block["body"]
        if mark and mark != STORY and not has(mark):
            return block[0]
        commands = [command["line"] for command in _COMMAND.finditer(body)]
        ran = "".join(f"$ {line}\n{shell.run(line)}" for line in commands[: 1 if mark == STORY else None])
        return block[0].replace(body, ran)

    for file in _FILE.finditer(text):
        shell.write(file["path"], file["text"])
    return _BLOCK.sub(run, text)


def comparable(text: str) -> str:
    """The text with everything that differs from run to run made the same."""
    for pattern, same in _VARYING:
        text = pattern.sub(same, text)
    return text


def typed_lines(text: str) -> list[str]:
    """The command lines of blocks that are no examples with output: sh, text and workflow files; continued lines are joined."""
    found = re.findall(r"^```(?:sh|text|yaml)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [line for block in found for line in _TYPED.findall(re.sub(r"\s*\\\n\s*", " ", block))]


def with_generated(text: str) -> str:
    """The page with the parts between its markers made anew."""

    def fill(part: re.Match[str]) -> str:
        return f"{part['begin']}\n{GENERATED[part['name']]()}\n{part['end']}"

    return _PART.sub(fill, text)


_PART = re.compile(r"(?P<begin><!-- (?P<name>[\w-]+):begin -->\n).*?(?P<end><!-- (?P=name):end -->)", re.DOTALL)


def generated_names(text: str) -> list[str]:
    """The generated parts that a page has."""
    return [part["name"] for part in _PART.finditer(text)]
