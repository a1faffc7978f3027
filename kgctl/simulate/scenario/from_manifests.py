"""A scenario file written from what manifests say of its pods; what they leave open it asks for in comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kgctl.errors import UsageError
from kgctl.simulate.scenario.kinds.pods import RollingRestart
from kgctl.simulate.scenario.manifests import (
    ON_DELETE,
    UNSAFE,
    Fact,
    Workload,
    deletion,
    facts,
    groups_of,
    is_same,
    pre_stop,
    pre_stop_s,
    said_of,
    yaml_word,
)
from kgctl.simulate.scenario.scalers import mapping, whole_number
from kgctl.yaml_files import Path as Way


def scenario_of(all_pods: Sequence[Workload], files: Sequence[str]) -> str:
    """A scenario file, ready to run, of one rollout of each workload; what no manifest tells is asked for in comments.

    Raises:
        UsageError: they contradict each other, or are of more than one scenario has room for.
    """
    found = facts(all_pods)
    _require_one_answer(all_pods, found)
    groups = groups_of(all_pods) or {all_pods[0].group_id or next(filter(None, _ids(all_pods)), all_pods[0].name): ""}
    topics, which = _topics(all_pods), "the groups" if len(groups) > 1 else "the group"
    lines = [
        "kgctl: 1",
        f"name: {UNSAFE.sub('-', all_pods[0].name)}-rollout",
        f"question: What does a deploy of {', '.join(pods.name for pods in all_pods)} cost {which} {', '.join(groups)}?",
        "from_manifest:                # check fails where they say something else by now, or no longer what they say here",
        f"  files: [{', '.join(map(yaml_word, files))}]",
        f"  says: [{', '.join(map(yaml_word, said_of(found)))}]",
        *(f"# {line}" for pods in all_pods for line in pods.left_out()),
        "",
        "topics:",
        *(
            f"  {yaml_word(topic)}: {{partitions: 12}}        # how many has it? kgctl describe topic, or kafka-topics --describe"
            for topic in topics
        ),
        *_group_lines(groups, found, is_lone=len(all_pods) == 1),
        "members:",
    ]
    for pods in all_pods:
        lines += _set_lines(pods, found, groups)
    lines += _scaler_lines(found)
    lines += [
        "traffic:",
        *(
            f"  {yaml_word(topic)}: 100/s                  # what is written to it: or replay(prometheus: FILE)"
            for topic in topics
        ),
        "events:",
        *(line for number, pods in enumerate(all_pods) for line in _event_lines(pods, found, number)),
        "runs: 5",
        "expect:",
        "  - max_gap < 60s",
        "  - {check: duplicates == 0, severity: warn}",
    ]
    return "\n".join(lines) + "\n"


def remarks(all_pods: Sequence[Workload]) -> list[str]:
    """What whoever has a scenario written should know of the manifests."""
    return [line for pods in all_pods for line in (*pods.left_out(), *([] if pods.rolls else [_by_hand(pods)]))]


def _by_hand(pods: Workload) -> str:
    where = pods.where("updateStrategy")
    return f"{where} is {ON_DELETE}: a deploy rolls nothing by itself; here somebody deletes one pod after the other"


def _ids(all_pods: Sequence[Workload]) -> list[str]:
    return [pods.group_id for pods in all_pods]


def _require_one_answer(all_pods: Sequence[Workload], found: Sequence[Fact]) -> None:
    """Raise `UsageError` where the scenario would say one thing twice."""
    for pods in all_pods:
        if len(same := [each for each in all_pods if each.key == pods.key]) > 1:
            names = " and ".join(f"{each.kind} {each.name} ({each.file})" for each in same)
            raise UsageError(f"{names} would be one set of members, {pods.key!r}: name the manifests of one of them")
    known: dict[Way, Fact] = {}
    for fact in found:
        first = known.setdefault(fact.way, fact)
        if not is_same(first.value, fact.value):
            if fact.way[0] == "autoscale":
                raise UsageError(
                    f"{first.where} and {fact.where} are two autoscalers, and a scenario has one:"
                    " name the manifests of one of them, the other workload without its own"
                )
            both = f"{first.where} is {yaml_word(first.value)}, and {fact.where} is {yaml_word(fact.value)}"
            raise UsageError(f"{both}: they contradict each other; which of them is right?")


def _topics(all_pods: Sequence[Workload]) -> list[str]:
    named = [name for pods in all_pods for name in pods.topic.split(",") if name]
    named += [signal.topic for pods in all_pods for signal in pods.signals if signal.topic]
    return list(dict.fromkeys(named)) or ["orders"]


def _group_lines(groups: Mapping[str, str], found: Sequence[Fact], *, is_lone: bool) -> list[str]:
    if len(groups) > 1:
        return ["groups:", *(f"  {key}: {{id: {yaml_word(group)}}}" for group, key in groups.items())]
    (group,) = groups
    return ["group:", f"  id: {yaml_word(group)}", *(_config_lines(found) if is_lone else ())]


def _config_lines(found: Sequence[Fact]) -> list[str]:
    own = [fact for fact in found if fact.way[:2] == ("group", "config")]
    if not own:
        return ["  config: {}                 # no manifest has consumer settings: put yours in"]
    return ["  config:", *(f"    {fact.way[2]}: {yaml_word(fact.value)}   # {fact.where}" for fact in own)]


def _set_lines(pods: Workload, found: Sequence[Fact], groups: Mapping[str, str]) -> list[str]:
    of_set = [fact for fact in found if fact.way[:2] == ("members", pods.key)]
    own, config = ([fact for fact in of_set if len(fact.way) == length] for length in (3, 4))
    count = [] if pods.scaler is None else [f"    count: {_least(pods)}              # where the autoscaler begins"]
    handler = pre_stop(pods)
    asked = (
        [f"    pre_stop: 5s               # preStop is {'/'.join(handler)}: put in how long it takes"]
        if handler and pre_stop_s(pods) is None
        else []
    )
    asks_group = "" if pods.group_id else "   # no manifest has its group.id: which of them is it in?"
    return [
        f"  {pods.key}:",
        *([f"    group: {groups.get(pods.group_id, next(iter(groups.values())))}{asks_group}"] if len(groups) > 1 else ()),
        *([f"    subscribe: [{', '.join(map(yaml_word, pods.topic.split(',')))}]"] if len(groups) > 1 and pods.topic else ()),
        *count,
        *(f"    {fact.way[2]}: {yaml_word(fact.value)}   # {fact.where}" for fact in own),
        *asked,
        *(["    config:"] if config else ()),
        *(f"      {fact.way[3]}: {yaml_word(fact.value)}   # {fact.where}" for fact in config),
        "    client: java               # or librdkafka, kafka-go, franz-go, kafka-python, aiokafka",
        f"    boot: {_boot_s(pods)}s                  # until subscribe(){_probe_told(pods)}: put yours in",
        "    process_time: 1ms          # of a record: put yours in; 5ms is 200 records a second",
    ]


def _least(pods: Workload) -> int:
    spec = mapping(pods.scaler)
    least = spec.get("minReplicaCount", spec.get("minReplicas", pods.spec.get("replicas", 1)))
    return max(whole_number(least or 1, pods.scaler_kind), 1)


def _probe(pods: Workload) -> tuple[str, Mapping[str, Any]]:
    names = ("startupProbe", "readinessProbe")
    return next(((name, mapping(pods.container[name])) for name in names if name in pods.container), ("", {}))


def _boot_s(pods: Workload) -> int:
    return whole_number(_probe(pods)[1].get("initialDelaySeconds", 0), pods.where("initialDelaySeconds")) or 10


def _probe_told(pods: Workload) -> str:
    name, probe = _probe(pods)
    return f"; {name}.initialDelaySeconds" if probe.get("initialDelaySeconds") else ""


def _scaler_lines(found: Sequence[Fact]) -> list[str]:
    own = [fact for fact in found if fact.way[0] == "autoscale"]
    known = {fact.way[1] for fact in own}
    asked = (
        [] if "target" in known or not own else ["  target: 1000               # records a pod: no manifest tells; put yours in"]
    )
    return ["autoscale:", *(f"  {fact.way[1]}: {yaml_word(fact.value)}   # {fact.where}" for fact in own), *asked] if own else []


def _event_lines(pods: Workload, found: Sequence[Fact], number: int) -> Iterator[str]:
    when = "at: 10s" if not number else "after: previous, at: 30s"
    if not pods.rolls:
        yield f"  # {_by_hand(pods)}"
        yield f"  - {{{when}, name: {deletion(pods.key)}, {RollingRestart.kind}: {pods.key}, wait: ready, settle: 30s}}"
        return
    own = {fact.way[2]: fact.value for fact in found if fact.way[:2] == ("events", pods.key) and fact.way[2] != "update"}
    period = whole_number(_probe(pods)[1].get("periodSeconds", 10), pods.where("periodSeconds")) if _probe(pods)[0] else 0
    if period:
        own["ready"] = f"0s..{period}s"
    fields = ", ".join(f"{key}: {yaml_word(value)}" for key, value in own.items())
    yield f"  - {{{when}, name: deploy-{pods.key}, rollout: {pods.key}, {fields}}}"
