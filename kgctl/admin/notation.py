"""What people and tools write down about offsets: files of offsets, undo files and plans.

Files of offsets come in five shapes, told apart by their content:

- three columns ``topic,partition,offset``, as Kafka's tool exports one group: for exactly one group, named beside the file;
- four columns ``group,topic,partition,offset``, as it exports several;
- CSV with a header: the output of ``kgctl ... -o csv``, a plan, or an undo file;
- JSON: the output of ``kgctl ... -o json`` or ``-o ndjson``, or a list of such rows;
- YAML: the output of ``kgctl ... -o yaml``, or a list of such rows.

Where rows have ``old_offset`` and ``new_offset`` (a plan), the old one is what the cluster must still have when the plan is
executed. An empty ``offset`` in an undo file stands for "nothing was committed": restoring it takes the commit away; its
``written_offset`` is what the change wrote, empty where it took the commit away. In Kafka's own format an offset is never left
out: there a short row is an error, not offset 0.

Undo files and plans are sealed: CSV between a first line that says whose it is (the cluster, the command, the time and the
groups), and a last line that says that it is whole (the number of rows and a digest of everything before it). A file without its
last line was cut short, by a full disk say, and is refused.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from typing import Any, NamedTuple

from kgctl.admin.times import LATEST_MS
from kgctl.errors import UsageError, first_few
from kgctl.model.groups import NO_LEADER_EPOCH, OffsetAndMetadata, StartOffset, TopicPartition
from kgctl.model.values import frozen_in_order

_MARK = "# kgctl "
_END = re.compile(r"# end rows=(\d+) sha256=([0-9a-f]{64})\n?")


@frozen_in_order
class FileHeader:
    """Whose file it is. ``cluster_id`` is the cluster's own id, or its address where it has none; ``kind`` is undo or plan.

    ``share_groups`` are those of the groups whose offsets are start offsets: so are they made anew where they were deleted.
    ``topic_ids``: of the topics as they were then, where the cluster tells them. ``whole_groups``: the groups were deleted, with
    all that they had committed.
    """

    kind: str
    cluster_id: str
    cluster: str
    command: str
    time_ms: int
    groups: tuple[str, ...]
    partitions: int
    share_groups: tuple[str, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    whole_groups: bool = False

    def __post_init__(self) -> None:
        """Raise TypeError or ValueError for what no kgctl writes."""
        texts = (self.kind, self.cluster_id, self.cluster, self.command, *self.groups, *self.topic_ids.values())
        numbers = (self.time_ms, self.partitions)
        if not (all(isinstance(each, str) for each in texts) and all(isinstance(each, int) for each in numbers)):
            raise TypeError("not of the types that a header has")
        if not 0 <= self.time_ms <= LATEST_MS:
            raise ValueError("no time")


_OPTIONAL = ("share_groups", "topic_ids", "whole_groups")
"""Left out where there are none, and by an earlier kgctl."""


def seal(header: FileHeader, csv_text: str) -> str:
    """The file's whole text. ``csv_text`` has one header line and ``header.partitions`` rows."""
    said = {name: value for name, value in asdict(header).items() if value or name not in _OPTIONAL}
    body = f"{_MARK}{json.dumps(said, ensure_ascii=False)}\n{csv_text}"
    return f"{body}# end rows={header.partitions} sha256={_digest(body)}\n"


def unseal(text: str, name: str) -> tuple[FileHeader | None, str]:
    """The header and the CSV, whose first line is left empty so that line numbers stay; a file that has no seal is all CSV.

    Raises:
        UsageError: the file is sealed, and not whole or not as it was written.
    """
    if not text.startswith(_MARK):
        return None, text
    if text.partition("\n")[0].endswith("\r"):  # saved on Windows; where the digest is right, this is the file as it was
        text = text.replace("\r\n", "\n")
    body, _, last = text.rstrip("\n").rpartition("\n")
    found = _END.fullmatch(last)
    if found is None:
        raise UsageError(f"{name} is cut short: its last line, with the number of rows, is missing; nothing of it is used")
    if _digest(f"{body}\n") != found[2]:
        raise UsageError(
            f"{name} is not as kgctl wrote it: its digest differs (without its first and its last line it is used as it stands)"
        )
    first, _, rest = body.partition("\n")
    return read_header(first, name), f"\n{rest}\n"


def read_header(line: str, name: str) -> FileHeader | None:
    """The header that a file's first line is; None where it is none.

    Raises:
        UsageError: it is one of another version of kgctl.
    """
    if not line.startswith(_MARK):
        return None
    try:
        found = json.loads(line.removeprefix(_MARK))
        known = {field.name: found[field.name] for field in fields(FileHeader) if field.name not in _OPTIONAL}
        shared, ids = tuple(map(str, found.get("share_groups", ()))), dict(found.get("topic_ids", {}))
        more = {"share_groups": shared, "topic_ids": ids, "whole_groups": found.get("whole_groups") is True}
        return FileHeader(**{**known, "groups": tuple(known["groups"]), **more})
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{name}, line 1: written by another version of kgctl, and not readable") from None


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def named_groups(groups: Sequence[str], at_most: int = 3) -> str:
    """``'a', 'b' and 7 more``."""
    return first_few([*map(repr, groups)], at_most)


_FORMULA = re.compile(r"'*(?:[=@\t\r]|[+-].*[^\w.,:+\- ])", re.DOTALL)
"""What a spreadsheet may run, and what stands for it in a file: with apostrophes before it."""


def inert(text: str) -> str:
    """The text with an apostrophe before what a spreadsheet would take for a formula, as spreadsheets themselves write it."""
    return f"'{text}" if _FORMULA.match(text) else text


def _as_it_was(field: str) -> str:
    """Return the text that `inert` was given."""
    return field[1:] if field.startswith("'") and _FORMULA.match(field) else field


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """The rows as text that this module reads back exactly; whoever opens it in a spreadsheet runs none of it."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    # With a line feed as the end of a line, Python's writer leaves a lone carriage return unquoted, and its reader then stumbles.
    careful = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for cells in rows:
        row = [inert(value) if isinstance(value, str) else value for value in cells]
        has_return = any(isinstance(value, str) and "\r" in value for value in row)
        (careful if has_return else writer).writerow(row)
    return stream.getvalue()


UNDO_COLUMNS = ("group", "topic", "partition", "offset", "leader_epoch", "metadata", "written_offset")
PLAN_COLUMNS = ("group", "topic", "partition", "old_offset", "new_offset", "leader_epoch", "metadata")
_BASIS = {"new_offset": "old_offset", "offset": "written_offset"}
"""The column of a target, and the one of what the cluster must still have."""
_OFFSET_COLUMNS = ("new_offset", "offset", "current_offset")
_MAX_OFFSET = 2**63 - 1
_MAX_PARTITION = 2**31 - 1
_LINE_OF_JSON = re.compile(r'\s*\{\s*"(?!(kgctl_result_version|data)")[^\n]+\}[ \t\r]*(\n|\Z)')
"""A first line that is an object by itself, and not the envelope."""
_YAML = re.compile(r"(---|kgctl_result_version:|-\s+\w+:(\s|$))")

_Row = tuple[str, Mapping[str, Any]]
"""Where it is, and the fields by name."""


def parse_offset_file(text: str, name: str, group_ids: Sequence[str]) -> FromFile:
    """Read a file's text. ``name`` stands in errors; ``group_ids`` are the groups named beside it, none for all in the file.

    Two rows for one partition are an error: which of them is meant is anybody's guess, though Kafka's tool takes the last.

    Raises:
        UsageError: malformed, with its line; cut short; or nothing in it for a group that was named.
    """
    header, text = unseal(text.removeprefix("\N{BYTE ORDER MARK}"), name)
    groups = _Reader(name, group_ids).read(text)
    for group_id in group_ids:
        if group_id not in groups:
            raise UsageError(f"{name} has no offsets for group {group_id!r}")
    if not groups:
        raise UsageError(f"{name} has no offsets in it")
    wanted = group_ids or sorted(groups)
    shared = header.share_groups if header else ()
    return FromFile({each: dict(sorted(_typed(groups[each], is_share=each in shared).items())) for each in wanted}, header)


def _typed(offsets: Mapping[TopicPartition, PlannedOffset], *, is_share: bool) -> Mapping[TopicPartition, PlannedOffset]:
    """The offsets as a group of its type has them."""
    if not is_share:
        return offsets
    return {
        key: replace(each, target=each.target and StartOffset(each.target.offset, "", each.target.leader_epoch))
        for key, each in offsets.items()
    }


def share_groups(rows: Iterable[UndoRow]) -> tuple[str, ...]:
    """The groups whose offsets are start offsets."""
    return tuple(dict.fromkeys(row.group_id for row in rows if isinstance(row.before, StartOffset)))


class UndoRow(NamedTuple):
    """What was committed before a change, and what the change wrote; None for nothing."""

    group_id: str
    partition: TopicPartition
    before: OffsetAndMetadata | None
    written: int | None = None


def undo_rows(rows: Sequence[UndoRow]) -> str:
    """The rows of an undo file: CSV with a header, which `parse_offset_file` reads back."""
    lines = [(group, *place, *_cells(before), "" if written is None else written) for group, place, before, written in rows]
    return csv_text([UNDO_COLUMNS, *lines])


def _cells(commit: OffsetAndMetadata | None) -> tuple[int | str, int | str, str]:
    return ("", "", "") if commit is None else (commit.offset, commit.leader_epoch, commit.metadata)


def plan_rows(rows: Sequence[tuple[str, TopicPartition, int | None, OffsetAndMetadata | None]]) -> str:
    """The rows of a plan: what each partition has and what it shall have, None for no commit."""
    lines = [(group, *place, "" if old is None else old, *_cells(new)) for group, place, old, new in rows]
    return csv_text([PLAN_COLUMNS, *lines])


def kafka_rows(rows: Sequence[tuple[str, TopicPartition, int]]) -> str:
    """What ``kafka-consumer-groups.sh --export`` writes: no header; without the group where there is only one."""
    has_one_group = len({group_id for group_id, _, _ in rows}) == 1
    return csv_text(
        [(*partition, offset) if has_one_group else (group_id, *partition, offset) for group_id, partition, offset in rows]
    )


class _Reader:
    """Reads one file; knows its name, for errors, and the groups that were named beside it."""

    def __init__(self, name: str, group_ids: Sequence[str]) -> None:
        self._name = name
        self._group_ids = group_ids

    def read(self, text: str) -> dict[str, dict[TopicPartition, PlannedOffset]]:
        groups: dict[str, dict[TopicPartition, PlannedOffset]] = {}
        places: dict[tuple[str, TopicPartition], str] = {}
        for place, cells in self._rows(text):
            group_id, partition, planned = self._planned(place, cells)
            earlier = places.setdefault((group_id, partition), place)
            if partition in groups.setdefault(group_id, {}):
                raise self._wrong(place, f"{partition} of group {group_id!r} is there already, in {earlier}")
            groups[group_id][partition] = planned
        wanted = self._group_ids or list(groups)
        return {group_id: found for group_id, found in groups.items() if group_id in wanted}

    def _rows(self, text: str) -> Iterator[_Row]:
        if text.lstrip()[:1] in ("{", "["):
            rows = self._json_lines(text) if _LINE_OF_JSON.match(text) else self._listed(self._json(text))
        elif _YAML.match(text):
            rows = self._listed(self._yaml(text))
        else:
            yield from self._csv_rows(text)
            return
        for place, row in rows:
            self._check_columns(place, list(row))
            yield place, {key: "" if value is None else value for key, value in row.items()}

    def _listed(self, document: Any) -> Iterator[_Row]:
        rows = document.get("data") if isinstance(document, dict) else document
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._wrong("line 1", "expected a list of rows, or kgctl's own output with the rows under data")
        return ((f"row {number}", row) for number, row in enumerate(rows, 1))

    def _yaml(self, text: str) -> Any:
        from kgctl.yaml_files import LARGE, FileError, read_yaml

        try:
            return read_yaml(text, self._name, limits=LARGE).data
        except FileError as error:
            problem = error.problems[0]
            raise self._wrong(f"line {problem.location.line}", problem.message) from None

    def _csv_rows(self, text: str) -> Iterator[_Row]:
        reader = csv.reader(io.StringIO(text), strict=True)
        header: Sequence[str] | None = None
        try:
            for values in reader:
                line = f"line {reader.line_num}"
                if not any(value.strip() for value in values):
                    continue
                if header is None:
                    header = self._header(values, line)
                    if "partition" in values:
                        continue
                if len(values) != len(header):
                    raise self._wrong(line, f"{len(header)} columns expected ({','.join(header)}), {len(values)} found")
                yield line, dict(zip(header, map(_as_it_was, values), strict=True))
        except csv.Error as error:
            raise self._wrong(f"line {reader.line_num}", f"not readable as CSV: {error}") from None

    def _header(self, values: Sequence[str], line: str) -> Sequence[str]:
        """The names of the columns: from a header line, or by their number in Kafka's format."""
        if "partition" in values:
            self._check_columns(line, values)
            return values
        if len(values) == 4:
            return "group", "topic", "partition", "offset"
        if len(values) != 3:
            raise self._wrong(line, "expected topic,partition,offset or group,topic,partition,offset, or a header line")
        if len(self._group_ids) != 1:
            raise self._wrong(line, "topic,partition,offset says no group: name exactly one group beside the file")
        return "topic", "partition", "offset"

    def _json(self, text: str, line: int = 1) -> Any:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise self._wrong(f"line {line - 1 + error.lineno}", f"not readable as JSON: {error.msg}") from None
        except RecursionError:  # in words of ours: each Python has its own
            raise self._wrong(f"line {line}", "not readable as JSON: nested too deeply") from None
        except ValueError:
            raise self._wrong(f"line {line}", "not readable as JSON: a number of thousands of digits") from None

    def _json_lines(self, text: str) -> Iterator[_Row]:
        for line, row in enumerate(text.split("\n"), 1):
            if not row.strip():
                continue
            fields = self._json(row, line)
            if not isinstance(fields, dict):
                raise self._wrong(f"line {line}", "expected a row, as an object")
            yield f"line {line}", fields

    def _check_columns(self, place: str, names: Sequence[str]) -> None:
        for name in names:
            if names.count(name) > 1:
                raise self._wrong(place, f"column {name!r} is there twice")
        missing = [name for name in ("topic", "partition") if name not in names]
        if not any(name in names for name in _OFFSET_COLUMNS):
            missing.append("offset (or new_offset)")
        if "group" not in names and len(self._group_ids) != 1:
            missing.append("group (or name exactly one group beside the file)")
        if missing:
            raise self._wrong(place, f"no column {', '.join(missing)}")

    def _planned(self, place: str, fields: Mapping[str, Any]) -> tuple[str, TopicPartition, PlannedOffset]:
        group_id = str(fields["group"]) if "group" in fields else self._group_ids[0]
        topic = str(fields["topic"])
        if not group_id or not topic:
            raise self._wrong(place, "group and topic must not be empty")
        partition = TopicPartition(topic, self._number(place, "partition", fields["partition"], _MAX_PARTITION))
        column = next(name for name in _OFFSET_COLUMNS if name in fields)
        may_be_empty = "metadata" in fields or "old_offset" in fields
        target = self._target(place, column, fields, may_be_empty=may_be_empty)
        basis = _BASIS.get(column, "")
        if basis not in fields:
            return group_id, partition, PlannedOffset(target)
        expected = None if fields[basis] == "" else self._number(place, basis, fields[basis], _MAX_OFFSET)
        return group_id, partition, PlannedOffset(target, expected, verify=True, undoes=basis == "written_offset")

    def _target(self, place: str, column: str, fields: Mapping[str, Any], *, may_be_empty: bool) -> OffsetAndMetadata | None:
        if fields[column] == "" and may_be_empty:
            if fields.get("result") in ("failed", "refused"):
                raise self._wrong(place, f"a plan row with the result {fields['result']} cannot be executed")
            return None
        epoch = fields.get("leader_epoch", "")
        known_epoch = epoch not in ("", str(NO_LEADER_EPOCH), NO_LEADER_EPOCH)
        return OffsetAndMetadata(
            self._number(place, column, fields[column], _MAX_OFFSET),
            str(fields.get("metadata", "")),
            self._number(place, "leader_epoch", epoch, _MAX_PARTITION) if known_epoch else NO_LEADER_EPOCH,
        )

    def _number(self, place: str, column: str, value: Any, largest: int) -> int:
        text = str(value).strip()
        is_number = text.isdecimal() and text.isascii() and len(text) <= 19 and not isinstance(value, bool)
        if not is_number or int(text) > largest:
            shown = "is missing" if not text else f"{value!r} is not a number of 0 to {largest}"
            raise self._wrong(place, f"the {column} {shown}")
        return int(text)

    def _wrong(self, place: str, problem: str) -> UsageError:
        return UsageError(f"{self._name}, {place}: {problem}")


@frozen_in_order
class PlannedOffset:
    """What a file says of one partition. ``target`` None: take the commit away.

    With ``verify``, the file also says what the cluster must still have, ``expected_old``, None for no commit: what a plan was
    made from, or, of an undo file, what the change wrote that it ``undoes``.
    """

    target: OffsetAndMetadata | None
    expected_old: int | None = None
    verify: bool = False
    undoes: bool = False


@frozen_in_order
class FromFile:
    """To what a file says, by group; ``header`` where the file tells whose it is; ``made_anew``: topics that are others since."""

    groups: Mapping[str, Mapping[TopicPartition, PlannedOffset]] = field(default_factory=dict)
    header: FileHeader | None = None
    made_anew: frozenset[str] = frozenset()

    def seeing(self, topic_ids: Mapping[str, str]) -> FromFile:
        """The same, beside the topics that the file's cluster has now; one whose id is not told counts as the same."""
        then = self.header.topic_ids if self.header is not None else {}
        return replace(self, made_anew=frozenset(name for name, was in then.items() if topic_ids.get(name, was) != was))

    @property
    def is_blind(self) -> bool:
        """Whether it does not say what the change wrote, as an undo file of an older kgctl, so that progress cannot be seen."""
        return not any(each.verify for offsets in self.groups.values() for each in offsets.values())

    def overwriting(self) -> FromFile:
        """Return the same, whatever the cluster has now."""
        groups = {
            group_id: {partition: PlannedOffset(each.target) for partition, each in offsets.items()}
            for group_id, offsets in self.groups.items()
        }
        return replace(self, groups=groups)
