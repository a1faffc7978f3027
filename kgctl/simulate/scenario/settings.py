"""Kafka's settings in a scenario: times with units become Kafka's plain numbers, and each is checked where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.errors import UsageError
from kgctl.member.config import MemberConfig
from kgctl.simulate.scenario.fields import Commit, CommitMode
from kgctl.simulate.scenario.quantities import did_you_mean
from kgctl.yaml_files import Path, Problem, Tree

if TYPE_CHECKING:
    from kgctl.simulate.scenario.model import MemberSet, Scenario


def check_settings(
    config: Mapping[str, str], read: Callable[[Mapping[str, str]], object], path: Path, tree: Tree, problems: list[Problem]
) -> None:
    """Hand the settings to ``read`` one by one, then together; each complaint is a problem at its setting's place."""
    found = False
    for name, value in config.items():
        try:
            read({name: value})
        except UsageError as error:
            if _alone_too_much(error):
                continue
            found = True
            problems.append(Problem(tree.location((*path, name)), (*path, name), error.message))
    if not found:
        try:
            read(config)
        except UsageError as error:
            problems.append(Problem(tree.location(path), path, error.message))


def _alone_too_much(error: UsageError) -> bool:
    """Whether it is about two settings at once: the other may be given, too."""
    return "must not be below" in error.message


def read_broker_settings(config: Mapping[str, str]) -> CoordinatorConfig:
    """The coordinator's own ones of the brokers' settings. Raises `UsageError`."""
    from kgctl.coordinator.config import CoordinatorConfig

    return CoordinatorConfig.from_properties({name: value for name, value in config.items() if name not in OTHER_BROKER_SETTINGS})


def read_client_settings(client: str) -> Callable[[Mapping[str, str]], object]:
    """How a client of this family reads its settings. An assignor that no client has is a slip: such a client would not start."""
    from kgctl.assignors.registry import assignor_names
    from kgctl.member.config import MemberConfig

    def read(config: Mapping[str, str]) -> object:
        found = MemberConfig.from_properties(config, client)
        known = [name.removeprefix("kafka-go:") for name in assignor_names()]
        for name in found.partition_assignment_strategy:
            if ":" not in name and name not in known:
                raise UsageError(f"unknown assignor {name!r}{did_you_mean(name, dict.fromkeys(known), list_up_to=20)}")
        return found

    return read


OTHER_BROKER_SETTINGS = frozenset({"message.max.bytes", "default.replication.factor", "num.partitions"})
"""Settings of brokers that a scenario may have though the coordinator does not."""


def setting_names() -> tuple[str, ...]:
    """Every setting that an expression may name: consumers' and the coordinator's."""
    from kgctl.coordinator.config import setting_names as broker_names
    from kgctl.member.config import settings

    return (*settings(), *broker_names())


def setting_values(scenario: Scenario) -> Mapping[str, float | str]:
    """By Kafka's names, times in seconds. Consumer settings are those of the first set of members; defaults included."""
    first = scenario.members[0]
    return {**_of(read_broker_settings(scenario.cluster.config)), **_of(MemberConfig.from_properties(first.config, first.client))}


def _of(config: CoordinatorConfig | MemberConfig) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        if not entry.metadata or value is None:
            continue
        found[entry.metadata["name"]] = _value_of(entry.metadata["name"], value)
    return found


def _value_of(name: str, value: object) -> float | str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return value / 1_000 if name.endswith(".ms") else value * 60 if name.endswith(".minutes") else value
    return ",".join(value) if isinstance(value, tuple) else str(value)


def member_config(members: MemberSet, settings: Mapping[str, str]) -> MemberConfig:
    """Return the settings of one of these members' processes as its client reads them. Raises `UsageError`."""
    given = dict(settings)
    if members.commit.mode is not CommitMode.AUTO:
        given["enable.auto.commit"] = "false"
    return MemberConfig.from_properties(given, members.client)


def commit_of(members: MemberSet, config: MemberConfig) -> Commit:
    """Return when the application commits: after each batch where it says nothing and its client does not do it."""
    if members.commit.mode is CommitMode.AUTO and not config.enable_auto_commit:
        return Commit(mode=CommitMode.AFTER_BATCH)
    return members.commit


_CLIENT_IDS: Mapping[str, str] = {
    "java": "consumer-$group-$instance",
    "librdkafka": "rdkafka",
    "kafka-go": "app@$name (github.com/segmentio/kafka-go)",
    "franz-go": "kgo",
    "kafka-python": "kafka-python-2.2",
    "aiokafka": "aiokafka-0.12",
}
"""Client -> its client.id where nobody has chosen one. Java's ends with the instance id, or counts the consumers of its process
(ConsumerConfig#maybeOverrideClientId), so it is the same in every pod; kafka-go's has the host."""


def client_id_of(members: MemberSet, group_id: str, pod: str, instance_id: str | None) -> str:
    """Return the client id of one of these members. Member ids begin with it, and assignors sort by those."""
    template = members.client_id or _CLIENT_IDS.get(members.client, "$name")
    return template.replace("$name", pod).replace("$group", group_id).replace("$instance", instance_id or "1")
