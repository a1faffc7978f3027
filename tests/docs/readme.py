"""The parts of README.md that are made from the code: examples with their output, tables, the reference.

`python -m tests.docs.update` writes them; the tests compare. What differs from run to run (ports, ids) is made the same first.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

_BLOCK = re.compile(r"^```console\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = ("kgctl serve", "kgctl demo", "python3 ", ".venv/bin/")
"""First words of blocks that are no examples of this manual's session: they set up, or do not end."""

_VARYING = (
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r" {2,}"), "  "),
)


def with_output(text: str, folder: Path, variables: Mapping[str, str]) -> str:
    """The README with every example run, in order, in ``folder``, and its output put behind it."""
    return _BLOCK.sub(lambda block: f"```console\n{_run(block['body'], folder, variables)}```", text)


def blocks(text: str) -> list[str]:
    """All examples, each with its fences."""
    return [block[0] for block in _BLOCK.finditer(text)]


def _run(body: str, folder: Path, variables: Mapping[str, str]) -> str:
    lines = [line for line in body.splitlines() if line.startswith("$ ")]
    if not lines or lines[0].removeprefix("$ ").startswith(_NOT_RUN):
        return body
    return "".join(f"{line}\n{_output(line.removeprefix('$ '), folder, variables)}" for line in lines)


def _output(line: str, folder: Path, variables: Mapping[str, str]) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    ran = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path, "TZ": "UTC", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return ran.stdout


def comparable(text: str) -> str:
    """The text with everything that differs from run to run made the same."""
    for pattern, same in _VARYING:
        text = pattern.sub(same, text)
    return text


def with_generated(text: str) -> str:
    """The README with the parts between its markers made anew."""
    for name, content in generated().items():
        begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
        before, found_begin, rest = text.partition(begin)
        _, found_end, after = rest.partition(end)
        assert found_begin, f"README.md has no {begin}"
        assert found_end, f"README.md has no {end}"
        text = f"{before}{begin}{content}{end}{after}"
    return text


@functools.cache
def generated() -> dict[str, str]:
    """Marker -> the lines that belong there. Made once: the help of each command is a process."""
    from kgctl.cli.exit_codes import ExitCode
    from kgctl.cli.output.formats import OutputFormat
    from kgctl.cli.registry import COMMANDS
    from tests.docs.serve_apis import serve_apis
    from tests.docs.states import (
        classic_responses,
        classic_states,
        consumer_states,
        consumer_when,
        member_states,
        member_steps,
    )

    return {
        "commands": "".join(f"| `kgctl {spec.path}` | {spec.summary} |\n" for spec in COMMANDS),
        "exit-codes": "".join(f"| {code.value} | {code.meaning} |\n" for code in ExitCode),
        "formats": "".join(f"| `{output.value}` | {output.meaning} |\n" for output in OutputFormat),
        "serve-apis": serve_apis(),
        "classic-states": classic_states(),
        "classic-responses": classic_responses(),
        "consumer-states": consumer_states(),
        "consumer-when": consumer_when(),
        "member-states": member_states(),
        "member-steps": member_steps(),
        "reference": "".join(_help(path) for path in ["", *(spec.path for spec in COMMANDS)]),
    }


def _help(path: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "kgctl", *path.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
        env={**os.environ, "COLUMNS": "102"},
    )
    return f"### kgctl {path}".rstrip() + f"\n\n```text\n{ran.stdout}```\n\n"
