"""Why a run comes out as it does."""

from __future__ import annotations

import re

import pytest

from kgctl.simulate.batch.explain import Explanation, checks_of, explain, explanation_lines
from kgctl.simulate.batch.shrink import cause_in_words, main_cause_of
from kgctl.simulate.batch.variations import spelled_out, variations
from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.application import Callbacks
from kgctl.simulate.scenario.checks import Check
from kgctl.simulate.scenario.event import Event, Share
from kgctl.simulate.scenario.events import EVENT_KINDS
from kgctl.simulate.scenario.expressions import Names, parse_check
from kgctl.simulate.scenario.fields import changed, read_broker_settings
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import Nemesis, Scenario
from kgctl.simulate.scenario.quantities import Constant
from kgctl.yaml_files import read_yaml
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, scenario


def test_a_crash_is_told_with_the_session_that_was_waited_for_and_what_it_was_worth() -> None:
    crash = event("crash", "app/1", 10, for_us=90 * S)
    found = explain(scenario(event("slow", "app/0", 5, factor=2_000_000, for_us=S), crash, rate=100, duration_s=120), 1)

    assert found.story is not None
    first = found.story.pieces[0]
    assert (found.story.before, found.story.from_us, first.cause) == ("app-1", 10 * S, "detection")
    assert first.rule == "app-1 sent no heartbeat; the coordinator waits for session.timeout.ms=45000 of app-1"
    assert (10 * S, "event crash app/1 begins") in found.story.steps
    worth = {each.without: each for each in found.ablations}
    assert worth["event 2, crash app/1"].max_gap_worth == found.max_gap
    assert worth["event 1, slow app/0"].max_gap_worth == 0
    assert found.ablations[0].without == "event 2, crash app/1"
    assert worth["long sessions (session.timeout.ms=6000)"].max_gap < 8


def test_a_static_member_is_waited_for_by_its_session() -> None:
    found = explain(scenario(event("stop", "app/1", 10), instance_id="$name", duration_s=120), 1)

    assert found.story is not None
    static = next(piece for piece in found.story.pieces if piece.cause == "static_wait")
    assert static.rule.endswith(
        "session.timeout.ms=45000 of app-1, and keeps what a static member (group.instance.id) owned until then"
    )


def test_an_eager_rebalance_waits_for_the_member_that_joins_last() -> None:
    found = explain(scenario(event("stall", "app/2", 9, for_us=20 * S), event("stop", "app/1", 10), duration_s=120), 1)

    assert found.story is not None
    assert any("parked for app-2, the last to join" in piece.rule for piece in found.story.pieces)


def test_who_is_dead_is_waited_for_by_the_rebalance_time_out_where_that_is_over_first() -> None:
    limits = {**RANGE, "session.timeout.ms": "100000", "max.poll.interval.ms": "20000"}
    events = event("crash", "app/8", 1, for_us=100 * S), event("scale", "app", 5, by=1)
    story = explain(scenario(*events, count=9, config=limits, duration_s=60), 1, ablates=False).story
    assert "which had ended at 1s: nothing for max.poll.interval.ms=20000, the rebalance time-out, until 26.0" in str(story)


def test_the_brokers_session_counts_in_the_consumer_protocol() -> None:
    found = explain(scenario(event("crash", "app/1", 10), config=CONSUMER, duration_s=120), 1)

    assert found.story is not None
    assert "group.consumer.session.timeout.ms=45000 of the brokers" in found.story.pieces[0].rule


@pytest.mark.parametrize("config", [RANGE, COOPERATIVE, CONSUMER])
def test_a_stall_past_the_poll_limit_is_named_by_the_rebalance_that_it_sets_off_and_by_the_later_one(
    config: dict[str, str],
) -> None:
    given = scenario(
        event("stall", "app/1", 5, for_us=45 * S), config={**config, "max.poll.interval.ms": "20000"}, duration_s=120
    )
    found = explain(given, 1, ablates=False)

    assert found.story is not None
    origin = found.story.origin
    assert origin.pod == "app-1"
    assert origin.kind in ("poll", "back:poll")
    assert "past max.poll.interval.ms=20000: it is stuck for 20s in its batch" in origin.text
    assert (5 * S, "app-1: stall") in found.story.steps


def test_what_sets_a_rebalance_off_is_told_apart() -> None:
    def kind(*events: Event) -> str:
        return main_cause_of(scenario(*events, config=RANGE, duration_s=120), 1).partition(" ")[2]

    assert kind(event("stop", "app/1", 10)) == "closed"
    assert kind(event("crash", "app/1", 10)) == "expired"
    assert kind(event("scale", "app", 10, by=1)) == "joined"
    stuck = {**RANGE, "max.poll.interval.ms": "20000"}
    told_to_end = scenario(event("stall", "app/1", 5, for_us=120 * S), event("stop", "app/1", 10), config=stuck, duration_s=60)
    assert main_cause_of(told_to_end, 1) == "stall poll"
    quick = {**RANGE, "metadata.max.age.ms": "20000"}
    assert (
        main_cause_of(scenario(event("add_partitions", "t", 10, by=4), config=quick, duration_s=120), 1) == "discovery metadata"
    )


def test_a_cause_is_told_in_words() -> None:
    assert cause_in_words("handover back:poll") == (
        "handover, in a rebalance set off by a member past max.poll.interval.ms, back in the group"
    )
    assert cause_in_words("stall") == "stall"


def test_a_calm_run_has_no_story() -> None:
    found = explain(scenario(duration_s=60), 1)

    assert (found.story, found.max_gap, found.by_cause) == (None, 0, {})


def test_only_what_the_scenario_has_is_left_out() -> None:
    plain = scenario(boot_s=0, config={"session.timeout.ms": "6000", **COOPERATIVE})
    assert list(variations(plain)) == []
    first = changed(event("crash", "app/1", 10), name="first")
    then = changed(event("start", "app/1"), after="first")
    given = changed(plain, events=(first, then), nemesis=Nemesis(mean_interval_us=S))
    assert [name for name, _ in variations(given)] == ["event 1, first app/1", "event 2, start app/1", "the nemesis"]


def test_a_setting_or_a_habit_is_left_out_by_putting_a_better_one() -> None:
    def names(given: Scenario) -> list[str]:
        return [name for name, _ in variations(given)]

    short = {"session.timeout.ms": "6000"}
    assert names(scenario(boot_s=0, config={**short, **RANGE})) == ["the assignor range (cooperative-sticky)"]
    assert names(scenario(boot_s=0, config=CONSUMER)) == ["long sessions (group.consumer.session.timeout.ms=6000)"]
    grown = scenario(event("add_partitions", "t", by=2), boot_s=0, config={**short, **COOPERATIVE})
    assert names(grown)[1:] == ["old metadata (metadata.max.age.ms=5000)"]
    ignored = scenario(event("rollout", "app", sigterm="ignored"), boot_s=0, config={**short, **COOPERATIVE})
    (_, closing) = list(variations(ignored))[1]
    assert getattr(closing.events[0], "sigterm") == "close"  # noqa: B009  # of some kinds


KNOWN_CAUSES = {
    "stall": (
        "members: {app: {count: 4, rate: 1000/s}}\ntraffic: {orders: 1000/s}\n"
        "group: {config: {partition.assignment.strategy: [range]}}\n"
        "events: [{at: 0s, stall: app/2, for: 50s}, {at: 10s, scale: app, by: 1}]",
        "event 1, stall app/2",
        "by its next heartbeat, 2.504s after that began (heartbeat.interval.ms=3000); app-2 then is stuck "
        "for 32.433s in its batch (max.poll.interval.ms=300000)",
    ),
    "callbacks": (
        "members: {app: {count: 4, callbacks: {revoked: 20s}}}\n"
        "group: {config: {partition.assignment.strategy: [cooperative-sticky]}}\n"
        "events: [{at: 10s, stop: app/1}]\nduration: 2m",
        "the time of callbacks",
        "the next round waited for app-1, which runs onPartitionsRevoked first, 20s (callbacks.revoked)",
    ),
    "metadata": (
        "members: {app: {count: 3}}\nevents: [{at: 10s, add_partitions: orders, to: 24}]\nduration: 7m",
        "old metadata (metadata.max.age.ms=5000)",
        "consumers look for new partitions every metadata.max.age.ms",
    ),
    "sigterm": (
        "members: {app: {count: 4}}\nevents: [{at: 10s, rollout: app, sigterm: ignored, grace: 60s}]",
        "consumers that end without close()",
        "app-3 was killed at the end of its grace period, its consumer open",
    ),
    "static": (
        "members: {app: {count: 4, instance_id: $name}}\nevents: [{at: 10s, rollout: app}]",
        "static membership",
        "and keeps what a static member (group.instance.id) owned until then",
    ),
    "refused": (
        "members: {app: {count: 4, instance_id: $name, poll: 0ms..100ms}}\n"
        "group: {config: {group.protocol: consumer}}\nevents: [{at: 10s, crash: app/1, for: 5s}]",
        "event 1, crash app/1",
        "app-1 was back and refused at 20.091s (UNRELEASED_INSTANCE_ID)",
    ),
    "frozen": (
        "members: {app: {count: 4}}\nevents: [{at: 10s, pause_process: app/3, for: 30s}]",
        "event 1, pause_process app/3",
        "app-3 was frozen at 10s and sent no heartbeat; its session (session.timeout.ms=45000) held on",
    ),
    "polls": (
        "members: {app: {count: 4, rate: 10/s, poll: {timeout: 500ms, pause: 10s..20s}}}\n"
        "group: {config: {group.protocol: consumer}}\n"
        "traffic: {orders: 10/s}\nevents: [{at: 10s, scale: app, by: 1}]",
        "pauses between poll() calls",
        "app-1 waits 39.675s for its next poll() (poll); app-4 waits 52.332s for its next poll() (poll)",
    ),
    "coordinator": (
        "cluster: {brokers: 3}\nmembers: {app: {count: 4}}\n"
        "events: [{at: 10s, coordinator_move: coordinator, load: 60s}, {at: 15s, crash: app/1}]\nduration: 3m",
        "event 2, crash app/1",
        "of app-1, from 1m 10s on, when another coordinator had read the group",
    ),
    "latency": (
        "members: {app: {count: 4, poll: 0ms..100ms}}\n"
        "group: {config: {partition.assignment.strategy: [range]}}\n"
        "events: [{at: 5s, network: app/0, latency: 4s}, {at: 10s, scale: app, by: 1}]\ntraffic: {orders: 100/s}",
        "event 1, network app/0",
        "event network app/0 goes on since 5s",
    ),
    "next round": (
        "members: {app: {count: 4, poll: 0ms..100ms, callbacks: {assigned: 25s}}}\n"
        "group: {config: {partition.assignment.strategy: [cooperative-sticky]}}\n"
        "events: [{at: 20s, scale: app, by: +1}]\nduration: 3m",
        "the time of callbacks",
        "the next round waited for app-2, which runs onPartitionsAssigned first, 25s (callbacks.assigned)",
    ),
    "boot": (
        "members: {app: {count: 4, boot: 70s, instance_id: $name}}\ngroup: {config: {session.timeout.ms: 120s}}\n"
        "events: [{at: 20s, rolling_restart: app}]",
        "boot times",
        " of it to boot; the coordinator waits for session.timeout.ms=120000, and keeps what a static member",
    ),
    "not closed": (
        "members: {app: {count: 4, on_stop: none}}\nevents: [{at: 20s, rolling_restart: app}]",
        "consumers that end without close()",
        "; app-1 had ended without close(); then the assignment counted on app-2 and app-3, which had ended at 30.016s and "
        "35.024s and stayed a member until",
    ),
    "who takes over": (
        "members: {app: {count: 3, rate: 100/s}, slow: {count: 1, rate: 100/s, poll: {timeout: 100ms, pause: 50s}, "
        "config: {max.poll.interval.ms: 300s}}}\ntraffic: {orders: 100/s}\ngroup: {config: {group.protocol: consumer}}\n"
        "events: [{at: 20s, scale: app, by: 2}]\nduration: 5m",
        "pauses between poll() calls",
        "slow-0 waits 1m 45.1s for its next poll() (poll), and fetches the offset",
    ),
    "slow messages": (
        "members: {app: {count: 6, poll: 0ms..100ms}}\ncluster: {network: {latency: 800ms}}\n"
        "group: {config: {partition.assignment.strategy: [range]}}\nevents: [{at: 20s, rolling_restart: app}]",
        "the network's latency and loss",
        "generations followed one another; a message takes 0.8s one way",
    ),
    "nemesis": (
        "members: {app: {count: 6}}\nnemesis: {rate: 1 per 1m, of: [crash, stall, pause_process], until: 10m}\nduration: 12m\n"
        "cluster: {append: 13ms..28ms}",
        "the nemesis",
        "; app-4 is stuck for 1m 16.209s in its batch (max.poll.interval.ms=300000)",
    ),
}
"""What is the cause -> a scenario with it, the ablation that comes first, and what the story says."""


@pytest.mark.parametrize("cause", KNOWN_CAUSES)
def test_a_cause_that_is_known_comes_first_and_is_told(cause: str) -> None:
    text, first, told = KNOWN_CAUSES[cause]
    given = load(read_yaml(f"kgctl: 1\nname: x\nwarmup: 60s\ntopics: {{orders: 12}}\n{text}\n", "x.yaml"))
    found = explain(given.variants[0].scenario, 1)
    assert found.ablations[0].without == first
    assert found.story is not None
    assert told in "\n".join(piece.rule for piece in found.story.pieces)
    lines = explanation_lines(found, ablates=False)
    assert lines.index(next(line for line in lines if line.startswith("unavailable by cause"))) <= 11  # the story has ten lines


def explained(text: str) -> Explanation:
    given = load(read_yaml(f"kgctl: 1\nname: x\nwarmup: 60s\n{text}\n", "x.yaml"))
    return explain(given.variants[0].scenario, 1, checks=checks_of(given, "default"), settings=given.variants[0].settings)


def test_records_that_wait_are_told_by_who_is_given_too_many() -> None:
    found = explained(
        "topics: {orders: 12}\nmembers: {app: {count: 4, rate: 1000/s}}\nduration: 2m\n"
        "traffic: {orders: {rate: 3000/s, keys: zipf(1.5)}}\nexpect: [lag < 10000]"
    )
    assert found.details == ("app-0 is given 2,265.98/s at 2m, of 3 partitions (orders-0: 1,465.7/s), and processes 1,000/s",)
    assert found.ablations[0].without == "uneven keys (even)"


def test_too_few_pods_and_a_slow_one_are_told() -> None:
    few = explained(
        "topics: {orders: 12}\nmembers: {app: {count: 2, rate: 400/s}}\nduration: 2m\n"
        "traffic: {orders: 1200/s}\nexpect: [lag < 5000]"
    )
    assert few.details[1] == "app-1 is given 600/s at 2m, of 6 partitions (orders-6: 100/s), and processes 400/s"
    assert few.ablations[0].without == "too few pods (twice as many)"
    slow = explained(
        "topics: {orders: 12}\nmembers: {app: {count: 4, rate: 400/s}}\nduration: 3m\ntraffic: {orders: 1200/s}\n"
        "events: [{at: 30s, slow: app/1, factor: 4, for: 2m}]\nexpect: [lag_peak < 5000]"
    )
    assert slow.details == ("when most records wait, 2m 30s, event slow app/1 goes on since 30s",)
    assert slow.ablations[0].without == "event 1, slow app/1"


def test_records_that_are_read_twice_are_told_by_who_reads_them_and_by_the_protocol() -> None:
    found = explained(
        "topics: {orders: 12}\nmembers: {app: {count: 4, rate: 1000/s}}\nduration: 1m\n"
        "group: {config: {partition.assignment.strategy: [cooperative-sticky]}}\n"
        "traffic: {orders: 1000/s}\nevents: [{at: 10s, scale: app, by: +6, over: 6s}]\nexpect: [duplicates == 0]"
    )
    assert re.fullmatch(r"app-\d reads \d+ records again, from \d\d\.\d+s on", found.details[0])
    assert found.ablations[0].without == "reading on in a rebalance (sticky)"


def test_each_rebalance_is_told_by_what_set_it_off_where_their_number_fails() -> None:
    found = explained(
        "topics: {orders: 12}\nmembers: {app: {count: 4}}\nduration: 3m\n"
        "events: [{at: 10s, scale: app, by: 1}, {at: 1m, restart: app/1}]\nexpect: [rebalances == 0]"
    )
    assert [re.sub(r" at .*", "", line.partition(" by ")[2]) for line in found.details] == [
        "app-4, which joined after its start",
        "app-1, which closed its consumer",
        "app-1, which joined after its start",
    ]


def test_who_joins_again_says_why() -> None:
    found = explained(
        "topics: {orders: 8}\nmembers: {app: {count: 3, streams: {store: 20000000, restore: 50000/s}, "
        "config: {probing.rebalance.interval.ms: 60s, acceptable.recovery.lag: 1000}}}\nduration: 2m\n"
        "traffic: {orders: 100/s}\nevents: [{at: 6s, scale: app, by: 1}]\nexpect: [rebalances == 0]"
    )
    assert found.details[1].endswith("by app-0, which was in the group and joined again: triggered followup rebalance")


@pytest.mark.parametrize(
    ("own", "limit", "variation"),
    [
        ("", "group.share.session.timeout.ms=45000", ["long sessions (group.share.session.timeout.ms=6000)"]),
        ("config: {share.session.timeout.ms: 50s}", "share.session.timeout.ms=50000", []),
    ],
)
def test_the_session_of_a_share_group_is_its_own(own: str, limit: str, variation: list[str]) -> None:
    found = explained(
        f"topics: {{orders: 6}}\ngroup: {{type: share, {own}}}\nmembers: {{app: {{count: 1}}}}\nduration: 3m\n"
        "events: [{at: 20s, node_down: app/0, for: 20s}]\n"
    )
    assert found.story is not None
    rules = [piece.rule for piece in found.story.pieces if piece.cause == "detection"]
    assert rules == [f"app-0 sent no heartbeat; the coordinator waits for {limit} of the brokers"]
    assert [each.without for each in found.ablations if "long sessions" in each.without] == variation


def test_what_a_share_group_was_given_again_and_what_it_gave_up_is_told() -> None:
    found = explained(
        "topics: {orders: 2}\ngroup: {type: share}\ntraffic: {orders: 30/s}\nduration: 3m\n"
        "members: {app: {count: 2, process_time: 10ms, on_poison: release, config: {share.acknowledgement.mode: explicit}}}\n"
        "events: [{at: 20s, poison: orders}, {at: 60s, crash: app/0, for: 20s}]\n"
    )
    assert found.details == (
        "4 deliveries again of what app-0 had (released: its application released it): the first, record 1239 of orders-0, "
        "to app-0 at 20.091s",
        "1 delivery again of what app-0 had (crashed: its process died): the first, record 1838 of orders-0, "
        "to app-0 at 1m 25.114s",
        "1 record given up that app-0 had last (released: its application released it): the first, record 1239 of orders-0, "
        "at 20.186s after 5 deliveries",
    )


def test_an_application_is_tried_with_shorter_sessions_of_its_protocol() -> None:
    for protocol, name in (("classic", "session.timeout.ms"), ("streams", "group.streams.session.timeout.ms")):
        text = f"members: {{app: {{streams: {{}}, config: {{group.protocol: {protocol}}}}}}}"
        given = load(read_yaml(f"kgctl: 1\nname: x\ntopics: {{t: 4}}\n{text}\n", "x.yaml")).variants[0].scenario
        ((told, shorter),) = [each for each in variations(given) if "long sessions" in each[0]]
        (members,), own = shorter.members, {**shorter.cluster.config, **shorter.members[0].config}
        assert (told, own[name], members.count) == (f"long sessions ({name}=6000)", "6000", 1)
        read_broker_settings(shorter.cluster.config)


def test_what_an_event_sets_and_the_delay_of_an_empty_group_are_left_out() -> None:
    set_by = event("rollout", "app", set={"max.poll.records": "7"})
    names = [name for name, _ in variations(scenario(set_by, boot_s=0, config=COOPERATIVE), was_empty=True)]
    assert names[-2:] == ["what event 1 sets (set)", "the first rebalance's delay (group.initial.rebalance.delay.ms=0)"]


def test_a_nemesis_spelled_out_comes_to_the_same() -> None:
    given = load(read_yaml(f"kgctl: 1\nname: x\nwarmup: 60s\ntopics: {{orders: 12}}\n{KNOWN_CAUSES['nemesis'][0]}\n", "x.yaml"))
    drawn = run(given.variants[0].scenario, 1)
    again = run(spelled_out(drawn), 1)
    assert (again.metric("unavailable"), again.metric("moves")) == (drawn.metric("unavailable"), drawn.metric("moves"))


def test_an_expectation_that_fails_is_told_with_what_it_asks_about() -> None:
    text = """\
kgctl: 1
name: uneven
warmup: 60s
topics: {a: 3, b: 3, c: 3, d: 3}
members: {app: {count: 6, rate: 120/s}}
group: {config: {partition.assignment.strategy: [range]}}
traffic: {a: 100/s, b: 100/s, c: 100/s, d: 100/s}
duration: 2m
expect: [lag < 3000, max_gap < 1s, "lag(peak) >= session.timeout.ms", {check: lag < 2, when: kicked > 0}]
"""
    given = load(read_yaml(text, "x.yaml"))
    found = explain(given.variants[0].scenario, 1, checks=checks_of(given, "default"), settings=given.variants[0].settings)
    assert [*found.fails] == ["lag < 3000"]
    first = found.ablations[0]
    assert first.without == "the assignor range (cooperative-sticky)"
    was, now = first.asked["lag"]
    assert was is not None
    assert now is not None
    assert was > 3000 > now
    lines = explanation_lines(found)
    assert lines[1].startswith("fails: lag < 3000: lag is ")
    assert any(line.startswith("  the assignor range (cooperative-sticky)") and " lag " in line for line in lines)


def test_what_waited_for_an_event_that_is_left_out_has_its_place() -> None:
    first = changed(event("crash", "app/1", 10), name="first")
    then = changed(event("start", "app/1", 5), after="first")
    names = [(name, each.events) for name, each in variations(scenario(first, then, boot_s=0))]
    assert names[0] == ("event 1, first app/1", (changed(then, after=None, at_us=15 * S),))


def test_time_without_a_consumer_is_told_by_event_and_step() -> None:
    roll = changed(event("rolling_restart", "app", 10), name="deploy")
    crash = event("crash", "app/1", 150, for_us=5 * S)
    found = explain(scenario(roll, crash, config=RANGE, duration_s=240), 1, ablates=False)

    assert [(part.event, part.step) for part in found.by_part] == [
        ("", 0),
        ("deploy", 0),
        *(("deploy", step) for step in (1, 2, 3, 4)),
        ("crash", 0),
    ]
    whole = [part for part in found.by_part if not part.step]
    assert sum(part.unavailable for part in whole) == pytest.approx(found.unavailable)
    steps = [part for part in found.by_part if part.step]
    assert sum(part.unavailable for part in steps) == pytest.approx(whole[1].unavailable)
    assert (steps[0].from_us, steps[-1].to_us) == (whole[1].from_us, whole[1].to_us)
    lines = explanation_lines(found)
    head = next(number for number, line in enumerate(lines) if line.startswith("by event and step"))
    assert lines[head].split()[4:6] == ["from", "all"]
    assert [line.split()[0] for line in lines[head + 1 : head + 7]] == ["deploy", "step", "step", "step", "step", "crash"]


def test_what_most_of_the_gap_is_due_to_is_told_first() -> None:
    given = scenario(
        event("stop", "app/1", 10),
        config=COOPERATIVE,
        callbacks=Callbacks(assigned=Constant(20 * S)),
        warmup_s=60,
        duration_s=90,
    )
    found = explain(given, 1, ablates=False)

    assert found.story is not None
    assert (found.story.main_cause, found.story.pieces[0].cause) == ("fetch", "handover")
    lines = explanation_lines(found, ablates=False)
    assert lines[2].startswith("mainly fetch, 20.")
    assert "runs onPartitionsAssigned" in lines[2]


def test_who_is_dead_and_was_waited_for_is_named_with_what_for() -> None:
    """Pods that end without close() stay members for a session; one of them is elected leader and never makes the assignment."""
    rollout = """
kgctl: 1
name: exit
topics: {orders: 24}
group: {config: {session.timeout.ms: 45s, partition.assignment.strategy: [cooperative-sticky]}}
members: {app: {count: 8, boot: 6s}}
warmup: 90s
events: [{at: 0s, rollout: app, sigterm: exit}]
"""
    rules = []
    for seed in range(1, 5):
        story = explain(load(read_yaml(rollout, "exit.yaml")).variants[0].scenario, seed, ablates=False).story
        assert story is not None
        rules += [piece.rule for piece in story.pieces if piece.cause == "handover"]
    told = " ".join(rules)
    assert re.search(
        r"app-\d+, the leader, had ended at [\d.]+s and was still a member: nobody made the assignment, until ", told
    )
    assert re.search(r"were parked for app-\d+.*, which had ended at .*: no heartbeat for session.timeout.ms=45000 until ", told)


PLANTED = {
    "batches that are too long": (
        "members: {app: {count: 4, rate: 5/s, config: {max.poll.interval.ms: 30s, auto.offset.reset: earliest}}}\n",
        "the limit between two poll() calls is max.poll.interval.ms=30000; app-0 is 49.115s in its batch (max.poll.records=500)",
    ),
    "a batch past max.poll.interval.ms": (
        "members: {app: {count: 4, config: {max.poll.interval.ms: 60s}}}\n"
        "events: [{at: 1s, stall: app/2, for: 120s}, {at: 5s, scale: app, by: +1}]\n",
        "parked until 1m 1.001s for app-2, which left by itself, past max.poll.interval.ms=60000: it is stuck for 1m in ",
    ),
    "a slow onPartitionsRevoked": (
        "members: {app: {count: 4, callbacks: {revoked: 9s}, config: {partition.assignment.strategy: cooperative-sticky}}}\n"
        "events: [{at: 1s, scale: app, by: +1}]\n",
        "the next round waited for app-2, which runs onPartitionsRevoked first, 9s (callbacks.revoked)",
    ),
    "the first members": (
        "members: {app: {count: 4}}\nevents: [{at: 5s, stop: app}, {at: 15s, start: app}]\n",
        "for the first members (group.initial.rebalance.delay.ms=3000)",
    ),
    "a static member that is down": (
        "members: {app: {count: 3, instance_id: $name, config: {session.timeout.ms: 100s, max.poll.interval.ms: 20s}}}\n"
        "events: [{at: 1s, crash: app/1, for: 100s}, {at: 5s, scale: app, by: +1}]\n",
        "app-1 sent no heartbeat; the coordinator waits for max.poll.interval.ms=20000 of app-1, and keeps what",
    ),
    "a static member that is down and had nothing": (
        "members: {app: {count: 13, instance_id: $name, config: {session.timeout.ms: 100s, max.poll.interval.ms: 20s}}}\n"
        "events: [{at: 1s, crash: app/9, for: 100s}, {at: 5s, scale: app, by: +1}]\n",
        "for who did not join (a member's max.poll.interval.ms as the rebalance time-out)",
    ),
    "a coordinator that moves in a rebalance": (
        "cluster: {brokers: 3}\nmembers: {app: {count: 4}}\nevents: [{at: 9s, stall: app/2, for: 30s}, "
        "{at: 10s, scale: app, by: 1}, {at: 16s, coordinator_move: coordinator, load: 2s}]\n",
        "parked for app-2, the last to join, 20.961s after the rebalance began: it heard of the rebalance by its next "
        "heartbeat, 2.734s after that began (heartbeat.interval.ms=3000); app-2 then is stuck for 18.222s in its batch "
        "(max.poll.interval.ms=300000)",
    ),
    "a coordinator that is lost while it waits": (
        "cluster: {brokers: 3}\nmembers: {app: {count: 4}}\nevents: [{at: 9s, stall: app/2, for: 60s}, "
        "{at: 10s, scale: app, by: 1}, {at: 30s, coordinator_move: coordinator, load: 2s}]\n",
        "event stall app/2 goes on since 9s; event coordinator_move coordinator goes on since 30s",
    ),
    "a slow assignor": (
        "members: {app: {count: 4}}\nassign_time: {base: 8s}\nevents: [{at: 1s, scale: app, by: +1}]\n",
        "for the assignment, until 16.565s: app-0 leads and makes it in a poll(); app-0 assigns for 8s (assign_time)",
    ),
}
"""Cause -> a scenario that has it, and what is told of it."""


@pytest.mark.parametrize("cause", PLANTED)
def test_a_cause_that_was_planted_is_named(cause: str) -> None:
    scenario_has, told = PLANTED[cause]
    text = f"kgctl: 1\nname: x\nwarmup: 60s\nduration: 2m\ntopics: {{orders: 12}}\ntraffic: {{orders: 600/s}}\n{scenario_has}"
    story = explain(load(read_yaml(text, "x.yaml")).variants[0].scenario, 1, ablates=False).story
    assert story is not None
    rules = " ".join(piece.rule for piece in story.pieces)
    assert told in rules
    assert ("held the JoinGroups" in rules) is told.startswith(("for the first", "for who"))


NAMED = {
    each.kind: each
    for each in (
        event("start", "app/3", 10),
        event("stop", "app/1", 10, for_us=Constant(5 * S)),
        event("crash", "app/1", 10, for_us=Constant(60 * S)),
        event("restart", "app/1", 10),
        event("rolling_restart", "app", 10, settle=2 * S),
        event("upgrade", "app", 10, set_={"session.timeout.ms": "30000"}),
        event("rollout", "app", 10, max_surge=0, max_unavailable=Share(500_000)),
        event("drain", "app/1", 10, retry=S),
        event("spot_loss", "app/1", 10, notice=5 * S),
        event("scale", "app", 10, to=2),
        event("stall", "app/1", 10, for_us=Constant(30 * S)),
        event("slow", "app/1", 10, factor=20_000_000),
        event("pause_process", "app/1", 10, for_us=Constant(60 * S)),
        event("network", "app/1", 10, partition=True),
        event("add_partitions", "t", 10, to=12),
        event("create_topic", "u", 10, rate=((0, 10 * S),)),
        event("delete_topic", "t", 10),
        event("set_traffic", "t", 10, rate=((0, 900 * S),)),
        event("poison", "t", 10, records=3),
        event("broker_down", "coordinator", 20),
        event("coordinator_move", "coordinator", 20),
        event("zone_down", "a", 20, for_us=Constant(30 * S)),
        event("node_down", "app/1", 20, for_us=Constant(30 * S), broker=2),
    )
}
"""Kind -> an event of it, some of which last for good."""


def told(each: Event, *others: Event) -> list[str]:
    """An explanation's lines, without what a longer name does to columns."""
    given = scenario(each, *others, rate=100, duration_s=120, rate_uhz=50 * S, poll=Constant(S // 10))
    loaded = changed(given, cluster=changed(given.cluster, brokers=3, racks=("a", "b", "c")))
    asked = Names(("lag", "duplicates", "rebalances"), (), ("test",))
    checks = tuple(Check(text=text, node=parse_check(text, asked)) for text in ("lag == 0", "duplicates == 0", "rebalances == 0"))
    found = explain(loaded, 1, checks=checks)
    return [re.sub(r" +", " ", line) for line in explanation_lines(found)]


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_an_event_tells_the_same_whether_it_has_a_name_or_not(kind: str) -> None:
    crash = changed(event("crash", "app/2", 12), name="after that")  # of one name, neighbours are one part
    plain = told(NAMED[kind], crash)
    named = told(changed(NAMED[kind], name="called-so"), crash)

    assert any(f" {kind} " in line for line in plain)
    assert [line.replace("called-so", kind) for line in named] == plain
    assert named != plain


def test_a_named_fault_keeps_its_reason() -> None:
    """The session of a crashed pod is told from when on it counted; a pod without a network is told with that."""
    moved = told(event("crash", "app/0", 10), changed(NAMED["broker_down"], name="lose-b"))
    assert any(line.endswith("from 27.91s on, when another coordinator had read the group") for line in moved)
    cut = told(changed(NAMED["network"], name="cut-a"))
    assert any("; event cut-a app/1 goes on since 10s" in line for line in cut)


def test_an_upgrade_is_explained_without_what_it_sets() -> None:
    found = explain(scenario(NAMED["upgrade"], duration_s=60), 1)
    assert "what event 1 sets (set)" in {each.without for each in found.ablations}
