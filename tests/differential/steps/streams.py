"""Steps of streams groups, and of those who make their internal topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kgctl.coordinator.group import Group
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import StreamsMember
from kgctl.model.streams_results import StreamsGroupHeartbeatResult
from kgctl.model.streams_topology import CreatableTopic
from tests.differential.choices import AGAIN, IDS, TOPIC_IDS
from tests.differential.topologies import INTERNAL, READY, SHAPES, WRONG

if TYPE_CHECKING:
    from tests.differential.sequences import SequenceBuilder

Step = dict[str, Any]
_BAD_JOINS: tuple[Step, ...] = (
    {"member": " "},
    {"member": ""},
    {"rack": " "},
    {"group": " "},
    {"rebalance": -1},
    {"topology": None},
    {"active": None},
    {"standby": None},
    {"warmup": None},
    {"standby": [["0", [0]]]},
    {"warmup": [["0", [0]]]},
    {"instance": "i-1"},
    {"offsets": []},
    {"end_offsets": [["0", 0, 1]]},
    {"epoch": -3},
    {"epoch": 1},
    {"epoch": -2},
    {"tags": [["a", "b"], ["a", "c"]]},
)
_PROCESSES = ("p1", "p2", "p1", "p3")
_ENDPOINTS = (["h", 1], ["h", 40_000], ["other", 9])
_TAGS: tuple[list[list[str]], ...] = ([], [["zone", "a"]], [["zone", "b"], ["Aa", "x"], ["BB", "y"]])


def streams_join(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member comes, or starts over."""
    choice = builder.choice
    known = list(group.members) if isinstance(group, StreamsGroup) else []
    step: Step = {"op": "streams_heartbeat", "member": choice.of([*IDS[:4], *known]), "epoch": 0, "active": [], "standby": []}
    step |= {"warmup": [], "rebalance": choice.often(20_000, 5000, 60_000), "process": choice.of(_PROCESSES)}
    if builder.world.driver.coordinator.forgotten:
        # Kafka cannot load the log that would follow.
        step["epoch"] = 1
    step["topology"] = {"epoch": int(choice.chance(12)), "subtopologies": _shape(builder)}
    _details(builder, step)
    if group is not None and not isinstance(group, StreamsGroup) and group.member_count and not choice.chance(4):
        step["group"] = "h"
    if choice.chance(25):
        step.update(choice.of(_BAD_JOINS))
    elif choice.chance(20):
        step["topology"] = choice.of(WRONG)
    return step


def _shape(builder: SequenceBuilder) -> Any:
    """What everybody runs; for a change something else."""
    choice = builder.choice
    if not builder.shape or choice.chance(25):
        builder.shape = choice.of((*READY, *READY, *SHAPES))
    return builder.shape


def _details(builder: SequenceBuilder, step: Step) -> None:
    choice = builder.choice
    if choice.chance(3):
        step["endpoint"] = choice.of(_ENDPOINTS)
    if choice.chance(6):
        step["tags"] = choice.of(_TAGS)
    if choice.chance(10):
        step["rack"] = choice.of(("r1", "r2"))
    if choice.chance(40):
        step["shutdown"] = True
    if choice.chance(3):
        step["endpoint_epoch"] = choice.of((1, 2, 3))


def streams_heartbeat(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member stays, with the right epoch or a wrong one, and says what it has or does not."""
    members = list(group.members.values()) if isinstance(group, StreamsGroup) else []
    if not isinstance(group, StreamsGroup) or not members:
        return streams_join(builder, group)
    choice, member = builder.choice, builder.choice.of(members)
    epoch, before = member.member_epoch, member.previous_member_epoch
    step: Step = {"op": "streams_heartbeat", "member": member.member_id}
    step["epoch"] = choice.often(epoch, epoch, epoch, before, epoch - 1, epoch + 1)
    step["endpoint_epoch"] = choice.often(group.endpoint_epoch, group.endpoint_epoch, 0)
    if step["epoch"] != epoch or not choice.chance(3):
        step |= _owned(builder, member)
    if choice.chance(12):
        _details(builder, step)
    if choice.chance(15):
        step["process"] = choice.of(_PROCESSES)
    if choice.chance(40):
        step.update(choice.of(_BAD_JOINS))
    return step


def _owned(builder: SequenceBuilder, member: StreamsMember) -> Step:
    """Mostly what it is to have; else also what it is to give up, or a part, or what is nobody's."""
    choice = builder.choice
    what = choice.often("assigned", "all", "some", "none", "odd")
    if what == "none":
        return {"active": [], "standby": [], "warmup": []}
    if what == "odd":
        return {"active": [[choice.of(("0", "7")), [choice.of((0, 1, 99, -1))]]], "standby": [], "warmup": []}
    kinds = []
    for assigned, pending in zip(member.assigned, member.pending_revocation, strict=True):
        both: dict[str, set[int]] = {key: set(numbers) for key, numbers in assigned.items()}
        for key, numbers in pending.items() if what == "all" else ():
            both.setdefault(key, set()).update(numbers)
        kinds.append([[key, sorted(both[key])[what == "some" :]] for key in sorted(both)])
    return dict(zip(("active", "standby", "warmup"), kinds, strict=True))


def streams_leave(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member goes."""
    choice = builder.choice
    members = list(group.members) if isinstance(group, StreamsGroup) else []
    member_id = choice.of(members) if members and not choice.chance(10) else choice.of(IDS)
    step: Step = {"op": "streams_heartbeat", "member": member_id, "epoch": choice.often(-1, -1, -1, -2)}
    if choice.chance(10):
        step["shutdown"] = True
    return step


def look_at_streams(builder: SequenceBuilder, _: Group | None) -> Step:
    """StreamsGroupDescribe, ListGroups."""
    choice = builder.choice
    if choice.chance(3):
        states = ("not_ready", "NotReady", "Assigning", "reconciling", "stable", "empty")
        return {"op": "list_groups", "states": choice.some(states), "types": choice.some(("Streams", "classic"))}
    return {"op": "describe_streams_groups", "groups": choice.some(builder.groups)}


def internal_topics(builder: SequenceBuilder, group: Group | None) -> Step:
    """A topic that a heartbeat has asked for is made, with the right number of partitions or another; or one goes."""
    choice = builder.choice
    wanted = [topic for topic in _asked_for(builder) if topic.name not in builder.world.topics]
    if wanted and not choice.chance(8):
        topic = choice.of(wanted)
        return _set_topic(builder, topic.name, max(topic.num_partitions + choice.often(0, 0, 0, 1, -1), 1))
    name = choice.of(INTERNAL)
    if name not in builder.world.topics:
        return streams_heartbeat(builder, group)
    if choice.chance(3):
        return _set_topic(builder, name, builder.world.driver.image.topics[name].partition_count + choice.number(1, 2))
    builder.recreated.add(name)
    return {"op": "delete_topic", "topic": name}


def _set_topic(builder: SequenceBuilder, name: str, partitions: int) -> Step:
    topic_id = (AGAIN if name in builder.recreated else TOPIC_IDS)[name]
    return {"op": "set_topic", "topic": name, "id": topic_id, "partitions": partitions}


def _asked_for(builder: SequenceBuilder) -> tuple[CreatableTopic, ...]:
    results = [result for _, result in builder.world.driver.replies.values() if isinstance(result, StreamsGroupHeartbeatResult)]
    return next((result.creatable_topics for result in reversed(results) if result.creatable_topics), ())


def streams_commit(builder: SequenceBuilder, group: Group | None) -> Step:
    """OffsetCommit or TxnOffsetCommit of a member, at its epoch or an older one."""
    choice = builder.choice
    members = list(group.members.values()) if isinstance(group, StreamsGroup) else []
    step: Step = {"op": "offset_commit", "v": choice.often(9, 8), "member": "ghost", "generation": choice.of((-1, 2))}
    if members and not choice.chance(8):
        member = choice.of(members)
        epoch = member.member_epoch
        step |= {"member": member.member_id, "generation": choice.of((epoch, epoch - 1, epoch - 2, epoch + 1, 1))}
    if choice.chance(3):
        step |= {"op": "txn_offset_commit", "producer_id": choice.of((1, 2)), "v": 3}
    names = choice.some(builder.existing[:6]) or ["T1-0"]
    return step | {"offsets": _at({name: choice.number(0, 9) for name in names})}


def _at(offsets: Mapping[str, int]) -> dict[str, int]:
    return dict(offsets)
