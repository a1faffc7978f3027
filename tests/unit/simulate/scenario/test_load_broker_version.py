"""`broker_version:` in a file: one for all runs, a list as variants, and what a version does not have."""

from __future__ import annotations

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.fields import read_broker_settings
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.yaml_files import FileError, read_yaml

CONSUMER = "group: {config: {group.protocol: consumer}}"
GOOD = f"""\
kgctl: 1
name: x
topics: {{orders: 96}}
members: {{app: {{count: 30, start: 0s..1s}}}}
{CONSUMER}
"""


def loaded(text: str, *settings: str, variants: tuple[str, ...] = ()) -> LoadedFile:
    return load(read_yaml(text, "f"), settings=settings, variants=variants)


def versions(file: LoadedFile) -> dict[str, str]:
    """Variant -> the version of its coordinator."""
    return {each.name: read_broker_settings(each.scenario.cluster.config).profile.version for each in file.variants}


def refused(text: str) -> list[str]:
    with pytest.raises(FileError) as caught:
        loaded(text)
    return [str(problem) for problem in caught.value.problems]


def test_a_file_that_names_none_has_the_latest() -> None:
    assert versions(loaded(GOOD)) == {"default": "4.3"}


def test_one_version_is_that_of_every_variant() -> None:
    assert versions(loaded(f"{GOOD}broker_version: 4.0.1\n")) == {"default": "4.0"}
    assert versions(loaded(f"{GOOD}broker_version: 4.1\nvariants: {{a: {{}}, b: {{broker_version: 4.2}}}}\n")) == {
        "a": "4.1",
        "b": "4.2",
    }


def test_a_list_makes_a_variant_of_each() -> None:
    upgrade = {"kafka-4-0": "4.0", "kafka-4-3": "4.3"}
    text = f"{GOOD}broker_version: [4.0, 4.3]\n"

    assert versions(loaded(text)) == upgrade
    assert versions(loaded(GOOD, "broker_version=[4.0, 4.3]")) == upgrade
    assert versions(loaded(text, variants=("kafka-4-0",))) == {"kafka-4-0": "4.0"}
    assert versions(loaded(text, "broker_version=4.1")) == {"default": "4.1"}
    several = text.replace("count: 30", "count: 30, group: a").replace(CONSUMER, f"groups: {{a: {CONSUMER.partition(' ')[2]}}}")
    assert versions(loaded(several)) == {
        "kafka-4-0-a": "4.0",
        "kafka-4-3-a": "4.3",
    }


def test_a_run_goes_as_that_version() -> None:
    """4.3 makes an assignment at most once a second: members that come one after the other share one."""
    restart = "events: [{at: 1m, rolling_restart: app, batch: 2, settle: 1s}]"
    old, new = loaded(f"{GOOD}broker_version: [4.2, 4.3]\n{restart}\n").variants
    rebalances = [run(each.scenario, 1).metric("rebalances") for each in (old, new)]

    assert rebalances == [15, 9]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("broker_version: 4.9", "6:1: broker_version: unknown broker version '4.9'; did you mean 4.3?; there are 3.9, 4.0, 4.1"),
        ("broker_version: [4.2, 5]", "6:23: broker_version: unknown broker version '5'; there are 3.9, 4.0, 4.1, 4.2, 4.3"),
        ("broker_version: []", "6:1: broker_version: must be a version of Kafka, such as 4.2, not an empty list"),
        ("broker_version: {a: 1}", "6:1: broker_version: must be a version of Kafka, such as 4.2, not a mapping"),
        ("broker_version: true", "6:1: broker_version: must be a version of Kafka, such as 4.2, not true"),
        ("broker_version: [4.2]\nvariants: {a: {}}", "6:1: broker_version: a list makes a variant of each version, and the file"),
        (
            "broker_version: 4.2\ncluster: {config: {group.consumer.assignment.interval.ms: 5}}",
            "7:20: cluster.config.group.consumer.assignment.interval.ms: unknown setting"
            " 'group.consumer.assignment.interval.ms' in Kafka 4.2; it came with 4.3",
        ),
        (
            "cluster: {config: {kgctl.broker.version: 4.2}}",
            "6:20: cluster.config.kgctl.broker.version: is not said in config: write broker_version: 4.2, at the top",
        ),
        ("broker_version: 3.9", "4:11: members.app: group.protocol=consumer is off on these brokers, of 3.9; cluster: {config: "),
    ],
)
def test_what_cannot_be(line: str, message: str) -> None:
    assert [problem[: len(message) + 2] for problem in refused(f"{GOOD}{line}\n")] == [f"f:{message}"]


def test_3_9_has_the_consumer_protocol_where_it_is_switched_on() -> None:
    on = "cluster: {config: {group.coordinator.rebalance.protocols: [classic, consumer]}}"
    assert versions(loaded(f"{GOOD}broker_version: 3.9\n{on}\n")) == {"default": "3.9"}


def test_an_unknown_version_in_a_setting() -> None:
    with pytest.raises((FileError, UsageError), match="--set broker_version=2: broker_version: unknown broker version '2'"):
        loaded(GOOD, "broker_version=2")
