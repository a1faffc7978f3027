"""A group member on one of Python's clients: ``client.py FAMILY BOOTSTRAP GROUP TOPIC REFRESH_MS``.

Says when it subscribes, closes and has closed: microseconds since the epoch, a tab, a word. A line on stdin closes it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable


def say(what: str) -> None:
    print(f"{time.time_ns() // 1000}\t{what}", flush=True)


def _asked_to_close() -> threading.Event:
    asked = threading.Event()

    def wait() -> None:
        sys.stdin.readline()
        asked.set()

    threading.Thread(target=wait, daemon=True).start()
    return asked


def librdkafka(bootstrap: str, group: str, topic: str, refresh_ms: int) -> None:
    from confluent_kafka import Consumer

    asked = _asked_to_close()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": refresh_ms,
        }
    )
    say("subscribed")
    consumer.subscribe([topic])
    while not asked.is_set():
        consumer.poll(0.05)
    say("closing")
    consumer.close()
    say("closed")


def kafka_python(bootstrap: str, group: str, topic: str, refresh_ms: int) -> None:
    from kafka import KafkaConsumer

    asked = _asked_to_close()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", metadata_max_age_ms=refresh_ms
    )
    say("subscribed")
    consumer.subscribe([topic])
    while not asked.is_set():
        consumer.poll(timeout_ms=50)
    say("closing")
    consumer.close()
    say("closed")


def aiokafka(bootstrap: str, group: str, topic: str, refresh_ms: int) -> None:
    from aiokafka import AIOKafkaConsumer

    async def live() -> None:
        asked = _asked_to_close()
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", metadata_max_age_ms=refresh_ms
        )
        say("subscribed")
        await consumer.start()
        while not asked.is_set():
            await consumer.getmany(timeout_ms=50)
        say("closing")
        await consumer.stop()
        say("closed")

    asyncio.run(live())


FAMILIES: dict[str, Callable[[str, str, str, int], None]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}

if __name__ == "__main__":
    FAMILIES[sys.argv[1]](sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
