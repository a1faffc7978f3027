"""The envelope as JSON: two spaces of indentation for a person, one line for a program."""

from __future__ import annotations

import json

from kgctl.cli.environment import Environment
from kgctl.cli.output.envelope import envelope
from kgctl.cli.output.report import Report


def render(report: Report, command: str, environment: Environment) -> str:
    """One JSON document. Text is UTF-8, not escaped, except where the stream cannot carry it."""
    indent = 2 if environment.stdout_is_terminal else None
    return json.dumps(envelope(report, command), indent=indent, ensure_ascii=_must_escape(environment)) + "\n"


def _must_escape(environment: Environment) -> bool:
    encoding = getattr(environment.stdout, "encoding", None) or "utf-8"
    return not encoding.lower().replace("-", "").startswith("utf")
