"""The output formats by name: the only list of them."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kgctl.cli.environment import Environment
    from kgctl.cli.output.report import Report


class OutputFormat(StrEnum):
    """The forms in which a result is shown."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"

    @property
    def meaning(self) -> str:
        """Return one line for the manual."""
        return _MEANINGS[self]

    @property
    def speaks_of_errors(self) -> bool:
        """Whether the format carries errors itself, so that stdout must have it even when nothing worked."""
        return self in (OutputFormat.JSON, OutputFormat.YAML)


_MEANINGS = {
    OutputFormat.TABLE: "aligned columns, the default; `-` is unknown",
    OutputFormat.WIDE: "the same with every column",
    OutputFormat.JSON: "one envelope (below)",
    OutputFormat.YAML: "the same envelope",
    OutputFormat.CSV: "every column, one header line, RFC 4180 quoting; lists joined by spaces",
    OutputFormat.NAME: "only names, one a line, as other commands take them: groups, `topic:partition`, members",
}


class Renderer(Protocol):
    """Turns a report into the text for stdout."""

    def __call__(self, report: Report, command: str, environment: Environment) -> str: ...


RENDERERS = {
    OutputFormat.TABLE: "table:render_table",
    OutputFormat.WIDE: "table:render_wide",
    OutputFormat.JSON: "structured:render_json",
    OutputFormat.YAML: "structured:render_yaml",
    OutputFormat.CSV: "structured:render_csv",
    OutputFormat.NAME: "table:render_names",
}
"""Format -> the module beside this one and its function; imported when it is asked for."""


def renderer(output: OutputFormat) -> Renderer:
    """Return the function that renders this format."""
    module, _, function = RENDERERS[output].partition(":")
    render: Renderer = getattr(import_module(f"kgctl.cli.output.{module}"), function)
    return render
