"""What a run goes by, in words."""

from __future__ import annotations

from kgctl.simulate.batch.assumptions import assumptions_of
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import read_yaml

FILE = """\
kgctl: 1
name: x
topics: {t: 4}
cluster: {network: {latency: 'lognormal(2ms, 1ms)', between: {broker: 500us}, loss: 0.1%}}
members:
  a: {count: 2, client: librdkafka, rate: 100/s, commit: every 5s, heartbeat_drift: random}
  b:
    poll: {timeout: 1s, pause: 20ms..40ms}
    boot: exp(10s)
    on_stop: none
    instance_id: $name
    callbacks: {revoked: 'pareto(1s, 1.5)'}
variants: {classic: {}, consumer: {group: {config: {group.protocol: consumer}}}}
"""


def test_everything_that_shapes_a_run_is_told_in_the_words_of_a_file() -> None:
    classic, consumer = (assumptions_of(variant) for variant in load(read_yaml(FILE, "f")).variants)
    assert {what: value for what, value in classic.items() if not what.startswith(("a:", "b:"))} == {
        "a message between pod and broker, one way": "lognormal(2ms, 1ms)",
        "a message between brokers, one way": "500us",
        "messages lost": "0.1%",
        "a record of the group is written in": "13ms..28ms",
        "group.initial.rebalance.delay.ms": "3s",
        "a leader's assignor computes for": "5ms + 0.002ms a partition + 0.01ms a member",
    }
    of_a = {what.removeprefix("a: "): value for what, value in classic.items() if what.startswith("a: ")}
    assert of_a["client"] == "librdkafka, classic protocol"
    assert of_a["client.id"] == "rdkafka"
    assert of_a["processes"] == "100/s"
    assert of_a["commits"] == "every 5s"
    assert of_a["each heartbeat is late by"] == "anything: phases are random"
    of_b = {what.removeprefix("b: "): value for what, value in consumer.items() if what.startswith("b: ")}
    assert of_b["client"] == "java, consumer protocol"
    assert of_b["client.id"] == "consumer-group-$name"
    assert of_b["boot, then client start"] == "exp(10s), then 36ms..114ms"
    assert of_b["poll()"] == "waits 1s, then a pause of 20ms..40ms"
    assert of_b["callbacks"] == "revoked pareto(1s, 1.5), assigned 0s, lost 0s"
    assert of_b["a clean stop"] == "ends the process without close()"
    assert "session.timeout.ms" not in of_b
