"""What Kafka does on odd paths is no broken invariant: the run goes on, and metrics tell of it."""

from __future__ import annotations

import pytest

from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.model import Cluster, Network, Scenario, Topic
from kgctl.simulate.scenario.quantities import Constant, Uniform
from kgctl.simulate.scenario.vocabulary import Subscribed
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, scenario

SLOW_NETWORK = Cluster(network=Network(latency=Uniform(1_000, 60_000)))

TO_CONSUMER = {**CONSUMER, "partition.assignment.strategy": None}
"""A Java client does not start with both."""


def there_and_back(config: dict[str, str], settle_s: int) -> Scenario:
    """A group that goes over to the consumer protocol in the middle of classic rounds, and back again."""
    settle = settle_s * S
    calm = scenario(
        event("upgrade", "app", 0, set_=TO_CONSUMER, batch=2, settle=settle),
        event("upgrade", "app", 90, set_={"group.protocol": "classic", **config}, batch=3, settle=settle),
        event("upgrade", "app", 180, set_=TO_CONSUMER, batch=4, settle=settle),
        count=7,
        partitions=20,
        config=config,
        rate=200,
        poll=Uniform(0, 100_000),
        duration_s=400,
    )
    return changed(calm, cluster=SLOW_NETWORK)


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("settle_s", [0, 3])
@pytest.mark.parametrize("config", [RANGE, COOPERATIVE], ids=["range", "cooperative"])
def test_a_group_goes_over_in_the_middle_of_a_round(config: dict[str, str], settle_s: int, seed: int) -> None:
    result = run(there_and_back(config, settle_s), seed)
    assert (result.stopped, result.metric("state"), result.metric("members")) == ("", "Stable", 7)
    assert (result.metric("owners"), result.metric("unavailable", ("after 300s",))) == (1, 0)


def leader_with_old_metadata(*topics: str) -> Scenario:
    """One pod sees new partitions soon and gives them away as the leader; then it dies, and a pod leads that does not know them.

    ``topics`` are those of another pod. The rest read both.
    """
    scene = scenario(
        event("add_partitions", "t", 0, to=11),
        event("crash", "first", 40, for_us=600 * S),
        count=4,
        partitions=8,
        config={**COOPERATIVE, "session.timeout.ms": "10000"},
        rate=80,
        subscribe=Subscribed(("t", "z")),
        start=Constant(5 * S),
        duration_s=200,
    )
    (app,) = scene.members
    first = changed(app, name="first", count=1, start=Constant(0), config={**app.config, "metadata.max.age.ms": "5000"})
    other = changed(app, name="other", count=1, subscribe=Subscribed(topics))
    return changed(scene, members=(first, app, other), topics=(*scene.topics, Topic(name="z", partitions=6)))


def test_partitions_that_the_sticky_assignor_gives_away_twice_are_read_twice() -> None:
    """As `CooperativeStickyAssignor` of kafka-clients 4.3.1 gives them away for unequal subscriptions."""
    results = [run(leader_with_old_metadata("z"), seed) for seed in range(1, 9)]
    assert any(result.metric("double_owned") != 0 for result in results)
    assert {result.metric("state") for result in results} == {"Stable"}


def test_a_leader_whose_assignor_throws_has_failed_and_the_others_go_on_without_it() -> None:
    """As `CooperativeStickyAssignor` of kafka-clients 4.3.1 throws for equal subscriptions."""
    results = [run(leader_with_old_metadata("t", "z"), seed) for seed in range(1, 9)]
    failed = [result for result in results if result.metric("errors", ("ASSIGNOR_FAILED",))]
    assert failed
    assert all(result.metric("unavailable", ("after 150s",)) == 0 for result in failed)


def test_a_group_in_the_place_of_one_that_was_left_counts_from_its_start() -> None:
    """A classic group without members ends with the first member of the consumer protocol, and its generations with it."""
    restarts = [event("restart", "app/0", at_s=at_s, for_us=S) for at_s in (5, 25)]
    over = (event("stop", "app", at_s=45), event("start", "app", at_s=60, with_=TO_CONSUMER))
    result = run(scenario(*restarts, *over, count=2, duration_s=100), 1)
    points = [(point.state, point.generation) for point in result.recording.history.group]
    assert points[points.index(("Empty", 6)) :] == [
        ("Empty", 6),
        ("Stable", 2),
        ("Assigning", 3),
        ("Reconciling", 3),
        ("Stable", 3),
    ]


@pytest.mark.parametrize(("partitions", "looks"), [(8, 5), (1_100, 2)])
def test_a_large_group_is_looked_at_as_a_whole_now_and_then_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch, partitions: int, looks: int
) -> None:
    seen: list[GroupCoordinator] = []
    monkeypatch.setattr(GroupCoordinator, "check", lambda core: seen.append(core))  # noqa: PLW0108  # a method
    run(scenario(event("rolling_restart", "app", 1, settle=5 * S), count=3, partitions=partitions, duration_s=60), 1)
    assert len(seen) == looks
