"""What must hold after every event of a run. If it does not: a bug in kgctl, or in an assignor under test.

I1 one assigned owner a partition and generation. I2 generations and epochs only grow. I3 committed offsets only grow. I4
assigned only to subscribed members. I5 a stable group has all partitions of a topic assigned. I6 cooperative: no partition is
given away in the round in which it is taken. I7 consumer protocol: no partition is handed out before its owner gave it up or is
out. I8 the causes add up to the unavailable time, which is added up along the way for that. I9 what is written is processed or
waits: the backlog as it was added up along the way is what positions leave of arrivals. Both are settled when the run is over.

Each check looks only at what has changed. The coordinator's own rules (`GroupCoordinator.check`) are looked at when it settles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import NoReturn, Protocol, TypeAlias

from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.errors import InvariantViolation
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.scenario.quantities import UNIT_PR

ASSIGN_TWICE = frozenset({"sticky", "cooperative-sticky"})
"""Kafka's assignors that can give one partition to two members: when the leader's metadata is older than a member's assignment,
a partition that the leader does not know of ends the merge of what exists with what is owned, and all that follows is given away
once more. What comes of it is told by ``owners(partition)`` and ``double_owned``."""


_LARGE, _NOW_AND_THEN = 1_000, 8
"""Of a group of more partitions every eighth stable time is looked at."""
Numbers: TypeAlias = Mapping[str, tuple[int, ...]]
"""Member id -> the numbers of its partitions."""
_FREE = frozenset({NOBODY})


class AssignedOwners(Protocol):
    """Whom the coordinator has assigned each partition to."""

    @property
    def withheld(self) -> Collection[int]: ...
    @property
    def doubled(self) -> Mapping[int, None]: ...
    def of_member(self, member_id: str) -> tuple[int, ...]: ...


class CoordinatorView(Protocol):
    """The group as the coordinator has it."""

    core: GroupCoordinator

    @property
    def assignments(self) -> AssignedOwners: ...
    @property
    def uses_consumer_protocol(self) -> bool: ...
    def members(self) -> tuple[str, ...]: ...
    def has_in_group(self, process: Process) -> bool: ...
    def is_overlooked(self, process: Process) -> bool: ...
    def has_joined_again(self, process: Process) -> bool: ...


class Invariants:
    """Raises `InvariantViolation`, with the group's recent story."""

    def __init__(self, context: RunContext, pods: Sequence[Pod], group: CoordinatorView) -> None:
        self._context = context
        self._pods = pods
        self._group = group
        self._topic_sizes: dict[str, dict[int, None]] = {}
        self._holder: dict[int, str] = {}
        self._shared: dict[int, None] = {}
        self._start_us = context.warmup_us
        self._seen_us = 0
        self._unowned = 0
        self._unavailable_us = 0
        self._stable_times = -1

    def topic_has(self, topic: str, partitions: int) -> None:
        """The topic has this many partitions from now on."""
        self._topic_sizes.setdefault(topic, {})[partitions] = None

    def generation(self, before: int, after: int) -> None:
        """Check I2: generations only grow."""
        if after < before:
            self._broken("I2", f"the generation went from {before} to {after}")

    def committed(self, number: int, before: int, after: int) -> None:
        """Check I3, of committed offsets."""
        if after < before and number not in self._shared:
            name = self._context.partitions.names[number]
            self._broken("I3", f"the committed offset of {name} went from {before} back to {after}")

    def single_owner(
        self, member_id: str, numbers: tuple[int, ...], assigned: Numbers, changed: Numbers, *, assignor: str
    ) -> list[int]:
        """I1: whoever was assigned one of these is out, or has got another assignment without it.

        Those that a leader gives away twice by an assignor of which that is known are the answer, and have no owner to hold to.
        """
        holder_of = self._holder.get
        held = {
            holder: changed.get(holder, assigned.get(holder, ()))
            for holder in map(holder_of, numbers)
            if holder is not None and holder != member_id
        }
        twice: list[int] = []
        if held and not set(numbers).isdisjoint(chain.from_iterable(held.values())):
            twice = [number for number in numbers if number in held.get(holder_of(number, ""), ())]
        if twice and (assignor not in ASSIGN_TWICE or self._group.uses_consumer_protocol):
            name = self._context.partitions.names[twice[0]]
            self._broken("I1", f"{name} is assigned to {holder_of(twice[0])} and to {member_id}")
        self._shared.update(dict.fromkeys(twice))
        self._holder.update(dict.fromkeys(numbers, member_id))
        return twice

    def assigned(self, pod: int, numbers: tuple[int, ...], *, is_cooperative: bool) -> None:
        """Check I4, I6 and I7, of a pod's new assignment."""
        context, pods, group = self._context, self._pods, self._group
        if pod == NOBODY or not numbers:
            return
        topics = context.recording.topics_of(pods[pod].members)
        hands_over = is_cooperative or group.uses_consumer_protocol
        owner, assigned, names = context.owners.owner, context.owners.assigned, context.partitions.names
        if _FREE.issuperset(map(owner.__getitem__, numbers)) and set(map(context.ledger.topic.__getitem__, numbers)).issubset(
            topics
        ):
            return
        for number in numbers:
            if names[number].topic not in topics:
                self._broken("I4", f"{names[number]} is assigned to {pods[pod]}, which does not subscribe to it")
            holder = owner[number]
            if not hands_over or holder in (NOBODY, pod) or assigned[number] == pod or number in self._shared:
                continue
            if self._keeps(holder, pod):
                rule = "I7" if group.uses_consumer_protocol else "I6"
                self._broken(rule, f"{names[number]} is given to {pods[pod]} while {pods[holder]} consumes it")

    def _keeps(self, holder: int, successor: int) -> bool:
        """Whether a pod is a member that nobody has put another in the place of: a second one with its instance id does that.

        A classic group goes on without static members that do not join again in time, and keeps them; the leader's assignor goes
        by what they owned when they joined last. Kafka does the same: such a member reads on until it hears of it. So does one of
        a group that goes over to the consumer protocol in the middle of a round: the coordinator has forgotten what it owns.
        """
        pods, group = self._pods, self._group
        process, instance_id = pods[holder].process, pods[holder].instance_id
        is_replaced = instance_id is not None and instance_id == pods[successor].instance_id
        if is_replaced or process is None or not group.has_in_group(process):
            return False
        return not group.is_overlooked(process) if group.uses_consumer_protocol else group.has_joined_again(process)

    def stable(self) -> None:
        """Check I5 and the coordinator's own invariants, of a stable group; of a large one now and then.

        They look at every member and every partition: as often, a large group would be looked at for longer than it changes.
        """
        self._stable_times += 1
        if len(self._context.partitions) > _LARGE and self._stable_times % _NOW_AND_THEN:
            return
        if not self._group.uses_consumer_protocol:
            self._check_complete()
        self._group.core.check()

    def passed(self, now_us: int) -> None:
        """Something may have changed now: until now nobody consumed as many partitions as before."""
        if now_us > self._seen_us:
            if now_us > self._start_us:
                self._unavailable_us += self._unowned * (now_us - max(self._seen_us, self._start_us))
            self._seen_us = now_us
        self._unowned = self._context.owners.unread

    def settled(self, *, has_positions: bool = True) -> None:
        """I8, I9 where members read on from a position, and what a stable group was not looked at for: the run is over."""
        context = self._context
        self._group.core.check()
        now_us = context.loop.now_us
        self.passed(now_us)
        end_us = max(now_us, self._start_us)
        lanes = [number for number, counts in enumerate(context.partitions.counted) if counts]
        by_cause = sum(sum(context.owners.unread_us(number, self._start_us, end_us)) for number in lanes)
        if by_cause != self._unavailable_us:
            self._broken("I8", f"unavailable for {self._unavailable_us} us, by causes {by_cause} us")
        if has_positions:
            self._check_backlog(now_us)

    def _check_backlog(self, now_us: int) -> None:
        context, ledger = self._context, self._context.ledger
        waiting: dict[str, int] = {}
        for number in context.partitions.existing():
            backlog_pr = ledger.backlog_pr(number, now_us)
            if backlog_pr < 0:
                self._broken("I9", f"{context.partitions.names[number]} is read beyond its end")
            waiting[ledger.topic[number]] = waiting.get(ledger.topic[number], 0) + backlog_pr
        for topic, backlog_pr in waiting.items():
            if context.has_traffic and ledger.backlog[topic].value(now_us) != backlog_pr:
                told = ledger.backlog[topic].value(now_us) / UNIT_PR
                self._broken("I9", f"{backlog_pr / UNIT_PR} records of {topic} wait, {told} by what was written and processed")

    def _check_complete(self) -> None:
        context, group = self._context, self._group
        assignments, topic_of = group.assignments, context.ledger.topic.__getitem__
        numbers = list(chain.from_iterable(map(assignments.of_member, group.members())))
        counts = Counter(map(topic_of, chain(numbers, assignments.withheld)))
        if assignments.doubled:
            counts.subtract(map(topic_of, assignments.doubled.keys() & set(numbers)))
        for topic, count in counts.items():
            if count not in self._topic_sizes[topic]:
                self._broken("I5", f"a stable group has {count} partitions of {topic} assigned")

    def _broken(self, rule: str, what: str) -> NoReturn:
        context = self._context
        group_id = context.group_id
        story = tuple(self._group.core.shard.story.of(group_id))
        at_us = context.loop.now_us - context.warmup_us
        raise InvariantViolation(f"{rule} broke at {at_us / 1_000_000:.6f} s: {what}", group=group_id, story=story)
