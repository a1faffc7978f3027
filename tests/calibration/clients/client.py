"""A group member on one of Python's clients: ``client.py FAMILY BOOTSTRAP GROUP TOPIC CLIENT_ID REFRESH_MS LIMIT_MS``.

Says when it subscribes, stalls, closes and has closed: microseconds since the epoch, a tab, a word. A number on stdin
has it poll nothing for so many milliseconds, any other line closes it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any


def say(what: str) -> None:
    print(f"{time.time_ns() // 1000}\t{what}", flush=True)


class Commands:
    """What stdin has asked for."""

    def __init__(self) -> None:
        self.closes = False
        self.stall_ms = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            if not line.strip().isdecimal():
                break
            self.stall_ms = int(line)
        self.closes = True

    def take_stall(self) -> float:
        """Return the seconds of a stall that was asked for, once."""
        length_ms, self.stall_ms = self.stall_ms, 0
        return length_ms / 1000


def _live(poll: Callable[[], object], close: Callable[[], object]) -> None:
    commands = Commands()
    while not commands.closes:
        poll()
        if length_s := commands.take_stall():
            say("stalls")
            time.sleep(length_s)
    say("closing")
    close()
    say("closed")


def librdkafka(topic: str, refresh_ms: int, limit_ms: int, settings: Mapping[str, Any]) -> None:
    from confluent_kafka import Consumer

    own = {"topic.metadata.refresh.interval.ms": refresh_ms, "max.poll.interval.ms": limit_ms, "session.timeout.ms": limit_ms}
    consumer = Consumer({**{name.replace("_", "."): value for name, value in settings.items()}, **own})
    say("subscribed")
    consumer.subscribe([topic])
    _live(lambda: consumer.poll(0.05), consumer.close)


def kafka_python(topic: str, refresh_ms: int, limit_ms: int, settings: Mapping[str, Any]) -> None:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(metadata_max_age_ms=refresh_ms, max_poll_interval_ms=limit_ms, **settings)
    say("subscribed")
    consumer.subscribe([topic])
    _live(lambda: consumer.poll(timeout_ms=50), consumer.close)


def aiokafka(topic: str, refresh_ms: int, limit_ms: int, settings: Mapping[str, Any]) -> None:
    from aiokafka import AIOKafkaConsumer

    async def live() -> None:
        commands = Commands()
        consumer = AIOKafkaConsumer(topic, metadata_max_age_ms=refresh_ms, max_poll_interval_ms=limit_ms, **settings)
        say("subscribed")
        await consumer.start()
        while not commands.closes:
            await consumer.getmany(timeout_ms=50)
            if length_s := commands.take_stall():
                say("stalls")
                await asyncio.sleep(length_s)
        say("closing")
        await consumer.stop()
        say("closed")

    asyncio.run(live())


FAMILIES: dict[str, Callable[[str, int, int, Mapping[str, Any]], None]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}


def main() -> None:
    """See the module."""
    family, bootstrap, group, topic, client_id, refresh_ms, limit_ms = sys.argv[1:]
    settings = {"bootstrap_servers": bootstrap, "group_id": group, "client_id": client_id, "auto_offset_reset": "earliest"}
    FAMILIES[family](topic, int(refresh_ms), int(limit_ms), settings)


if __name__ == "__main__":
    main()
