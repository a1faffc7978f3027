"""The play's producer, as it meets a topic that has grown, and one that is about to be deleted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kgctl.simulate.against import client


class Producer:
    """Knows partitions 0 and 1, and any number of them once it has looked at the topic."""

    def __init__(self, _: dict[str, Any]) -> None:
        self.partitions = 2
        self.written: list[int] = []
        self.flushed = 0

    def flush(self, limit_s: float) -> None:
        assert limit_s > 0
        self.flushed += 1

    def produce(self, topic: str, _: bytes, *, partition: int, on_delivery: Callable[..., None]) -> None:
        if partition >= self.partitions:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))  # librdkafka's name
        assert (topic, callable(on_delivery)) == ("t", True)
        self.written.append(partition)

    def list_topics(self, topic: str, timeout: float) -> None:
        assert (topic, timeout > 0) == ("t", True)
        self.partitions = 9


def test_records_of_a_new_partition_are_written_when_the_producer_has_heard_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "Producer", Producer)
    traffic = client.Producing({"bootstrap.servers": "x"})
    assert [traffic.write("t", 1, 2), traffic.write("t", 4, 3), traffic.write("t", 4, 3)] == [2, 0, 3]
    assert traffic._producer.written == [1, 1, 4, 4, 4]  # type: ignore[attr-defined]


def test_nothing_is_under_way_to_a_topic_that_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that comes after it would make it again, where brokers create topics by themselves."""
    monkeypatch.setattr(client, "Producer", Producer)
    traffic = client.Producing({"bootstrap.servers": "x"})
    traffic.rates = {"t": [1.0], "other": [1.0]}
    leaving = threading.Thread(target=traffic.leave, args=(["t", "unknown"],))
    with traffic._turn:  # records are being written
        leaving.start()
        assert (leaving.is_alive(), traffic._producer.flushed) == (True, 0)  # type: ignore[attr-defined]
    leaving.join()
    assert (traffic.rates, traffic._producer.flushed) == ({"other": [1.0]}, 1)  # type: ignore[attr-defined]
