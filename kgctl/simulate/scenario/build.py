"""From the checked sections of a file to the `Scenario` that a run gets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from kgctl.simulate.scenario.autoscale import Autoscale
from kgctl.simulate.scenario.event_kinds import FAULTS
from kgctl.simulate.scenario.events import EventReader, Surroundings
from kgctl.simulate.scenario.model import (
    AssignTime,
    Callbacks,
    Cluster,
    Commit,
    CommitMode,
    MemberSet,
    Nemesis,
    Network,
    Scenario,
    Topic,
    Traffic,
)
from kgctl.simulate.scenario.quantities import Wave, did_you_mean
from kgctl.simulate.scenario.sections import NO_GROUP, GroupSection, MembersSection, Reader, ScenarioSections, TopicSection
from kgctl.simulate.scenario.settings import check_settings, plain_settings, read_broker_settings, read_client_settings
from kgctl.yaml_files import Path, Problem, Tree

_GROUP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class Builder:
    """Builds one scenario; what contradicts something else in the file is added to ``problems``."""

    def __init__(self, tree: Tree, sections: ScenarioSections, problems: list[Problem]) -> None:
        self._tree, self._file, self._problems = tree, sections, problems

    def scenario(self, kinds: Any, condition: Any, group: str | None = None) -> Scenario:
        """Return the scenario of one of the file's groups (of its only one), usable only if no problem was added."""
        whole = self._whole(kinds, condition)
        self._check_groups()
        parts = {name: self._part(whole, name) for name in self._file.groups}
        return whole if group not in parts else replace(parts[group], together=tuple(parts.values()))

    def _part(self, whole: Scenario, group: str) -> Scenario:
        """Return what concerns one of several groups: its members, and everything that they share with the others."""
        given = self._file.groups[group]
        own = [name for name, members in self._file.members.items() if members.group == group]
        scales = whole.autoscale is not None and whole.autoscale.members in own
        return replace(
            whole,
            group_id=given.id if "id" in given.model_fields_set else group,
            members=tuple(members for members in whole.members if members.name in own),
            autoscale=whole.autoscale if scales else None,
        )

    def _group_of(self, members: MembersSection) -> GroupSection:
        return self._file.groups.get(members.group or "", self._file.group)

    def _check_groups(self) -> None:
        groups = self._file.groups
        if groups and self._file.group != NO_GROUP:
            self._wrong(("group",), "one scenario has one `group` or several `groups`")
        for name in groups:
            if not _GROUP_NAME.fullmatch(name):
                self._wrong(("groups", name), "a group is named with letters, digits, - and _, a letter first; its `id` is free")
            if not any(members.group == name for members in self._file.members.values()):
                self._wrong(("groups", name), f"no set of members says `group: {name}`")
        for name, members in self._file.members.items():
            path: Path = ("members", name, "group")
            if members.group is None and groups:
                self._wrong(path, f"says which group: one of {', '.join(groups)}")
            elif members.group is not None and members.group not in groups:
                near = did_you_mean(members.group, groups, list_up_to=12) if groups else "; write groups: {...}"
                self._wrong(path, f"there is no group {members.group!r}{near}")

    def _whole(self, kinds: Any, condition: Any) -> Scenario:
        self._check_references()
        around = Surroundings(
            {name: each.client for name, each in self._file.members.items()},
            {name: each.partitions for name, each in self._file.topics.items()},
            condition,
            self._file.cluster.brokers,
            self._file.cluster.nodes,
        )
        return Scenario(
            name=self._file.name,
            question=self._file.question,
            warmup_us=self._file.warmup,
            duration_us=self._file.duration,
            cluster=self._cluster(),
            topics=tuple(self._topic(name, each) for name, each in self._file.topics.items()),
            group_id=self._file.group.id,
            members=tuple(self._members(name, each) for name, each in self._file.members.items()),
            assign_time=self._assign_time(),
            traffic=self._traffic(),
            events=EventReader(self._tree, kinds, around, self._problems).read(),
            nemesis=self._nemesis(),
            autoscale=self._autoscale(),
        )

    def _cluster(self) -> Cluster:
        given = self._file.cluster
        check_settings(given.config, read_broker_settings, ("cluster", "config"), self._tree, self._problems)
        between = given.network.between
        network = Network(
            client=given.network.latency if between.client is None else between.client,
            broker=given.network.latency if between.broker is None else between.broker,
            loss_ppm=given.network.loss,
        )
        config = plain_settings(given.config)
        return Cluster(
            brokers=given.brokers,
            nodes=given.nodes,
            racks=tuple(given.racks),
            network=network,
            append=given.append,
            config=config,
        )

    def _topic(self, name: str, given: TopicSection) -> Topic:
        path: Path = ("topics", name)
        brokers = self._file.cluster.brokers
        if "replicas" in given.model_fields_set and given.replicas > brokers:
            self._wrong((*path, "replicas"), f"{given.replicas} replicas need as many brokers, and there are {brokers}")
        for partition, replicas in given.placement.items():
            here = (*path, "placement", str(partition))
            if partition >= given.partitions:
                self._wrong(here, f"there is no partition {partition}: {name!r} has {given.partitions}, from 0")
            if max(replicas) > brokers or len(set(replicas)) < len(replicas):
                self._wrong(here, f"names brokers, each once: 1 to {brokers}")
        return Topic(
            name=name,
            partitions=given.partitions,
            replicas=given.replicas,
            placement=given.placement,
            state_bytes=given.state_bytes,
        )

    def _members(self, name: str, given: MembersSection) -> MemberSet:
        path: Path = ("members", name)
        self._check_client(given, path)
        settings = {**self._group_of(given).config, **given.config}
        topics, pattern = given.subscribe
        for topic in topics:
            if topic not in self._file.topics and not self._creates(topic):
                near = did_you_mean(topic, self._file.topics, list_up_to=12)
                self._wrong((*path, "subscribe"), f"there is no topic {topic!r}{near}")
        return MemberSet(
            name=name,
            count=given.count,
            start=given.start,
            boot=given.boot,
            topics=topics,
            pattern=pattern,
            instance_id=given.instance_id,
            rack=given.rack,
            client=given.client,
            config=plain_settings(settings),
            poll=given.poll.pause,
            poll_timeout_us=given.poll.timeout,
            client_id=given.client_id or settings.get("client.id"),
            client_start=given.client_start,
            rate_uhz=given.rate,
            commit=given.commit or _commit_of(settings),
            leaves_on_stop=given.on_stop,
            restarts_on_failure=given.on_failure,
            callbacks=Callbacks(**{each.name: getattr(given.callbacks, each.name) for each in fields(Callbacks)}),
            heartbeat_drift_us=given.heartbeat_drift,
        )

    def _creates(self, topic: str) -> bool:
        return any(isinstance(event, dict) and event.get("create_topic") == topic for event in self._file.events)

    def _check_client(self, given: MembersSection, path: Path) -> None:
        from kgctl.member.config import profile_names

        if given.client not in profile_names():
            hint = did_you_mean(given.client, profile_names(), list_up_to=12)
            self._wrong((*path, "client"), f"unknown client {given.client!r}{hint}")
            return
        read = read_client_settings(given.client)
        check_settings(given.config, read, (*path, "config"), self._tree, self._problems)
        place: Path = ("groups", given.group) if given.group in self._file.groups else ("group",)
        check_settings(self._group_of(given).config, read, (*place, "config"), self._tree, self._problems)

    def _assign_time(self) -> AssignTime:
        given = self._file.assign_time
        return AssignTime(base_ns=given.base, per_partition_ns=given.per_partition, per_member_ns=given.per_member)

    def _traffic(self) -> tuple[Traffic, ...]:
        counts = {name: each.partitions for name, each in self._file.topics.items()}
        return tuple(
            Traffic(
                topic=name,
                steps=() if isinstance(each.rate, Wave) else each.rate,
                weights=each.keys.for_partitions(counts.get(name, 0)),
                wave=each.rate if isinstance(each.rate, Wave) else None,
            )
            for name, each in self._file.traffic.items()
        )

    def _nemesis(self) -> Nemesis | None:
        given = self._file.nemesis
        if given is None:
            return None
        for index, kind in enumerate(given.of):
            if kind not in FAULTS:
                near = did_you_mean(kind, FAULTS, list_up_to=12)
                self._wrong(("nemesis", "of", index), f"unknown kind of fault {kind!r}{near}")
        return Nemesis(mean_interval_us=given.rate, of=tuple(given.of), until_us=given.until)

    def _autoscale(self) -> Autoscale | None:
        given = self._file.autoscale
        if given is None:
            return None
        writes = bool(self._file.traffic) or any(
            isinstance(event, dict) and "set_traffic" in event for event in self._file.events
        )
        rates = {name: each.rate for name, each in self._file.members.items()}
        return Reader(given, self._wrong).read(rates, has_traffic=writes)

    def _check_references(self) -> None:
        from kgctl.simulate.scenario.fields import NAME

        for section in ("topics", "members"):
            for name in getattr(self._file, section):
                if not NAME.fullmatch(name):
                    self._wrong((section, name), f"{name!r} is no name: letters, digits, dots, hyphens and underscores")
        for name in self._file.traffic:
            if name not in self._file.topics and not self._creates(name):
                near = did_you_mean(name, self._file.topics, list_up_to=12)
                self._wrong(("traffic", name), f"there is no topic {name!r}{near}")
        if not self._file.topics:
            self._wrong(("topics",), "there are no topics: write topics: {orders: 12}")
        if not self._file.members:
            self._wrong(("members",), "there are no members: write members: {app: {count: 3}}")

    def _wrong(self, path: Path, message: str) -> None:
        self._problems.append(Problem(self._tree.location(path), path, message))


def _commit_of(settings: dict[str, str]) -> Commit:
    """Without a word about it: the client's auto-commit, or after each batch where that is switched off."""
    off = str(settings.get("enable.auto.commit", "true")).strip().lower() == "false"
    return Commit(mode=CommitMode.AFTER_BATCH if off else CommitMode.AUTO)


_KEYS: dict[Path, str] = {
    ("group", "from"): "it stands for the whole file, not in a variant",
}


def split_off(tree: Tree) -> Iterator[Problem]:
    """A problem for each such key; the keys are taken out of the tree, which is the caller's own copy."""
    for path, advice in _KEYS.items():
        parent = tree.data
        for step in path[:-1]:
            parent = parent.get(step) if isinstance(parent, dict) else None
        if isinstance(parent, dict) and path[-1] in parent:
            del parent[path[-1]]
            yield Problem(tree.location(path), path, f"{advice}", rule="not-supported")
