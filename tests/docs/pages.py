"""README.md and the pages of the manual: their examples, and the parts that are made from the code.

`python -m tests.docs.update` writes both; the tests compare. What differs from run to run (ports, ids) is made the same first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.docs.shell import Shell

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
MANUAL = ROOT / "kgctl" / "manual"
PAGES = (README, *sorted(MANUAL.glob("*.md")))

STORY = "story"
_BLOCK = re.compile(r"^```console(?: (?P<mark>\w+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (?P<line>(?:.*\\\n)*.*)\n", re.MULTILINE)
_FILE = re.compile(r"^```yaml\n# (?P<path>[\w./-]+\.yaml)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"^(?:- run: |\$ )?(?:\.venv/bin/)?(kgctl .*)$", re.MULTILINE)

_VARYING = (
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r"\d{8}T\d{6}\w*"), "NOW"),
    (re.compile(r" {2,}"), "  "),
)


def blocks(text: str) -> list[str]:
    """All examples of a page, each with its fences."""
    return [block[0] for block in _BLOCK.finditer(text)]


def with_output(text: str, shell: Shell, has: Callable[[str], bool] = lambda _: False) -> str:
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


def _table(head: str, rows: str) -> str:
    """A table of Markdown whose columns are named by ``head``."""
    return f"{head}\n{'|---' * (head.count('|') - 1)}|\n{rows}"


def _commands() -> str:
    from kgctl.cli.registry import COMMANDS

    rows = "".join(f"| `kgctl {spec.path}` | {spec.summary} | {spec.page} |\n" for spec in COMMANDS)
    return _table("| command | what it does | page |", rows)


def _exit_codes() -> str:
    from kgctl.cli.exit_codes import ExitCode

    return _table("| exit code | meaning |", "".join(f"| {code.value} | {code.meaning} |\n" for code in ExitCode))


def _formats() -> str:
    from kgctl.cli.output.formats import OutputFormat

    return _table("| `-o` | |", "".join(f"| `{output.value}` | {output.meaning} |\n" for output in OutputFormat))


def _manual() -> str:
    from kgctl.cli.manual import CHAPTERS

    return "".join(
        f"- **{chapter}**: {', '.join(f'[{name}](kgctl/manual/{name}.md)' for name in names)}\n"
        for chapter, names in CHAPTERS.items()
    )


def _serve_apis() -> str:
    from tests.docs.serve_apis import serve_apis

    return _table("| API | key | versions |", serve_apis())


def _states(name: str) -> str:
    from tests.docs import states

    made: Callable[[], str] = getattr(states, name)
    return made()


GENERATED: dict[str, Callable[[], str]] = {
    "commands": _commands,
    "exit-codes": _exit_codes,
    "formats": _formats,
    "manual": _manual,
    "serve-apis": _serve_apis,
    "classic-states": lambda: _states("classic_states"),
    "classic-responses": lambda: _table(
        "| state | what it means | Heartbeat | SyncGroup | OffsetCommit |", _states("classic_responses")
    ),
    "consumer-states": lambda: _states("consumer_states"),
    "consumer-when": lambda: _table("| state | when | what it means |", _states("consumer_when")),
    "member-states": lambda: _states("member_states"),
    "member-steps": lambda: _table(
        "| state | at the target | with a new subscription | Heartbeat | behind | SyncGroup | behind |", _states("member_steps")
    ),
}
"""Marker -> what belongs between its begin and its end."""
