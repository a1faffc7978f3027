"""Pods and brokers that die together: a zone, a machine."""

from __future__ import annotations

import pytest

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.metrics.troubles import troubles_of
from kgctl.simulate.recording.trace import TraceEvent
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import FileError, read_yaml

FILE = """\
kgctl: 1
name: zones
warmup: 40s
duration: 3m
cluster: {racks: [a, b, c], brokers: 3, nodes: 3}
topics: {orders: {partitions: 6, replicas: 3}}
group: {config: {session.timeout.ms: 10s}}
members: {app: {count: 6, rack: spread, boot: 5s}}
events: [EVENT]
"""


class Log:
    def __init__(self) -> None:
        self.lines: list[TraceEvent] = []

    def on_trace(self, event: TraceEvent) -> None:
        self.lines.append(event)

    def on_step(self, at_us: int, metrics: object) -> None:
        pass


def ran(event: str) -> tuple[RunResult, list[tuple[int, str]]]:
    """The run, and which pods began to run when, in seconds, after the warm-up."""
    (variant,) = load(read_yaml(FILE.replace("EVENT", event), "f")).variants
    log = Log()
    result = run(variant.scenario, 1, observers=(log,))
    pods = ((each.at_us // 1_000_000, getattr(each, "pod", "")) for each in log.lines if getattr(each, "what", "") == "start")
    return result, sorted((at_s, pod) for at_s, pod in pods if at_s > 0)


def gap(result: RunResult, cause: str) -> float:
    return float(result.metric("unavailable", (f"cause {cause}",)) or 0)


def test_a_zone_takes_its_pods_and_brokers_along_and_brings_them_back() -> None:
    result, started = ran("{at: 10s, zone_down: b, for: 60s}")
    assert started == [(75, "app-1"), (75, "app-4")]  # 10 s, 60 s away, 5 s of boot
    assert gap(result, "detection") > 5
    assert gap(result, "broker") > 2  # broker 2 leads a third of the partitions
    assert result.metric("members") == 6


def test_a_zone_takes_pods_that_do_not_tell_the_brokers_where_they_are() -> None:
    (silent,) = load(read_yaml(FILE.replace(", rack: spread", "").replace("EVENT", "{at: 10s, zone_down: b}"), "f")).variants
    history = run(silent.scenario, 1).recording.history
    assert [(pod.rack, pod.name) for pod in history.pods if pod.running.ended] == [(None, "app-1"), (None, "app-4")]


def test_a_zone_without_pods_is_its_brokers_and_one_without_either_has_no_effect() -> None:
    elsewhere = FILE.replace("rack: spread", "rack: a")
    (brokers,) = load(read_yaml(elsewhere.replace("EVENT", "{at: 10s, zone_down: c, for: 20s}"), "f")).variants
    result = run(brokers.scenario, 1)
    assert gap(result, "broker") > 0
    few = elsewhere.replace("brokers: 3", "brokers: 2").replace("replicas: 3", "replicas: 2")
    (nothing,) = load(read_yaml(few.replace("EVENT", "{at: 10s, zone_down: c, for: 20s}"), "f")).variants
    assert [each.kind for each in troubles_of(run(nothing.scenario, 1))] == ["no_effect"]


def test_a_machine_takes_its_pods_and_the_broker_that_runs_there_along() -> None:
    with_broker, started = ran("{at: 10s, node_down: node/2, broker: 2, for: 30s}")
    without, _ = ran("{at: 10s, node_down: node/2, for: 30s}")
    assert [at_s for at_s, _ in started] == [45, 45]
    assert gap(with_broker, "broker") > 0
    assert gap(without, "broker") == 0


@pytest.mark.parametrize("event", ["node_down: node/2", "node_down: node/2, broker: 2", "zone_down: b"])
def test_what_the_dead_pods_had_not_committed_is_read_again_with_or_without_a_broker(event: str) -> None:
    """The broker is gone a moment before its pods: they had committed before that, up to five seconds."""
    file = FILE.replace("EVENT", f"{{at: 30s, {event}, for: 30s}}") + "traffic: {orders: 600/s}\n"
    (variant,) = load(read_yaml(file, "f")).variants
    repeated = [run(variant.scenario, seed).metric("duplicates") for seed in range(1, 4)]
    assert all(0 < number <= 200 * 5 + 6 for number in repeated)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ("{at: 1s, zone_down: d}", "there is no rack 'd'; known: a, b, c"),
        ("{at: 1s, node_down: node/4}", "names a node, node/1 to node/3"),
        ("{at: 1s, node_down: node/1, broker: 9}", "there is no broker 9; the cluster has 3"),
        ("{at: 1s, az_down: a}", "did you mean 'zone_down'?"),
    ],
)
def test_what_is_not_there_cannot_go(event: str, why: str) -> None:
    with pytest.raises(FileError) as refused:
        load(read_yaml(FILE.replace("EVENT", event), "f"))
    assert why in str(refused.value)
