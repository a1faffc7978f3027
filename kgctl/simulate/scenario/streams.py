"""What a scenario says of a Kafka Streams application: its stores, how quickly they are restored, whether a disk is kept."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from kgctl.member.config import STREAMS
from kgctl.simulate.scenario.fields import ByName, Commit, Section, as_written, changed, in_short, key
from kgctl.simulate.scenario.quantities import parse_rate, shown
from kgctl.simulate.scenario.vocabulary import did_you_mean
from kgctl.yaml_files import Path

if TYPE_CHECKING:
    from kgctl.simulate.scenario.group_types import MemberSurroundings
    from kgctl.simulate.scenario.model import MemberSet

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(k|M|G|T)?(B?)")
_SCALE = {None: 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_LARGEST = 10**15


def parse_size(raw: Any) -> tuple[int, bool]:
    """Return (how much, whether it is bytes): ``10GB``, or records: ``600000`` or ``1.5M``. Raises ValueError."""
    text = str(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else raw
    match = _AMOUNT.fullmatch(text.strip().replace("K", "k")) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{shown(raw)} is no size; write bytes, such as 10GB, or a number of records, such as 600000 or 2M")
    number, scale, is_bytes = match.groups()
    found = int(float(number) * _SCALE[scale])
    if found > _LARGEST:
        raise ValueError(f"{shown(raw)} is more than {_LARGEST:,}")
    return found, bool(is_bytes)


def parse_restore(raw: Any) -> tuple[int, bool]:
    """Return (millionths a second, whether of bytes): ``50MB/s``, or records: ``20000/s``. Raises ValueError."""
    if isinstance(raw, str) and raw.strip().endswith("B/s"):
        found = parse_size(raw.strip().removesuffix("/s"))[0] * 10**6, True
    else:
        found = parse_rate(raw), False
    if not found[0]:
        raise ValueError("nothing is ever restored at 0/s")
    return found


_SIZE = WithJsonSchema({"type": ["string", "number"], "description": "Bytes: 10GB; a plain number is records: 600000, 2M."})
_RESTORE = WithJsonSchema({"type": ["string", "number"], "description": "Bytes or records in a time: 50MB/s, 20000/s."})
Amount: TypeAlias = tuple[int, bool]
Size: TypeAlias = Annotated[Amount, as_written(parse_size, lambda amount: f"{amount[0]}B" if amount[1] else amount[0]), _SIZE]


class TopologyPart(Section):
    """A part of the topology, whose topics one task reads together (Kafka: sub-topology)."""

    name: SkipJsonSchema[str] = Field(default="", validation_alias="\0")
    topics: tuple[str, ...] = key("What it reads; default: all that the set subscribes to.", (), strict=False)
    store: Size = key("What its stores hold in all partitions; 0: it has none.", (0, False))


def short_part(raw: Any) -> Any:
    """Return ``counts: [orders]``, which is short for its topics, written out."""
    return {"topics": raw} if isinstance(raw, list) else raw


class StreamsApplication(Section):
    """A set of members that are instances of a Kafka Streams application, each with one stream thread."""

    store: Size = key("What its stores hold in all: bytes (10GB), or a number of records; 0: it has none.", (0, False))
    record: Size = key("The size of a record of a changelog.", (1_000, True))
    restore: Annotated[Amount, as_written(parse_restore, lambda amount: f"{amount[0] // 10**12}MB/s"), _RESTORE] = key(
        "How quickly an instance reads changelogs, of bytes or records.", (50_000_000 * 10**6, True)
    )
    disk: Literal["kept", "lost"] = key(
        "Whether a pod that comes back has its state still: a StatefulSet's volume, or none.", "kept"
    )
    subtopologies: Annotated[
        tuple[TopologyPart, ...], ByName(Annotated[TopologyPart, in_short(short_part, TopologyPart | list)])
    ] = key("The parts of its topology, where it has several; default: one that reads all topics.", ())

    @property
    def parts(self) -> tuple[TopologyPart, ...]:
        """The parts in the order of their numbers."""
        return self.subtopologies or (TopologyPart(name="all", store=self.store),)

    @property
    def record_bytes(self) -> int:
        """The size of a changelog's record."""
        return max(self.record[0], 1)

    def records(self, amount: Amount) -> int:
        """A size, in records."""
        number, is_bytes = amount
        return number // self.record_bytes if is_bytes else number

    @property
    def restore_uhz(self) -> int:
        """Millionths of a record that an instance restores in a second."""
        number, is_bytes = self.restore
        return max(number // self.record_bytes if is_bytes else number, 1)


def with_client(raw: Any) -> Any:
    """A set of members as a file has it, with the client where it says ``streams``, and the other way round."""
    if not isinstance(raw, dict):
        return raw
    if raw.get("streams") is not None:
        return {"client": STREAMS, **raw}
    return {**raw, "streams": {}} if raw.get("client") == STREAMS else raw


def milder(members: Sequence["MemberSet"]) -> Iterator[tuple[str, tuple["MemberSet", ...]]]:
    """Each habit of applications that makes tasks wait for longer, with the sets without it."""
    if any(each.streams is not None and each.streams.disk == "lost" for each in members):
        kept = ((each, each.streams and changed(each.streams, disk="kept")) for each in members)
        yield "disks that are lost (disk: kept)", tuple(changed(each, streams=streams) for each, streams in kept)
    for each in members:
        is_classic = each.config.get("group.protocol", "classic") == "classic"
        if each.streams is not None and is_classic and _LEAVES not in each.config:
            leaving = tuple(changed(one, config={**one.config, _LEAVES: "leave"}) if one is each else one for one in members)
            yield f"close() that stays in the group ({_LEAVES}=leave)", leaving


_LEAVES = "group.membership.operation"


def contradictions(members: "MemberSet", around: "MemberSurroundings") -> Iterator[tuple[Path, str]]:
    """Yield what cannot be of a set whose group has instances of an application: where below the set, and why."""
    application = members.streams
    for other in around.before:
        if (other.streams is None) is not (application is None):
            what = "no" if other.streams is None else "an"
            yield (), f"{other.name!r} is of the same group and is {what} application of Kafka Streams"
        elif other.streams is not None and application is not None and other.streams.parts != application.parts:
            why = "the instances of an application are alike in that"
            yield ("streams",), f"has other parts or stores than {other.name!r}: {why}"
    if application is not None:
        read = members.topics or tuple(around.topics)
        for topic in around.touched:
            if topic in read:
                yield ("streams",), f"Kafka Streams ends when {topic!r}, which it reads, gets partitions or goes: not simulated"
        yield from _of_instances(members)
        yield from _parts(application, read)


def _of_instances(members: "MemberSet") -> Iterator[tuple[Path, str]]:
    if members.client != STREAMS:
        yield ("client",), f"{members.client!r} is no stream thread: beside streams it is {STREAMS}, or is left out"
    if members.pattern is not None:
        yield ("subscribe",), "Kafka Streams subscribes to the topics of its topology, by name"
    if members.commit != Commit():
        yield ("commit",), "Kafka Streams commits by itself, every commit.interval.ms: say that in config"
    for name, why in _REFUSED.items():
        if name in members.config:
            yield ("config", name), why
    if members.config.get("num.stream.threads", "1") != "1":
        yield ("config", "num.stream.threads"), "one stream thread an instance is simulated: write more pods (count) instead"
    if members.instance_id is not None and members.config.get("group.protocol") == "streams":
        yield ("instance_id",), "streams groups of Kafka 4.3 have no static members: leave it out, or group.protocol: classic"


_REFUSED: Mapping[str, str] = {
    "partition.assignment.strategy": "Kafka Streams has an assignor of its own",
    "enable.auto.commit": "Kafka Streams commits by itself, every commit.interval.ms",
    "auto.commit.interval.ms": "is commit.interval.ms in Kafka Streams",
}


def _parts(application: StreamsApplication, topics: Sequence[str]) -> Iterator[tuple[Path, str]]:
    path: Path = ("streams", "subtopologies")
    if application.subtopologies and application.store[0]:
        yield ("streams", "store"), "each of subtopologies says its own store"
    read: dict[str, str] = {}
    for part in application.subtopologies:
        if not part.topics and len(application.subtopologies) > 1:
            yield (*path, part.name), "says which topics it reads: {topics: [orders]}"
        for topic in part.topics:
            if topic not in topics:
                yield (*path, part.name, "topics"), f"the set does not read {topic!r}{did_you_mean(topic, topics, list_up_to=12)}"
            elif topic in read:
                yield (*path, part.name, "topics"), f"{topic!r} is read by {read[topic]!r}: one part reads a topic"
            read.setdefault(topic, part.name)
    for topic in topics if any(part.topics for part in application.subtopologies) else ():
        if topic not in read:
            yield path, f"no part reads {topic!r}"
