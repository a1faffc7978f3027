"""Where scenarios come from: files, stdin, those that kgctl brings along, a group as it is, and recorded traffic.

A group (``group: {from: F}``) and a recording (``replay(F.csv)``) are written out when the file is read, so that what is run,
swept, shrunk and kept is a whole scenario.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO, TypeAlias, TypeVar

from kgctl.errors import KgctlError, NotFoundError, UsageError
from kgctl.model.groups import GroupDescription, GroupState, GroupType, MemberDescription
from kgctl.simulate.scenario.patches import patched, written_out
from kgctl.simulate.scenario.quantities import format_duration, parse_duration, parse_rate, shown
from kgctl.simulate.scenario.vocabulary import did_you_mean
from kgctl.yaml_files import SMALL, FileError, Tree, read_yaml
from kgctl.yaml_files import Path as Way

_HEX_TAIL = re.compile(r"[-_.]?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_NUMBER_TAIL = re.compile(r"[-_.]?\d+$")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_CLIENTS = {
    "rdkafka": "librdkafka",
    "kafka-python-": "kafka-python",
    "aiokafka-": "aiokafka",
    "kgo": "franz-go",
    "consumer-": "java",
}
"""How the client id begins that a client has if it is given none -> its profile."""
_KAFKA_GO = "(github.com/segmentio/kafka-go)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """``topics``: partitions of what the group reads. ``written``, ``processed``: records a second, where two samples tell.

    ``lag`` is None where it is not known.
    """

    group: GroupDescription
    topics: Mapping[str, int]
    written: Mapping[str, float] = field(default_factory=dict)
    processed: float | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class _Set:
    name: str
    members: tuple[MemberDescription, ...]


def scenario_text(observed: Observed) -> str:
    """A scenario file, ready to run: one rolling restart, of the group as it is and as it might be instead."""
    group = observed.group
    lines = [
        "kgctl: 1",
        f"name: {_quoted(f'{group.group_id}-rolling-restart')}",
        f"question: {_quoted(f'What does one rolling deploy of {group.group_id} cost, and what would another protocol change?')}",
        "",
        *_topics(observed),
        "",
        "group:",
        f"  id: {_quoted(group.group_id)}",
        "  config:                       # the brokers do not tell the members' timeouts: put yours in",
        *_group_config(group),
        "",
        *_members(observed),
        *_traffic(observed),
        "",
        "warmup: 60s",
        "events:",
        *_events(observed),
        "",
        *_variants(observed),
        "runs: 5",
        "expect:",
        "  - max_gap < 60s",
        "  - {check: duplicates == 0, severity: warn}",
    ]
    return "\n".join(lines) + "\n"


def _topics(observed: Observed) -> list[str]:
    return ["topics:", *(f"  {_quoted(name)}: {{partitions: {count}}}" for name, count in sorted(observed.topics.items()))]


def _group_config(group: GroupDescription) -> list[str]:
    if group.type is GroupType.CONSUMER:
        assignor = [f"    group.remote.assignor: {group.assignor}"] if group.assignor in ("uniform", "range") else []
        return ["    group.protocol: consumer", *assignor]
    lines = [f"    partition.assignment.strategy: [{group.assignor}]"] if group.assignor else []
    return [*lines, "    session.timeout.ms: 45s", "    heartbeat.interval.ms: 3s", "    max.poll.interval.ms: 5m"]


def _members(observed: Observed) -> list[str]:
    lines = ["members:"]
    for each in _sets(observed.group.members):
        lines += [f"  {each.name}:", f"    count: {len(each.members)}"]
        lines += _subscription(each.members[0], observed)
        if all(member.group_instance_id for member in each.members):
            lines.append(f"    instance_id: $name          # static members: {each.members[0].group_instance_id}, ...")
        lines.append(_client(each.members[0].client_id))
        lines.append("    boot: 10s                   # from the start of a process to subscribe(): put yours in")
        if observed.processed:
            rate = max(round(observed.processed / max(len(observed.group.members), 1) * 2), 1)
            lines.append(f"    rate: {rate}/s               # a guess: twice what each processed while this was looked at")
    return lines


def _client(client_id: str) -> str:
    """The client's family. The brokers know it by the client id alone, and by that only where nobody has chosen one."""
    found = profile_of(client_id)
    why = (
        f"by the client id {client_id}"
        if found
        else "the brokers do not tell: or librdkafka, kafka-go, franz-go, kafka-python, aiokafka"
    )
    return f"    client: {found or 'java':<20}# {why}"


def profile_of(client_id: str) -> str | None:
    """The client profile that gives itself such a client id; None: somebody has chosen it."""
    if client_id.endswith(_KAFKA_GO):
        return "kafka-go"
    return next((client for begin, client in _CLIENTS.items() if client_id.startswith(begin)), None)


def _subscription(member: MemberDescription, observed: Observed) -> list[str]:
    if member.subscribed_topic_regex:
        pattern = member.subscribed_topic_regex
        return [f"    subscribe: {_quoted(pattern if pattern.startswith('^') else f'^{pattern}$')}"]
    topics = [topic for topic in member.subscribed_topics or () if topic in observed.topics]
    if not topics or set(topics) == set(observed.topics):
        return []
    return [f"    subscribe: [{', '.join(map(_quoted, topics))}]"]


def _sets(members: Sequence[MemberDescription]) -> list[_Set]:
    """Members that are alike: the same client and the same subscription, called after the client."""
    found: dict[tuple[str, object, object, bool], list[MemberDescription]] = {}
    for member in members:
        key = (
            stem_of(member.group_instance_id or member.client_id),
            member.subscribed_topics,
            member.subscribed_topic_regex,
            member.group_instance_id is not None,
        )
        found.setdefault(key, []).append(member)
    names: dict[str, int] = {}
    result = []
    for (stem, *_), group in found.items():
        names[stem] = names.get(stem, 0) + 1
        result.append(_Set(stem if names[stem] == 1 else f"{stem}-{names[stem]}", tuple(group)))
    return result


def stem_of(name: str) -> str:
    """What a client id or instance id is called without its number: a name for a set of members."""
    name = _NUMBER_TAIL.sub("", _HEX_TAIL.sub("", name))
    return _UNSAFE.sub("-", name).strip("-._") or "app"


def _traffic(observed: Observed) -> list[str]:
    rates = {name: rate for name, rate in sorted(observed.written.items()) if rate > 0}
    lag = f"the lag was {observed.lag}" if observed.lag is not None else ""
    if not rates:
        return ["", f"# {lag}; traffic: TOPIC: 1000/s makes the run tell lag and duplicates"] if lag else []
    return [
        "",
        f"traffic:{f'   # as measured; {lag}' if lag else ''}",
        *(f"  {_quoted(name)}: {max(round(rate), 1)}/s" for name, rate in rates.items()),
    ]


def _events(observed: Observed) -> list[str]:
    sets = _sets(observed.group.members)
    first = f"  - {{at: 0s, rolling_restart: {sets[0].name}, batch: 1, settle: 30s}}"
    return [first, *(f"  - {{after: previous, rolling_restart: {each.name}, batch: 1, settle: 30s}}" for each in sets[1:])]


def _variants(observed: Observed) -> list[str]:
    """As it is, with the other kind of rebalance, with static members, with the other protocol: what the group is not yet."""
    group = observed.group
    other = ("eager", "range") if group.assignor == "cooperative-sticky" else ("cooperative", "cooperative-sticky")
    dynamic = [each.name for each in _sets(group.members) if not all(member.group_instance_id for member in each.members)]
    patches = {}
    if group.type is not GroupType.CONSUMER:
        patches[other[0]] = f"group: {{config: {{partition.assignment.strategy: [{other[1]}]}}}}"
    if dynamic:
        patches["static"] = f"members: {{{', '.join(f'{name}: {{instance_id: $name}}' for name in dynamic)}}}"
    if group.type is not GroupType.CONSUMER:
        patches["kip848"] = "group: {config: {group.protocol: consumer}}"
    lines = [f"  {name}: {{{patch}}}" for name, patch in patches.items()]
    return ["variants:", "  as-is: {}", *lines, ""] if lines else []


def _quoted(text: str) -> str:
    """The text as a YAML scalar: plain where that is safe, else in double quotes, which JSON's strings are."""
    import json

    return text if re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", text) and text.lower() not in _WORDS else json.dumps(text)


_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def observed_in(text: str, source: str) -> Observed:
    """The group of the file's rows, with the partitions that its members own.

    Raises:
        UsageError: it is no such file, or has no members.
    """
    try:
        document = json.loads(text)
        rows = document["data"]
        members = [_member(row) for row in rows if row["consumer_id"] is not None]
        group_ids = list(dict.fromkeys(str(row["group"]) for row in rows))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError(f"{source} is not what `kgctl describe group G --members -o json` prints") from None
    if len(group_ids) != 1:
        raise UsageError(f"{source} has {len(group_ids)} groups; a scenario is about one")
    if not members:
        raise UsageError(f"{source} has no members", group=group_ids[0])
    topics: dict[str, int] = {}
    for member in members:
        for topic, partitions in (member.assignment or {}).items():
            topics[topic] = max(topics.get(topic, 0), max(partitions, default=-1) + 1)
    consumer = any(row.get("member_epoch") is not None for row in rows)
    kind = GroupType.CONSUMER if consumer else GroupType.CLASSIC
    assignor = next((str(row["assignor"]) for row in rows if row.get("assignor")), None)
    group = GroupDescription(group_ids[0], GroupState.STABLE, kind, assignor=assignor, members=tuple(members))
    return Observed(group=group, topics=topics or {"topic": len(members)})


def _member(row: Mapping[str, Any]) -> MemberDescription:
    assignment: dict[str, tuple[int, ...]] = {}
    for part in (row.get("assignment") or "").split(";"):
        topic, _, numbers = part.rpartition(":")
        if topic:
            assignment[topic] = tuple(int(number) for number in numbers.split(","))
    return MemberDescription(
        str(row["consumer_id"]),
        str(row.get("client_id") or ""),
        group_instance_id=row.get("group_instance_id"),
        assignment=assignment,
        subscribed_topics=tuple(row["subscribed_topics"]) if row.get("subscribed_topics") else None,
        rack_id=row.get("rack"),
    )


LIVE = "live:"
LiveGroup: TypeAlias = Callable[[str], Observed]
"""Reads a group of the cluster by its id."""

_NOT_OF_A_GROUP = ("name", "question", "events", "variants", "runs", "expect")
"""Keys that `scenario_text` fills with an example."""
_TOPIC_KEYS = ("set_traffic", "create_topic")
_MOST_STEPS = 1_000
_SECOND_US = 1_000_000
_TIMES = ("at", "time", "timestamp")
_ENDINGS = ("log_end_offset", "end_offset")


def written_out_from(tree: Tree, folder: Path, live: LiveGroup | None) -> Tree:
    """Return the tree with what it takes from other files in their place. ``folder``: where relative names begin.

    Raises:
        FileError: such a file is not there, or is none; at the place that names it.
    """
    if not isinstance(tree.data, dict):
        return tree
    tree.data = _replayed(tree, tree.data, (), folder, "")
    group = tree.data.get("group")
    return _with_group(tree, group["from"], folder, live) if isinstance(group, dict) and "from" in group else tree


# --- a group


def _with_group(tree: Tree, source: Any, folder: Path, live: LiveGroup | None) -> Tree:
    place: Way = ("group", "from")
    if not isinstance(source, str) or not source:
        raise tree.error(place, f"must be a file or live:GROUP, not {shown(source)}")
    try:
        base = read_yaml(scenario_text(_observed(source, folder, live)), source)
    except KgctlError as error:
        raise tree.error(place, error.message) from None
    for key in _NOT_OF_A_GROUP:
        base.data.pop(key, None)
    tree.data = {**tree.data, "group": {key: value for key, value in tree.data["group"].items() if key != "from"}}
    merged = patched(base, tree)
    merged.file = tree.file
    merged.locations[()] = tree.location(())
    return merged


def _observed(source: str, folder: Path, live: LiveGroup | None) -> Observed:
    if not source.startswith(LIVE):
        return observed_in(_text(folder / source.removeprefix("file:")), source)
    if live is None:
        raise UsageError("a live group is read by the commands of kgctl simulate; here name a file")
    return live(source.removeprefix(LIVE))


# --- traffic


def _replayed(tree: Tree, data: Any, way: Way, folder: Path, topic: str) -> Any:
    if isinstance(data, str) and data.strip().startswith("replay("):
        if not topic:
            raise tree.error(way, "replay(...) is a rate: of traffic, of set_traffic or of create_topic")
        try:
            return _rates(_name_in(data), folder, topic)
        except (ValueError, UsageError) as error:
            raise tree.error(way, error.message if isinstance(error, UsageError) else str(error)) from None
    if isinstance(data, list):
        return [_replayed(tree, each, (*way, place), folder, topic) for place, each in enumerate(data)]
    if isinstance(data, dict):
        named = next((str(data[key]) for key in _TOPIC_KEYS if isinstance(data.get(key), str)), topic)
        is_traffic = way[-1:] == ("traffic",)
        return {key: _replayed(tree, each, (*way, key), folder, key if is_traffic else named) for key, each in data.items()}
    return data


def _name_in(text: str) -> str:
    name = text.strip().removeprefix("replay(").removesuffix(")").strip().strip("'\"")
    if not name or not text.strip().endswith(")"):
        raise ValueError(f"{text!r} names no file: replay(traffic.csv)")
    return name


def _rates(name: str, folder: Path, topic: str) -> Mapping[str, str]:
    """Return the steps of a recording: time from its beginning -> rate."""
    lines = _text(folder / name).splitlines()
    separator = next((each for each in ",;\t" if lines and each in lines[0]), ",")
    reader = csv.DictReader(lines, delimiter=separator)
    header = {column.strip().lower().replace("-", "_"): column for column in reader.fieldnames or () if column}
    if len(header) < len([column for column in reader.fieldnames or () if column]):
        raise UsageError(f"{name}:1 has a column twice")
    rows = [(reader.line_num, row) for row in reader]
    time, rate, end, about = (_column_of(header, known) for known in (_TIMES, ("rate",), _ENDINGS, ("topic",)))
    if time is None or (end is None and rate is None):
        has = f"; it has {', '.join(header)}" if header else ""
        raise UsageError(f"{name} needs a header with time and rate, or time and log_end_offset{has}")
    if about is not None:
        rows = [(line, row) for line, row in rows if row[about] == topic]
    if not rows:
        raise UsageError(f"{name} has no rows{'' if about is None else f' of topic {topic!r}'}")
    partition = _column_of(header, ("partition",))
    if rate is not None:
        found: dict[int, float] = {}
        seen: dict[tuple[int, str], int] = {}
        for line, row in rows:
            at_us = _cell(name, line, time, row, _time_us)
            which = (at_us, row[partition] if partition else "")
            if line != seen.setdefault(which, line):
                raise UsageError(f"{name}:{line} has the time of line {seen[which]} again")
            found[at_us] = found.get(at_us, 0.0) + _cell(name, line, rate, row, _rate)
    else:
        times = [_cell(name, line, time, row, _time_us) for line, row in rows]
        for line, row in rows:
            _cell(name, line, str(end), row, lambda text: int(text or 0))
        found = _slopes(_by_partition(times, [row for _, row in rows], str(end), partition))
    first_us = min(found)
    return {format_duration(at_us - first_us): f"{rate:.6f}/s" for at_us, rate in _coarse(sorted(found.items()))}


def _column_of(header: Mapping[str, str], known: Sequence[str]) -> str | None:
    return next((header[each] for each in known if each in header), None)


_T = TypeVar("_T")


def _cell(name: str, line: int, column: str, row: Mapping[str, str], read: Callable[[str], _T]) -> _T:
    text = row[column] or ""
    try:
        return read(text.strip())
    except ValueError:
        raise UsageError(f"{name}:{line}: {text!r} is no {'time' if read is _time_us else column.strip()}") from None


def _rate(text: str) -> float:
    """A number of records a second, or a rate with its unit."""
    return parse_rate(text) / _SECOND_US if "/" in text else parse_rate(float(text)) / _SECOND_US


def _time_us(text: str) -> int:
    """``2026-03-02T08:40:00Z``, ``10m``, or a number of seconds."""
    if "-" in text and ":" in text:
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * _SECOND_US)
    return parse_duration(text, bare_unit="s")


def _by_partition(
    times: list[int], rows: list[dict[str, str]], end: str, partition: str | None
) -> Mapping[str, list[tuple[int, int]]]:
    """Return (time, end of the log) of each partition where it is known, in the order of time."""
    found: dict[str, dict[int, int]] = {}
    for at_us, row in zip(times, rows, strict=True):
        if row[end]:
            own = found.setdefault(row[partition] if partition else "", {})
            own[at_us] = max(int(row[end]), own.get(at_us, 0))
    return {name: sorted(points.items()) for name, points in found.items()}


def _slopes(ends: Mapping[str, list[tuple[int, int]]]) -> dict[int, float]:
    """Return the rate of all partitions together from each sample on; a log that is shorter than before was written anew."""
    changes: dict[int, float] = {}
    for points in ends.values():
        for (from_us, before), (to_us, after) in pairwise(points):
            rate = max(after - before, 0) * _SECOND_US / (to_us - from_us)
            changes[from_us] = changes.get(from_us, 0) + rate
            changes[to_us] = changes.get(to_us, 0) - rate
    if not changes:
        raise UsageError("there are no two samples of one partition: no rate can be told")
    found, rate = {}, 0.0
    for at_us in sorted(changes):
        rate += changes[at_us]
        found[at_us] = max(rate, 0.0)
    return found


def _coarse(steps: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """Yield at most so many steps: means over equal times where there are more."""
    if len(steps) <= _MOST_STEPS:
        yield from steps
        return
    first_us, last_us = steps[0][0], steps[-1][0]
    width_us = (last_us - first_us) // _MOST_STEPS + 1
    written: dict[int, float] = {}
    for (from_us, rate), (to_us, _) in pairwise(steps):
        while from_us < to_us:
            number = (from_us - first_us) // width_us
            until_us = min(first_us + (number + 1) * width_us, to_us)
            written[number] = written.get(number, 0) + rate * (until_us - from_us)
            from_us = until_us  # noqa: PLW2901  # the rest of it
    yield from ((first_us + number * width_us, amount / width_us) for number, amount in sorted(written.items()))
    yield steps[-1]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"there is no file {str(path)!r}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


BUILTIN = "builtin:"
_DEEPEST = 8


def builtin_names() -> tuple[str, ...]:
    """The built-in scenarios, in the order of the alphabet."""
    folder = resources.files("kgctl.simulate") / "builtin"
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def builtin_text(name: str) -> str:
    """The file of a built-in scenario.

    Raises:
        NotFoundError: there is none of this name.
    """
    if name not in builtin_names():
        near = did_you_mean(name, builtin_names()) or "; `kgctl simulate list` shows those that there are"
        raise NotFoundError(f"there is no built-in scenario {name!r}{near}")
    return (resources.files("kgctl.simulate") / "builtin" / f"{name}.yaml").read_text(encoding="utf-8")


def read_source(name: str, stdin: TextIO | None = None, live: LiveGroup | None = None) -> Tree:
    """Return a scenario as a tree, with what it extends, replays and takes from a group merged in.

    ``name``: a file, ``-``, ``builtin:NAME``, or a built-in's bare name. ``live`` reads what ``group: {from: live:GROUP}`` names.

    Raises:
        NotFoundError: there is nothing of that name. FileError: it cannot be read. UsageError: it is no text.
    """
    return _with_bases(_read(name, stdin, live), name, Path(name).parent, (name,), live)


def _with_bases(tree: Tree, name: str, folder: Path, seen: tuple[str, ...], live: LiveGroup | None) -> Tree:
    if not isinstance(tree.data, dict) or "extends" not in tree.data:
        return tree
    base_name = tree.data["extends"]
    if not isinstance(base_name, str) or not base_name:
        raise tree.error(("extends",), f"must be builtin:NAME or a file, not {shown(base_name)}")
    real = base_name if base_name.startswith(BUILTIN) else str(folder / base_name)
    if real in seen:
        raise tree.error(("extends",), f"{name} extends itself: {' -> '.join((*seen, real))}")
    if len(seen) >= _DEEPEST:
        raise tree.error(("extends",), f"more than {_DEEPEST} files that extend one another")
    try:
        base = _read(real, None, live)
    except FileError:
        raise
    except (NotFoundError, UsageError) as error:
        raise tree.error(("extends",), error.message) from None
    if not isinstance(base.data, dict):
        raise tree.error(("extends",), f"{real} is no scenario: it is no mapping")
    base = _with_bases(base, real, Path(real).parent, (*seen, real), live)
    base.data, tree.data = written_out(base.data), written_out(tree.data)
    merged = patched(base, tree)
    merged.file = tree.file
    merged.locations[()] = tree.location(())
    merged.data.pop("extends", None)
    return merged


def _read(name: str, stdin: TextIO | None, live: LiveGroup | None) -> Tree:
    return written_out_from(_read_alone(name, stdin), Path("." if name == "-" else name).parent, live)


def _read_alone(name: str, stdin: TextIO | None) -> Tree:
    if name == "-" and stdin is not None:
        return _read_scenario(stdin.read(SMALL.characters + 1), "stdin")
    if name.startswith(BUILTIN):
        return _read_scenario(builtin_text(name.removeprefix(BUILTIN)), name)
    path = Path(name)
    if not path.exists() and stdin is not None and "/" not in name and name.removesuffix(".yaml") in builtin_names():
        return _read_scenario(builtin_text(name.removesuffix(".yaml")), f"{BUILTIN}{name.removesuffix('.yaml')}")
    return _read_scenario(_text_of(path), str(path))


def _read_scenario(text: str, source: str) -> Tree:
    tree = read_yaml(text, source)
    if tree.data is None:
        raise tree.error((), "the file is empty; `kgctl simulate init` writes a first scenario")
    return tree


def _text_of(path: Path) -> str:
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder")
        with path.open("rb") as file:
            content = file.read(SMALL.characters + 1)
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        hint = did_you_mean(path.name, builtin_names()) if "/" not in str(path) else ""
        raise NotFoundError(f"there is no file {str(path)!r}{hint and f', nor a built-in scenario{hint}'}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        looks = "; it looks like UTF-16: save it as UTF-8" if error.object[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise UsageError(f"{path} is not UTF-8 text (line {line}, byte {error.start}){looks}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
