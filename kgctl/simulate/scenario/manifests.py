"""Kubernetes manifests and clients' settings as the input of a scenario: what they say of its pods, as facts with their places.

Read are Deployments, StatefulSets, HorizontalPodAutoscalers, KEDA's ScaledObjects and ConfigMaps, as ``kubectl get -o yaml`` or
``-o json``, a List, or ``helm template`` prints them, and ``.properties`` files. A scenario is written from the facts
(`scenario_of`), and one that names its manifests is held against them again (`drift`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from kgctl.errors import UsageError
from kgctl.files import text_of
from kgctl.member.config import settings
from kgctl.model.values import frozen_in_order
from kgctl.simulate.scenario.autoscale import Autoscale
from kgctl.simulate.scenario.event_port import GRACE_US
from kgctl.simulate.scenario.kinds.deploys import PAUSING, Rollout
from kgctl.simulate.scenario.kinds.pods import RollingRestart
from kgctl.simulate.scenario.quantities import format_duration, is_duration, parse_duration
from kgctl.simulate.scenario.scalers import Signal, chosen, entries, left_out, mapping, not_simulated, signals, whole_number
from kgctl.yaml_files import MANIFEST, FileError, Tree, read_yaml
from kgctl.yaml_files import Path as Way

_WORKLOADS = ("Deployment", "StatefulSet")
_SCALERS = ("HorizontalPodAutoscaler", "ScaledObject")
_DOCUMENT = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_SLEEP = re.compile(r"\bsleep(?:\s+(\d+(?:\.\d+)?)([smh]?)(?![\w.]))?")
_SLEEP_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_JVM_OPTION = re.compile(r"(?<!\S)-D([\w.-]+)=(\S+)")
_ARGUMENT = re.compile(r"(?<!\S)--([\w.-]+)=(\S+)")
_REFERENCE = re.compile(r"\$\(([\w.-]+)\)")
_Maps: TypeAlias = "Mapping[str, tuple[str, Mapping[str, Any]]]"
"""ConfigMap -> its file and its data."""
ON_DELETE = "OnDelete"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@frozen_in_order
class Fact:
    """What a manifest says of a scenario: ``way`` is the place in the scenario, ``event`` that of a rollout's field."""

    way: Way
    value: Any
    where: str


@dataclass(slots=True)
class Workload:
    """A workload with what belongs to it. ``unread``: settings and files of settings whose contents are not known, in words."""

    name: str
    kind: str
    spec: Mapping[str, Any]
    file: str
    config: dict[str, tuple[str, str]] = field(default_factory=dict)
    scaler: Mapping[str, Any] | None = None
    scaler_kind: str = ""
    topic: str = ""
    container: Mapping[str, Any] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    def where(self, what: str) -> str:
        return f"{self.kind} {self.name}, {what} ({self.file})"

    @property
    def key(self) -> str:
        """The name of its set of members."""
        return UNSAFE.sub("-", self.name)

    @property
    def update(self) -> Mapping[str, Any]:
        return mapping(self.spec.get("updateStrategy"))

    @property
    def rolls(self) -> bool:
        """Whether a new version takes the place of its pods without somebody who deletes them."""
        return self.kind != "StatefulSet" or self.update.get("type") != ON_DELETE

    @property
    def signals(self) -> list[Signal]:
        """What its autoscaler scales by."""
        return signals(mapping(self.scaler), self.scaler_kind)

    @property
    def group_id(self) -> str:
        """The group of its consumers; "" where nothing says it."""
        if "group.id" in self.config:
            return self.config["group.id"][0]
        return next((each.group_id for each in self.signals if each.group_id), "")

    def left_out(self) -> list[str]:
        """Return what of the manifests is not in the scenario, in words."""
        told = left_out(self.signals, self.topic, self.scaler_kind)
        return [*self.unread, *told, *not_simulated(mapping(self.scaler), self.scaler_kind)]


def read_manifests(files: Sequence[tuple[str, str]]) -> list[Workload]:
    """The workloads of files (name, text), in their order, each with its settings and its autoscaler.

    Raises:
        UsageError: no workload is in them. FileError: a file is no YAML.
    """
    objects = [(name, each) for name, text in files if not _is_properties(name) for each in _objects(name, text)]
    found = [
        Workload(_name(each), each["kind"], mapping(each.get("spec")), name)
        for name, each in objects
        if each["kind"] in _WORKLOADS
    ]
    if not found:
        kinds = ", ".join(sorted({str(each["kind"]) for _, each in objects})) or "none"
        raise UsageError(f"no Deployment or StatefulSet is in {', '.join(name for name, _ in files)}; kinds there: {kinds}")
    maps = {_name(each): (name, mapping(each.get("data"))) for name, each in objects if each["kind"] == "ConfigMap"}
    given = [(name, _properties(text)) for name, text in files if _is_properties(name)]
    for pods in found:
        pods.container = _consuming(pods, maps)
        for name, values in given:
            _take(pods, values, name)
        for where, values in _environment(pods, maps):
            _take(pods, values, where)
        pods.unread += _unread(pods, maps)
        for name, each in objects:
            if each["kind"] in _SCALERS and _target(each) == pods.name:
                pods.scaler, pods.scaler_kind = mapping(each.get("spec")), f"{each['kind']} {_name(each)} ({name})"
    found[0].unread += _of_nobody(objects, {pods.name for pods in found})
    return found


def _target(scaler: Mapping[str, Any]) -> Any:
    return mapping(mapping(scaler.get("spec")).get("scaleTargetRef")).get("name")


def _of_nobody(objects: Sequence[tuple[str, Mapping[str, Any]]], workloads: Collection[str]) -> Iterator[str]:
    """What has pods, or scales some, that the scenario does not have."""
    for name, each in objects:
        what = f"{each['kind']} {_name(each)} ({name})"
        pods = _template(mapping(each.get("spec")))
        if each["kind"] in _SCALERS and _target(each) not in workloads:
            yield f"{what} scales {_target(each)}, which is no workload of these files: the scenario has no autoscaler of it"
        elif each["kind"] not in _WORKLOADS and "containers" in pods:
            yield f"{what} is not read: its pods are not in the scenario"


def _is_properties(name: str) -> bool:
    return name.endswith((".properties", ".env"))


def _objects(name: str, text: str) -> Iterator[dict[str, Any]]:
    starts = [0, *(match.end() for match in _DOCUMENT.finditer(text))]
    ends = [*(match.start() for match in _DOCUMENT.finditer(text)), len(text)]
    for start, end in zip(starts, ends, strict=True):
        tree = read_yaml(text[start:end], name, limits=MANIFEST, first_line=text.count("\n", 0, start) + 1)
        yield from _unpacked(tree.data)


def _unpacked(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict) and str(data.get("kind", "")).endswith("List"):
        for each in data.get("items") or []:
            yield from _unpacked(each)
    elif isinstance(data, dict) and "kind" in data:
        yield data


def _name(each: Mapping[str, Any]) -> str:
    return str(mapping(each.get("metadata")).get("name", "app"))


# --- settings of the consumers


def _properties(text: str) -> dict[str, str]:
    """The entries of a .properties file or of an environment file."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    pairs = [re.split(r"\s*[=:]\s*", line.strip(), maxsplit=1) for line in lines if line.strip() and line.strip()[0] not in "#!"]
    return {pair[0]: pair[1].strip("'\"") if len(pair) > 1 else "" for pair in pairs}


def _environment(pods: Workload, maps: _Maps) -> Iterator[tuple[str, dict[str, str]]]:
    """(where, entries) of the container with the consumer: of whole ConfigMaps, of their files, of variables and arguments."""
    template = _template(pods.spec)
    for volume in entries(template.get("volumes")):
        file, data = maps.get(str(mapping(mapping(volume).get("configMap")).get("name")), ("", {}))
        for key, text in data.items():
            if _is_properties(key):
                yield f"{key} of a ConfigMap ({file})", _properties(str(text))
    yield from _of_container(pods, pods.container, maps)


def _unread(pods: Workload, maps: _Maps) -> Iterator[str]:
    """What may hold settings of the consumer, and is not in the manifests, or in a form that is not read."""
    for volume in map(mapping, entries(_template(pods.spec).get("volumes"))):
        name = str(mapping(volume.get("configMap")).get("name"))
        for key in maps.get(name, ("", {}))[1]:
            if key.endswith((".yaml", ".yml", ".json", ".conf", ".toml", ".xml")):
                yield f"{pods.where('volumes')}: {key} of ConfigMap {name} is not read: put its settings of consumers in"
    for source in map(mapping, entries(pods.container.get("envFrom"))):
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            name = str(mapping(source.get(key)).get("name"))
            if key in source and (kind == "Secret" or name not in maps):
                yield f"{pods.where('envFrom')}: {kind} {name} is not known here: put its settings of consumers in"
    for each in map(mapping, entries(pods.container.get("env"))):
        known = _setting(re.sub(r"[_.\s-]+", ".", str(each.get("name")).lower()))
        if known is not None and each.get("valueFrom") and not _value(each, maps):
            yield f"{pods.where('env')}: what {each['name']} is, is not known here: put {known} in"


def _of_container(pods: Workload, container: Mapping[str, Any], maps: _Maps) -> Iterator[tuple[str, dict[str, str]]]:
    """What takes the place of what comes before it, as Spring has it: the environment, ``-Dname=value``, ``--name=value``."""
    known: dict[str, str] = {}
    for source in map(mapping, entries(container.get("envFrom"))):
        name = str(mapping(source.get("configMapRef")).get("name"))
        file, data = maps.get(name, ("", {}))
        values = {f"{source.get('prefix', '')}{key}": str(value) for key, value in data.items()}
        known |= values
        yield f"ConfigMap {name} ({file})", values
    own: dict[str, str] = {}
    for each in map(mapping, entries(container.get("env"))):
        own[str(each.get("name"))] = _expanded(_value(each, maps), known | own)
    known |= own
    yield pods.where("env"), own
    words = [_expanded(str(word), known) for word in (*entries(container.get("command")), *entries(container.get("args")))]
    line = " ".join((*known.values(), *words))
    for what, pattern in (("-D", _JVM_OPTION), ("args", _ARGUMENT)):
        yield pods.where(what), {name: text.strip("'\"") for name, text in pattern.findall(line)}


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """``$(NAME)`` is what stands before it in the environment, as Kubernetes has it."""
    return _REFERENCE.sub(lambda match: known.get(match.group(1), match.group(0)), text)


def _value(each: Mapping[str, Any], maps: _Maps) -> str:
    if "value" in each:
        return str(each["value"])
    source = mapping(each.get("valueFrom"))
    key = mapping(source.get("configMapKeyRef"))
    if key:
        return str(maps.get(str(key.get("name")), ("", {}))[1].get(str(key.get("key")), ""))
    return "$name" if mapping(source.get("fieldRef")).get("fieldPath") == "metadata.name" else ""


def _take(pods: Workload, values: Mapping[str, str], where: str) -> None:
    """Keep what is a consumer's setting: ``max.poll.records``, ``KAFKA_CONSUMER_MAX_POLL_RECORDS``, ``spring...group-id``."""
    for given, text in values.items():
        name = re.sub(r"[_.\s-]+", ".", given.lower())
        if re.search(r"(^|\.)topics?(\.name)?$", name) and re.fullmatch(r"[\w.,-]+", text):
            pods.topic = pods.topic or text
        known = _setting(name) or _setting(f"{name}.ms")  # Spring Boot: heartbeat-interval
        if known is not None and text:
            pods.config[known] = text, where


def _setting(name: str) -> str | None:
    return next((each for each in (*settings(), "group.id") if name == each or name.endswith(f".{each}")), None)


# --- facts


def facts(all_pods: Sequence[Workload]) -> list[Fact]:
    """What is said of the scenario, each with the place that says it."""
    groups, is_lone = groups_of(all_pods), len(all_pods) == 1
    found: list[Fact] = []
    for pods in all_pods:
        group: Way = ("groups", groups[pods.group_id]) if pods.group_id in groups else ("group",)
        config: Way = ("group", "config") if is_lone else ("members", pods.key, "config")
        found += [*_of_set(pods), *_of_rollout(pods), *_of_config(pods, group, config), *_of_scaler(pods, group)]
    return found


def groups_of(all_pods: Sequence[Workload]) -> Mapping[str, str]:
    """The id of each group -> its key in the scenario, where there are several; else nothing."""
    ids = list(dict.fromkeys(pods.group_id for pods in all_pods if pods.group_id))
    keys: dict[str, str] = {}
    for each in ids if len(ids) > 1 else ():
        key = re.sub(r"[^A-Za-z0-9_-]+", "-", each)
        key = key if re.match("[A-Za-z_]", key) else f"group-{key}"
        keys[each] = key if key not in keys.values() else f"{key}-{len(keys) + 1}"
    return keys


def _of_set(pods: Workload) -> Iterator[Fact]:
    way: Way = ("members", pods.key)
    if pods.scaler is None:
        yield Fact((*way, "count"), pods.spec.get("replicas", 1), pods.where("replicas"))
    if (sleep := pre_stop_s(pods)) is not None:
        yield Fact((*way, "pre_stop"), f"{sleep:g}s", pods.where("preStop"))
    if "group.instance.id" in pods.config:
        yield Fact((*way, "instance_id"), *pods.config["group.instance.id"])


def _template(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(spec.get("template")).get("spec"))


def _consuming(pods: Workload, maps: _Maps) -> Mapping[str, Any]:
    """The container with most settings of consumers, not a sidecar; the first where none has any."""
    found = [mapping(each) for each in entries(_template(pods.spec).get("containers"))]

    def number(container: Mapping[str, Any]) -> int:
        tried = replace(pods, config={}, topic="")
        for where, values in _of_container(tried, container, maps):
            _take(tried, values, where)
        return len(tried.config)

    return max(found, key=number, default={})


def pre_stop(pods: Workload) -> Mapping[str, Any]:
    return mapping(mapping(pods.container.get("lifecycle")).get("preStop"))


def pre_stop_s(pods: Workload) -> float | None:
    """How long preStop sleeps; None: there is none, or it does something else."""
    handler = pre_stop(pods)
    if "sleep" in handler:
        return whole_number(mapping(handler["sleep"]).get("seconds", 0), pods.where("preStop"))
    found = _SLEEP.findall(" ".join(map(str, entries(mapping(handler.get("exec")).get("command")))))
    if not found or not all(length for length, _ in found):
        return None
    return sum(float(length) * _SLEEP_UNITS[unit] for length, unit in found)


def _of_rollout(pods: Workload) -> Iterator[Fact]:
    way: Way = ("events", pods.key)
    if pods.kind == "StatefulSet":
        yield Fact((*way, "update"), "RollingUpdate" if pods.rolls else ON_DELETE, pods.where("updateStrategy"))
    if not pods.rolls:
        return
    yield Fact(
        (*way, "grace"),
        f"{_template(pods.spec).get('terminationGracePeriodSeconds', GRACE_US // 1_000_000)}s",
        pods.where("terminationGracePeriodSeconds"),
    )
    if pods.spec.get("minReadySeconds"):
        yield Fact((*way, "min_ready"), f"{pods.spec['minReadySeconds']}s", pods.where("minReadySeconds"))
    if pods.kind == "StatefulSet":
        rolling = mapping(pods.update.get("rollingUpdate"))
        yield Fact((*way, "workload"), "statefulset", pods.where("kind"))
        for key, theirs in (("partition", "partition"), ("max_unavailable", "maxUnavailable")):
            if rolling.get(theirs):
                yield Fact((*way, key), rolling[theirs], pods.where(theirs))
        return
    strategy = mapping(pods.spec.get("strategy"))
    if strategy.get("type") == "Recreate":
        yield Fact((*way, "strategy"), "recreate", pods.where("strategy"))
        return
    rolling = mapping(strategy.get("rollingUpdate"))
    for key, theirs in (("max_surge", "maxSurge"), ("max_unavailable", "maxUnavailable")):
        yield Fact((*way, key), rolling.get(theirs, "25%"), pods.where(theirs))


def _of_config(pods: Workload, group: Way, config: Way) -> Iterator[Fact]:
    for name, (text, where) in pods.config.items():
        if name == "group.id":
            yield Fact((*group, "id"), text, where)
        elif name != "group.instance.id":
            yield Fact((*config, name), text, where)


def _of_scaler(pods: Workload, group: Way) -> Iterator[Fact]:
    if pods.scaler is None:
        return
    spec, where, way = pods.scaler, pods.scaler_kind, ("autoscale",)
    yield Fact((*way, "members"), pods.key, where)
    is_keda = "minReplicaCount" in spec or "maxReplicaCount" in spec or "triggers" in spec
    least, most = ("minReplicaCount", "maxReplicaCount") if is_keda else ("minReplicas", "maxReplicas")
    yield Fact((*way, "min"), spec.get(least, 0 if is_keda else 1), f"{where}, {least}")
    yield Fact((*way, "max"), spec.get(most, 100), f"{where}, {most}")
    signal = chosen(pods.signals)
    if signal is not None and signal.group_id:
        yield Fact((*group, "id"), signal.group_id, f"{where}, consumerGroup")
    for key, value, place in () if signal is None else signal.says:
        yield Fact((*way, key), value, place)
    for key, theirs in _KEDAS_TIMES.items():
        if theirs in spec:
            yield Fact((*way, key), f"{spec[theirs]}s", f"{where}, {theirs}")
    advanced = mapping(mapping(mapping(spec.get("advanced")).get("horizontalPodAutoscalerConfig")).get("behavior"))
    for key, theirs in (("scale_up", "scaleUp"), ("scale_down", "scaleDown")):
        rules = mapping((advanced or mapping(spec.get("behavior"))).get(theirs))
        if rules:
            yield Fact((*way, key), _rules(rules), f"{where}, {theirs}")


def _rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "stabilizationWindowSeconds" in rules:
        found["stabilize"] = f"{rules['stabilizationWindowSeconds']}s"
    policies = [
        f"{each.get('value')}{'%' * (each.get('type') == 'Percent')} per {each.get('periodSeconds')}s"
        for each in map(mapping, entries(rules.get("policies")))
    ]
    if policies:
        found["max"] = policies
    if rules.get("selectPolicy"):
        found["select"] = str(rules["selectPolicy"]).lower()
    return found


# --- drift


def drift(tree: Tree, folder: Path) -> Tree:
    """The scenario without its ``from_manifest``, which it agrees with. Where that tells not what manifests have said, it stays
    with that: what they no longer say is not seen.

    Raises:
        FileError: a manifest says something else by now, is not there, or is none; at the place in the scenario.
    """
    given = tree.data.pop("from_manifest")
    place: Way = ("from_manifest",)
    names, says = (given.get("files"), given.get("says", [])) if isinstance(given, dict) else (given, [])
    if not names or not all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in (names, says)):
        raise tree.error(place, "must be a list of files, [deployment.yaml], or {files: [deployment.yaml], says: [group.id]}")
    try:
        all_pods = read_manifests([(name, text_of(folder / name)) for name in names])
        found, unsaid = facts(all_pods), [fact for pods in all_pods for fact in _left_out(pods)]
    except UsageError as error:
        raise tree.error(place, error.message) from None
    problems = [tree.problem(way, text) for way, text in _differences(tree.data, found, unsaid)]
    problems += [
        tree.problem(way, f"{', '.join(names)} said it, and no longer says it: take it out here, and of from_manifest")
        for way in _removed(tree.data, says, [*found, *unsaid])
    ]
    if problems:
        raise FileError(problems)
    if not says:
        tree.data["from_manifest"] = {"files": names, "says": said_of(found)}
    return tree


_KEDAS_TIMES = {"poll": "pollingInterval", "cooldown": "cooldownPeriod"}


def _left_out(pods: Workload) -> Iterator[Fact]:
    """What manifests say by saying nothing: Kubernetes' and KEDA's defaults, where a scenario may still say what was there."""
    members, rollout = ("members", pods.key), ("events", pods.key)
    if not pre_stop(pods):
        yield Fact((*members, "pre_stop"), "0s", pods.where("preStop"))
    if pods.rolls and not pods.spec.get("minReadySeconds"):
        yield Fact((*rollout, "min_ready"), "0s", pods.where("minReadySeconds"))
    rolling = mapping(pods.update.get("rollingUpdate"))
    if pods.kind == "StatefulSet":
        for key, theirs, usual in (("partition", "partition", 0), ("max_unavailable", "maxUnavailable", 1)):
            if not rolling.get(theirs):
                yield Fact((*rollout, key), usual, pods.where(theirs))
    elif mapping(pods.spec.get("strategy")).get("type") != "Recreate":
        yield Fact((*rollout, "strategy"), "rolling", pods.where("strategy"))
    for key, theirs in _KEDAS_TIMES.items():
        if pods.scaler is not None and theirs not in pods.scaler:
            usual_us = Autoscale.model_fields[f"{key}_us"].default
            yield Fact(("autoscale", key), f"{usual_us // 1_000_000}s", f"{pods.scaler_kind}, {theirs}")


def _differences(data: Mapping[str, Any], found: Sequence[Fact], left_out: Sequence[Fact]) -> Iterator[tuple[Way, str]]:
    for fact in found:
        for way, has in _said(data, fact, _DEFAULTS):
            if has is None or not is_same(has, fact.value):
                yield way, _differs(fact, "says nothing of it" if has is None else f"says {yaml_word(has)}")
    for fact in left_out:
        for way, has in _said(data, fact, {}):
            if has is not None and has not in PAUSING and not is_same(has, fact.value):
                yield way, _differs(fact, f"says {yaml_word(has)}")


def said_of(found: Sequence[Fact]) -> list[str]:
    """The places of a scenario that manifests have said, but for events: a later drift knows them to be removed."""
    return list(dict.fromkeys(".".join(map(str, fact.way)) for fact in found if fact.way[0] != "events"))


def _removed(data: Mapping[str, Any], says: Sequence[str], found: Sequence[Fact]) -> Iterator[Way]:
    """The places that manifests said once, and the scenario still does; of an autoscaler that is gone the first."""
    gone = [text for text in says if text not in said_of(found)]
    first = next((text for text in gone if text == "autoscale.members"), "")
    for text in gone:
        if (way := _way_of(data, text)) and not (first and text.startswith("autoscale.") and text != first):
            yield way


def _way_of(data: Any, text: str) -> Way:
    """The steps of a dotted path that a scenario has; names in it may have dots of their own. (): it has none such."""
    for key in map(str, mapping(data)):
        if text == key:
            return (key,)
        if text.startswith(f"{key}.") and (rest := _way_of(data[key], text.removeprefix(f"{key}."))):
            return (key, *rest)
    return ()


def _differs(fact: Fact, said: str) -> str:
    return f"{fact.where} is {yaml_word(fact.value)}, and the scenario {said}"


def _said(data: Mapping[str, Any], fact: Fact, defaults: Mapping[str, Any]) -> Iterator[tuple[Way, Any]]:
    """The places at which a scenario says it, each with what it says: all rollouts of the set, or the one place."""
    if fact.way[0] != "events":
        yield fact.way, _at(data, fact.way)
        return
    for number, event in enumerate(entries(data.get("events"))):
        what, way, key = mapping(event), ("events", number), str(fact.way[2])
        if key == "update":
            yield from (((*way, kind), said) for kind, said in _updates(what, str(fact.way[1])))
        elif what.get(Rollout.kind) == fact.way[1]:
            yield (*way, key), what.get(key, defaults.get(key))


def deletion(key: str) -> str:
    """The name of the event that stands for whoever deletes the pods of a set."""
    return f"delete-{key}"


def _updates(event: Mapping[str, Any], key: str) -> Iterator[tuple[str, str]]:
    if event.get(Rollout.kind) == key:
        yield Rollout.kind, "RollingUpdate"
    if event.get(RollingRestart.kind) == key and event.get("name") == deletion(key):
        yield RollingRestart.kind, ON_DELETE


_DEFAULTS = {"grace": format_duration(GRACE_US), "max_surge": "25%", "max_unavailable": "25%", "workload": "deployment"}


def _at(data: Any, way: Way) -> Any:
    for step in map(str, way):
        data = mapping(data).get(step)
    return data


def is_same(has: Any, value: Any) -> bool:
    return bool(_plain(has) == _plain(value))


def _plain(value: Any) -> Any:
    """A value in one form: 45s and 45000, in milliseconds, are the same time."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    text = str(value)
    return parse_duration(text) // 1000 if not text.isdecimal() and is_duration(text) else int(text) if text.isdecimal() else text


def yaml_word(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml_word(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(yaml_word, value))}]"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    is_plain = re.fullmatch(r"(?![-+]?0\d+$)[\w$%./-][\w$%./ -]*", text) and not text.endswith(" ")
    return text if is_plain else "'" + text.replace("'", "''") + "'"
