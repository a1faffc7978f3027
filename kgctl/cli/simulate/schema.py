"""``kgctl simulate schema``."""

from __future__ import annotations

import json

import typer

from kgctl.cli.report import Report


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl simulate schema > scenario.schema.json")(simulate_schema)


def simulate_schema() -> Report:
    """Print the JSON Schema of scenario files, for editors that complete and check."""
    from kgctl.simulate.scenario.event_kinds import EVENT_KINDS
    from kgctl.simulate.scenario.schema import scenario_schema

    schema = scenario_schema(EVENT_KINDS.values())
    return Report(data=schema, text=json.dumps(schema, indent=2) + "\n")
