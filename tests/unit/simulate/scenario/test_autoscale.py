"""``autoscale:`` of a file: what it becomes, and every mistake with its place."""

from __future__ import annotations

import pytest

from kgctl.simulate.scenario.autoscale import Autoscale, ScaleMetric, ScalingPolicy, ScalingRules, Select
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.simulate.scenario.schema import scenario_schema
from kgctl.yaml_files import FileError, read_yaml

S = 1_000_000
GOOD = """\
kgctl: 1
name: x
topics: {orders: 12}
members: {app: {count: 3, rate: 100/s}}
traffic: {orders: 100/s}
"""


def loaded(text: str) -> LoadedFile:
    return load(read_yaml(GOOD + text, "f"))


def autoscale(entry: str, variant: int = 0) -> Autoscale:
    found = loaded(entry).variants[variant].scenario.autoscale
    assert found is not None
    return found


def test_what_is_not_said_is_as_in_kubernetes_and_keda() -> None:
    spec = autoscale("autoscale: {members: app, target: 10}\n")
    assert spec == Autoscale(members="app", target=10)
    assert (spec.minimum, spec.maximum, spec.every_us, spec.poll_us) == (1, 100, 15 * S, 30 * S)
    assert (spec.tolerance_ppm, spec.cooldown_us, spec.use_cached_metrics) == (100_000, 300 * S, False)
    assert (spec.up.stabilize_us, [str(each) for each in spec.up.policies]) == (0, ["100% per 15s", "4 per 15s"])
    assert (spec.down.stabilize_us, [str(each) for each in spec.down.policies]) == (300 * S, ["100% per 15s"])


def test_everything_that_can_be_said() -> None:
    spec = autoscale(
        "autoscale: {members: app, metric: lag, target: 1000, min: 0, max: 64, poll: 1m, every: 20s, tolerance: 5%,\n"
        "  cooldown: 2m,\n"
        "  activation: 7, use_cached_metrics: true, limit_to_partitions_with_lag: true, exclude_persistent_lag: true,\n"
        "  scale_up: {stabilize: 30s, max: [50% per 1m, 3 pods per 30s], select: min}, scale_down: 1 per 2m}\n"
    )
    assert spec == Autoscale(
        members="app",
        target=1000,
        minimum=0,
        maximum=64,
        poll_us=60 * S,
        every_us=20 * S,
        tolerance_ppm=50_000,
        cooldown_us=120 * S,
        activation=7,
        use_cached_metrics=True,
        limit_to_partitions_with_lag=True,
        exclude_persistent_lag=True,
        up=ScalingRules(
            stabilize_us=30 * S,
            policies=(ScalingPolicy(50, is_percent=True, period_us=60 * S), ScalingPolicy(3, is_percent=False, period_us=30 * S)),
            select=Select.MIN,
        ),
        down=ScalingRules(stabilize_us=300 * S, policies=(ScalingPolicy(1, is_percent=False, period_us=120 * S),)),
    )


@pytest.mark.parametrize(("metric", "target", "value"), [("lag-age", "30s", 30 * S), ("cpu", "70%", 70), ("lag", "1000", 1_000)])
def test_the_target_is_in_the_metrics_unit(metric: str, target: str, value: int) -> None:
    spec = autoscale(f"autoscale: {{members: app, metric: {metric}, target: {target}}}\n")
    assert (spec.metric, spec.target) == (ScaleMetric(metric), value)


def test_variants_change_it_and_take_it_away() -> None:
    text = (
        "autoscale: {members: app, target: 10, scale_down: {stabilize: 10m}}\n"
        "variants: {gentle: {autoscale: {scale_down: {max: 1 per 2m}}}, none: {autoscale: null}}\n"
    )
    gentle = autoscale(text)
    assert (gentle.down.stabilize_us, str(gentle.down.policies[0])) == (600 * S, "1 per 120s")
    assert loaded(text).variants[1].scenario.autoscale is None


MISTAKES = {
    "{members: ap, target: 1}": "autoscale.members: there is no set of members 'ap'; did you mean 'app'?",
    "{target: 1}": "autoscale.members: this key is missing",
    "{members: app}": "autoscale.target: this key is missing",
    "{members: app, targt: 1, target: 1}": "autoscale.targt: unknown key; did you mean 'target'?",
    "{members: app, target: 30s}": "autoscale.target: the target of lag is a number of records for each pod, such as",
    "{members: app, target: 0}": "autoscale.target: the target of lag is a number of records for each pod",
    "{members: app, metric: lag-age, target: 5}": "autoscale.target: the target of lag-age is a time, such as 30s, not 5",
    "{members: app, metric: cpu, target: 0.7}": "autoscale.target: the target of cpu is a share of what a member can process",
    "{members: app, metric: lags, target: 1}": "autoscale.metric: must be one of lag, lag-age, cpu, not 'lags'; did",
    "{members: app, target: 1, min: 5, max: 4}": "autoscale.min: min is 5 and max is 4",
    "{members: app, target: 1, max: 0}": "autoscale.max: must be at least 1, not 0",
    "{members: app, target: 1, every: 0s}": "autoscale.every: must be more than 0s",
    "{members: app, target: 1, tolerance: 3}": "autoscale.tolerance: 3 is no share",
    "{members: app, target: 1, scale_up: {max: fast}}": (
        "autoscale.scale_up.max: 'fast' is no scaling policy; write one such as 100% per 15s or 1 per 2m"
    ),
    "{members: app, target: 1, scale_up: {max: []}}": "autoscale.scale_up.max: there is no policy; to forbid a direction, write",
    "{members: app, target: 1, scale_down: {max: 1 per 1h}}": (
        "autoscale.scale_down.max: the period of a policy is 1s to 30m in Kubernetes, not 1h"
    ),
    "{members: app, target: 1, scale_down: {stabilize: 2h}}": (
        "autoscale.scale_down.stabilize: a stabilisation window is at most 1h in Kubernetes, not 2h"
    ),
    "{members: app, target: 1, scale_down: {stabilise: 2m}}": "autoscale.scale_down.stabilise: unknown key; did you mean",
    "{members: app, target: 1, scale_down: {select: maxi}}": "autoscale.scale_down.select: must be one of max, min, disabled",
    "{members: app, target: 5s, metric: lag-age, min: 0}": "autoscale.min: to and from 0 pods goes by lag alone",
    "{members: app, target: 5s, metric: lag-age, use_cached_metrics: true}": (
        "autoscale.use_cached_metrics: is KEDA's Kafka scaler's: it goes with metric: lag, not lag-age"
    ),
    "{members: app, target: 1, allow_idle_consumers: true, limit_to_partitions_with_lag: true}": (
        "autoscale.allow_idle_consumers: KEDA refuses it together with limit_to_partitions_with_lag"
    ),
    "[app]": "autoscale: must be a mapping, not a list",
}


@pytest.mark.parametrize("entry", MISTAKES)
def test_mistake_is_told_with_its_place(entry: str) -> None:
    with pytest.raises(FileError) as caught:
        loaded(f"autoscale: {entry}\n")
    (problem,) = map(str, caught.value.problems)
    assert problem.startswith("f:6:")
    assert problem.split(" ", 1)[1].startswith(MISTAKES[entry])


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("traffic", "there is no traffic: lag would be 0 for ever"),
        ("rate", "cpu is measured by the members' rate, and 'app' has none: write rate: 1000/s"),
    ],
)
def test_what_it_needs_of_the_rest_of_the_file(section: str, told: str) -> None:
    entry = "target: 10" if section == "traffic" else "metric: cpu, target: 70%"
    text = GOOD.replace("traffic: {orders: 100/s}\n", "") if section == "traffic" else GOOD.replace(", rate: 100/s", "")
    with pytest.raises(FileError) as caught:
        load(read_yaml(f"{text}autoscale: {{members: app, {entry}}}\n", "f"))
    assert [problem.message for problem in caught.value.problems] == [told]


def test_the_schema_has_every_key_with_what_it_is() -> None:
    schema = scenario_schema()
    assert schema["properties"]["autoscale"]["anyOf"][0] == {"$ref": "#/$defs/Autoscale"}
    keys = schema["$defs"]["Autoscale"]["properties"]
    assert {
        "members",
        "metric",
        "target",
        "min",
        "max",
        "poll",
        "every",
        "tolerance",
        "scale_up",
        "scale_down",
        "cooldown",
    } <= set(keys)
    assert keys["metric"]["enum"] == ["lag", "lag-age", "cpu"]
