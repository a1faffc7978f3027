"""The leader of a Kafka Streams application: what each member is told, what is withheld, and when it is to join again."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.assignors.high_availability import LATEST_OFFSET, NumberedTask, TaskSettings
from kgctl.assignors.spec import AssignorError, GroupSpec, MemberSpec, TopicSpec
from kgctl.assignors.streams.partition_assignor import TaskTopology
from kgctl.assignors.streams.user_data import NO_REBALANCE_MS, SubscriptionInfo, decode_assignment_info, encode_subscription_info
from kgctl.member.streams_leader import StreamsPartitionAssignor
from kgctl.serde.consumer_protocol import decode_assignment

LEADER, OTHER = UUID(int=1), UUID(int=2)
TOPOLOGY = TaskTopology((("orders", "pays"), ("clicks",)), frozenset({0}))
TOPICS = {"orders": TopicSpec(2), "pays": TopicSpec(1), "clicks": TopicSpec(1)}
RUNNING = {NumberedTask(0, 0): LATEST_OFFSET, NumberedTask(0, 1): LATEST_OFFSET}
ALL = {"orders": (0, 1), "pays": (0,), "clicks": (0,)}


def member(name: str, process_id: UUID, sums: dict[NumberedTask, int], owned: dict[str, tuple[int, ...]]) -> MemberSpec:
    data = encode_subscription_info(SubscriptionInfo(process_id, sums))
    return MemberSpec(name, ("orders", "pays", "clicks"), owned=owned, user_data=data)


def told(*members: MemberSpec, settings: TaskSettings | None = None) -> dict[str, tuple[list[str], list[NumberedTask], int]]:
    """Member -> (its partitions, its copies, when it joins again)."""
    assignor = StreamsPartitionAssignor(TOPOLOGY, settings or TaskSettings(), 60_000, LEADER)
    found = {}
    for name, data in assignor.assign(GroupSpec(TOPICS, members), lambda tasks: dict.fromkeys(tasks, 50_000), 5_000).items():
        assignment = decode_assignment(data)
        info = decode_assignment_info(assignment.user_data or b"")
        assert len(info.active) == len(assignment.partitions)
        found[name] = ([str(each) for each in assignment.partitions], list(info.standby), info.next_rebalance_ms)
    return found


def test_the_leader_joins_again_while_a_copy_warms_up() -> None:
    found = told(member("a", LEADER, RUNNING, ALL), member("b", OTHER, {}, {}))
    assert found == {
        "a": (["orders-0", "orders-1", "pays-0"], [], 65_000),
        "b": ([], [(0, 1)], 0),  # clicks has no state, and is still a's: it joins again at once
    }


def test_what_another_has_to_give_up_first_is_withheld() -> None:
    """A copy that is there stays one until then."""
    caught_up = {NumberedTask(0, 1): 49_000}
    found = told(member("a", LEADER, RUNNING, {"orders": (0, 1), "pays": (0,)}), member("b", OTHER, caught_up, {}))
    assert found == {"a": (["clicks-0", "orders-0", "pays-0"], [], NO_REBALANCE_MS), "b": ([], [(0, 1)], 0)}


def test_a_member_that_says_nothing_of_its_tasks_is_none() -> None:
    with pytest.raises(AssignorError, match="member 'c' says nothing of its tasks"):
        told(MemberSpec("c", ("orders",)))
    with pytest.raises(AssignorError, match="member 'c': user data of Kafka Streams ends too early"):
        told(MemberSpec("c", ("orders",), user_data=b"x"))
