"""Requests that come in any order and are half wrong."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kgctl.server.background import BackgroundServer
from tests.support.wire.raw_client import RawClient


class Party:
    """Three clients who know what they should say, and mostly say it."""

    partitions: ClassVar[Mapping[str, int]]
    """How many each topic has."""
    config: ClassVar[Mapping[str, str]]
    reached: ClassVar[Sequence[tuple[str, int]]]
    """Operations and the errors that they have to get at least once."""
    is_right: ClassVar[float] = 0.95
    operations: Sequence[tuple[float, Callable[[], int]]]
    """How often each is done, and what it does: it returns an error's code."""

    def __init__(self, server: BackgroundServer, rng: random.Random) -> None:
        self.rng = rng
        self.seen: Counter[tuple[str, int]] = Counter()
        self.clients = [RawClient(server.bootstrap, client_id=f"c{number}") for number in range(3)]
        self.who = 0

    def run(self, steps: int) -> None:
        weights, operations = zip(*self.operations, strict=True)
        for operation in self.rng.choices(operations, weights, k=steps):
            self.who = self.rng.randrange(3)
            self.seen[operation.__name__, operation()] += 1

    def close(self) -> None:
        for client in self.clients:
            client.close()

    def call(self, api: int, version: int, **values: Any) -> Any:
        return self.clients[self.who].call(api, version, values)

    def mostly(self, right: Any, *wrong: Any, of: float | None = None) -> Any:
        return right if self.rng.random() < (self.is_right if of is None else of) else self.rng.choice(wrong)


def play(
    kind: type[Party], seed: int, steps: int, told: Callable[[BackgroundServer], Any], folder: Path, log: pytest.LogCaptureFixture
) -> tuple[Party, Any]:
    """Let a party of this kind play; what a server says after it. Each request is answered, and what is kept is on disk."""
    with (
        log.at_level(logging.ERROR, "kgctl"),
        BackgroundServer(topics=dict(kind.partitions), config=dict(kind.config), data=folder) as server,
    ):
        party = kind(server, random.Random(seed))
        party.run(steps)
        party.close()
        server.server.services.runtime.core.check()
        before = told(server)
    with BackgroundServer(config=dict(kind.config), data=folder) as again:
        assert told(again) == before
    assert [line.getMessage() for line in log.records if line.levelno >= logging.ERROR] == []
    assert [place for place in kind.reached if not party.seen[place]] == []
    return party, before
