"""``kgctl diff-offsets``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from kgctl.cli.columns import GROUP, PARTITION, TOPIC
from kgctl.cli.completion import complete_groups
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.groups.thresholds import Scope, hidden
from kgctl.cli.options import TopicOptions
from kgctl.cli.parameters import argument, flag
from kgctl.cli.report import WHOLE, Column, Report, shows
from kgctl.cli.selection import failures
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, NotFoundError, UsageError, plural
from kgctl.model.groups import NO_OFFSET, TopicPartition
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.admin.topic_scopes import TopicScope

EXAMPLES = """
kgctl describe group payments -o csv > before.csv
kgctl diff-offsets before.csv
kgctl diff-offsets before.csv after.csv
kgctl diff-offsets payments payments-green --fail-if-different
"""


class ComparedOffsets(NamedTuple):
    """A row: what two groups have committed on a partition, None for nothing."""

    group: str
    other: str
    partition: TopicPartition
    offset: int | None
    other_offset: int | None

    @property
    def difference(self) -> int | None:
        return None if self.offset is None or self.other_offset is None else self.other_offset - self.offset

    @property
    def result(self) -> str:
        if self.offset is None:
            return ONLY_THERE
        if self.other_offset is None:
            return ONLY_HERE
        return DIFFERS if self.difference else SAME


COLUMNS = (
    GROUP,
    Column(
        "other_group",
        "the id of the group that it is compared with",
        if_any=True,
        read=lambda row: None if row.other == row.group else row.other,
    ),
    TOPIC.of("partition.topic"),
    PARTITION.of("partition.partition"),
    Column("offset", "the committed offset of the first", WHOLE, if_any=True),
    Column("other_offset", "that of the second", WHOLE, if_any=True),
    Column("difference", "`other_offset` - `offset`", WHOLE, "records", if_any=True),
    Column("result", "same, differs, only-here or only-there"),
)
SAME, DIFFERS, ONLY_HERE, ONLY_THERE = "same", "differs", "only-here", "only-there"

Offsets = Mapping[TopicPartition, int]

OtherSide = Annotated[
    str | None,
    argument("GROUP|FILE", "What to compare with; the cluster as it is, where a file is given alone.", complete=complete_groups),
]
SUMMARY = (
    Column("same", "partitions in which both are the same", WHOLE),
    Column("different", "partitions in which they are not", WHOLE),
)


@shows(COLUMNS, summary=SUMMARY, examples=EXAMPLES)
def diff_offsets(
    session: Session,
    one: Annotated[str, argument("GROUP|FILE", "A group, or a file of offsets; - is stdin.", complete=complete_groups)],
    other: OtherSide = None,
    *,
    topic: TopicOptions = None,
    all_partitions: Annotated[bool, flag("--all", "Also show the partitions that do not differ.")] = False,
    fail_if_different: Annotated[bool, flag("--fail-if-different", "Exit with 6 if anything differs.")] = False,
) -> Report:
    """Compare committed offsets: of two groups, of two files, or of a file and the cluster; nothing is changed.

    A file is what `describe group` wrote with -o csv, json or yaml, a plan, an undo file, or Kafka's own CSV. A name that is a
    file here, or has a path separator, means the file. Where each side has one group these are compared, whatever they are
    called; else groups of the same name. DIFFERENCE is what the second has more.
    """
    from kgctl.admin.topic_scopes import absent, is_within, parse_topic_scopes

    if other is None and not _is_file(one):
        raise UsageError(f"there is no file {one!r}; to compare two groups name both")
    if one == other == "-":
        raise UsageError("stdin can be only one of the two")
    scopes = parse_topic_scopes(topic or ())
    here, there, denied = _sides(session, one, other, {scope.topic for scope in scopes})
    names_group = not all(map(_is_file, filter(None, (one, other))))
    failed = here.failed | there.failed
    rows = [
        row
        for pair in _pairs(here.groups, there.groups, names_group=names_group)
        if not {*pair} & failed
        for row in _rows(pair, here.groups.get(pair[0], {}), there.groups.get(pair[1], {}))
        if (not scopes or is_within(row.partition, scopes)) and row.partition.topic not in denied
    ]
    errors = (*here.errors, *there.errors, *denied.values())
    doubts = [] if scopes else [*here.hidden, *there.hidden]
    unseen = doubts if fail_if_different else []
    if fail_if_different and not rows and not errors and not unseen and not scopes:
        raise NotFoundError("nothing is there to compare: neither side has an offset")
    if not failed:
        gaps = absent(scopes, (row.partition for row in rows))
        errors += tuple(_without_offsets(scope) for scope in gaps if scope in scopes and scope.topic not in denied)
    counts = Counter(row.result == SAME for row in rows)
    told = f"{plural(len(rows), 'partition')}: {counts[True]:,} the same, {counts[False]:,} different."
    return Report(
        COLUMNS,
        [row for row in rows if all_partitions or row.result != SAME],
        (*errors, *unseen),
        (*([told] if rows or not errors else ()), *(error.message for error in doubts if not unseen)),
        ("group", "topic", "partition"),
        ExitCode.EXPECTATION if fail_if_different and counts[False] else ExitCode.AUTH if unseen else None,
        something_done=bool(rows),
        summary={"same": counts[True], "different": counts[False]},
    )


def _without_offsets(scope: TopicScope) -> KgctlError:
    """A topic that was named, and that nobody can say is the same."""
    return NotFoundError(f"topic {str(scope)!r}: nothing is there to compare: neither side has an offset", topic=scope.topic)


@frozen_in_order
class _Offsets:
    """What one side has, by group, what could not be learnt of it, and what may be hidden from this user."""

    groups: Mapping[str, Offsets]
    errors: Sequence[KgctlError] = ()
    hidden: Sequence[KgctlError] = ()

    @property
    def topics(self) -> set[str]:
        return {partition.topic for offsets in self.groups.values() for partition in offsets}

    @property
    def failed(self) -> set[str | None]:
        return {error.group for error in self.errors}


def _is_file(name: str) -> bool:
    return name == "-" or os.sep in name or Path(name).is_file()


def _sides(
    session: Session, one: str, other: str | None, topics: Set[str]
) -> tuple[_Offsets, _Offsets, Mapping[str, KgctlError]]:
    """Both sides; and, of these topics or else of those of the files, those whose commits a live side hides, and why."""
    from kgctl.admin.group_view import out_of_sight

    names = [name for name in (one, other) if name is not None]
    groups = [name for name in names if not _is_file(name)]
    files = {name: _from_file(session, name, groups) for name in names if _is_file(name)}
    if other is not None and not groups:
        return files[one], files[other], {}
    with session.connect() as admin:
        live = {name: _from_cluster(admin, [name], is_named=True) for name in groups}
        if other is None:
            live[""] = _from_cluster(admin, sorted(files[one].groups))
        named = topics or {topic for file in files.values() for topic in file.topics}
        seen = {topic for side in live.values() for topic in side.topics}
        denied = out_of_sight(admin, sorted(named - seen))
    here, there = ({**files, **live}[name or ""] for name in (one, other))
    return here, there, {topic: error.to_exception() for topic, error in denied.items()}


def _from_file(session: Session, name: str, groups: Sequence[str]) -> _Offsets:
    """Of a file beside one group: this group's offsets, where it has them or does not say whose they are."""
    from kgctl.admin.notation import parse_offset_file
    from kgctl.cli.groups.targets import read_text

    text, shown = read_text(name, session.environment.stdin)
    try:
        found = parse_offset_file(text, shown, groups)
    except UsageError:
        if not groups:
            raise
        found = parse_offset_file(text, shown, ())
    return _Offsets(
        {
            group_id: {partition: planned.target.offset for partition, planned in offsets.items() if planned.target is not None}
            for group_id, offsets in found.groups.items()
        }
    )


def _from_cluster(admin: GroupAdmin, group_ids: Sequence[str], *, is_named: bool = False) -> _Offsets:
    """The groups' commits; one that does not exist has none, and is an error where the user named it."""
    committed = admin.list_committed_offsets(group_ids)
    missing = [group_id for group_id, offsets in committed.values.items() if is_named and not offsets]
    absent = admin.describe_groups(missing).errors
    errors = [*failures(group_ids, committed), *(error.to_exception(group=group_id) for group_id, error in absent.items())]
    return _Offsets(
        {
            group_id: {
                each: commit.offset for each, commit in committed.values.get(group_id, {}).items() if commit.offset != NO_OFFSET
            }
            for group_id in group_ids
        },
        errors,
        tuple(hidden(admin.sight(), group_ids, Scope(names_groups=True))),
    )


def _pairs(here: Mapping[str, Offsets], there: Mapping[str, Offsets], *, names_group: bool) -> list[tuple[str, str]]:
    """Which group is compared with which: of a file beside a group that is named, only this one.

    Raises:
        NotFoundError: the only group of one side is none of the several of the other.
    """
    if len(here) == 1 == len(there):
        return [(next(iter(here)), next(iter(there)))]
    for few, many in ((here, there), (there, here)):
        if len(few) == 1 < len(many):
            (name,) = few
            if name not in many:
                raise NotFoundError(f"the other side has {plural(len(many), 'group')}, and {name!r} is none of them", group=name)
            if names_group:
                return [(name, name)]
    return [(name, name) for name in sorted({*here, *there})]


def _rows(pair: tuple[str, str], here: Offsets, there: Offsets) -> Iterator[ComparedOffsets]:
    return (ComparedOffsets(*pair, partition, here.get(partition), there.get(partition)) for partition in sorted({*here, *there}))
