"""What autoscalers scale by, and what of it a scenario has no words for."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.scenario.scalers import chosen, left_out, signals, whole_number

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 70}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"averageUtilization": 80}}}
LAG = {"type": "External", "external": {"metric": {"name": "lag"}, "target": {"type": "AverageValue", "averageValue": "1k"}}}


def kafka(topic: str, **more: str) -> dict[str, Any]:
    return {"type": "kafka", "metadata": {"consumerGroup": "g", "topic": topic, **more}}


@pytest.mark.parametrize(
    ("spec", "says", "told"),
    [
        ({"metrics": [CPU]}, {"metric": "cpu", "target": "70%"}, []),
        ({"targetCPUUtilizationPercentage": 65}, {"metric": "cpu", "target": "65%"}, []),
        ({"triggers": [{"type": "cpu", "metadata": {"value": "60"}}]}, {"metric": "cpu", "target": "60%"}, []),
        ({"metrics": [LAG]}, {"target": 1000}, []),
        ({"metrics": [MEMORY, LAG]}, {"target": 1000}, ["W scales by the most that Resource memory, External lag ask for"]),
        ({"metrics": [MEMORY]}, {}, ["W scales by Resource memory, for which a scenario has no words"]),
        ({"triggers": [kafka("a")]}, {"target": 10}, []),
        ({"triggers": [{"type": "cron"}, kafka("a", lagThreshold="50", activationLagThreshold="5")]},
         {"target": 50, "activation": 5}, ["W scales by the most that cron, kafka (topic a) ask for"]),
        ({"triggers": [kafka("a", lagThreshold="50"), kafka("b", lagThreshold="500")]},
         {"target": 50}, ["W scales by the most that kafka (topic a), kafka (topic b) ask", "W looks at the lag of topic a;"]),
        ({"triggers": [{"type": "apache-kafka", "metadata": {"consumerGroup": "g", "allowIdleConsumers": "true"}}]},
         {"target": 10, "allow_idle_consumers": True}, []),
    ],
    ids=str,
)  # fmt: skip
def test_one_signal_is_taken_and_all_others_are_told(spec: dict[str, Any], says: dict[str, Any], told: list[str]) -> None:
    found = signals(spec, "W")
    taken = chosen(found)
    lines = list(left_out(found, "a", "W"))
    assert ({} if taken is None else {key: value for key, value, _ in taken.says}) == says
    assert [line.startswith(begin) for line, begin in zip(lines, told, strict=True)] == [True] * len(told)


def test_the_lag_of_one_topic_of_several_that_are_read_is_told() -> None:
    found = signals({"triggers": [kafka("a")]}, "W")
    assert [list(left_out(found, topics, "W")) for topics in ("", "a", "a,b")] == [
        [],
        [],
        ["W looks at the lag of topic a; the scenario counts that of all topics that are read"],
    ]


@pytest.mark.parametrize(("text", "value"), [("500", 500), (7, 7), ("1k", 1000), ("2Ki", 2048), ("3000m", 3)])
def test_a_number_is_as_kubernetes_writes_it(text: object, value: int) -> None:
    assert whole_number(text, "W") == value


@pytest.mark.parametrize("text", ["", "{{x}}", "500m", "-1", "many"])
def test_what_is_no_number_is_told_with_its_place(text: str) -> None:
    with pytest.raises(UsageError, match=r"W, lagThreshold is .* no whole number"):
        whole_number(text, "W, lagThreshold")
