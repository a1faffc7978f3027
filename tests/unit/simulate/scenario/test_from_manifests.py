"""A scenario that is written from manifests: it can be checked and run, or it is said why there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.scenario.from_manifests import remarks, scenario_of
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.simulate.scenario.manifests import read_manifests
from kgctl.yaml_files import read_yaml


def deployment(name: str, *, kind: str = "Deployment", spec: str = "", **env: str) -> str:
    variables = ", ".join(f"{{name: {key}, value: '{value}'}}" for key, value in env.items())
    return (
        f"kind: {kind}\nmetadata: {{name: {name}}}\n"
        f"spec: {{replicas: 2, {spec}template: {{spec: {{containers: [{{name: x, env: [{variables}]}}]}}}}}}\n"
    )


def scaler(name: str, target: str, group: str) -> str:
    return (
        f"kind: ScaledObject\nmetadata: {{name: {name}}}\nspec:\n  scaleTargetRef: {{name: {target}}}\n  maxReplicaCount: 4\n"
        f'  triggers: [{{type: kafka, metadata: {{topic: orders, consumerGroup: {group}, lagThreshold: "500"}}}}]\n'
    )


def written(texts: Sequence[str]) -> LoadedFile:
    text = scenario_of(read_manifests([("k.yaml", "---\n".join(texts))]), ["k.yaml"])
    return load(read_yaml(re.sub(r"^from_manifest:.*\n  files:.*\n  says:.*\n", "", text, flags=re.MULTILINE), "s.yaml"))


def test_two_groups_are_two_groups_each_with_its_members_and_settings() -> None:
    loaded = written(
        [
            deployment("pay", KAFKA_GROUP_ID="pay", ORDERS_TOPIC="orders", KAFKA_MAX_POLL_RECORDS="100"),
            deployment("audit", KAFKA_GROUP_ID="audit.v2", AUDIT_TOPIC="audits", KAFKA_MAX_POLL_RECORDS="200"),
            deployment("late", KAFKA_GROUP_ID="audit.v2", AUDIT_TOPIC="audits"),
        ]
    )
    assert {variant.name: variant.scenario.group_id for variant in loaded.variants} == {"pay": "pay", "audit-v2": "audit.v2"}
    members = {each.name: each for variant in loaded.variants for each in variant.scenario.members}
    assert {name: (each.group, each.topics, dict(each.config)) for name, each in members.items()} == {
        "pay": ("pay", ("orders",), {"max.poll.records": "100"}),
        "audit": ("audit-v2", ("audits",), {"max.poll.records": "200"}),
        "late": ("audit-v2", ("audits",), {}),
    }


def test_two_workloads_of_one_group_have_settings_of_their_own() -> None:
    loaded = written(
        [
            deployment("old", KAFKA_GROUP_ID="pay", KAFKA_MAX_POLL_RECORDS="100"),
            deployment("new", KAFKA_GROUP_ID="pay", KAFKA_MAX_POLL_RECORDS="050"),
        ]
    )
    (variant,) = loaded.variants
    assert variant.scenario.group_id == "pay"
    assert {each.name: each.config["max.poll.records"] for each in variant.scenario.members} == {"old": "100", "new": "050"}


CONTRADICT = {
    "two would be one set": (
        [deployment("a"), deployment("a", kind="StatefulSet")],
        "Deployment a (k.yaml) and StatefulSet a (k.yaml) would be one set of members, 'a': name the manifests of one of them",
    ),
    "two autoscalers": (
        [deployment("a"), deployment("b"), scaler("sa", "a", "g"), scaler("sb", "b", "g")],
        "ScaledObject sa (k.yaml) and ScaledObject sb (k.yaml) are two autoscalers, and a scenario has one: name the manifests",
    ),
    "scaled by another group": (
        [deployment("a", KAFKA_GROUP_ID="payers"), scaler("sa", "a", "payments")],
        "Deployment a, env (k.yaml) is payers, and ScaledObject sa (k.yaml), consumerGroup is payments: they contradict",
    ),
}


@pytest.mark.parametrize(("texts", "told"), CONTRADICT.values(), ids=CONTRADICT)
def test_what_would_be_said_twice_is_refused_with_what_to_do(texts: list[str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        written(texts)
    assert told in str(caught.value)


def test_of_a_set_that_nobody_rolls_pods_are_deleted_one_by_one_and_it_is_told() -> None:
    text = deployment("db", kind="StatefulSet", spec="updateStrategy: {type: OnDelete}, ", KAFKA_GROUP_ID="g")
    pods = read_manifests([("k.yaml", text)])
    told = "StatefulSet db, updateStrategy (k.yaml) is OnDelete: a deploy rolls nothing by itself; here somebody deletes one pod"
    assert [each.startswith(told) for each in remarks(pods)] == [True]
    assert f"  # {told}" in scenario_of(pods, ["k.yaml"])
    (variant,) = written([text]).variants
    assert [(each.kind, each.name, each.target) for each in variant.scenario.events] == [("rolling_restart", "delete-db", "db")]
    assert remarks(read_manifests([("k.yaml", deployment("db", kind="StatefulSet"))])) == []
