"""One of the two servers: is sent the steps of a script, and keeps what it answered, when it did."""

from __future__ import annotations

import re
import select
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kgctl.serde.messages import decode_response, encode_request
from kgctl.server.service import default_registry
from tests.support.wire.raw_client import ConnectionClosed, RawClient
from tests.wire.differential.plain import ORDER_KEYS, Plain
from tests.wire.generated.requests import Actor, Cast, values
from tests.wire.generated.steps import APIS, CLASSIC, CONSUMERS, PRODUCERS, Step

DRAWN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![\w-])[\w-]{22}(?![\w-])")
"""Ids that a server draws, of both protocols."""
UNIMPORTANT = {"host": "host", "port": "port", "client_host": "host"}
CONCURRENT_TRANSACTIONS = 51
PATIENT_TRIES = 100


@dataclass
class Asked:
    """A request that has not been answered yet; ``tries`` counts how often it was sent."""

    index: int
    step: Step
    connection: RawClient
    tries: int = 1


class Side:
    """One server in one script. Connections that wait for an answer are not used for anything else meanwhile."""

    def __init__(self, bootstrap: str, topic_ids: Mapping[str, UUID], group: str, patience: int = 1) -> None:
        actors = {name: Actor(name, "" if name in CLASSIC else name) for name in (*CLASSIC, *CONSUMERS, *PRODUCERS)}
        self.cast = Cast(group, topic_ids, actors)
        self.answers: dict[int, Any] = {}
        self.patience = patience
        self.waiting: list[Asked] = []
        self._bootstrap = bootstrap
        self._idle: dict[str, list[RawClient]] = {}
        self._names: dict[str, str] = {}
        self._topics = {topic_id: name for name, topic_id in topic_ids.items()}
        self._drawn: dict[int, list[str]] = {}
        self._plain = Plain(self._named, (*ORDER_KEYS, "member_id", "group_instance_id"))

    def ask(self, index: int, step: Step) -> None:
        """Send a step's request."""
        self._send(index, step, 1)

    def _send(self, index: int, step: Step, tries: int) -> None:
        connection = self._connection(step["actor"])
        connection.send_payload(_payload(step, values(self.cast, step)))
        self.waiting.append(Asked(index, step, connection, tries))

    def collect(self, wait_s: float = 0.0) -> None:
        """Take the answers that are there, after waiting for the first of them."""
        sockets = {asked.connection.socket: asked for asked in self.waiting}
        ready, _, _ = select.select(list(sockets), [], [], wait_s)
        for asked in sorted((sockets[each] for each in ready), key=lambda asked: asked.index):
            self.waiting.remove(asked)
            self._take(asked)

    def look(self) -> Any:
        """The group as it stands, by both describing APIs."""
        group = self.cast.group_id("g")
        with RawClient(self._bootstrap) as connection:
            classic = connection.call(15, 6, {"groups": [group]})
            consumer = connection.call(69, 1, {"group_ids": [group]})
            offsets = connection.call(9, 7, {"group_id": group, "topics": None})
            stable = connection.call(9, 7, {"group_id": group, "topics": None, "require_stable": True})
        seen = (("classic", classic), ("consumer", consumer), ("offsets", offsets), ("stable offsets", stable))
        return {name: self._plain.of(body) for name, body in seen}

    def drawn_id(self, index: int) -> list[str]:
        """The member id that the server drew for this step, if it has answered with one."""
        return self._drawn.get(index, [])

    def close(self) -> None:
        """End every connection."""
        for connection in [asked.connection for asked in self.waiting] + [one for idle in self._idle.values() for one in idle]:
            connection.close()

    def _connection(self, actor: str) -> RawClient:
        idle = self._idle.setdefault(actor, [])
        return idle.pop() if idle else RawClient(self._bootstrap)

    def _take(self, asked: Asked) -> None:
        step = asked.step
        try:
            _, body = decode_response(APIS[step["api"]], step["v"], asked.connection.receive())
        except (ConnectionClosed, ConnectionResetError):
            asked.connection.close()
            self.answers[asked.index] = "closed"
            return
        self._idle[step["actor"]].append(asked.connection)
        if asked.tries < PATIENT_TRIES * self.patience and _is_passing(body):
            time.sleep(0.01)
            self._send(asked.index, step, asked.tries + 1)
            return
        _learn(self.cast.actors[step["actor"]], step, body)
        if DRAWN_ID.search(getattr(body, "member_id", None) or ""):
            self._drawn[asked.index] = [body.member_id]
        answer = self._plain.of(body)
        if step["api"] == "list":
            own = (self.cast.group_id("g"), self.cast.group_id("h"))
            answer["groups"] = [entry for entry in answer["groups"] if entry["group_id"] in own]
        self.answers[asked.index] = answer

    def _named(self, value: Any, key: str) -> Any:
        if key in UNIMPORTANT:
            return UNIMPORTANT[key]
        if key == "producer_id":
            return min(value, 0)
        if isinstance(value, UUID):
            return self._topics.get(value, str(value))
        if isinstance(value, str):
            return DRAWN_ID.sub(lambda found: self._names.setdefault(found[0], f"<id {len(self._names) + 1}>"), value)
        return value


def _is_passing(body: Any) -> bool:
    """Whether it says only that the transaction before is not over: Kafka writes the markers after its answer."""
    topics = getattr(body, "topics", None) or ()
    errors = [
        getattr(body, "error_code", 0),
        *(getattr(entry, "error_code", 0) for topic in topics for entry in topic.partitions),
    ]
    return CONCURRENT_TRANSACTIONS in errors


def _payload(step: Step, said: Mapping[str, Any]) -> bytes:
    """The frame; a version that nobody has gets the layout of the nearest."""
    key = APIS[step["api"]]
    spec = default_registry().get(key)
    assert spec is not None
    payload = encode_request(key, max(min(step["v"], spec.max_version), spec.min_version), 1, step["actor"], said)
    return _damaged(payload[:2] + struct.pack(">h", step["v"]) + payload[4:], step.get("damage"))


def _damaged(payload: bytes, damage: str | None) -> bytes:
    if damage == "forged":
        return payload[:-4] + b"\x7f\xff\xff\xff"
    cut = {"cut": 1, "cut more": 5}.get(damage or "", 0)
    return payload[:-cut] if cut else payload + b"\x00" * 3 * (damage == "longer")


def _learn(actor: Actor, step: Step, body: Any) -> None:
    """What a member remembers of an answer."""
    if step["api"] == "join" and int(body.error_code) in (0, 79) and step["group"] == "g":
        actor.member_id = body.member_id
        actor.epoch = body.generation_id
        actor.protocol = body.protocol_name or ""
    if step["api"] in ("init producer", "end") and int(body.error_code) == 0 and getattr(body, "producer_id", -1) >= 0:
        actor.producer_id, actor.producer_epoch = body.producer_id, body.producer_epoch
    if step["api"] == "consumer heartbeat" and int(body.error_code) == 0 and step["group"] == "g":
        actor.epoch = max(body.member_epoch, 0)
        if body.assignment is not None:
            topics = body.assignment.topic_partitions
            actor.owned = [{"topic_id": topic.topic_id, "partitions": list(topic.partitions)} for topic in topics]
