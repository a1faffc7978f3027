"""The clients that the calibration plays with, by the names that the simulation has for them."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from kgctl.simulate.against.consumers import CONSUMERS
from kgctl.simulate.against.fleet import ClientKind, PythonClient
from kgctl.simulate.scenario.model import Scenario
from tests.support.java_consumers import java_client

_GO = Path(__file__).parent / "clients"


class GoClient(ClientKind):
    """One of Go's clients, built here: kafka-go or franz-go."""

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self._built = Path(tempfile.gettempdir()) / f"kgctl-clients-{(_GO / 'main.go').stat().st_mtime_ns}"
        if not self._built.exists():
            subprocess.run(["go", "build", "-trimpath", "-o", str(self._built), "."], cwd=_GO, check=True)

    def command(self) -> list[str]:
        return [str(self._built), self.profile]


def kind_of(profile: str) -> ClientKind:
    """The kind of a client. Raises where it cannot be had on this machine."""
    if profile == "java":
        return java_client()
    return PythonClient(profile) if profile in CONSUMERS else GoClient(profile)


@contextmanager
def kinds_of(scenario: Scenario) -> Iterator[list[ClientKind]]:
    """The kinds of all clients of a scenario, removed at the end."""
    with ExitStack() as stack:
        profiles = {members.client: None for members in scenario.members}
        yield [stack.enter_context(closing(kind_of(profile))) for profile in profiles]
