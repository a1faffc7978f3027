"""The envelope as YAML."""

from __future__ import annotations

from kgctl.cli.environment import Environment
from kgctl.cli.output.envelope import envelope
from kgctl.cli.output.report import Report


def render(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """One YAML document, keys in the envelope's order."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(envelope(report, command), Dumper=dumper, sort_keys=False, allow_unicode=True, width=4096))
