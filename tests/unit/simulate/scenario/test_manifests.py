"""What Kubernetes manifests and clients' settings say of a scenario, and that a scenario notices when they say something else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.lint.rules import lint
from kgctl.simulate.scenario.from_manifests import remarks, scenario_of
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.manifests import facts, read_manifests
from kgctl.simulate.scenario.quantities import Constant
from kgctl.simulate.scenario.sources import read_source
from kgctl.yaml_files import FileError

DEPLOYMENT = """\
---
# Source: payments/templates/configmap.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  KAFKA_CONSUMER_MAX_POLL_RECORDS: "200"
  LOG_LEVEL: info
  client.properties: |
    # of the application
    session.timeout.ms = 30000
    bootstrap.servers=kafka:9092
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: payments}
spec:
  replicas: 6
  minReadySeconds: 5
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    spec:
      terminationGracePeriodSeconds: 45
      volumes: [{name: config, configMap: {name: settings}}]
      containers:
        - name: app
          envFrom: [{configMapRef: {name: settings}}]
          env:
            - {name: SPRING_KAFKA_CONSUMER_GROUP_ID, value: payers}
            - {name: KAFKA_GROUP_INSTANCE_ID, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: ORDERS_TOPIC, value: orders}
          lifecycle: {preStop: {exec: {command: [sh, -c, "sleep 10"]}}}
          readinessProbe: {initialDelaySeconds: 12, periodSeconds: 5}
"""
SCALED = """\
kind: ScaledObject
metadata: {name: scaler}
spec:
  scaleTargetRef: {name: payments}
  minReplicaCount: 2
  maxReplicaCount: 12
  cooldownPeriod: 120
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Percent, value: 50, periodSeconds: 60}]}}
  triggers: [{type: kafka, metadata: {topic: orders, consumerGroup: payers, lagThreshold: "500"}}]
"""


def said(*texts: str) -> dict[tuple[str | int, ...], object]:
    return {fact.way: fact.value for fact in facts(read_manifests([(f"{n}.yaml", text) for n, text in enumerate(texts)]))}


def test_a_deployment_with_its_config_map() -> None:
    assert said(DEPLOYMENT) == {
        ("members", "payments", "count"): 6,
        ("members", "payments", "pre_stop"): "10s",
        ("members", "payments", "instance_id"): "$name",
        ("events", "payments", "grace"): "45s",
        ("events", "payments", "min_ready"): "5s",
        ("events", "payments", "max_surge"): 1,
        ("events", "payments", "max_unavailable"): 0,
        ("group", "config", "session.timeout.ms"): "30000",
        ("group", "config", "max.poll.records"): "200",
        ("group", "id"): "payers",
    }


def test_what_a_manifest_leaves_out_is_kubernetes_default() -> None:
    plain = "kind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: x}]}}}\n"
    assert said(plain) == {
        ("members", "a", "count"): 1,
        ("events", "a", "grace"): "30s",
        ("events", "a", "max_surge"): "25%",
        ("events", "a", "max_unavailable"): "25%",
    }


def test_an_autoscaler_takes_the_place_of_replicas() -> None:
    found = said(DEPLOYMENT, SCALED)
    assert ("members", "payments", "count") not in found
    assert {way[1]: value for way, value in found.items() if way[0] == "autoscale"} == {
        "members": "payments",
        "min": 2,
        "max": 12,
        "target": 500,
        "cooldown": "120s",
        "scale_down": {"stabilize": "60s", "max": ["50% per 60s"]},
    }


def test_an_hpa_by_processors_and_a_stateful_set_in_a_list_of_kubectl() -> None:
    text = (
        '{"kind": "List", "items": ['
        '{"kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"replicas": 3,'
        ' "updateStrategy": {"rollingUpdate": {"partition": 1}},'
        ' "template": {"spec": {"containers": [{"lifecycle": {"preStop": {"sleep": {"seconds": 4}}}}]}}}},'
        '{"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {"maxReplicas": 9,'
        ' "scaleTargetRef": {"name": "db"},'
        ' "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 70}}}]}}]}'
    )
    assert said(text) == {
        ("members", "db", "pre_stop"): "4s",
        ("events", "db", "update"): "RollingUpdate",
        ("events", "db", "grace"): "30s",
        ("events", "db", "workload"): "statefulset",
        ("events", "db", "partition"): 1,
        ("autoscale", "members"): "db",
        ("autoscale", "min"): 1,
        ("autoscale", "max"): 9,
        ("autoscale", "metric"): "cpu",
        ("autoscale", "target"): "70%",
    }


def test_properties_beside_a_manifest_are_the_consumers() -> None:
    found = facts(read_manifests([("d.yaml", DEPLOYMENT), ("app.properties", "max.poll.interval.ms=60000\n! a comment\n")]))
    assert [(fact.value, fact.where) for fact in found if fact.way[-1] == "max.poll.interval.ms"] == [("60000", "app.properties")]


def test_a_manifest_without_pods_is_told() -> None:
    with pytest.raises(UsageError, match=r"no Deployment or StatefulSet is in a.yaml; kinds there: Service"):
        read_manifests([("a.yaml", "kind: Service\nmetadata: {name: x}\n")])


def drifts(folder: Path, text: str, old: str, new: str) -> list[str]:
    """What is told of a scenario that was made of this manifest, which is no drift, once it says something else."""
    manifest, scenario = folder / "db.yaml", folder / "scenario.yaml"
    manifest.write_text(text)
    scenario.write_text(scenario_of(read_manifests([("db.yaml", text)]), ["db.yaml"]))
    read_source(str(scenario))
    manifest.write_text(text.replace(old, new))
    with pytest.raises(FileError) as caught:
        read_source(str(scenario))
    return [str(problem).partition(": ")[2] for problem in caught.value.problems]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    for name, text in (("deploy.yaml", DEPLOYMENT), ("scaled.yaml", SCALED)):
        (tmp_path / name).write_text(text)
    names = ["deploy.yaml", "scaled.yaml"]
    path = tmp_path / "scenario.yaml"
    path.write_text(scenario_of(read_manifests([(name, (tmp_path / name).read_text()) for name in names]), names))
    return path


def test_what_is_written_is_a_scenario_that_asks_for_the_rest(written: Path) -> None:
    text = written.read_text()
    assert [
        word
        for word in ("# how many has it?", "until subscribe(); readinessProbe.initialDelaySeconds: put yours in")
        if word in text
    ]
    (variant,) = load(read_source(str(written))).variants
    (members,), scale = variant.scenario.members, variant.scenario.autoscale
    assert (members.count, members.pre_stop_us, members.boot) == (2, 10_000_000, Constant(12_000_000))
    assert members.rate_uhz == 1_000_000_000
    assert scale is not None
    assert (scale.minimum, scale.maximum, scale.target) == (2, 12, 500)
    assert variant.scenario.group_id == "payers"


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("deploy.yaml", "sleep 10", "sleep 20", "members.payments.pre_stop: Deployment payments, preStop (deploy.yaml) is 20s"),
        ("deploy.yaml", "maxSurge: 1", "maxSurge: 2", "events[0].max_surge: Deployment payments, maxSurge (deploy.yaml) is 2"),
        (
            "deploy.yaml",
            '"200"',
            '"50"',
            "group.config.max.poll.records: ConfigMap settings (deploy.yaml) is 50, and the scenario says",
        ),
        ("scaled.yaml", "maxReplicaCount: 12", "maxReplicaCount: 20", "autoscale.max: ScaledObject scaler (scaled.yaml)"),
        (
            "scaled.yaml",
            "cooldownPeriod: 120\n",
            "cooldownPeriod: 120\n  pollingInterval: 5\n",
            "autoscale.poll: ScaledObject scaler (scaled.yaml)",
        ),
    ],
)
def test_a_drift_is_told_with_what_differs(written: Path, file: str, old: str, new: str, told: str) -> None:
    manifest = written.parent / file
    assert old in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(old, new))
    with pytest.raises(FileError) as caught:
        read_source(str(written))
    (problem,) = caught.value.problems
    assert told in str(problem)


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "deploy.yaml",
            '          lifecycle: {preStop: {exec: {command: [sh, -c, "sleep 10"]}}}\n',
            "",
            "members.payments.pre_stop: Deployment payments, preStop (deploy.yaml) is 0s, and the scenario says 10s",
        ),
        (
            "deploy.yaml",
            "  minReadySeconds: 5\n",
            "",
            "min_ready: Deployment payments, minReadySeconds (deploy.yaml) is 0s, and the",
        ),
        (
            "scaled.yaml",
            "  cooldownPeriod: 120\n",
            "",
            "cooldown: ScaledObject scaler (scaled.yaml), cooldownPeriod is 300s, and",
        ),
    ],
)
def test_what_a_manifest_no_longer_says_is_a_drift(written: Path, file: str, old: str, new: str, told: str) -> None:
    test_a_drift_is_told_with_what_differs(written, file, old, new, told)


GONE = "deploy.yaml, scaled.yaml said it, and no longer says it: take it out here, and of from_manifest"


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("deploy.yaml", '  KAFKA_CONSUMER_MAX_POLL_RECORDS: "200"\n', "", f"group.config.max.poll.records: {GONE}"),
        ("deploy.yaml", "KAFKA_GROUP_INSTANCE_ID", "NAME", f"members.payments.instance_id: {GONE}"),
        ("scaled.yaml", "      behavior: {", "      unknown: {", f"autoscale.scale_down: {GONE}"),
    ],
)
def test_what_a_manifest_said_and_says_no_more_is_a_drift(written: Path, file: str, old: str, new: str, told: str) -> None:
    test_a_drift_is_told_with_what_differs(written, file, old, new, told)
    text = "".join(
        line
        for line in written.read_text().splitlines(keepends=True)
        if told.partition(":")[0].rpartition(".")[2] not in line.partition("#")[0] or "says:" in line
    )
    written.write_text(text)
    read_source(str(written))


def test_names_of_manifests_alone_do_not_tell_what_is_gone_from_them_and_check_says_so(written: Path) -> None:
    text = written.read_text()
    says = next(line.strip() for line in text.splitlines() if "says:" in line)
    by_hand = re.sub(r"from_manifest:.*\n  files: (.*)\n  says: .*\n", r"from_manifest: \1\n", text)
    usual = lint(load(read_source(str(written))))
    written.write_text(by_hand)
    (doubt,) = (each for each in lint(load(read_source(str(written)))) if each.rule not in {known.rule for known in usual})
    told = "what these manifests no longer say is not seen, as it is not told what they have said; write "
    assert (doubt.rule, doubt.message) == ("manifest-says", f"{told}{{files: [deploy.yaml, scaled.yaml], {says}}}")


def test_an_autoscaler_that_is_gone_is_a_drift(written: Path) -> None:
    (written.parent / "scaled.yaml").write_text("kind: ConfigMap\n")
    with pytest.raises(FileError) as caught:
        read_source(str(written))
    assert [str(problem).partition(": ")[2] for problem in caught.value.problems] == [
        "members.payments.count: Deployment payments, replicas (deploy.yaml) is 6, and the scenario says 2",
        f"autoscale.members: {GONE}",
    ]


def test_what_the_scenario_adds_to_a_manifest_is_no_drift(written: Path) -> None:
    text = written.read_text().replace("  config:\n", "  config:\n    request.timeout.ms: 20s\n", 1)
    written.write_text(text)
    assert "request.timeout.ms" in read_source(str(written)).data["group"]["config"]


@pytest.mark.parametrize("value", ["{says: [group.id]}", "{files: [deploy.yaml], says: 3}", "{files: []}"])
def test_what_names_no_files_is_refused(written: Path, value: str) -> None:
    lines = [line for line in written.read_text().splitlines() if not line.startswith(("from_manifest", "  files:", "  says:"))]
    written.write_text("\n".join([*lines, f"from_manifest: {value}"]))
    with pytest.raises(FileError, match="from_manifest: must be a list of files"):
        read_source(str(written))


def test_what_a_scenario_has_no_words_for_is_told() -> None:
    more = "  fallback: {failureThreshold: 3, replicas: 6}\n  idleReplicaCount: 0\n  triggers"
    said_so = SCALED.replace("  triggers", more).replace('lagThreshold: "500"', 'scaleToZeroOnInvalidOffset: "true"')
    others = "kind: DaemonSet\nmetadata: {name: d}\nspec: {template: {spec: {containers: []}}}\n---\n"
    others += SCALED.replace("name: payments", "name: paymets").replace("name: scaler", "name: slip")
    assert remarks(read_manifests([("k.yaml", DEPLOYMENT), ("s.yaml", said_so), ("o.yaml", others)])) == [
        "DaemonSet d (o.yaml) is not read: its pods are not in the scenario",
        "ScaledObject slip (o.yaml) scales paymets, which is no workload of these files: the scenario has no autoscaler of it",
        *(
            f"ScaledObject scaler (s.yaml) has {name}, which is not simulated"
            for name in ("fallback", "idleReplicaCount", "scaleToZeroOnInvalidOffset")
        ),
    ]


@pytest.mark.parametrize(
    ("kind", "old", "new", "told"),
    [
        (
            "Deployment",
            "strategy: {type: Recreate}",
            "replicas: 1",
            ["events[0].strategy: Deployment db, strategy (db.yaml) is rolling"],
        ),
        (
            "StatefulSet",
            "updateStrategy: {rollingUpdate: {partition: 2, maxUnavailable: 2}}",
            "replicas: 1",
            [
                "events[0].partition: StatefulSet db, partition (db.yaml) is 0, and the scenario says 2",
                "events[0].max_unavailable: StatefulSet db, maxUnavailable (db.yaml) is 1, and the scenario says 2",
            ],
        ),
    ],
)
def test_a_rollout_that_is_the_usual_one_by_now_is_a_drift(
    tmp_path: Path, kind: str, old: str, new: str, told: list[str]
) -> None:
    found = drifts(tmp_path, f"kind: {kind}\nmetadata: {{name: db}}\nspec: {{{old}}}\n", old, new)
    assert [each[: len(start)] for each, start in zip(found, told, strict=True)] == told


def test_a_canary_of_a_deployment_is_no_drift(tmp_path: Path) -> None:
    manifest, scenario = tmp_path / "db.yaml", tmp_path / "scenario.yaml"
    text = "kind: Deployment\nmetadata: {name: db}\nspec: {replicas: 3}\n"
    manifest.write_text(text)
    told = scenario_of(read_manifests([("db.yaml", text)]), ["db.yaml"])
    scenario.write_text(told.replace("rollout: db,", "rollout: db, strategy: canary,"))
    assert "strategy: canary" in scenario.read_text()
    read_source(str(scenario))


@pytest.mark.parametrize(
    ("old", "new", "way"),
    [("OnDelete", "RollingUpdate", "events[0].rolling_restart"), ("RollingUpdate", "OnDelete", "events[0].rollout")],
)
def test_a_set_that_is_rolled_otherwise_by_now_is_a_drift(tmp_path: Path, old: str, new: str, way: str) -> None:
    text = f"kind: StatefulSet\nmetadata: {{name: db}}\nspec: {{replicas: 3, updateStrategy: {{type: {old}}}}}\n"
    told = f"{way}: StatefulSet db, updateStrategy (db.yaml) is {new}, and the scenario says {old}"
    assert drifts(tmp_path, text, old, new) == [told]


def test_the_same_time_in_another_unit_is_no_drift(written: Path) -> None:
    text = written.read_text()
    assert "session.timeout.ms: 30000" in text
    written.write_text(text.replace("session.timeout.ms: 30000", "session.timeout.ms: 30s"))
    assert read_source(str(written)).data["name"] == "payments-rollout"


@pytest.mark.parametrize(("value", "told"), [("[no.yaml]", "cannot read .*no.yaml"), ("deploy.yaml", "must be a list of files")])
def test_a_manifest_that_cannot_be_read_is_told_where_it_is_named(written: Path, value: str, told: str) -> None:
    written.write_text(written.read_text().replace("[deploy.yaml, scaled.yaml]", value))
    with pytest.raises(FileError, match=told) as caught:
        read_source(str(written))
    assert caught.value.problems[0].path == ("from_manifest",)


MESHED = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {SPRING_KAFKA_CONSUMER_GROUP_ID: payers, SPRING_KAFKA_CONSUMER_MAX_POLL_RECORDS: "50"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: payments}
spec:
  replicas: 3
  template:
    spec:
      containers:
        - name: istio-proxy
          env: [{name: KAFKA_CONSUMER_MAX_POLL_RECORDS, value: "7"}]
          lifecycle: {preStop: {sleep: {seconds: 99}}}
          readinessProbe: {initialDelaySeconds: 1, periodSeconds: 2}
        - name: app
          command: [java, -Dspring.kafka.consumer.max-poll-records=99, -jar, app.jar]
          args: [--spring.kafka.consumer.properties.max.poll.interval.ms=120000]
          envFrom: [{configMapRef: {name: settings}}]
          env:
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: KAFKA_GROUP_INSTANCE_ID, value: "pay-$(POD_NAME)"}
            - {name: JAVA_TOOL_OPTIONS, value: "-Xmx1g -Dspring.kafka.consumer.heartbeat-interval=5s"}
          lifecycle: {preStop: {exec: {command: [/bin/sh, -c, sleep 15]}}}
          readinessProbe: {initialDelaySeconds: 20, periodSeconds: 5}
"""


def test_the_consumer_is_found_beside_a_sidecar_and_its_arguments_stand_over_its_environment() -> None:
    found = said(MESHED)
    assert {way[2]: value for way, value in found.items() if way[0] in ("group", "members") and len(way) == 3} == {
        "max.poll.records": "99",
        "max.poll.interval.ms": "120000",
        "heartbeat.interval.ms": "5s",
        "count": 3,
        "pre_stop": "15s",
        "instance_id": "pay-$name",
    }
    assert found["group", "id"] == "payers"
    text = scenario_of(read_manifests([("k.yaml", MESHED)]), ["k.yaml"])
    assert "boot: 20s" in text
    assert "ready: 0s..5s" in text


def test_one_instance_id_for_all_pods_is_kept_for_the_linter_to_see() -> None:
    assert said(MESHED.replace("pay-$(POD_NAME)", "pay"))["members", "payments", "instance_id"] == "pay"


def test_what_kedas_trigger_leaves_out_of_the_lag_is_known() -> None:
    text = SCALED.replace("consumerGroup", 'excludePersistentLag: "true", allowIdleConsumers: "false", consumerGroup')
    found = said(DEPLOYMENT, text)
    assert (found["autoscale", "exclude_persistent_lag"], found["autoscale", "allow_idle_consumers"]) == (True, False)
    assert "exclude_persistent_lag: true" in scenario_of(read_manifests([("k.yaml", DEPLOYMENT), ("s.yaml", text)]), ["k.yaml"])


@pytest.mark.parametrize(
    ("command", "said_of_it"),
    [
        ("sleep 30s", "30s"),
        ("sleep 1.5m; kill 1; sleep 5", "95s"),
        ("sleep 2.5", "2.5s"),
        ("sleep $DELAY", None),
        ("sleep 5; sleep $DELAY", None),
        ("nginx -s quit", None),
    ],
)
def test_how_long_pre_stop_sleeps(command: str, said_of_it: str | None) -> None:
    containers = f"[{{lifecycle: {{preStop: {{exec: {{command: [sh, -c, '{command}']}}}}}}}}]"
    text = f"kind: Deployment\nmetadata: {{name: a}}\nspec: {{template: {{spec: {{containers: {containers}}}}}}}\n"
    assert said(text).get(("members", "a", "pre_stop")) == said_of_it


def test_a_stateful_set_may_replace_several_pods_at_a_time() -> None:
    text = "kind: StatefulSet\nmetadata: {name: a}\nspec: {updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}\n"
    assert said(text)["events", "a", "max_unavailable"] == 2


UNREAD = """\
kind: ConfigMap
metadata: {name: c}
data: {application.yml: "spring: {}", app.properties: "max.poll.records=7", SESSION: "9000"}
---
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      volumes: [{name: v, configMap: {name: c}}]
      containers:
        - envFrom: [{secretRef: {name: c}}, {configMapRef: {name: gone}}, {configMapRef: {name: c}}]
          env:
            - {name: KAFKA_MAX_POLL_INTERVAL_MS, valueFrom: {secretKeyRef: {name: s, key: k}}}
            - {name: KAFKA_SESSION_TIMEOUT_MS, valueFrom: {configMapKeyRef: {name: c, key: SESSION}}}
            - {name: KAFKA_HEARTBEAT_INTERVAL_MS, valueFrom: {configMapKeyRef: {name: gone, key: x}}}
            - {name: PASSWORD, valueFrom: {secretKeyRef: {name: s, key: p}}}
            - {name: KAFKA_CLIENT_RACK, value: ""}
"""


def test_what_may_hold_settings_and_is_not_known_is_told() -> None:
    (pods,) = read_manifests([("k.yaml", UNREAD)])
    assert pods.left_out() == [
        "Deployment d, volumes (k.yaml): application.yml of ConfigMap c is not read: put its settings of consumers in",
        "Deployment d, envFrom (k.yaml): Secret c is not known here: put its settings of consumers in",
        "Deployment d, envFrom (k.yaml): ConfigMap gone is not known here: put its settings of consumers in",
        "Deployment d, env (k.yaml): what KAFKA_MAX_POLL_INTERVAL_MS is, is not known here: put max.poll.interval.ms in",
        "Deployment d, env (k.yaml): what KAFKA_HEARTBEAT_INTERVAL_MS is, is not known here: put heartbeat.interval.ms in",
    ]
    text = scenario_of([pods], ["k.yaml"])
    assert [line for line in text.splitlines() if line.startswith("# ")] == [f"# {line}" for line in pods.left_out()]
    assert remarks([pods]) == pods.left_out()


@pytest.mark.parametrize("name", ["a.yaml", "a.yml", "a.json", "a.conf", "a.toml", "a.xml", "a.properties", "a.env", "MOTD"])
def test_files_of_settings_in_a_form_that_is_not_read_are_told(name: str) -> None:
    (pods,) = read_manifests([("k.yaml", UNREAD.replace("application.yml", name))])
    is_read = name in ("a.properties", "a.env", "MOTD")
    assert [line for line in pods.left_out() if f"{name} of ConfigMap c" in line] == ([] if is_read else pods.left_out()[:1])


def test_what_an_autoscaler_scales_by_and_no_scenario_has_is_told_beside_it() -> None:
    by_clock = SCALED.replace("triggers: [", "triggers: [{type: cron}, ")
    pods = read_manifests([("k.yaml", DEPLOYMENT), ("s.yaml", by_clock)])
    told = (
        "ScaledObject scaler (s.yaml) scales by the most that cron, kafka (topic orders) ask for;"
        " the scenario scales by kafka (topic orders) alone"
    )
    assert remarks(pods) == [told]
    assert f"# {told}\n" in scenario_of(pods, ["k.yaml", "s.yaml"])
