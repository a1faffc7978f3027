"""The types that a group can have, as Kafka names them: what its members may say, and what plays them.

One object is all that is known of a type here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kgctl.errors import UsageError
from kgctl.model.values import frozen_in_order
from kgctl.simulate.scenario.metric import DELIVERIES, MEMBERS, OWNERS, TASKS, MetricSubject
from kgctl.simulate.scenario.quantities import shown
from kgctl.simulate.scenario.vocabulary import OnPoison, did_you_mean
from kgctl.yaml_files import Path

if TYPE_CHECKING:
    from kgctl.coordinator.config import CoordinatorConfig
    from kgctl.member.config import MemberConfig
    from kgctl.simulate.scenario.fields import Reading
    from kgctl.simulate.scenario.model import Cluster, Group, MemberSet, Scenario, Topic

Wrong = Iterator[tuple[Path, str]]
"""Where below a set of members, and what is wrong there."""


@frozen_in_order
class MemberSurroundings:
    """What a set of members is looked at beside: the brokers, the sets of its group before it, the topics.

    ``touched``: topics that an event deletes or gives more partitions.
    """

    broker: CoordinatorConfig
    before: Sequence[MemberSet] = ()
    topics: Sequence[str] = ()
    touched: Sequence[str] = ()


def _nothing_own(_: str) -> bool:
    return False


@frozen_in_order
class ScenarioGroupType:
    """``plays``: MODULE:CLASS of a subclass of the engine's GroupKind. ``refusals``: what members of such a group may not say.

    ``has``: what metrics can be about. ``owns``: whether a setting is the group's own (`kafka-configs --entity-type groups`), not
    its consumers'. ``is_playable``: real clients play it (``--against``). ``protocol``: what all members speak with the
    coordinator; "": what each of them says.
    """

    name: str
    plays: str
    refusals: Callable[[MemberSet, MemberSurroundings], Wrong]
    has: frozenset[MetricSubject]
    owns: Callable[[str], bool] = _nothing_own
    is_playable: bool = False
    protocol: str = ""

    def protocol_of(self, config: MemberConfig) -> str:
        """What such a member speaks with the coordinator, as Kafka's settings name it: group.PROTOCOL.session.timeout.ms."""
        return self.protocol or config.group_protocol

    def may_have(self, scenario: Scenario) -> bool:
        """Whether the group can have such members, on such brokers."""
        from kgctl.simulate.scenario.fields import read_broker_settings

        broker, sets = read_broker_settings(scenario.cluster.config), scenario.members
        topics = [topic.name for topic in scenario.topics]
        touched = [event.target for event in scenario.events if event.changes_sources]
        around = (MemberSurroundings(broker, sets[:index], topics, touched) for index in range(len(sets)))
        return not any(list(self.refusals(members, each)) for members, each in zip(sets, around, strict=True))

    def engine(self) -> Any:
        """The class that plays such a group."""
        module, _, name = self.plays.partition(":")
        return getattr(import_module(module), name)  # by name: it stands above this package


def _of_consumers(members: MemberSet, _: MemberSurroundings) -> Wrong:
    if members.on_poison is not None:
        yield ("on_poison",), "is for share groups: write group: {type: share}"


def _of_applications(members: MemberSet, around: MemberSurroundings) -> Wrong:
    from kgctl.simulate.scenario.streams import contradictions

    return contradictions(members, around)


_OF_CLIENTS = ("share.acknowledgement.mode", "share.acquire.mode")
_OF_GROUPS_INSTEAD = {
    "auto.offset.reset": "; the group has share.auto.offset.reset",
    "isolation.level": "; the group has share.isolation.level",
    "session.timeout.ms": "; the group has share.session.timeout.ms",
    "heartbeat.interval.ms": "; the group has share.heartbeat.interval.ms",
    "enable.auto.commit": "; share.acknowledgement.mode says how records are acknowledged",
}
_NO_SUCH_KEYS = {
    "instance_id": "share groups have no static members",
    "rack": "the coordinator assigns share groups without looking at racks",
    "callbacks": "a share consumer has no rebalance callbacks",
}


def owned_by_share_groups(name: str) -> bool:
    """Whether a setting is a share group's own."""
    return name.startswith("share.") and name not in _OF_CLIENTS


def _of_share_groups(members: MemberSet, around: MemberSurroundings) -> Wrong:
    from kgctl.member.share_member import REFUSED

    broker = around.broker
    if not broker.profile.is_since("4.2"):
        yield (), f"brokers have share groups from 4.2 on, and these are of {broker.profile.version}: broker_version: 4.2"
    if members.client != "java":
        yield ("client",), f"what {members.client} does in a share group is not known here; java is"
    for name in REFUSED:
        if name in members.config:
            yield ("config", name), f"{name} cannot be set when using a share group{_OF_GROUPS_INSTEAD.get(name, '')}"
    for key, why in _NO_SUCH_KEYS.items():
        if key in members.model_fields_set:
            yield (key,), why
    if members.pattern is not None:
        yield ("subscribe",), "a share consumer subscribes to topics by name"
    yield from _acknowledging(members)


def _acknowledging(members: MemberSet) -> Wrong:
    from kgctl.simulate.scenario.fields import CommitMode

    if members.commit.mode not in (CommitMode.AUTO, CommitMode.AFTER_BATCH):
        yield ("commit",), "a share consumer acknowledges: auto (with the next poll()) or after-batch (commitSync())"
    is_explicit = members.config.get("share.acknowledgement.mode", "").lower() == "explicit"
    if members.on_poison is not None and members.on_poison is not OnPoison.CRASH and not is_explicit:
        how = "config: {share.acknowledgement.mode: explicit}"
        yield (
            ("on_poison",),
            f"{members.on_poison} needs {how}: with implicit acknowledgement all records of a batch are accepted",
        )


CONSUMER = ScenarioGroupType(
    "consumer", "kgctl.simulate.engine.group_kind:GroupKind", _of_consumers, frozenset({MEMBERS, OWNERS}), is_playable=True
)
SHARE = ScenarioGroupType(
    "share",
    "kgctl.simulate.engine.share.kind:ShareKind",
    _of_share_groups,
    frozenset({MEMBERS, DELIVERIES}),
    owned_by_share_groups,
    protocol="share",
)
STREAMS = ScenarioGroupType(
    "streams", "kgctl.simulate.engine.streams_group:StreamsKind", _of_applications, frozenset({MEMBERS, OWNERS, TASKS})
)
"""A group whose members are an application of Kafka Streams, whatever protocol they speak: who has ``streams`` says so."""
GROUP_TYPES: Mapping[str, ScenarioGroupType] = {each.name: each for each in (CONSUMER, SHARE)}
"""What a file can write as a group's type."""


def type_of_group(scenario: Scenario) -> ScenarioGroupType:
    """What kind of members reads: those of the type that the file gives the group, or the instances of an application."""
    return STREAMS if _has_instances(scenario.members) else scenario.group.type


def _has_instances(members: Sequence[MemberSet]) -> bool:
    return any(each.streams is not None for each in members)


def group_type(raw: object) -> str:
    """The name of a type. Raises ValueError."""
    if str(raw) not in GROUP_TYPES:
        is_streams = raw in ("streams", "kafka-streams")
        near = "; an application of Kafka Streams is a set of members with streams: {store: 10GB}" if is_streams else ""
        near = near or did_you_mean(str(raw), GROUP_TYPES, list_up_to=12)
        raise ValueError(f"there is no type of groups {shown(raw)}{near}")
    return str(raw)


def brokers_of(cluster: Cluster | None) -> CoordinatorConfig:
    """The brokers that members meet: the usual ones, where what the file says of them is wrong, which is told of `cluster`."""
    from kgctl.simulate.scenario.fields import read_broker_settings

    try:
        return read_broker_settings({} if cluster is None else cluster.config)
    except UsageError:
        return read_broker_settings({})


def check_type(members: MemberSet, group: Group, group_path: Path, around: MemberSurroundings, file: Reading) -> None:
    """Tell the file what of these members, and of their group's settings, a group of its type has not on these brokers."""
    from kgctl.coordinator.config import GroupConfig
    from kgctl.simulate.scenario.fields import check_settings

    _check_protocol(members, around.broker, file)
    types = (STREAMS, group.type) if _has_instances((*around.before, members)) else (group.type,)
    for path, message in (wrong for each in types for wrong in each.refusals(members, around)):
        file.wrong(("members", members.name, *path), message)
    if group.settings:
        check_settings(group.settings, lambda own: GroupConfig.from_properties(own, around.broker), (*group_path, "config"), file)


def check_poison(topics: Sequence[Topic], groups: Sequence[Group], file: Reading) -> None:
    """Tell the file of records that no application can process, where none of its groups knows such records."""
    if not any(DELIVERIES in group.type.has for group in groups):
        why = "records that nobody can process are for share groups: write group: {type: share}"
        for name in (topic.name for topic in topics if topic.poison_ppm):
            file.wrong(("topics", name, "poisoned"), why)


def _check_protocol(members: MemberSet, broker: CoordinatorConfig, file: Reading) -> None:
    """A client of another protocol than the classic one ends at once where the brokers have it not, or not switched on."""
    protocol = members.config.get("group.protocol", "classic").lower()
    if protocol != "classic" and protocol not in broker.group_coordinator_rebalance_protocols:
        on = f"cluster: {{config: {{group.coordinator.rebalance.protocols: [classic, {protocol}]}}}}"
        why = f"group.protocol={protocol} is off on these brokers, of {broker.profile.version}; {on} switches it on"
        file.wrong(("members", members.name), why)
