"""Java consumers under a test's command: a process of `kgctl.simulate.against.Fleet`, compiled against Kafka's own jars."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from kgctl.simulate.against.fleet import Client, ClientLine, JavaClient
from tests.support.kafka.install import kafka_class_path


def java_client() -> JavaClient:
    """The Java client of the jars that tests have.

    Raises:
        Unavailable: they cannot be had on this machine.
    """
    return JavaClient(kafka_class_path())


class JavaConsumers:
    """One process with any number of consumers, which ends with the block."""

    def __init__(self, bootstrap: str) -> None:
        self.said: queue.Queue[ClientLine] = queue.Queue()
        self._kind = java_client()
        self._client = Client(self._kind.command(), {"bootstrap.servers": bootstrap}, self.said)

    def start(self, name: str, topics: str, settings: Mapping[str, str]) -> None:
        """A consumer, at once."""
        self._client.tell("start", name, topics, *(f"{key}={value}" for key, value in settings.items()))

    def __enter__(self) -> Self:
        self._client.wait_until_ready()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._client.kill()
        self._kind.close()
