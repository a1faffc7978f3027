"""Conversations about share groups: members, sessions, records that are acquired and acknowledged, offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from tests.wire.differential.about_transactions import Producer
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    ALTER_SHARE_GROUP_OFFSETS,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DELETE_SHARE_GROUP_OFFSETS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_GROUPS,
    METADATA,
    NO_TOPIC_ID,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    SHARE_GROUP_DESCRIBE,
    SHARE_GROUP_HEARTBEAT,
    batch,
    create_topic,
    produce,
)

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
INITIAL, FINAL = 0, -1
Said = Mapping[int, Sequence[tuple[int, int, Sequence[int]]]]
"""Partition -> what is acknowledged: first and last offset, and the types."""
A_WHILE_MS = 500
"""How long a fetch waits: what is given back can be acquired when it is written."""
EARLIEST = {"share.auto.offset.reset": "earliest"}


def member_of(name: str, number: int = 0) -> str:
    """A member's id, the same on every server."""
    return str(uuid5(NAMESPACE_URL, f"{name}-{number}"))


def beat_values(group: str, member_id: str, epoch: int = 0, topics: Sequence[str] | None = None) -> dict[str, Any]:
    return {
        "group_id": group,
        "member_id": member_id,
        "member_epoch": epoch,
        "rack_id": None,
        "subscribed_topic_names": None if topics is None else list(topics),
    }


def configure(probe: Probe, group: str, settings: Mapping[str, str] = EARLIEST) -> Any:
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in settings.items()]
    values = {"resources": [{"resource_type": 32, "resource_name": group, "configs": configs}], "validate_only": False}
    return probe.call(INCREMENTAL_ALTER_CONFIGS, 1, values)


def settle(probe: Probe, group: str, settings: Mapping[str, str]) -> None:
    """Wait until the broker knows what was set: a real one does a moment later."""
    asked = {"resource_type": 32, "resource_name": group, "configuration_keys": list(settings)}
    described = {"resources": [asked], "include_synonyms": False, "include_documentation": False}
    wanted = dict(settings)
    probe.until(
        DESCRIBE_CONFIGS, 4, described, lambda found: {each.name: each.value for each in found.results[0].configs} == wanted
    )


def joined(probe: Probe, name: str, topics: Sequence[str], number: int = 0) -> tuple[str, int]:
    """A member whose group has begun: it is assigned all partitions, and each has its state. (member id, epoch)."""
    member_id = member_of(name, number)
    probe.until(
        SHARE_GROUP_HEARTBEAT,
        1,
        beat_values(name, member_id, 0, topics),
        lambda body: body.assignment is not None and len(body.assignment.topic_partitions) == len(topics),
    )
    group = {"group_id": name, "topics": None}
    probe.until(DESCRIBE_SHARE_GROUP_OFFSETS, 1, {"groups": [group]}, lambda body: len(body.groups[0].topics) == len(topics))
    body = probe.until(SHARE_GROUP_HEARTBEAT, 1, beat_values(name, member_id, 0, topics), lambda body: body.error_code == 0)
    return member_id, body.member_epoch


class Member:
    """One that fetches and acknowledges what the conversation says."""

    def __init__(self, probe: Probe, version: int, group: str, member_id: str, topic_id: UUID) -> None:
        self.probe, self.version, self.group, self.member_id, self.topic_id = probe, version, group, member_id, topic_id
        self.epoch = INITIAL

    def fetch(
        self,
        said: Said | None = None,
        *,
        epoch: int | None = None,
        note: bool = True,
        **settings: Any,
    ) -> Any:
        """Fetch partitions; ``said`` of each what is acknowledged: first and last offset, and the types."""
        epoch = self.epoch if epoch is None else epoch
        values = {**self.values(epoch, {0: (), 1: ()} if said is None else said), **settings}
        body = self.probe.call(SHARE_FETCH, self.version, values, note=note)
        if body is not None and body.error_code == 0:
            self.epoch = max(epoch, 0) + 1
        return body

    def acknowledge(self, said: Said, *, epoch: int | None = None, **settings: Any) -> Any:
        epoch = self.epoch if epoch is None else epoch
        values = {**self.who(epoch), "is_renew_ack": False, "topics": [_topic(self.topic_id, said)], **settings}
        body = self.probe.call(SHARE_ACKNOWLEDGE, min(self.version, 2), values)
        if body is not None and body.error_code == 0:
            self.epoch = max(epoch, 0) + 1
        return body

    def values(self, epoch: int, said: Said) -> dict[str, Any]:
        return {
            **self.who(epoch),
            "max_wait_ms": A_WHILE_MS,
            "min_bytes": 1,
            "max_bytes": 1_000_000,
            "max_records": 500,
            "batch_size": 500,
            "share_acquire_mode": 0,
            "is_renew_ack": False,
            "topics": [_topic(self.topic_id, said)],
            "forgotten_topics_data": [],
        }

    def who(self, epoch: int) -> dict[str, Any]:
        return {"group_id": self.group, "member_id": self.member_id, "share_session_epoch": epoch}


def _topic(topic_id: UUID | str, said: Said) -> dict[str, Any]:
    partitions = [
        {
            "partition_index": index,
            "acknowledgement_batches": [
                {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)} for first, last, types in batches
            ],
        }
        for index, batches in said.items()
    ]
    return {"topic_id": topic_id, "partitions": partitions}


def reading(
    probe: Probe, version: int, name: str, *, records: Sequence[int] = (3, 2), settings: Mapping[str, str] | None = None
) -> Member:
    """A member of a group that begins at the start of a topic with so many records in each batch of its first partition."""
    configure(probe, name, {**EARLIEST, **(settings or {})})
    topic_id = create_topic(probe, name)
    for count in records:
        produce(probe, 12, name, topic_id, batch(count))
    member_id, _ = joined(probe, name, [name])
    begin(probe, name, topic_id)
    return Member(probe, version, name, member_id, topic_id)


def begin(probe: Probe, name: str, topic_id: UUID) -> None:
    """Let the broker look where the group is in each partition; nothing is acquired."""
    scout = Member(probe, 2, name, member_of(name, 99), topic_id)
    values = {**scout.values(INITIAL, {0: (), 1: ()}), "max_records": -1}
    probe.until(SHARE_FETCH, 2, values, lambda body: sum(len(topic.partitions) for topic in body.responses) == 2)
    probe.call(SHARE_ACKNOWLEDGE, 2, {**scout.who(FINAL), "is_renew_ack": False, "topics": []}, note=False)


def share_beating(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    del topic_id
    first, second = member_of(name), member_of(name, 1)
    for values in (
        beat_values("", first, 0, [name]),
        beat_values(name, "", 0, [name]),
        beat_values(name, "m" * 37, 0, [name]),
        beat_values(name, first, 0, None),
        beat_values(name, first, 0, []),
        beat_values(name, first, 1, [name]),
        beat_values(name, first, -1, None),
        beat_values(name, first, -2, None),
        {**beat_values(name, first, 0, [name]), "rack_id": ""},
    ):
        probe.call(SHARE_GROUP_HEARTBEAT, version, values)
    _, epoch = joined(probe, name, [name])
    for values in (
        beat_values(name, first, epoch, None),
        beat_values(name, first, epoch, [name]),
        beat_values(name, first, epoch + 5, None),
        beat_values(name, first, -2, None),
        beat_values(name, second, epoch, None),
        beat_values("nosuch", first, epoch, None),
        beat_values(name, second, -1, None),
        beat_values(name, first, -1, None),
        beat_values(name, first, epoch, None),
    ):
        probe.call(SHARE_GROUP_HEARTBEAT, version, values)


def share_describing(probe: Probe, version: int, name: str) -> None:
    create_topic(probe, name)
    for groups in (["nosuch"], [""], [name, "nosuch", name]):
        probe.call(SHARE_GROUP_DESCRIBE, version, {"group_ids": groups, "include_authorized_operations": True})
    member_id, _ = joined(probe, name, [name])
    probe.until(
        SHARE_GROUP_DESCRIBE,
        version,
        {"group_ids": [name], "include_authorized_operations": False},
        lambda body: bool(body.groups[0].members and body.groups[0].members[0].assignment.topic_partitions),
    )
    probe.call(SHARE_GROUP_DESCRIBE, version, {"group_ids": [name], "include_authorized_operations": True})
    probe.call(SHARE_GROUP_HEARTBEAT, 1, beat_values(name, member_id, -1))
    probe.call(SHARE_GROUP_DESCRIBE, version, {"group_ids": [name], "include_authorized_operations": False})


def share_fetching(probe: Probe, version: int, name: str) -> None:
    """Records go out, come back, go out again, and are done with."""
    member = reading(probe, version, name)
    member.fetch(epoch=INITIAL)
    member.fetch()
    member.fetch({0: [(0, 0, [ACCEPT]), (1, 2, [RELEASE])]})
    member.fetch({0: [(1, 1, [REJECT]), (2, 4, [ACCEPT, RELEASE, ACCEPT])]})
    member.fetch({1: [(0, 0, [ACCEPT])]})
    member.acknowledge({0: [(3, 3, [RELEASE])]})
    member.fetch(max_records=1)
    member.fetch({0: [(3, 3, [ACCEPT])]}, epoch=FINAL)
    member.fetch()
    member.epoch = INITIAL
    member.fetch()


def share_fetching_wrongly(probe: Probe, version: int, name: str) -> None:
    """Sessions that are not there or at another step, partitions and topics that do not exist, batches without sense."""
    member = reading(probe, version, name)
    for settings in (
        {"group_id": None},
        {"member_id": ""},
        {"member_id": None},
        {"member_id": "m" * 37},
        {"member_id": "elsewhere", "share_session_epoch": 1},
        {"member_id": "elsewhere", "share_session_epoch": FINAL},
        {"share_session_epoch": 7},
        {"share_session_epoch": -2},
    ):
        member.fetch(note=True, **settings)
    member.fetch({0: [(0, 0, [ACCEPT])]}, epoch=INITIAL)
    twice = [_topic(member.topic_id, {0: ()}), _topic(member.topic_id, {0: ()})]
    member.fetch(epoch=INITIAL, topics=twice)
    member.fetch(epoch=INITIAL, topics=[_topic(UUID(NO_TOPIC_ID), {0: ()}), _topic(member.topic_id, {0: (), 9: ()})])
    member.fetch()
    member.fetch({0: (), 9: ()}, forgotten_topics_data=[{"topic_id": UUID(NO_TOPIC_ID), "partitions": [0]}])
    wrong: list[list[tuple[int, int, list[int]]]] = [
        [(2, 1, [ACCEPT])],
        [(0, 1, [])],
        [(0, 2, [ACCEPT, ACCEPT])],
        [(0, 0, [9])],
        [(0, 0, [-1])],
        [(0, 0, [RENEW])],
        [(1, 1, [ACCEPT]), (0, 0, [ACCEPT])],
        [(0, 0, [ACCEPT]), (0, 0, [ACCEPT])],
        [(0, 100, [ACCEPT])],
        [(77, 78, [ACCEPT])],
        [(0, 0, [ACCEPT])],
        [(0, 0, [ACCEPT])],
        [(0, 0, [0])],
    ]
    for said in wrong:
        member.fetch({0: said})
    member.fetch(topics=[_topic(UUID(NO_TOPIC_ID), {0: [(0, 0, [ACCEPT])]})])
    member.fetch({9: [(0, 0, [ACCEPT])]})


def share_limits(probe: Probe, version: int, name: str) -> None:
    """How many records a fetch takes, and in which batches they are to be acknowledged."""
    limits: list[dict[str, Any]] = [{"max_records": 7, "batch_size": 2}, {"max_records": 1, "batch_size": 100}, {"max_bytes": 1}]
    modes = (0, 1) if version > 1 else (0,)
    asked = [{**settings, "share_acquire_mode": mode} for mode in modes for settings in limits]
    asked += [{"max_records": 0}, {"max_bytes": 0}, {"max_records": -1}, {"max_bytes": -1}, {"batch_size": 0}]
    for number, settings in enumerate([*asked, {"share_acquire_mode": 7}]):
        member = reading(probe, version, f"{name}-{number}", records=(5, 5, 5))
        member.fetch(**settings)
        member.fetch()


def share_acknowledging(probe: Probe, version: int, name: str) -> None:
    member = reading(probe, 2, name)
    member.fetch(epoch=INITIAL)
    member.version = version
    for settings in (
        {"group_id": None},
        {"member_id": ""},
        {"member_id": "elsewhere"},
        {"member_id": "elsewhere", "share_session_epoch": FINAL},
        {"share_session_epoch": INITIAL},
        {"share_session_epoch": 9},
    ):
        member.acknowledge({0: [(0, 0, [ACCEPT])]}, **settings)
    every: list[Said] = [
        {0: [(0, 0, [ACCEPT])]},
        {0: [(0, 0, [ACCEPT])]},
        {0: [(1, 2, [RELEASE, REJECT])], 1: []},
        {0: [], 1: []},
        {0: [(4, 3, [ACCEPT])], 1: []},
        {0: [(3, 3, [0])]},
        {1: [(0, 0, [ACCEPT])]},
        {9: [(0, 0, [ACCEPT])]},
        {0: [(4, 4, [RENEW])]},
    ]
    for said in every:
        member.acknowledge(said)
    member.acknowledge({}, topics=[_topic(UUID(NO_TOPIC_ID), {0: [(0, 0, [ACCEPT])]})])
    member.acknowledge({0: [(4, 4, [ACCEPT])]}, epoch=FINAL)
    member.acknowledge({0: [(4, 4, [ACCEPT])]}, epoch=FINAL)


def share_renewing(probe: Probe, version: int, name: str) -> None:
    """Locks that are renewed (KIP-1222), from version 2 on; a group that may not."""
    member = reading(probe, version, name)
    member.fetch(epoch=INITIAL)
    nothing: dict[str, Any] = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
    more: list[dict[str, Any]] = [{}, nothing, {**nothing, "max_records": 1}]
    for settings in more:
        member.fetch({0: [(0, 1, [RENEW]), (2, 2, [ACCEPT])]}, is_renew_ack=True, **settings)
    member.acknowledge({0: [(0, 0, [RENEW]), (1, 1, [ACCEPT])]}, is_renew_ack=True)
    never = {"share.renew.acknowledge.enable": "false"}
    configure(probe, name, never)
    settle(probe, name, never)
    member.acknowledge({0: [(0, 0, [RENEW])]}, is_renew_ack=True)
    member.fetch({0: [(0, 0, [RENEW])]}, is_renew_ack=True, **nothing)


def share_delivery_limit(probe: Probe, version: int, name: str) -> None:
    """A record that is given back too often is not given again."""
    member = reading(probe, version, name, settings={"share.delivery.count.limit": "2"})
    member.fetch(epoch=INITIAL)
    member.fetch({0: [(0, 4, [RELEASE])]})
    member.fetch({0: [(0, 3, [RELEASE])]})
    member.fetch({0: [(4, 4, [ACCEPT])]})
    probe.call(DESCRIBE_SHARE_GROUP_OFFSETS, 1, {"groups": [{"group_id": name, "topics": None}]})


def share_two_members(probe: Probe, version: int, name: str) -> None:
    """What one has, the other has not; what one leaves, the other gets."""
    first = reading(probe, version, name)
    second = Member(probe, version, name, member_of(name, 1), first.topic_id)
    first.fetch(epoch=INITIAL, max_records=1)
    second.fetch(epoch=INITIAL)
    second.fetch({0: [(0, 0, [ACCEPT])]})
    second.acknowledge({0: [(3, 4, [ACCEPT])]})
    first.acknowledge({}, epoch=FINAL, topics=[])
    second.fetch()


def share_transactions(probe: Probe, version: int, name: str) -> None:
    """A group that reads what is committed alone, and one that reads everything."""
    configure(probe, name, {**EARLIEST, "share.isolation.level": "read_committed"})
    producer = Producer(probe, 4, name)
    topic_id = producer.topic_id
    for committed in (False, True):
        producer.add_partition()
        producer.write()
        producer.end(committed=committed)
    member_id, _ = joined(probe, name, [name])
    begin(probe, name, topic_id)
    member = Member(probe, version, name, member_id, topic_id)
    member.fetch(epoch=INITIAL)
    member.fetch({0: [(0, 5, [ACCEPT])]})
    member.fetch({0: [(3, 4, [ACCEPT])]})
    probe.call(DESCRIBE_SHARE_GROUP_OFFSETS, 1, {"groups": [{"group_id": name, "topics": None}]})


def share_deleted_records(probe: Probe, version: int, name: str) -> None:
    """The log begins later than the group; then the topic is gone."""
    member = reading(probe, version, name, records=(2, 2, 2))
    member.fetch(epoch=INITIAL, max_records=1)
    values = {"topics": [{"name": name, "partitions": [{"partition_index": 0, "offset": 5}]}], "timeout_ms": 10_000}
    probe.call(DELETE_RECORDS, 2, values)
    member.fetch()
    member.fetch({0: [(0, 1, [ACCEPT])]})
    member.fetch()
    probe.call(DELETE_TOPICS, 6, {"topics": [{"name": name, "topic_id": None}], "timeout_ms": 10_000})
    probe.until(METADATA, 12, {"topics": [{"name": name}]}, lambda body: body.topics[0].error_code == 3)
    member.fetch()
    member.acknowledge({0: [(5, 5, [ACCEPT])]})


def share_offsets(probe: Probe, version: int, name: str) -> None:
    """Describe, alter, delete; of groups that are there and not, empty and not."""
    groups = [
        {"group_id": name, "topics": [{"topic_name": name, "partitions": [0, 1]}, {"topic_name": "nosuch", "partitions": [0]}]},
        {"group_id": name, "topics": None},
        {"group_id": name, "topics": []},
        {"group_id": "nosuch", "topics": None},
        {"group_id": "nosuch", "topics": [{"topic_name": name, "partitions": [0]}]},
        {"group_id": "", "topics": None},
    ]

    def describe() -> None:
        for group in groups:
            probe.call(DESCRIBE_SHARE_GROUP_OFFSETS, version, {"groups": [group]})

    describe()
    member = reading(probe, 2, name)
    describe()
    member.fetch(epoch=INITIAL)
    member.fetch({0: [(0, 0, [ACCEPT]), (1, 1, [RELEASE]), (4, 4, [ACCEPT])]})
    describe()
    altering(probe, name)
    deleting(probe, name)
    probe.call(SHARE_GROUP_HEARTBEAT, 1, beat_values(name, member.member_id, -1))
    altering(probe, name)
    describe()
    deleting(probe, name)
    describe()


def share_state_gone(probe: Probe, version: int, name: str) -> None:
    """What a member still has when the group begins elsewhere, and when it begins anew."""
    member = reading(probe, 2, name, records=(2, 2, 2))
    member.version = version
    member.fetch(epoch=INITIAL)
    probe.call(SHARE_GROUP_HEARTBEAT, 1, beat_values(name, member.member_id, -1))
    altering(probe, name)
    member.acknowledge({0: [(4, 4, [ACCEPT])]})
    member.fetch()
    deleting(probe, name)
    member.acknowledge({0: [(2, 2, [ACCEPT])]})


def share_giving_back_and_fetching(probe: Probe, version: int, name: str) -> None:
    """A fetch does not wait for what it gives back: it takes what comes next, and the next fetch gets the rest."""
    member = reading(probe, version, name, records=(3, 4))
    member.fetch(epoch=INITIAL, max_records=3)
    member.fetch({0: [(0, 2, [RELEASE])]}, max_records=3)
    member.fetch()


def altering(probe: Probe, name: str) -> None:
    for group, topics in (
        (name, [(name, [(0, 2), (1, 0), (9, 0)]), ("nosuch", [(0, 1)])]),
        (name, [(name, [(0, 99)])]),
        (name, [(name, [(0, -1)])]),
        (name, []),
        ("", [(name, [(0, 2)])]),
        (f"{name}-new", [(name, [(0, 1)])]),
    ):
        asked = [
            {
                "topic_name": topic,
                "partitions": [{"partition_index": index, "start_offset": offset} for index, offset in partitions],
            }
            for topic, partitions in topics
        ]
        probe.call(ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": group, "topics": asked})


def deleting(probe: Probe, name: str) -> None:
    for group, topics in ((name, [name, "nosuch"]), (name, [name]), (name, []), ("nosuch", [name]), ("", [name])):
        probe.call(DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": group, "topics": [{"topic_name": topic} for topic in topics]})


def share_deleting_groups(probe: Probe, version: int, name: str) -> None:
    """A share group among others: listed, not deleted while it has members, gone afterwards."""
    member = reading(probe, 2, name)
    listing = {"states_filter": [], "types_filter": ["share"]}
    body = probe.call(LIST_GROUPS, 5, listing, note=False)
    probe.answers.append(
        ("listed", [(each.group_state, each.group_type, each.protocol_type) for each in body.groups if each.group_id == name])
    )
    del version
    probe.call(DELETE_GROUPS, 2, {"groups_names": [name, "nosuch"]})
    probe.call(SHARE_GROUP_HEARTBEAT, 1, beat_values(name, member.member_id, -1))
    probe.call(DELETE_GROUPS, 2, {"groups_names": [name]})
    probe.call(DELETE_GROUPS, 2, {"groups_names": [name]})
    probe.call(DESCRIBE_SHARE_GROUP_OFFSETS, 1, {"groups": [{"group_id": name, "topics": None}]})


def share_settings(probe: Probe, version: int, name: str) -> None:
    """What a group may set, and how it is refused."""
    del version
    for settings in (
        {"share.auto.offset.reset": "by_duration:PT1H"},
        {"share.auto.offset.reset": "never"},
        {"share.auto.offset.reset": "EARLIEST"},
        {"share.isolation.level": "read_everything"},
        {"share.record.lock.duration.ms": "20000"},
        {"share.record.lock.duration.ms": "14999"},
        {"share.record.lock.duration.ms": "60001"},
        {"share.delivery.count.limit": "11"},
        {"share.partition.max.record.locks": "99"},
        {"share.partition.max.record.locks": "many"},
        {"share.renew.acknowledge.enable": "perhaps"},
        {"share.session.timeout.ms": "1"},
    ):
        configure(probe, name, settings)
