"""A group without its coordinator, and with another one: what its members meet, what is lost, and what goes on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.model import AssignTime, Cluster
from kgctl.simulate.scenario.quantities import Constant
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, finished, scenario

pytestmark = pytest.mark.usefixtures("exact_warmup")

PROTOCOLS = {"eager": RANGE, "cooperative": COOPERATIVE, "consumer": CONSUMER}
LEADER, REPLICAS = 3, (3, 1, 2)
"""Of the group "group": partition 47 of 50, among three brokers."""
QUICK = {"detect": Constant(5 * S), "load": Constant(2 * S)}


def states(result: RunResult) -> list[tuple[float, str]]:
    """(seconds after the warm-up, state), where it is another one."""
    start_us = result.recording.scenario.warmup_us
    found: list[tuple[float, str]] = []
    for point in result.recording.history.group:
        if point.at_us >= start_us and (not found or found[-1][1] != point.state):
            found.append(((point.at_us - start_us) / S, point.state))
    return found


def leader_of(result: RunResult) -> int | None:
    """Who coordinates at the end."""
    return finished(result.recording.scenario, result.seed).coordination().leader


def number(result: RunResult, metric: str, *filters: str) -> float:
    """A metric that is a number."""
    value = result.metric(metric, filters)
    assert isinstance(value, int | float)
    return value


def given_up(result: RunResult) -> float:
    """Partition-seconds that are not of partitions whose broker was away."""
    return number(result, "unavailable") - number(result, "unavailable", "cause broker")


@pytest.mark.parametrize("config", PROTOCOLS.values(), ids=PROTOCOLS)
def test_members_go_on_while_their_coordinator_is_gone_and_stay_when_another_one_has_read_the_log(
    config: Mapping[str, str],
) -> None:
    down = event("broker_down", "coordinator", at_s=10, for_us=90 * S, load=Constant(100_000))
    result = run(scenario(down, config=config, rate=100, duration_s=400), 3)
    dead, stable = states(result)[-4:-2]
    assert dead == (10.0, "Dead")
    assert stable[1] == "Stable"
    assert 7.1 <= stable[0] - 10 <= 10.2 + 0.1
    assert [number(result, name) for name in ("rebalances", "kicked", "duplicates", "lost")] == [0, 0, 0, 0]
    assert given_up(result) == 0
    assert number(result, "errors", "NETWORK_EXCEPTION") > 4
    assert number(result, "errors", "NOT_COORDINATOR") >= 4  # once the broker that is back leads again
    assert leader_of(result) == LEADER
    again = states(result)[-2:]
    assert [state for _, state in again] == ["Dead", "Stable"]
    assert 100 <= again[0][0] <= 400


@pytest.mark.parametrize("config", PROTOCOLS.values(), ids=PROTOCOLS)
def test_a_clean_move_is_told_by_the_old_coordinator(config: Mapping[str, str]) -> None:
    move = event("coordinator_move", "coordinator", at_s=10, for_us=60 * S, load=Constant(4 * S))
    result = run(scenario(move, config=config, rate=100, duration_s=200), 3)
    assert states(result) == [(10.0, "Dead"), (14.0, "Stable"), (70.0, "Dead"), (74.0, "Stable")]
    assert number(result, "errors", "NOT_COORDINATOR") >= 8
    assert number(result, "errors", "COORDINATOR_LOAD_IN_PROGRESS") > 0
    assert number(result, "errors", "NETWORK_EXCEPTION") == 0
    assert [number(result, name) for name in ("rebalances", "unavailable", "kicked")] == [0, 0, 0]
    assert leader_of(result) == LEADER


def test_a_move_to_a_broker_that_is_no_replica_makes_it_one() -> None:
    cluster = Cluster(brokers=5)  # the replicas are 3, 4 and 5
    done = finished(changed(scenario(event("coordinator_move", "1", at_s=10), duration_s=60), cluster=cluster), 1)
    coordination = done.coordination()
    assert (coordination.leader, coordination.replicas) == (1, (1, 3, 4))


def test_a_move_to_where_it_is_or_to_a_broker_that_is_dead_is_none() -> None:
    events = (event("coordinator_move", "3", at_s=5), event("broker_down", "1", at_s=6), event("coordinator_move", "1", at_s=30))
    assert states(run(scenario(*events, duration_s=60), 1)) == []


def test_the_death_of_another_broker_is_no_matter() -> None:
    assert REPLICAS[1] == 1
    assert states(run(scenario(event("broker_down", "1", at_s=10, for_us=20 * S), duration_s=60), 1)) == []


def test_sessions_start_anew_so_a_crash_is_noticed_so_much_later() -> None:
    crash, down = event("crash", "app/1", at_s=10), event("broker_down", "coordinator", at_s=40, **QUICK)
    result = run(scenario(crash, down, duration_s=150), 1)
    assert number(result, "detection_time") == pytest.approx(37 + 45, abs=0.01)
    assert number(result, "rebalances", "cause timeout") == 1
    assert number(result, "rebalances", "cause coordinator_failover") == 0


def test_a_join_under_way_is_lost_and_made_again_and_the_gap_is_the_coordinators() -> None:
    """app-1 leaves at 10 s, the others join at their next heartbeats, and the coordinator dies while some wait for the rest."""
    stop = event("stop", "app/1", at_s=10)
    calm = scenario(stop, config={**RANGE, "session.timeout.ms": "10000"}, duration_s=80, heartbeat_drift_us=-1)
    joining_us = next(point.at_us for point in run(calm, 1).recording.history.group if point.at_us > 30 * S)
    died_s = joining_us / S - 20 + 1.5
    result = run(changed(calm, events=(stop, event("broker_down", "coordinator", at_s=died_s, **QUICK))), 1)
    assert number(result, "unavailable", "cause coordinator") > 2 * 7
    assert number(result, "rebalances", "cause coordinator_failover") == 1
    again = ["PreparingRebalance", "Dead", "Stable", "PreparingRebalance", "CompletingRebalance", "Stable"]
    assert [state for _, state in states(result)] == again
    # app-1 has left, and no record says so: it is a member again until its session ends.
    assert states(result)[4][0] == pytest.approx(died_s + 7 + 10, abs=0.01)
    assert (number(result, "members"), number(result, "spread")) == (3, 1)


def test_a_generation_that_no_leader_has_assigned_is_lost() -> None:
    """The assignor computes for 5 s, and the coordinator dies meanwhile: its record is that of the generation before."""
    slow = changed(scenario(event("stop", "app/1", at_s=10), duration_s=100), assign_time=AssignTime(base_ns=5_000_000_000))
    completing = next(
        point for point in run(slow, 1).recording.history.group if point.state == "CompletingRebalance" and point.at_us > 30 * S
    )
    died_s = completing.at_us / S - 20 + 1
    result = run(changed(slow, events=(*slow.events, event("broker_down", "coordinator", at_s=died_s, **QUICK))), 1)
    generations = [point.generation for point in result.recording.history.group if point.at_us > 30 * S]
    assert completing.generation in generations
    assert completing.generation - 1 in generations[generations.index(completing.generation) :]
    assert states(result)[-1][1] == "Stable"
    assert (number(result, "members"), number(result, "spread")) == (3, 1)


def test_nobody_leads_when_every_replica_is_gone() -> None:
    """Of four brokers the third has no replica: it can be asked, and knows of no coordinator."""
    events = [event("broker_down", broker, at_s=10, for_us=60 * S) for broker in ("4", "1", "2")]
    result = run(changed(scenario(*events, rate=10, duration_s=100), cluster=Cluster(brokers=4)), 1)
    assert [state for _, state in states(result)] == ["Dead", "Stable"]
    assert states(result)[1][0] == pytest.approx(70.1)
    assert (number(result, "rebalances"), given_up(result)) == (0, 0)


@pytest.mark.parametrize(
    ("given", "rebalances"),
    [
        (RANGE, 1),
        ({**RANGE, "metadata.recovery.strategy": "none"}, 0),
        (CONSUMER, 0),
    ],
    ids=["rebootstrap", "none", "consumer"],
)
def test_with_a_single_broker_the_group_waits_for_it(given: Mapping[str, str], rebalances: int) -> None:
    """A classic leader that finds no broker forgets the topics, and joins again as they "have changed": KIP-1102, measured."""
    down = event("broker_down", "coordinator", at_s=10, for_us=30 * S)
    alone = scenario(down, config=given, rate=10, duration_s=100)
    result = run(changed(alone, cluster=Cluster(brokers=1)), 1)
    assert states(result)[:2] == [(10.0, "Dead"), (40.1, "Stable")]
    assert states(result)[-1][1] == "Stable"
    assert number(result, "rebalances") == rebalances
    assert 30.1 * 8 <= number(result, "unavailable") < 36 * 8


def test_a_broker_that_is_back_before_anybody_noticed_has_lost_the_group_all_the_same() -> None:
    down = event("broker_down", "coordinator", at_s=10, for_us=3 * S)
    result = run(scenario(down, duration_s=20), 1)
    assert states(result)[:2] == [(10.0, "Dead"), (13.1, "Stable")]
    assert leader_of(result) == REPLICAS[1]


def test_the_second_coordinator_may_die_too_even_while_it_reads() -> None:
    events = (
        event("broker_down", "3", at_s=10, detect=Constant(5 * S), load=Constant(10 * S)),
        event("broker_down", "1", at_s=20, detect=Constant(5 * S), load=Constant(1 * S)),
    )
    result = run(scenario(*events, rate=10, duration_s=100), 1)
    assert states(result) == [(10.0, "Dead"), (26.0, "Stable")]
    assert leader_of(result) == REPLICAS[2]


def test_offsets_survive() -> None:
    """A member takes over from another one under the new coordinator, where the old one's commits left off."""
    down, stop = event("broker_down", "coordinator", at_s=30, **QUICK), event("stop", "app/1", at_s=90)
    result = run(scenario(down, stop, rate=1000, duration_s=120), 1)
    assert (number(result, "duplicates"), number(result, "lost")) == (0, 0)
    assert number(result, "moves") > 0


@pytest.mark.parametrize("config", [{**RANGE, "metadata.max.age.ms": "20000"}, CONSUMER], ids=["classic", "consumer"])
def test_topics_that_grow_meanwhile_are_known_to_the_new_coordinator(config: Mapping[str, str]) -> None:
    down, grow = event("broker_down", "coordinator", at_s=10, **QUICK), event("add_partitions", "t", at_s=12, to=12)
    result = run(scenario(down, grow, config=config, duration_s=100), 1)
    assert sum(len(found) for topics in result.final_assignment().values() for found in topics.values()) == 12


def test_pods_that_start_without_a_coordinator_join_once_there_is_one() -> None:
    down, start = event("broker_down", "coordinator", at_s=10, **QUICK), event("restart", "app/1", at_s=11, for_us=S)
    result = run(scenario(down, start, duration_s=60), 1)
    assert number(result, "members") == 4
    assert number(result, "stuck_members") == 0
    assert states(result)[-1][1] == "Stable"


@pytest.mark.parametrize("config", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_same_seed_gives_the_same_run(config: Mapping[str, str]) -> None:
    events = (event("restart", "app/1", at_s=5, for_us=S), event("broker_down", "coordinator", at_s=8, for_us=20 * S))
    first, second = (run(scenario(*events, config=config, rate=50, duration_s=400), 5) for _ in range(2))
    assert (first.digest, first.summary()) == (second.digest, second.summary())


@pytest.mark.parametrize("config", PROTOCOLS.values(), ids=PROTOCOLS)
def test_partitions_of_a_dead_broker_wait_for_their_new_leader(config: Mapping[str, str]) -> None:
    """What it leads waits for a new leader, all else for the high watermark: until it is noticed, the dead broker is in sync."""
    down = event("broker_down", "2", at_s=10, for_us=60 * S, detect=Constant(7 * S))
    result = run(scenario(down, config={**config, "retry.backoff.max.ms": "0"}, rate=80, duration_s=120), 1)

    lanes = {name: [each for each in lane if each.cause is not None] for name, lane in result.lanes().items()}
    gaps = {name: [(each.from_us, each.to_us, each.cause) for each in lane] for name, lane in lanes.items()}
    longer = {"t-1": S // 10, "t-4": S // 10, "t-7": S}  # clients have to find the new leader, replicas to fetch from it
    assert gaps == {name: [(10 * S, 17 * S + longer.get(name, 0), "broker")] for name in lanes}
    assert number(result, "unavailable") == pytest.approx(8 * 7 + 1.2)
    assert number(result, "collateral") == 0
    assert number(result, "backlog_peak") == pytest.approx(8 * 7 * 10, abs=1)
    assert number(result, "duplicates") == 0


def test_partitions_without_a_replica_on_a_dead_broker_are_read_on() -> None:
    down = event("broker_down", "2", at_s=10, for_us=60 * S, detect=Constant(7 * S))
    calm = scenario(down, rate=80, duration_s=120)
    result = run(changed(calm, topics=(changed(calm.topics[0], replicas=2),)), 1)

    found = {
        name: [each.to_us - each.from_us for each in lane if each.cause is not None] for name, lane in result.lanes().items()
    }
    assert {name for name, lengths in found.items() if not lengths} == {"t-2", "t-5"}  # led by 3, with a replica on 1
    led, follows = found["t-1"][0], found["t-0"][0]
    assert (follows, 7 * S + S // 10 <= led <= 8 * S + S // 10) == (7 * S, True)  # retry.backoff.max.ms


@pytest.mark.parametrize(("replicas", "waits"), [(3, {S // 10, S // 2, S}), (2, {S // 10})])
def test_a_broker_that_is_stopped_in_order_costs_the_partitions_that_it_leads(replicas: int, waits: set[int]) -> None:
    """It has left the replicas in sync before it is gone, so that what it follows is read on. A leader alone waits for nobody."""
    down = event("broker_down", "2", at_s=10, for_us=60 * S, detect=Constant(0))
    calm = scenario(down, rate=80, duration_s=30)
    calm = changed(calm, topics=(changed(calm.topics[0], replicas=replicas),))
    lanes = [result.lanes() for result in (run(calm, seed) for seed in range(1, 9))]
    found = [
        (name, [each.to_us - each.from_us for each in lane if each.cause is not None])
        for run in lanes
        for name, lane in run.items()
    ]
    assert {name for name, lengths in found if lengths} == {"t-1", "t-4", "t-7"}
    assert {length for _, lengths in found for length in lengths} == waits


def test_partitions_with_one_replica_wait_for_their_broker() -> None:
    down = event("broker_down", "2", at_s=10, for_us=60 * S)
    calm = scenario(down, config=COOPERATIVE, rate=80, duration_s=120)
    result = run(changed(calm, topics=(changed(calm.topics[0], replicas=1),)), 1)

    assert number(result, "max_gap") == pytest.approx(60.1 + 0.5, abs=0.5)  # reconnect.backoff.max.ms
    assert number(result, "rebalances") == 0
    assert number(result, "backlog", "end") == 0


def test_an_owner_that_comes_while_the_broker_is_away_reads_when_it_is_back() -> None:
    down, leave = event("broker_down", "2", at_s=10, for_us=60 * S), event("stop", "app/3", at_s=20)
    calm = scenario(down, leave, config=RANGE, rate=80, duration_s=120)
    result = run(changed(calm, topics=(changed(calm.topics[0], replicas=1),)), 1)

    after = [(each.from_us, each.owner) for each in result.lanes()["t-7"] if each.owner is not None]
    assert [owner for _, owner in after] == ["app-3", "app-2"]
    assert after[-1][0] == pytest.approx(70 * S + S // 10, abs=S)
    assert number(result, "backlog", "end") == 0


def test_a_member_that_gives_partitions_up_for_others_does_not_join_again_for_the_failover() -> None:
    down = event("broker_down", "coordinator", at_s=3, for_us=5 * S, detect=Constant(S))
    result = run(scenario(down, event("scale", "app", at_s=8, to=5), config=COOPERATIVE, duration_s=40), 1)
    start_us = result.recording.scenario.warmup_us
    told = [words for at_us, words in result.recording.history.triggers if at_us >= start_us]
    assert told[1:5] == ["JoinGroup app-4", "CoordinatorFailover JoinGroup app-2", "JoinGroup app-2", "JoinGroup app-4"]
