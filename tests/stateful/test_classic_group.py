"""A classic group under any sequence of requests and any passing of time.

The harness checks the core's invariants and the durable state of a second coordinator on every call. Held against a model here:
every request is answered exactly once (but for those that Kafka forgets, too), generations do not go back, members are given what
their leader assigned in their generation, offsets change by accepted commits and deletions alone.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import JoinGroupResult, MemberIdentity, SyncGroupResult
from tests.support.coordinator_harness import Call, CoordinatorHarness

INSTANCES = [None, None, "i", "j"]
PARTITIONS = ["t-0", "t-1", "u-0"]
joins = st.fixed_dictionaries(
    {
        "instance": st.sampled_from(INSTANCES),
        "version": st.sampled_from([3, 5, 9]),
        "protocols": st.sampled_from([["range"], ["range", "sticky"], ["sticky", "range"], ["roundrobin"]]),
        "topics": st.sampled_from([["t"], ["t", "u"]]),
        "session_ms": st.sampled_from([6_000, 60_000, 60_000]),
        "rebalance_ms": st.sampled_from([2_000, 10_000, 30_000]),
    }
)
commits = st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 9), min_size=1, max_size=3)


class ClassicGroupMachine(RuleBasedStateMachine):
    """Clients that do as they like with the group ``g``."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = CoordinatorHarness(topics={"t": 2, "u": 1})
        self.joins: dict[int, Call] = {}
        self.syncs: dict[int, tuple[Call, str, int]] = {}
        self.instances: dict[str, str | None] = {}
        self.assigned: dict[tuple[int, str], bytes] = {}
        self.offsets: dict[str, int] = {}
        self.pending: dict[int, dict[str, int]] = {}
        self.generation = 0
        self.partitions = 2

    @initialize(
        config=st.sampled_from([{}, {}, {"group.max.size": "2"}, {"kgctl.rebalance.stuck.timeout.ms": "8000"}]),
        instances=st.sampled_from([[None], [None, None], ["i", None], ["i", "j"], ["i", None, None]]),
        protocols=st.sampled_from([["range"], ["range", "sticky"]]),
        settled=st.booleans(),
    )
    def start(self, config: dict[str, str], instances: list[str | None], protocols: list[str], settled: bool) -> None:
        """Some brokers limit groups or stuck rebalances; some clients are about to join, or have their assignments already."""
        self.harness = CoordinatorHarness(config, topics={"t": 2, "u": 1})
        for instance in instances:
            call = self.harness.join(version=3, instance=instance, protocols=protocols, session_ms=60_000)
            self.joins[call.request_id] = call
        if settled:
            self.harness.sleep_ms(6_000)
            self.answers_fit_their_requests()
            self.round(set())

    @property
    def group(self) -> ClassicGroup | None:
        """The group, if there is one."""
        group = self.harness.any_group("g")
        return group if isinstance(group, ClassicGroup) else None

    def known(self, data: st.DataObject) -> str:
        """Mostly a member's id, or else one that was handed out once, or one that never was."""
        members = sorted(self.group.members) if self.group else []
        return data.draw(st.sampled_from([*members * 4, *self.instances, "ghost"]))

    def generation_of(self, data: st.DataObject) -> int:
        """Mostly the group's."""
        current = self.group.generation_id if self.group else 0
        return data.draw(st.sampled_from([current] * 7 + [current - 1]))

    # Members.

    @rule(fields=joins)
    def join(self, fields: dict[str, Any]) -> None:
        """A client without an id."""
        call = self.harness.join(**fields)
        self.joins[call.request_id] = call
        if not call.is_parked and call.join.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.instances[call.join.member_id] = None

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), fields=joins, as_itself=st.booleans())
    def join_again(self, data: st.DataObject, fields: dict[str, Any], as_itself: bool) -> None:
        """A client with its id, changed or not."""
        member_id = self.known(data)
        instance = self.instances.get(member_id) if as_itself else fields["instance"]
        self.rejoin(member_id, fields | {"instance": instance})

    def rejoin(self, member_id: str, fields: dict[str, Any]) -> None:
        """An earlier join of the same member that still waits is forgotten."""
        member = self.group.members.get(member_id) if self.group else None
        earlier = member.parked_join if member else None
        call = self.harness.join(member_id, **fields)
        if call.is_parked and earlier is not None:
            self.joins.pop(earlier)
        self.joins[call.request_id] = call

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), in_order=st.booleans())
    def sync(self, data: st.DataObject, in_order: bool) -> None:
        """A leader assigns itself and whom it knows; the others wait."""
        members = sorted(self.group.members) if self.group else []
        self.sync_as(self.known(data), self.generation_of(data), members[: None if in_order else -1])

    def sync_as(self, member_id: str, generation: int, served: list[str]) -> None:
        """What the leader says counts; members that it does not serve get nothing."""
        members = sorted(self.group.members) if self.group else []
        assignments = {name: f"{generation}/{name}".encode() for name in served}
        leads = self.group is not None and self.group.leader_id == member_id and self.group.state == "CompletingRebalance"
        call = self.harness.sync(member_id, generation, assignments, instance=self.instances.get(member_id))
        if leads and not call.is_parked and call.sync.error is ErrorCode.NONE:
            self.assigned |= {(generation, name): assignments.get(name, b"") for name in members}
        if call.is_parked:
            self.syncs = {number: entry for number, entry in self.syncs.items() if entry[1] != member_id}
        self.syncs[call.request_id] = (call, member_id, generation)

    @precondition(lambda self: self.instances)
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        """A sign of life."""
        member_id = self.known(data)
        self.harness.heartbeat(member_id, self.generation_of(data), instance=self.instances.get(member_id))

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), by_instance=st.booleans())
    def leave(self, data: st.DataObject, by_instance: bool) -> None:
        """One or two go; the sync of one that goes is forgotten."""
        leaving = data.draw(st.lists(st.sampled_from([*self.instances, "ghost"]), min_size=1, max_size=2))
        before = set(self.group.members) if self.group else set()
        self.harness.leave(
            *(
                MemberIdentity(member_id="" if by_instance else name, group_instance_id=self.instances.get(name))
                for name in leaving
            )
        )
        gone = before - (set(self.group.members) if self.group else set())
        self.syncs = {number: entry for number, entry in self.syncs.items() if entry[1] not in gone or not entry[0].is_parked}

    @precondition(lambda self: self.group is not None and self.group.state in ("PreparingRebalance", "CompletingRebalance"))
    @rule(data=st.data())
    def well_behaved_round(self, data: st.DataObject) -> None:
        """Every member, or all but some, does what a client would do next: join again, or sync, the leader last."""
        members = sorted(self.group.members) if self.group else []
        self.round(data.draw(st.just(set()) | st.sets(st.sampled_from(members or ["ghost"]), max_size=1)))

    def round(self, absent: set[str]) -> None:
        """Joining and syncing as the state wants it."""
        group = self.group
        assert group is not None
        for member_id in sorted(set(group.members) - absent, key=lambda name: name == group.leader_id):
            member = group.members.get(member_id)
            if member is None or member.is_waiting:
                continue
            if group.state == "PreparingRebalance":
                self.rejoin(member_id, {"instance": member.group_instance_id, "session_ms": member.session_timeout_ms})
            else:
                self.sync_as(member_id, group.generation_id, sorted(group.members))

    # Time.

    @rule(duration_ms=st.sampled_from([1, 1, 500, 3_000, 5_999, 30_000]))
    def time_passes(self, duration_ms: int) -> None:
        """Everybody is silent."""
        self.harness.sleep_ms(duration_ms)

    @rule(past_ms=st.sampled_from([0, 0, 1]))
    def time_passes_to_the_next_deadline(self, past_ms: int) -> None:
        """Up to it, or just past it."""
        self.harness.sleep_to_next_deadline()
        self.harness.sleep_ms(past_ms)

    # Offsets.

    @rule(data=st.data(), offsets=commits, as_member=st.booleans())
    def commit(self, data: st.DataObject, offsets: dict[str, int], as_member: bool) -> None:
        """From a member or from outside."""
        member_id, generation = (self.known(data), self.generation_of(data)) if as_member else ("", -1)
        errors = self.harness.commit(offsets, member_id, generation)
        self.offsets |= {name: offset for name, offset in offsets.items() if errors[name] is ErrorCode.NONE}
        for name in [name for name, error in errors.items() if error is ErrorCode.NONE]:
            for held in self.pending.values():
                held.pop(name, None)

    @rule(producer_id=st.sampled_from([1, 2]), offsets=commits)
    def commit_in_a_transaction(self, producer_id: int, offsets: dict[str, int]) -> None:
        """Nothing counts yet."""
        errors = self.harness.txn_commit(producer_id, offsets)
        held = self.pending.setdefault(producer_id, {})
        for name, offset in offsets.items():
            if errors[name] is ErrorCode.NONE:
                held[name] = offset

    @rule(producer_id=st.sampled_from([1, 2]), committed=st.booleans())
    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """It counts now, unless a newer commit came meanwhile."""
        self.harness.end_txn(producer_id, committed=committed)
        held = self.pending.pop(producer_id, {})
        if committed:
            self.offsets |= held
            for other in self.pending.values():
                for name in list(other):
                    if name in held and self.is_older(producer_id, name):
                        del other[name]

    def is_older(self, producer_id: int, name: str) -> bool:
        """Whether another producer's pending offset stands before this one's in the log."""
        places = {
            entry.producer_id: place
            for place, entry in enumerate(self.harness.log)
            if entry.producer_id is not None
            and getattr(getattr(entry.record, "key", None), "partition", None) is not None
            and f"{entry.record.key.topic}-{entry.record.key.partition}" == name  # type: ignore[union-attr]  # an offset's key
        }
        return places[3 - producer_id] < places[producer_id]

    @rule(names=st.lists(st.sampled_from(PARTITIONS), min_size=1, unique=True))
    def delete_offsets(self, names: list[str]) -> None:
        """Those of topics in use stay."""
        result = self.harness.delete_offsets(*names)
        for partition, error in result.partitions:
            if error is ErrorCode.NONE:
                self.offsets.pop(str(partition), None)
                for held in self.pending.values():
                    held.pop(str(partition), None)

    # Administration.

    @rule()
    def delete_group(self) -> None:
        """Only an empty one goes."""
        if self.harness.delete_groups("g") == [ErrorCode.NONE]:
            self.offsets.clear()
            self.pending.clear()
            self.generation = 0

    @rule()
    def add_partitions(self) -> None:
        """The topic grows."""
        self.partitions += 1
        self.harness.change_topics({"t": self.partitions, "u": 1})

    @rule()
    def force_complete(self) -> None:
        """An administrator loses patience."""
        self.harness.force_complete()

    @rule()
    def reload(self) -> None:
        """Another coordinator takes over; the rebalance under way is lost."""
        self.harness.driver.reload()
        group = self.group
        self.generation = 0 if group is None else group.generation_id
        self.assigned = {key: value for key, value in self.assigned.items() if key[0] <= self.generation}

    @rule()
    def look(self) -> None:
        """Reading changes nothing."""
        before = self.harness.driver.coordinator.durable(), len(self.harness.log)
        self.harness.describe()
        self.harness.list_groups()
        self.harness.fetch(require_stable=True)
        assert (self.harness.driver.coordinator.durable(), len(self.harness.log)) == before

    # What must hold.

    @invariant()
    def answers_fit_their_requests(self) -> None:
        """And what was answered is not parked any more, nor the other way round."""
        for number, joined in list(self.joins.items()):
            if not joined.is_parked:
                self.see_join(joined.join)
                del self.joins[number]
        for number, (call, member_id, generation) in list(self.syncs.items()):
            if not call.is_parked:
                self.see_sync(call.sync, member_id, generation)
                del self.syncs[number]
        members = list(self.group.members.values()) if self.group else []
        assert {m.parked_join for m in members if m.parked_join is not None} == set(self.joins)
        assert {m.parked_sync for m in members if m.parked_sync is not None} == set(self.syncs)

    def see_join(self, result: JoinGroupResult) -> None:
        """An id is known once it was told."""
        if result.error is ErrorCode.NONE:
            group = self.group
            member = group.members.get(result.member_id) if group else None
            self.instances[result.member_id] = member.group_instance_id if member else self.instances.get(result.member_id)
            if result.members:
                assert result.member_id in {member.member_id for member in result.members}

    def see_sync(self, result: SyncGroupResult, member_id: str, generation: int) -> None:
        """What the leader of that generation said, nothing else."""
        if result.error is ErrorCode.NONE and (generation, member_id) in self.assigned:
            assert result.assignment == self.assigned[generation, member_id]

    @invariant()
    def generations_do_not_go_back(self) -> None:
        """As long as it is the same group."""
        if self.group is None:
            self.generation = 0
            return
        assert self.group.generation_id >= self.generation or self.group.generation_id == 0
        self.generation = self.group.generation_id

    @invariant()
    def offsets_are_those_accepted(self) -> None:
        """Nothing else moves them."""
        assert self.harness.offsets() == self.offsets


TestClassicGroup = ClassicGroupMachine.TestCase
