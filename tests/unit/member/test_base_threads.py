"""Whose poll() runs rebalance callbacks, and whose thread joins and syncs, of each client."""

from __future__ import annotations

import pytest

from kgctl.member.api import CallbackKind
from kgctl.member.config import STREAMS, profile_names
from kgctl.model.requests import JoinGroup, OffsetCommit, SyncGroup
from tests.support.member_harness import World, seconds

POLLS_S = tuple(range(0, 60, 5))
OWN_THREAD = ("aiokafka", "kafka-go", "franz-go")
CASES = {
    "java": ("poll", "poll"),
    "kafka-python": ("poll", "poll"),
    "librdkafka": ("poll", "own"),
    **dict.fromkeys(OWN_THREAD, ("own", "own")),
}


def test_each_client_has_a_case() -> None:
    assert set(CASES) | {STREAMS} == set(profile_names())  # whose thread is Java's consumer's


@pytest.mark.parametrize(("client", "callbacks", "joins"), [(name, *case) for name, case in CASES.items()])
def test_callbacks_and_joins_wait_for_poll_where_the_client_has_them_there(client: str, callbacks: str, joins: str) -> None:
    """Every five seconds poll() is called; a second member comes at 21.3 s."""
    world = World({"t": 4})
    settings = {"partition.assignment.strategy": "roundrobin"}
    pod = world.pod("a", settings, profile=client, poll_gap_us=(seconds(5), seconds(5)))
    world.pod("b", settings, profile=client, at_s=21.3, poll_gap_us=(seconds(5), seconds(5)))
    world.run_until(59)
    called = [at_us for at_us, _ in pod.callbacks()]
    sent = [*pod.times(SyncGroup)]
    assert [_where(at_us) for at_us in called] == [callbacks] * 3
    assert {_where(at_us) for at_us in sent} == {joins}
    assert len(pod.times(JoinGroup)) == (2 if client == "kafka-go" else 3)


def _where(at_us: int) -> str:
    """In a poll(), or not; after an answer at most, which takes two milliseconds."""
    return "poll" if any(0 <= at_us - seconds(poll) <= 2_000 for poll in POLLS_S) else "own"


def test_of_librdkafka_what_is_assigned_is_not_read_before_the_application_polls() -> None:
    world = World({"t": 4})
    pod = world.pod("a", {"group.protocol": "consumer"}, profile="librdkafka", poll_gap_us=(seconds(5), seconds(5)))
    world.run_until(4.9)
    assert (pod.callbacks(), pod.member.consumed_partitions) == ([], ())
    world.run_until(5.1)
    assert [at_us for at_us, _ in pod.callbacks()] == [seconds(5)]
    assert len(pod.member.consumed_partitions) == 4


@pytest.mark.parametrize(
    "settings",
    [{"group.protocol": "classic", "partition.assignment.strategy": "cooperative-sticky"}, {"group.protocol": "consumer"}],
    ids=["classic", "consumer"],
)
def test_librdkafka_gives_up_in_one_poll_and_is_handed_what_it_gets_in_the_next(settings: dict[str, str]) -> None:
    """Only then others hear that it has given up. Polls are every five seconds, those of a member that comes 1.3 s later."""
    world = World({"t": 4})
    pod, new = (
        world.pod(
            name,
            settings | {"auto.commit.interval.ms": "600000"},
            profile="librdkafka",
            at_s=at_s,
            poll_gap_us=(seconds(5), seconds(5)),
        )
        for name, at_s in (("a", 0), ("b", 21.3))
    )
    world.run_until(49)
    ((revoked_us, _),) = pod.callbacks(CallbackKind.REVOKED)
    assigned_us, rest = next(each for each in pod.callbacks() if each[0] > revoked_us)
    taken_us = next(at_us for at_us, callback in new.callbacks() if callback.partitions)
    assert (rest.partitions, assigned_us) == ((), revoked_us + seconds(5))
    assert pod.times(OffsetCommit) == [revoked_us]
    assert assigned_us < taken_us
