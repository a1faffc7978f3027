"""What belongs to the question that a scenario asks, and what is tried."""

from __future__ import annotations

import pytest

from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.schema import question_of
from kgctl.simulate.scenario.vocabulary import TRIED
from kgctl.yaml_files import read_yaml

CALM = """\
kgctl: 1
name: busy
topics: {t: 4}
members: {app: {count: 2}}
"""
BUSY = """\
duration: 90m
events:
  - {at: 10s, crash: app/0, for: 10s, every: 1m, times: 3}
  - {at: 5m, crash: app/0, for: 10s}
  - {at: 5m, crash: app/0, for: 10s}
  - {at: 6m, rolling_restart: app, batch: 50%, name: deploy}
nemesis: {rate: 1 per 5m, of: [crash, stall], until: 31m}
"""


def question(text: str) -> tuple[str, ...]:
    (variant,) = load(read_yaml(text, "busy.yaml")).variants
    return question_of(variant.scenario)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("", ("topic t (partitions 4)",)),
        (
            BUSY,
            (
                "topic t (partitions 4)",
                "crash app/0 (at 10s, every 1m, times 3, for 10s)",
                "crash app/0 (at 5m, for 10s) (2 times)",
                "deploy app (at 6m)",
                "duration 1h30m",
                "nemesis (rate 1 per 5m, of crash, stall, until 31m)",
            ),
        ),
    ],
)
def test_what_happens_is_told_once_with_how_often(more: str, found: tuple[str, ...]) -> None:
    assert question(CALM + more) == found


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{t: 3000/s}", "rate 3000/s"),
        ("{t: 1.5/s}", "rate 1.5/s"),
        ("{t: {0s: 1000/s, 5m: 6000/s}}", "rate 1000/s, from 5m 6000/s"),
        ("{t: {rate: 9/s, keys: zipf(1.1)}}", "rate 9/s, keys zipf(1.1)"),
        ("{t: {rate: 9/s, keys: 'weights([2, 1])'}}", "rate 9/s, keys weights([2, 1])"),
        ("{t: 'sine(1/s, 5/s, 24h)'}", "rate sine(1/s, 5/s, 1d)"),
        ("{t: 'ramp(1/s, 5/s, 10m)'}", "rate 97 rates, 1.020833/s to 5/s (c301dd80)"),
    ],
)
def test_what_is_written_to_the_topics_that_are_read_is_a_part_of_it(written: str, told: str) -> None:
    assert question(f"{CALM}traffic: {written}\n") == (f"topic t (partitions 4, {told})",)


def test_topics_that_nobody_reads_are_none_and_events_say_what_they_write() -> None:
    topics = CALM.replace("{t: 4}", "{t: 12, other: 2}").replace("count: 2", "count: 2, subscribe: t")
    events = "events: [{at: 1s, name: peak, set_traffic: t, rate: 7/s}, {at: 2s, create_topic: tt}]\n"
    assert question(topics + events) == ("topic t", "peak t (at 1s, rate 7/s)", "create_topic tt (at 2s)")


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("network: app/0, loss: 5%, for: 10s", "network app/0 (loss 5%, for 10s)"),
        ("network: app/0, latency: 50ms..1s", "network app/0 (latency 50ms..1s)"),
        ("network: app/0, partition: true", "network app/0 (partition True)"),
        ("slow: app, factor: 2.5", "slow app (factor 2.5)"),
        ("name: bad, stall: app/1, for: 9s", "bad app/1 (for 9s)"),
        ("crash: app/50%, when: members > 1", "crash app/50% (when members > 1)"),
        ("spot_loss: app/0, notice: 0s", "spot_loss app/0 (notice 0s)"),
        ("broker_down: 2, load: 3s, detect: 2s", "broker_down 2 (load 3s, detect 2s)"),
        ("scale: app, by: +2", "scale app (by 2)"),
        ("add_partitions: t, to: 8", "add_partitions t (to 8)"),
        ("rollout: app, strategy: canary, steps: [10%, 2], set: {max.poll.records: 5}", "rollout app"),
        ("upgrade: app, set: {max.poll.records: 5}, batch: 2", "upgrade app"),
        ("drain: app, budget: 50%, ready: 10s", "drain app"),
    ],
)
def test_the_strength_of_an_event_belongs_to_it_and_how_a_deploy_is_done_does_not(event: str, told: str) -> None:
    assert question(f"{CALM}events: [{{{event}}}]\n") == ("topic t (partitions 4)", told)


def test_what_lies_around_the_group_belongs_to_it_and_the_group_does_not() -> None:
    around = """\
warmup: 30s
cluster: {network: {loss: 1%, between: {broker: 7ms}}, racks: [a, b], config: {group.initial.rebalance.delay.ms: 0}}
broker_version: 4.2
group: {config: {session.timeout.ms: 10s}}
assign_time: {base: 1s}
allow: [kicked]
"""
    told = "cluster (racks a, b, network (loss 1%, between (broker 7ms)))"
    assert question(CALM.replace("count: 2", "count: 9, client: librdkafka, boot: 1s") + around) == (
        "topic t (partitions 4)",
        "warmup 30s",
        told,
    )


def test_what_no_test_here_knows_of_is_a_part_of_the_question() -> None:
    """A key of the file that is new is no difference that nobody is told of."""
    tried = {name for name, field in Scenario.model_fields.items() if TRIED in field.metadata}
    around = {"warmup_us", "duration_us", "cluster", "topics", "traffic", "events", "nemesis", "together"}
    assert {*Scenario.model_fields} - tried == around
