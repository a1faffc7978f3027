"""Generated sequences of requests, each step chosen in the light of what the core holds at that moment.

A sequence is built by running it: the next step names members that are there, epochs and generations that are right or just
wrong, and times on, before and after the next timer. What comes out is a case of the conformance tests' format without its
"expect": Kafka writes that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.member import ClassicMember
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember, Partitions
from kgctl.coordinator.group import Group
from tests.conformance.notation import START_MS
from tests.conformance.world import World
from tests.differential.choices import AGAIN, DRAWN, GROUPS, IDS, INSTANCES, PROTOCOLS, REGEXES, TOPIC_IDS, Choice

Step = dict[str, Any]
_DELTAS = (0, 1, 10, 250, 999, 1000, 1001, 5000, 10_000, 10_001, 30_000, 45_000)


class SequenceBuilder:
    """One sequence under construction, with the core that has done its steps so far."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        topics: dict[str, dict[str, Any]] = {
            name: {"partitions": choice.number(1, 5), "id": TOPIC_IDS[name]} for name in ("T1", "T2", "T3")
        }
        if choice.chance(4):
            topics["T3"]["partitions"] = choice.of((17, 33))
        given: dict[str, Any] = {"topics": topics, "config": choice.settings(), "ids": list(DRAWN)}
        if choice.chance(3):
            given["group"] = _given_group(choice, topics["T1"]["partitions"])
        self.case: dict[str, Any] = {"id": "generated", "given": given, "steps": [], "expect": [], "end": 0}
        self.world = World(self.case)
        self.now = 1
        self.recreated: set[str] = set()

    @property
    def topics(self) -> list[str]:
        """Topics that exist, and one that does not."""
        return [*sorted(self.world.topics), "gone"]

    @property
    def existing(self) -> list[str]:
        """Partitions that exist."""
        topics = self.world.driver.image.topics.values()
        return sorted(f"{topic.name}-{number}" for topic in topics for number in range(min(topic.partition_count, 3)))

    def group(self, group_id: str) -> Group | None:
        """The group as the core has it."""
        return self.world.driver.coordinator.shard.groups.get(group_id)

    def build(self, length: int) -> dict[str, Any]:
        """The whole sequence."""
        for number in range(1, length + 1):
            self.now += self._delta()
            step = {"step": number, "at": self.now, **self._next_step()}
            self.case["steps"].append(step)
            self.world.take(step)
        self.case["end"] = self.now + self.choice.of((0, 1000, 60_000, 400_000))
        self.world.finish(self.case["end"])
        return self.case

    def _delta(self) -> int:
        """To the next timer, or just before or behind it, or some time on."""
        deadline_ms = self.world.driver.coordinator.next_deadline_ms()
        if deadline_ms is not None and self.choice.chance(4):
            return max(deadline_ms - START_MS - self.now + self.choice.of((0, -1, 1)), 0)
        return self.choice.of(_DELTAS)

    def _next_step(self) -> Step:
        group_id = self.choice.of(GROUPS)
        step = self.choice.of(_STEPS)(self, self.group(group_id))
        if group_id != "g" and step["op"] not in _WITHOUT_GROUP:
            step["group"] = group_id
        return step

    # The consumer protocol.

    def _some_topics(self) -> list[str]:
        return self.choice.some(self.topics)

    def consumer_join(self, group: Group | None) -> Step:
        """A member comes, or starts over."""
        choice = self.choice
        known = list(group.members) if isinstance(group, ConsumerGroup) else []
        step: Step = {"op": "cg_heartbeat", "member": choice.of([*IDS, *known]), "epoch": 0}
        step |= {"rebalance": choice.often(5000, 60_000, 10_000), "owned": []}
        if choice.chance(5):
            step["regex"] = choice.of(REGEXES)
        if "regex" not in step or choice.chance(2):
            step["topics"] = self._some_topics()
        if choice.chance(3):
            step["instance"] = choice.of(INSTANCES)
        if choice.chance(3):
            step["assignor"] = choice.of(("uniform", "range"))
        if choice.chance(12):
            step.update(choice.of(_BAD_JOINS))
        return step

    def consumer_heartbeat(self, group: Group | None) -> Step:
        """A member stays, with the right epoch or a wrong one."""
        members = list(group.members.values()) if isinstance(group, ConsumerGroup) else []
        if not members:
            return self.consumer_join(group)
        choice, member = self.choice, self.choice.of(members)
        epoch, before = member.member_epoch, member.previous_member_epoch
        step: Step = {
            "op": "cg_heartbeat",
            "member": member.member_id,
            "epoch": choice.often(epoch, before, epoch - 1, epoch + 1),
        }
        if member.instance_id is not None and not choice.chance(10):
            step["instance"] = member.instance_id
        owned = self._owned(member)
        if owned is not None:
            step["owned"] = owned
        self._say_more(step)
        return step

    def _say_more(self, step: Step) -> None:
        choice = self.choice
        if choice.chance(6):
            step["topics"] = self._some_topics()
        if choice.chance(10):
            step["regex"] = choice.of(REGEXES)
        if choice.chance(12):
            step["assignor"] = choice.of(("range", "uniform", "best"))
        if choice.chance(8):
            step["rebalance"] = choice.of((5000, 20_000))
        if choice.chance(25):
            step["rack"] = choice.of(("r1", " "))
        if choice.chance(25):
            step["instance"] = choice.of(INSTANCES)

    def _owned(self, member: ConsumerMember) -> list[str] | None:
        """What it says it owns: what it should, nothing, all it had, less, or what was never its own."""
        assigned, pending = self._names(member.assigned), self._names(member.pending_revocation)
        options: list[list[str] | None] = [assigned, assigned, assigned, None, [*assigned, *pending], assigned[1:], [], ["T1-0"]]
        return self.choice.of(options)

    def _names(self, partitions: Partitions) -> list[str]:
        names = self.world.topic_names
        return sorted(f"{names[topic_id]}-{number}" for topic_id, epochs in partitions.items() for number in epochs)

    def consumer_leave(self, group: Group | None) -> Step:
        """A member goes, for good or for a restart."""
        members = list(group.members.values()) if isinstance(group, ConsumerGroup) else []
        if not members or self.choice.chance(10):
            return {"op": "cg_heartbeat", "member": self.choice.of(IDS), "epoch": self.choice.of((-1, -2, -3))}
        member = self.choice.of(members)
        step: Step = {"op": "cg_heartbeat", "member": member.member_id, "epoch": -1}
        if member.instance_id is not None:
            step |= {"instance": member.instance_id, "epoch": self.choice.of((-2, -2, -1))}
        return step

    # The classic protocol.

    def join(self, group: Group | None) -> Step:
        """JoinGroup, of somebody new or somebody known."""
        choice = self.choice
        known = list(group.members) if isinstance(group, ClassicGroup | ConsumerGroup) else []
        pending = list(group.pending_joins) if isinstance(group, ClassicGroup) else []
        member_id = choice.of(["", "", *pending, *pending, *known, *known, "ghost"])
        step: Step = {"op": "join", "v": choice.of((9, 5, 4, 3)), "member": member_id, "protocols": choice.of(PROTOCOLS)}
        step |= {"topics": choice.of((["T1"], ["T1", "T2"], ["T3", "gone"], [])), "session": choice.often(10_000, 30_000, 6000)}
        step["rebalance"] = choice.often(20_000, 5000, 60_000)
        instance = self._instance_of(group, member_id)
        if step["v"] >= 5 and (instance or (not member_id and choice.chance(3))):
            step["instance"] = instance or choice.of(INSTANCES)
        if isinstance(group, ConsumerGroup) and member_id in group.members and choice.chance(2):
            step["owned"] = [name for name in self._names(group.members[member_id].assigned) if not choice.chance(6)]
        if choice.chance(30):
            step.update(choice.of(({"session": 5999}, {"protocol_type": "connect"}, {"protocols": []}, {"protocol_type": ""})))
        return step

    def _instance_of(self, group: Group | None, member_id: str) -> str | None:
        if isinstance(group, ClassicGroup):
            member: ClassicMember | None = group.members.get(member_id)
            return None if member is None else member.group_instance_id
        if isinstance(group, ConsumerGroup) and member_id in group.members:
            return group.members[member_id].instance_id
        return None

    def _classic_identity(self, group: Group | None) -> Step:
        """A member with its generation, right or wrong."""
        choice = self.choice
        members = list(group.members) if isinstance(group, ClassicGroup | ConsumerGroup) else []
        member_id = choice.of(members) if members and not choice.chance(12) else "ghost"
        generation = group.generation_id if isinstance(group, ClassicGroup) else 1
        if isinstance(group, ConsumerGroup) and member_id in group.members:
            generation = group.members[member_id].member_epoch
        step: Step = {
            "member": member_id,
            "generation": choice.often(generation, generation, generation, generation - 1, generation + 1),
        }
        instance = self._instance_of(group, member_id)
        if instance is not None and not choice.chance(12):
            step["instance"] = instance
        return step

    def sync(self, group: Group | None) -> Step:
        """SyncGroup; the leader hands partitions out, evenly or not."""
        step: Step = {"op": "sync", **self._classic_identity(group)}
        if isinstance(group, ClassicGroup) and (step["member"] == group.leader_id or self.choice.chance(6)):
            step["assignments"] = self._assignments(group)
        if self.choice.chance(15):
            step.update(self.choice.of(({"protocol": "range"}, {"protocol_type": "consumer"}, {"protocol": "other"})))
        return step

    def _assignments(self, group: ClassicGroup) -> dict[str, list[str]]:
        members = sorted(group.members)
        if not members or self.choice.chance(8):
            return {}
        partitions = [name for name in self.existing if name.startswith(("T1", "T2"))]
        if self.choice.chance(15):
            partitions += partitions[:1]
        return {member: partitions[place :: len(members)] for place, member in enumerate(members)}

    def heartbeat(self, group: Group | None) -> Step:
        """Heartbeat."""
        return {"op": "heartbeat", **self._classic_identity(group)}

    def leave(self, group: Group | None) -> Step:
        """LeaveGroup, of one or several members of either protocol."""
        version = self.choice.of((5, 4, 3, 2))
        identities = [self._classic_identity(group) for _ in range(1 if version < 3 else self.choice.number(1, 3))]
        entries = [{key: value for key, value in one.items() if key != "generation"} for one in identities]
        if version < 3:
            return {"op": "leave", "v": version, "member": entries[0]["member"]}
        for entry in entries:
            if "instance" in entry and self.choice.chance(2):
                entry["member"] = ""
        return {"op": "leave", "v": version, "members": entries}

    # Offsets.

    def _offsets(self) -> dict[str, int]:
        chosen = self.choice.some(self.existing[:6]) or self.existing[:1]
        return {name: self.choice.number(0, 9) for name in chosen}

    def commit(self, group: Group | None) -> Step:
        """OffsetCommit, of a member or from outside."""
        step: Step = {"op": "offset_commit", "v": self.choice.often(9, 8, 7, 2), "offsets": self._offsets()}
        step |= {"member": "", "generation": -1} if self.choice.chance(3) else self._classic_identity(group)
        if step["v"] < 7:
            step.pop("instance", None)
        if step["v"] == 2 and self.choice.chance(2):
            step["retention_ms"] = self.choice.of((0, 5000, 90_000))
        if self.choice.chance(6):
            step["metadata"] = {next(iter(step["offsets"])): self.choice.of(("note", "x*4097", "x*4096", "abc"))}
        return step

    def txn_commit(self, group: Group | None) -> Step:
        """TxnOffsetCommit."""
        step: Step = {"op": "txn_offset_commit", "producer_id": self.choice.of((1, 2)), "offsets": self._offsets()}
        return step if self.choice.chance(2) else step | self._classic_identity(group)

    def end_txn(self, _: Group | None) -> Step:
        """The end of a transaction."""
        return {"op": "end_txn", "producer_id": self.choice.of((1, 2)), "result": self.choice.of(("commit", "abort"))}

    def fetch(self, group: Group | None) -> Step:
        """OffsetFetch."""
        step: Step = {"op": "offset_fetch", "topics": self.choice.of((None, self.existing[:3]))}
        if self.choice.chance(2):
            identity = self._classic_identity(group)
            step |= {"member": identity["member"], "epoch": identity["generation"]}
        if self.choice.chance(3):
            step["require_stable"] = True
        return step

    def delete_offsets(self, _: Group | None) -> Step:
        """OffsetDelete."""
        return {"op": "offset_delete", "topics": self.choice.some(self.existing[:5]) or self.existing[:1]}

    # Groups and surroundings.

    def look(self, _: Group | None) -> Step:
        """A request that changes nothing."""
        return dict(
            self.choice.of(
                (
                    {"op": "describe_consumer_groups", "groups": ["g", "h"]},
                    {"op": "describe_groups", "groups": ["g", "s"], "v": 6},
                    {"op": "describe_groups", "groups": ["g"], "v": 5},
                    {"op": "list_groups"},
                    {"op": "list_groups", "states": ["stable", " Empty "], "types": ["Consumer", "classic"]},
                )
            )
        )

    def delete_groups(self, _: Group | None) -> Step:
        """DeleteGroups."""
        return {"op": "delete_groups", "groups": self.choice.of((["g"], ["s", "g"], ["h"]))}

    def change_topics(self, _: Group | None) -> Step:
        """A topic comes, grows or goes; one that comes again has another id."""
        name = self.choice.of(("T1", "T2", "T4", "t3"))
        exists = name in self.world.topics
        if exists and self.choice.chance(2):
            self.recreated.add(name)
            return {"op": "delete_topic", "topic": name}
        topic_id = (AGAIN if name in self.recreated else TOPIC_IDS)[name]
        count = self.world.driver.image.topics[name].partition_count if exists else 0
        return {"op": "set_topic", "topic": name, "id": topic_id, "partitions": count + self.choice.number(1, 3)}

    def reload(self, _: Group | None) -> Step:
        """The coordinator is unloaded and loaded again."""
        return {"op": "reload"}


def _given_group(choice: Choice, partitions: int) -> dict[str, Any]:
    """A Stable classic group to begin with."""
    size = choice.number(1, 3)
    ids = ["a0", "b1", "Aa"][:size]
    protocols = choice.of((["range"], ["range", "roundrobin"], ["cooperative-sticky", "range"]))
    members = []
    for place, member_id in enumerate(ids):
        member: dict[str, Any] = {"id": member_id, "session": choice.of((10_000, 30_000)), "rebalance": 20_000}
        member |= {
            "protocols": protocols,
            "topics": choice.of((["T1"], ["T1", "T2"])),
            "assignment": [f"T1-{place}"] if place < partitions or choice.chance(6) else [],
        }
        if choice.chance(3):
            member["instance"] = INSTANCES[place]
        members.append(member)
    offsets = {"T1-0": 3} if choice.chance(2) else {}
    group = {"type": "classic", "state": "Stable", "generation": choice.of((3, 1)), "protocol_type": "consumer"}
    return {**group, "protocol": protocols[-1], "leader": ids[0], "members": members, "offsets": offsets}


_WITHOUT_GROUP = {
    "end_txn",
    "describe_consumer_groups",
    "describe_groups",
    "list_groups",
    "delete_groups",
    "set_topic",
    "delete_topic",
    "reload",
}
_BAD_JOINS: tuple[Step, ...] = (
    {"rebalance": -1},
    {"owned": ["T1-0"]},
    {"owned": None},
    {"topics": None, "regex": None},
    {"assignor": "best"},
    {"instance": " "},
    {"member": ""},
    {"member": "", "v": 0},
    {"v": 0},
)
_B = SequenceBuilder
_STEPS: tuple[Callable[[SequenceBuilder, Group | None], Step], ...] = (
    *([_B.consumer_join] * 5),
    *([_B.consumer_heartbeat] * 10),
    *([_B.join] * 7),
    *([_B.sync] * 4),
    *([_B.heartbeat] * 3),
    *([_B.consumer_leave] * 2),
    *([_B.commit] * 3),
    _B.leave,
    _B.txn_commit,
    _B.end_txn,
    _B.fetch,
    _B.delete_offsets,
    _B.look,
    _B.delete_groups,
    _B.change_topics,
    _B.reload,
)
