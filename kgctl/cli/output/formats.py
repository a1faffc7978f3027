"""The output formats by name: the only list of them."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kgctl.cli.environment import Environment
    from kgctl.cli.output.report import Report


class OutputFormat(StrEnum):
    """How a result is shown."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"

    @property
    def speaks_of_errors(self) -> bool:
        """Whether the format carries errors itself, so that stdout must have it even when nothing worked."""
        return self in (OutputFormat.JSON, OutputFormat.YAML)


class Renderer(Protocol):
    """Turns a report into the text for stdout."""

    def __call__(self, report: Report, command: str, environment: Environment) -> str: ...


MODULES = {
    OutputFormat.TABLE: "as_table",
    OutputFormat.WIDE: "as_wide",
    OutputFormat.JSON: "as_json",
    OutputFormat.YAML: "as_yaml",
    OutputFormat.CSV: "as_csv",
    OutputFormat.NAME: "as_name",
}
"""Format -> the module beside this one whose ``render`` makes it; imported when it is asked for."""


def renderer(output: OutputFormat) -> Renderer:
    """The function that renders this format."""
    module = import_module(f"kgctl.cli.output.{MODULES[output]}")
    render: Renderer = module.render
    return render
