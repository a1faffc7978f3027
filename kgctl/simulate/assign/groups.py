"""Groups whose assignment is asked for: documents that describe one, files of them, a quick question, a group of a cluster.

The format is in the manual, page group-files. Client assignors see what a leader sees after the subscriptions went over the
wire: without what the subscription's version cannot carry. (The wire also sorts owned partitions; no assignor depends on that.)
A document that cannot be read does not keep the others of its file from being read: each comes with its own error instead.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

from kgctl.assignors import assignor_names
from kgctl.assignors.spec import NOTHING, GroupSpec, MemberSpec, PartitionsByTopic, StickyClaim, TopicSpec
from kgctl.errors import InvariantViolation, KgctlError, NotFoundError, UsageError, did_you_mean
from kgctl.files import text_of
from kgctl.model.groups import GroupDescription, GroupType
from kgctl.model.values import frozen_in_order
from kgctl.yaml_files import LARGE, FileError, Tree, read_yaml

INT32_MAX = 2**31 - 1

Place = tuple[str, ...]


class DocumentError(UsageError):
    """A document is wrong at a place, which is the way to it: ``("members", "c1", "owned")``."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(f"{describe(place)}{problem}")
        self.place = place


class RepeatedKeys(dict[str, Any]):
    """A mapping of a file in which a key may stand more than once; ``repeated`` is the first such key."""

    repeated: str | None = None


def describe(place: Place) -> str:
    """``member 'c1': owned: ``."""
    words = list(place)
    if words[:1] in (["topics"], ["members"]) and len(words) > 1:
        words[:2] = [f"{words[0].removesuffix('s')} {words[1]!r}"]
    return "".join(f"{word}: " for word in words)


def check_mapping(raw: Any, place: Place, known: frozenset[str] | None = None) -> Mapping[str, Any]:
    """A mapping with text keys, each once, and no others than ``known``; an empty one where there is nothing."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise DocumentError(place, f"must be a mapping, not {_kind(raw)}")
    if isinstance(raw, RepeatedKeys) and raw.repeated is not None:
        raise DocumentError((*place, raw.repeated), "stands twice")
    if known is None:
        return raw
    for key in raw:
        if key not in known:
            hint = did_you_mean(key, known, quoted=True) or f"; known: {', '.join(sorted(known))}"
            raise DocumentError((*place, key), f"unknown key{hint}")
    return raw


def check_names(raw: Any, place: Place) -> Sequence[str]:
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise DocumentError(place, f"must be a list of names, not {_kind(raw)}")
    for name in raw:
        if type(name) is not str:
            raise DocumentError(place, f"the name {name!r} must be text; write it in quotes")
    return raw


def integer(raw: Any, place: Place, *, minimum: int = -(2**31), maximum: int = INT32_MAX) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise DocumentError(place, f"must be a whole number, not {raw!r}")
    if not minimum <= raw <= maximum:
        raise DocumentError(place, f"must be between {minimum} and {maximum}, not {raw}")
    return raw


def optional_text(raw: Any, place: Place) -> str | None:
    if raw is None or isinstance(raw, str):
        return raw
    raise DocumentError(place, f"must be text, not {raw!r}; write it in quotes")


def owned_partitions(raw: Any, place: Place) -> Mapping[str, Sequence[int]]:
    """``{topic: [partitions]}``. Partitions that do not exist may be claimed, but no negative ones."""
    owned = check_mapping(raw, place)
    # A million lists are looked at as one; only what is wrong is looked for one by one.
    if set(map(type, owned.values())) <= {list}:
        numbers = list(chain.from_iterable(owned.values()))
        if not numbers or (set(map(type, numbers)) == {int} and min(numbers) >= 0 and max(numbers) <= INT32_MAX):
            return owned
    for topic, partitions in owned.items():
        if not isinstance(partitions, list):
            raise DocumentError((*place, topic), f"must be a list of partitions, not {_kind(partitions)}")
        for partition in partitions:
            if type(partition) is not int or not 0 <= partition <= INT32_MAX:
                raise DocumentError((*place, topic), f"{partition!r} is no partition")
    return owned


def _kind(raw: Any) -> str:
    names = {list: "a list", str: "text", int: "a number", float: "a number", bool: "a truth value", type(None): "nothing"}
    return names.get(type(raw), type(raw).__name__)


DEFAULT_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
SERVER_ASSIGNORS = ("uniform", "server-range")
_DOCUMENT_KEYS = frozenset({"id", "assignors", "max_generation", "topics", "members", "title", "tag"})
_MEMBER_KEYS = frozenset({"topics", "rack", "instance_id", "owned", "generation", "version", "user_data"})
_TOPIC_KEYS = frozenset({"partitions", "racks", "id"})
_USER_DATA_KEYS = frozenset({"owned", "generation", "base64"})
_NEWEST_VERSION = 3


@frozen_in_order
class Member:
    """A member of a document. ``user_data``: bytes, a claim, None for none, or ``...`` for what Kafka's client would send."""

    member_id: str
    topics: tuple[str, ...] = ()
    owned: PartitionsByTopic | None = None
    generation: int | None = None
    version: int = _NEWEST_VERSION
    rack: str | None = None
    instance_id: str | None = None
    user_data: Any = ...


@frozen_in_order
class GroupDocument:
    """One group of a file, read and checked."""

    id: str | int
    topics: Mapping[str, TopicSpec]
    members: Sequence[Member]
    assignors: tuple[str, ...] | None = None
    max_generation: int = -1

    def group(self, assignor: str) -> GroupSpec:
        """What the assignor of this name is given.

        Raises:
            DocumentError: a server assignor is asked, and the present target cannot be one.
        """
        if assignor in SERVER_ASSIGNORS:
            self._check_target()
            return GroupSpec(self.topics, [_as_target(member) for member in self.members])
        return GroupSpec(self.topics, [_on_the_wire(member, assignor) for member in self.members], self.max_generation)

    def after_round(self, owned: Mapping[str, PartitionsByTopic], generation: int) -> GroupDocument:
        """The group when its members have what ``owned`` says, since this generation, and join again."""
        members = [replace(m, owned=owned[m.member_id], generation=generation, user_data=...) for m in self.members]
        return replace(self, members=members)

    def _check_target(self) -> None:
        taken: dict[str, set[int]] = {}
        for member in self.members:
            for name, partitions in (member.owned or NOTHING).items():
                place = ("members", member.member_id, "owned", name)
                topic = self.topics.get(name)
                if topic is not None and partitions and max(partitions) >= topic.partition_count > 0:
                    raise DocumentError(place, f"partition {max(partitions)} does not exist, so no target has it")
                others = taken.setdefault(name, set())
                if not others.isdisjoint(partitions):
                    twice = min(others.intersection(partitions))
                    raise DocumentError(place, f"partition {twice} has another owner, too; a target has one owner a partition")
                others.update(partitions)


def parse_document(raw: Any, number: int) -> GroupDocument:
    """Checks a document, the ``number``-th of its file.

    Raises:
        DocumentError: what is wrong, and where in the document.
    """
    document = check_mapping(raw, (), _DOCUMENT_KEYS)
    assignors = document.get("assignors")
    topics = check_mapping(document.get("topics"), ("topics",))
    members = check_mapping(document.get("members"), ("members",))
    maximum = document.get("max_generation")
    return GroupDocument(
        document_id(raw, number),
        {name: _topic(name, topic) for name, topic in topics.items()},
        _members(members),
        None if assignors is None else tuple(check_names(assignors, ("assignors",))),
        -1 if maximum is None else integer(maximum, ("max_generation",)),
    )


def document_id(raw: Any, number: int) -> str | int:
    given = raw.get("id") if isinstance(raw, Mapping) else None
    if given is None:
        return number
    return given if isinstance(given, str) or type(given) is int else str(given)


def _topic(name: str, raw: Any) -> TopicSpec:
    place = ("topics", name)
    if not isinstance(raw, Mapping):
        return TopicSpec(integer(raw, (*place, "partitions"), minimum=0))
    topic = check_mapping(raw, place, _TOPIC_KEYS)
    count = integer(topic.get("partitions"), (*place, "partitions"), minimum=0)
    return TopicSpec(count, _racks(topic.get("racks"), count, (*place, "racks")), _topic_id(topic.get("id"), (*place, "id")))


def _racks(raw: Any, count: int, place: Place) -> tuple[tuple[str, ...], ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list) or len(raw) != count:
        found = len(raw) if isinstance(raw, list) else repr(raw)
        raise DocumentError(place, f"one list is needed for each of the {count} partitions, not {found}")
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = []
    for racks in raw:
        if racks is not None and not isinstance(racks, list):
            raise DocumentError(place, f"a list of racks is needed for each partition, not {racks!r}")
        # A replica whose rack is null has none.
        present = tuple(optional_text(rack, place) or "" for rack in racks or () if rack is not None)
        result.append(known.setdefault(present, present))
    return tuple(result)


def _topic_id(raw: Any, place: Place) -> UUID | None:
    if raw is None:
        return None
    try:
        return UUID(bytes=base64.b64decode(f"{raw}==", altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        raise DocumentError(place, f"{raw!r} is no topic id: 22 letters of URL-safe base64") from None


def _members(raw: Mapping[str, Any]) -> list[Member]:
    members: list[Member] = []
    last: Any = None
    names: tuple[str, ...] = ()
    for member_id, entry in raw.items():
        place = ("members", member_id)
        member = check_mapping(entry, place, _MEMBER_KEYS)
        # Members of large groups mostly subscribe alike: one tuple for all makes comparing them cheap.
        if (listed := member.get("topics")) != last or last is None:
            last, names = listed, tuple(check_names(listed, (*place, "topics")))
        members.append(_member(member_id, member, names, place))
    return members


def _member(member_id: str, member: Mapping[str, Any], topics: tuple[str, ...], place: Place) -> Member:
    owned = member.get("owned")
    generation = member.get("generation")
    version = member.get("version")
    return Member(
        member_id,
        topics,
        None if owned is None else owned_partitions(owned, (*place, "owned")),
        None if generation is None else integer(generation, (*place, "generation")),
        _NEWEST_VERSION if version is None else integer(version, (*place, "version"), minimum=0, maximum=_NEWEST_VERSION),
        optional_text(member.get("rack"), (*place, "rack")),
        optional_text(member.get("instance_id"), (*place, "instance_id")),
        _user_data(member["user_data"], (*place, "user_data")) if "user_data" in member else ...,
    )


def _user_data(raw: Any, place: Place) -> bytes | StickyClaim | None:
    if raw is None:
        return None
    data = check_mapping(raw, place, _USER_DATA_KEYS)
    if "base64" in data:
        try:
            return base64.b64decode(str(data["base64"]), validate=True)
        except (ValueError, binascii.Error):
            raise DocumentError((*place, "base64"), f"{data['base64']!r} is not base64") from None
    generation = data.get("generation")
    return StickyClaim(
        owned_partitions(data.get("owned"), (*place, "owned")),
        None if generation is None else integer(generation, (*place, "generation")),
    )


def _as_target(member: Member) -> MemberSpec:
    return MemberSpec(member.member_id, member.topics, member.owned or NOTHING, instance_id=member.instance_id)


def _on_the_wire(member: Member, assignor: str) -> MemberSpec:
    owned = member.owned or NOTHING
    return MemberSpec(
        member.member_id,
        member.topics,
        owned if member.version >= 1 else NOTHING,
        generation=member.generation if member.generation is not None and member.version >= 2 else -1,
        rack=member.rack if member.version >= 3 else None,
        instance_id=member.instance_id,
        user_data=_default_user_data(member, owned, assignor) if member.user_data is ... else _given(member.user_data, assignor),
    )


def _given(data: bytes | StickyClaim | None, assignor: str) -> bytes | StickyClaim | None:
    """What a document gives as user data. The cooperative form is the four bytes of a generation; without one it is not there."""
    if assignor == "cooperative-sticky" and isinstance(data, StickyClaim) and data.generation is None:
        return None
    return data


def _default_user_data(member: Member, owned: PartitionsByTopic, assignor: str) -> StickyClaim | None:
    """What Kafka's client sends: the sticky assignor ownership and generation, the cooperative one the generation."""
    if member.generation is not None:
        return StickyClaim(owned, member.generation)
    if member.owned is not None and assignor != "cooperative-sticky":
        return StickyClaim(owned)
    return None


YAML_HINT_CHARACTERS = 2_000_000
_JSON_LINES = (".jsonl", ".ndjson")
_LONG_NUMBER = re.compile(r"[0-9]{4000}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DOCUMENT_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@frozen_in_order
class RawDocument:
    """A document as it stands in a file, which has it at this line (None: not known), or the error in its place."""

    source: str
    line: int | None
    value: Any = None
    error: KgctlError | None = None
    tree: Tree | None = None


@frozen_in_order
class ReadDocument:
    """A checked document, or the error in its place; ``id`` is there in any case."""

    id: str | int
    document: GroupDocument | None = None
    error: KgctlError | None = None
    raw: RawDocument | None = None

    def located(self, error: KgctlError) -> KgctlError:
        """An error met later, with file, line and document in its message."""
        return error if self.raw is None else _located(error, self.raw, self.id)


def read_groups(names: list[str], stdin: TextIO, notice: Callable[[str], None]) -> Iterator[ReadDocument]:
    """The documents of all files in turn; ``-`` is stdin. A document without id has its number, counted over all files.

    Raises:
        NotFoundError: a file is not there. UsageError: it cannot be read.
    """
    for number, raw in enumerate((raw for name in names for raw in _read(name, stdin, notice)), 1):
        identity = document_id(raw.value, number)
        try:
            if raw.error is not None:
                raise raw.error
            # Without its content: a large document need not be kept twice.
            yield ReadDocument(identity, parse_document(raw.value, number), raw=replace(raw, value=None))
        except KgctlError as error:
            yield ReadDocument(identity, error=_located(error, raw, identity))


def _located(error: KgctlError, raw: RawDocument, identity: str | int) -> KgctlError:
    line = raw.line
    if raw.tree is not None and isinstance(error, DocumentError):
        line = raw.tree.location(error.place).line
    where = raw.source if line is None else f"{raw.source}:{line}"
    kind = InvariantViolation if isinstance(error, InvariantViolation) else UsageError
    found = kind(f"{where}: document {identity!r}: {error.message}", group=str(identity))
    found.code = error.code
    return found


def _read(name: str, stdin: TextIO, notice: Callable[[str], None]) -> Iterator[RawDocument]:
    text = text_of(Path(name), stdin=stdin, missing=NotFoundError)
    source = "stdin" if name == "-" else name
    if name.endswith(_JSON_LINES):
        return _json_lines(source, text)
    if text.lstrip()[:1] in ("{", "["):
        return _json(source, text, notice)
    return _yaml(source, text, notice)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = RepeatedKeys(found)
    seen: set[str] = set()
    repeated.repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return repeated


def _loads(text: str) -> Any:
    """JSON, whose escapes may not make what is no text: one half of a surrogate pair.

    Raises:
        json.JSONDecodeError: it is no JSON, or no text.
    """
    try:
        value = json.loads(text, object_pairs_hook=_pairs)
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python reads no number of more than 4,300 digits
        found = _LONG_NUMBER.search(text)
        raise json.JSONDecodeError("A number of thousands of digits", text, found.start() if found else 0) from None
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            found = _SURROGATE.search(text)
            raise json.JSONDecodeError("Unpaired surrogate", text, found.start() if found else 0) from None
    return value


def _json(source: str, text: str, notice: Callable[[str], None]) -> Iterator[RawDocument]:
    try:
        value = _loads(text)
    except json.JSONDecodeError as error:
        return _not_one_json_value(source, text, error, notice)
    except RecursionError:
        raise UsageError(f"{source}: is nested too deeply") from None
    if isinstance(value, list):
        return (RawDocument(source, None, entry) for entry in value)
    return iter([RawDocument(source, None, value)])


def _not_one_json_value(
    source: str, text: str, error: json.JSONDecodeError, notice: Callable[[str], None]
) -> Iterator[RawDocument]:
    """JSON lines without the name for it, YAML that begins like JSON, or JSON with an error in it."""
    if source.endswith((".yaml", ".yml")) or _DOCUMENT_START.search(text):
        return _yaml(source, text, notice)
    if error.msg == "Extra data" and "\n" in text[: error.pos + 1]:
        return _json_lines(source, text)
    return iter([_broken(source, error.lineno, f"line {error.lineno}, column {error.colno}: {error.msg}")])


def _json_lines(source: str, text: str) -> Iterator[RawDocument]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield RawDocument(source, number, _loads(line))
        except json.JSONDecodeError as error:
            yield _broken(source, number, f"column {error.colno}: {error.msg}")
        except RecursionError:
            yield _broken(source, number, "is nested too deeply")


def _broken(source: str, line: int | None, problem: str) -> RawDocument:
    return RawDocument(source, line, error=UsageError(problem))


def _yaml(source: str, text: str, notice: Callable[[str], None]) -> Iterator[RawDocument]:
    """Documents one by one, so that an error in one of them spoils no other."""
    if len(text) > YAML_HINT_CHARACTERS:
        notice(f"{source}: {len(text) / 1e6:.0f} MB of YAML take a while to read; JSON is read fifty times faster")
    starts = [0, *(found.start() for found in _DOCUMENT_START.finditer(text))]
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield from _yaml_document(source, text[start:end], line)
        line += text.count("\n", start, end)


def _yaml_document(source: str, text: str, first_line: int) -> Iterator[RawDocument]:
    try:
        tree = read_yaml(text, source, limits=LARGE, first_line=first_line)
    except FileError as error:
        problem = error.problems[0]
        yield _broken(source, problem.location.line, problem.message)
    else:
        if tree.data is not None:
            yield RawDocument(source, tree.location(()).line, tree.data, tree=Tree(source, None, tree.locations))


MAX_MEMBERS = 100_000
MAX_PARTITIONS = 10_000_000


def quick_group(members: int, topics: Iterable[str]) -> GroupDocument:
    """A fresh group of ``members`` members, all subscribed to all ``topics``, each written NAME:PARTITIONS.

    Raises:
        UsageError: a number is out of bounds, a topic is not NAME:PARTITIONS or stands twice.
    """
    if not 1 <= members <= MAX_MEMBERS:
        raise UsageError(f"--members: between 1 and {MAX_MEMBERS}, not {members}")
    counts: dict[str, TopicSpec] = {}
    for text in topics:
        name, _, count = text.rpartition(":")
        if not name or not count.isascii() or not count.isdigit() or not 0 < int(count) <= MAX_PARTITIONS:
            raise UsageError(f"--topic: {text!r} is not NAME:PARTITIONS")
        if name in counts:
            raise UsageError(f"--topic: {name!r} stands twice")
        counts[name] = TopicSpec(int(count))
    if not counts:
        raise UsageError("--members needs at least one --topic NAME:PARTITIONS")
    width = len(str(members))
    return GroupDocument(1, counts, [Member(f"consumer-{n:0{width}}", tuple(counts)) for n in range(1, members + 1)])


def live_group(group: GroupDescription, partition_counts: Mapping[str, int]) -> GroupDocument:
    """A group of a cluster as it is now: what its members have is what they own.

    Where the cluster does not tell a member's subscription it is taken to be all topics that somebody in the group has.
    """
    assigned = {topic for member in group.members for topic in member.assignment or ()}
    generation = group.group_epoch or 1
    members = [
        Member(
            member.member_id,
            tuple(sorted(assigned)) if member.subscribed_topics is None else member.subscribed_topics,
            owned=None if member.assignment is None else {t: list(p) for t, p in member.assignment.items()},
            generation=None if member.assignment is None else generation,
            rack=member.rack_id,
            instance_id=member.group_instance_id,
        )
        for member in group.members
    ]
    subscribed = dict.fromkeys(topic for member in members for topic in (*member.topics, *(member.owned or ())))
    topics = {topic: TopicSpec(partition_counts[topic]) for topic in subscribed if topic in partition_counts}
    return GroupDocument(group.group_id, topics, members, _assignors(group))


def _assignors(group: GroupDescription) -> tuple[str, ...] | None:
    """The group's own assignor, where it is one of those that are known here."""
    name = group.assignor
    if group.type is GroupType.CONSUMER:
        name = {"range": "server-range"}.get(name or "", name)
    return (name,) if name in assignor_names() else None
