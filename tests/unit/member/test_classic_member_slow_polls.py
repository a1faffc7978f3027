"""Members whose applications take 5 s for a batch, held against what Java's clients 4.3.1 did."""

from __future__ import annotations

import pytest

from kgctl.member.api import CallbackKind, StartConsuming, StopConsuming
from tests.support.member_harness import SECOND, Pod, World, seconds

COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
CONSUMER = {"group.protocol": "consumer"}
SETTINGS = pytest.mark.parametrize("settings", [COOPERATIVE, CONSUMER], ids=["classic", "consumer"])


def group_with_a_slow_member(settings: dict[str, str]) -> tuple[World, Pod]:
    """Three members, one of them slow; the time is 60 s."""
    world = World({"orders": 12})
    for name in ("slow", "m1", "m2"):
        world.pod(name, settings, poll_blocks_us=100_000)
    world.run_until_stable()
    world.pods["slow"].poll_gap_us = (seconds(5), seconds(5))
    world.run_until(60)
    return world, world.pods["slow"]


@SETTINGS
def test_poll_that_gets_partitions_waits_for_their_offsets(settings: dict[str, str]) -> None:
    world, slow = group_with_a_slow_member(settings)
    world.close(world.pods["m1"])
    world.run_until(61)
    world.run_until_stable()
    ((assigned_us, _),) = [(at, event) for at, event in slow.callbacks(CallbackKind.ASSIGNED) if at > 60 * SECOND]
    (started_us,) = [at for at, event in slow.log if isinstance(event, StartConsuming) and at > 60 * SECOND]

    assert 0 < started_us - assigned_us < seconds(0.1)


def test_callbacks_of_the_consumer_protocol_are_a_poll_apart() -> None:
    """Seen of Java: read until 3.2 s, revoked at 13.2 s, an empty assignment at 18.2 s; only then the coordinator is told."""
    world, slow = group_with_a_slow_member(CONSUMER)
    world.pod("new", CONSUMER, at_s=61, poll_blocks_us=100_000)
    world.run_until(62)
    world.run_until_stable()
    (stopped_us,) = [at for at, event in slow.log if isinstance(event, StopConsuming) and at > 60 * SECOND]
    (revoked_us, assigned_us) = [at for at, _ in slow.callbacks() if at > 60 * SECOND]
    taken_us = max(at for at, event in world.pods["new"].log if isinstance(event, StartConsuming))

    assert revoked_us - stopped_us == pytest.approx(5 * SECOND, abs=1_000)
    assert assigned_us - revoked_us == pytest.approx(5 * SECOND, abs=1_000)
    assert taken_us >= assigned_us


def test_missing_start_is_found_out_by_the_next_poll() -> None:
    world = World({"orders": 2}, polls_only_when_needed=True)
    pod = world.pod("m", CONSUMER | {"auto.offset.reset": "none"}, poll_blocks_us=100_000)
    world.run_until(30)

    assert pod.failure == "NO_OFFSET_FOR_PARTITION"
