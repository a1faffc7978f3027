"""Real consumers as members of a group: confluent-kafka's, polled until the group has settled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from confluent_kafka import Consumer, KafkaException

from tests.support.patience import PATIENCE_S


def consumer(bootstrap: str, group: str, client_id: str, **properties: str | int | bool) -> Consumer:
    """A consumer that commits only when told to; ``properties`` are librdkafka's, with ``_`` for each dot."""
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "client.id": client_id,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "reconnect.backoff.ms": 1,
        **named,
    })  # fmt: skip


def _told(member: Consumer) -> str:
    """What a member knows of itself: its id (none: it never joined), what it has, and whether it sees the topics."""
    try:
        topics = len(member.list_topics(timeout=10).topics)
    except KafkaException as error:
        return f"{member.memberid()!r} has {len(member.assignment())} partitions, sees no cluster: {error}"
    return f"{member.memberid()!r} has {len(member.assignment())} partitions, sees {topics} topics"


def poll_until(members: Sequence[Consumer], settled: Callable[[], bool]) -> None:
    """Polls every member in turn until ``settled()``."""
    deadline = time.monotonic() + PATIENCE_S
    while not settled():
        assert time.monotonic() < deadline, f"not settled after {PATIENCE_S} s: {[_told(member) for member in members]}"
        for member in members:
            member.poll(0.05)


@contextlib.contextmanager
def joined(
    bootstrap: str, group: str, topic: str, shares: Mapping[str, int], **properties: str | int | bool
) -> Iterator[dict[str, Consumer]]:
    """Members by client id, each once it has the number of partitions in ``shares``; they leave at the end of the block.

    They come one after the other: of members that come at once either may get the larger share.
    """
    members = {client_id: consumer(bootstrap, group, client_id, **properties) for client_id in shares}
    try:
        here: list[Consumer] = []
        for client_id, member in members.items():
            member.subscribe([topic])
            here.append(member)
            poll_until(here, lambda last=member, share=shares[client_id]: bool(last.assignment()) or not share)  # type: ignore[misc]
        wanted = list(shares.values())
        poll_until(list(members.values()), lambda: [len(member.assignment()) for member in members.values()] == wanted)
        yield members
    finally:
        for member in members.values():
            member.close()
