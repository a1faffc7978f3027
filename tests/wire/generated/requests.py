"""A step of a script as the values of a request, with the ids and epochs that one server gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from kgctl.model.groups import ConsumerAssignment, ConsumerSubscription
from kgctl.serde.consumer_protocol import encode_assignment, encode_subscription
from tests.wire.generated.steps import PRODUCERS, Step

CHANGES = {"right": 0, "+1": 1, "-1": -1}
NO_TOPIC_ID = UUID("11111111-2222-3333-4444-555555555555")


@dataclass
class Actor:
    """Who sends; what one server has told it."""

    name: str
    member_id: str = ""
    epoch: int = 0
    protocol: str = "range"
    owned: list[dict[str, Any]] = field(default_factory=list)
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(frozen=True)
class Cast:
    """The actors of a script, and the group and topics that they talk about."""

    group: str
    topic_ids: Mapping[str, UUID]
    actors: Mapping[str, Actor]

    def group_id(self, label: str) -> str:
        """ "g" is the group, "h" one beside it, "" no name."""
        return f"{self.group}-{label}" if label else ""

    def member_id(self, step: Step) -> str | None:
        """The id that the step wants said."""
        return self.said(step["member"], self.actors[step["actor"]])

    def said(self, member: str | None, own: Actor) -> str | None:
        """An id, from a script's word for it."""
        if member == "own":
            return own.member_id
        return self.actors[member[1:]].member_id if member and member.startswith("@") else member

    def epoch(self, step: Step) -> int:
        """The generation or member epoch that the step wants said."""
        said, own = step["epoch"], self.actors[step["actor"]].epoch
        if isinstance(said, int):
            return said
        return self.actors[said[1:]].epoch if said[0] == "@" else own + CHANGES[said]

    def producer(self, step: Step) -> dict[str, Any]:
        """Who the producer says it is."""
        own = self.actors[step["actor"]]
        other = next(actor for name, actor in self.actors.items() if name in PRODUCERS and actor is not own)
        said = step["producer_epoch"]
        epoch = said if isinstance(said, int) else max(own.producer_epoch + CHANGES[said], -1)
        identity = {
            "own": (own.producer_id, epoch),
            "none": (-1, epoch),
            # With its epoch: an older one is told from what the producer has written to the group's partition, if it has.
            "other": (other.producer_id, other.producer_epoch),
        }[step["producer"]]
        transactional_id = f"{self.group}-{step['actor']}"
        return {"transactional_id": transactional_id, "producer_id": identity[0], "producer_epoch": identity[1]}

    def topics(self, partitions: list[tuple[str, int]], entry: Callable[[int], Any]) -> list[dict[str, Any]]:
        """Topics with an entry for each partition."""
        ordered = sorted((str(name), int(number)) for name, number in partitions)
        return [
            {"name": name, "topic_id": self.topic_ids.get(name, NO_TOPIC_ID), "partitions": [entry(one[1]) for one in group]}
            for name, group in groupby(ordered, key=itemgetter(0))
        ]


def join(cast: Cast, step: Step) -> dict[str, Any]:
    """JoinGroup."""
    metadata = encode_subscription(ConsumerSubscription(tuple(step["topics"])))
    return {
        "session_timeout_ms": step["session"],
        "rebalance_timeout_ms": 300_000,
        "member_id": cast.member_id(step),
        "group_instance_id": step["instance"],
        "protocol_type": step["protocol_type"],
        "protocols": [{"name": name, "metadata": metadata} for name in step["protocols"]],
    }


def sync(cast: Cast, step: Step) -> dict[str, Any]:
    """SyncGroup; whoever assigns gives everybody the same few bytes."""
    own = cast.actors[step["actor"]]
    given = encode_assignment(ConsumerAssignment())
    members = sorted({actor.member_id for actor in cast.actors.values() if actor.member_id})
    return {
        "generation_id": cast.epoch(step),
        "member_id": cast.member_id(step),
        "group_instance_id": step["instance"],
        "protocol_type": "consumer" if step["protocol_type"] == "right" else step["protocol_type"],
        "protocol_name": own.protocol if step["protocol"] == "right" else step["protocol"],
        "assignments": [{"member_id": member, "assignment": given} for member in members] if step["assign"] else [],
    }


def heartbeat(cast: Cast, step: Step) -> dict[str, Any]:
    """Heartbeat."""
    return {
        "generation_id": cast.epoch(step),
        "member_id": cast.member_id(step),
        "group_instance_id": step["instance"],
    }


def leave(cast: Cast, step: Step) -> dict[str, Any]:
    """LeaveGroup."""
    own = cast.actors[step["actor"]]
    members = [
        {"member_id": cast.said(member, own), "group_instance_id": instance, "reason": "done"}
        for member, instance in step["members"]
    ]
    return {"member_id": members[0]["member_id"] if members else own.member_id, "members": members}


def consumer_heartbeat(cast: Cast, step: Step) -> dict[str, Any]:
    """ConsumerGroupHeartbeat."""
    owned = step["owned"]
    if owned == "right":
        owned = cast.actors[step["actor"]].owned
    elif owned:
        owned = cast.topics(owned, lambda partition: partition)
    return {
        "member_id": cast.member_id(step),
        "member_epoch": cast.epoch(step),
        "instance_id": step["instance"],
        "rack_id": step["rack"],
        "rebalance_timeout_ms": step["rebalance"],
        "subscribed_topic_names": step["topics"],
        "subscribed_topic_regex": step["regex"],
        "server_assignor": step["assignor"],
        "topic_partitions": owned,
    }


def commit(cast: Cast, step: Step) -> dict[str, Any]:
    """OffsetCommit."""

    def entry(partition: int) -> dict[str, Any]:
        return {
            "partition_index": partition,
            "committed_offset": 5 + partition,
            "committed_leader_epoch": 0,
            "committed_metadata": step["metadata"],
        }

    return {
        "generation_id_or_member_epoch": cast.epoch(step),
        "member_id": cast.member_id(step),
        "group_instance_id": step["instance"],
        "topics": cast.topics(step["offsets"], entry),
    }


def fetch(cast: Cast, step: Step) -> dict[str, Any]:
    """OffsetFetch, of one group in the old form and of the same in the new one."""
    wanted: list[dict[str, Any]] | None = None
    if step["topics"] is not None or step["v"] < 2:
        wanted = cast.topics(step["topics"] or [("wire-a", 0)], lambda partition: partition)
        wanted = [{**topic, "partition_indexes": topic.pop("partitions")} for topic in wanted]
    group = {"member_id": cast.member_id(step), "member_epoch": cast.epoch(step), "topics": wanted}
    group_id = cast.group_id(step["group"])
    return {"topics": wanted, "require_stable": step["stable"], "groups": [{"group_id": group_id, **group}]}


def delete_offsets(cast: Cast, step: Step) -> dict[str, Any]:
    """OffsetDelete."""
    return {"topics": cast.topics(step["offsets"], lambda partition: {"partition_index": partition})}


def groups(cast: Cast, step: Step) -> dict[str, Any]:
    """Requests about several groups."""
    ids = [cast.group_id(label) for label in step["groups"]]
    operations = step.get("operations", False)
    return {"groups": ids, "group_ids": ids, "groups_names": ids, "include_authorized_operations": operations}


def listing(_: Cast, step: Step) -> dict[str, Any]:
    """ListGroups."""
    return {"states_filter": step["states"], "types_filter": step["types"]}


def coordinator(cast: Cast, step: Step) -> dict[str, Any]:
    """FindCoordinator, of groups; of a transaction it would make Kafka create a topic."""
    key = cast.group_id(step["group"])
    key_type = 0 if step["key_type"] == 1 else step["key_type"]
    return {"key": key, "key_type": key_type, "coordinator_keys": [key, "other"]}


def init_producer(cast: Cast, step: Step) -> dict[str, Any]:
    """InitProducerId."""
    own = cast.actors[step["actor"]]
    epoch = own.producer_epoch
    who = {
        "new": (-1, -1),
        "own": (own.producer_id, epoch),
        "older": (own.producer_id, max(epoch - 1, -1)),
        "wrong": (own.producer_id, 7),
    }[step["who"]]
    return {
        "transactional_id": f"{cast.group}-{step['actor']}",
        "transaction_timeout_ms": step["timeout"],
        "producer_id": who[0],
        "producer_epoch": who[1],
    }


def add_group(cast: Cast, step: Step) -> dict[str, Any]:
    """AddOffsetsToTxn."""
    return cast.producer(step)


def end(cast: Cast, step: Step) -> dict[str, Any]:
    """EndTxn."""
    return {**cast.producer(step), "committed": step["committed"]}


def commit_in_transaction(cast: Cast, step: Step) -> dict[str, Any]:
    """TxnOffsetCommit."""
    said = commit(cast, step)
    return {**cast.producer(step), **said, "generation_id": said["generation_id_or_member_epoch"]}


VALUES: Mapping[str, Callable[[Cast, Step], dict[str, Any]]] = {
    "commit": commit,
    "fetch": fetch,
    "coordinator": coordinator,
    "join": join,
    "heartbeat": heartbeat,
    "leave": leave,
    "sync": sync,
    "describe": groups,
    "list": listing,
    "delete groups": groups,
    "delete offsets": delete_offsets,
    "consumer heartbeat": consumer_heartbeat,
    "consumer describe": groups,
    "init producer": init_producer,
    "add group": add_group,
    "commit in transaction": commit_in_transaction,
    "end": end,
}


def values(cast: Cast, step: Step) -> dict[str, Any]:
    """The request's values."""
    return {"group_id": cast.group_id(step["group"]), **VALUES[step["api"]](cast, step)}
