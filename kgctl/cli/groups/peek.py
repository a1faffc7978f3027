"""``kgctl peek``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NamedTuple

from kgctl.cli.columns import GROUP, PARTITION, TOPIC
from kgctl.cli.options import GroupArguments, GroupOptions, TopicOptions, merged_groups
from kgctl.cli.parameters import option
from kgctl.cli.report import TEXTS, TIME, WHOLE, Column, Report, shows
from kgctl.cli.selection import as_shown, check_topics, nothing_on
from kgctl.cli.session import Session
from kgctl.errors import AuthError, KgctlError, NotFoundError, UsageError, first_few

if TYPE_CHECKING:
    from kgctl.admin import Record
    from kgctl.admin.group_view import GroupViews, Neighbours
    from kgctl.admin.topic_scopes import TopicScope

EXAMPLES = """
kgctl peek payments --topic orders:3
kgctl peek payments --before 0 --after 20 -o ndjson
"""
READ, NEXT, UNREAD = "read", "next", "unread"
MOST_RECORDS = 1_000
_MOST_NAMED = 10


class PeekedRecord(NamedTuple):
    """A row; of keys, values and headers ``most`` bytes are shown."""

    around: Neighbours
    record: Record
    place: str
    most: int | None

    def text(self, data: bytes | None) -> str | None:
        """Return bytes of the record as they are shown."""
        from kgctl.cli.groups.describe_rows import shown_bytes

        return shown_bytes(data, self.most)

    @property
    def headers(self) -> list[str]:
        return [f"{name}={self.text(value) or ''}" for name, value in self.record.headers]


COLUMNS = (
    GROUP.of("around.group_id"),
    TOPIC.of("around.partition.topic"),
    PARTITION.of("around.partition.partition"),
    Column("offset", "the record's offset", WHOLE, read="record.offset"),
    Column("place", "read, next or unread: where the record lies, as seen from the commit"),
    Column("time", "when the record was written", TIME, if_any=True, read="record.timestamp_ms"),
    Column("key", "the record's key, bytes that are no text escaped", if_any=True, read=lambda row: row.text(row.record.key)),
    Column("value", "the record's value, likewise", if_any=True, read=lambda row: row.text(row.record.value)),
    Column("headers", "the record's headers, `name=value`", TEXTS, if_any=True),
)

Before = Annotated[int, option("N", "So many records that the group has read.", "--before", "-B", min=0, max=MOST_RECORDS)]
After = Annotated[int, option("N", "So many that it has not, the next one first.", "--after", "-A", min=0, max=MOST_RECORDS)]


@shows(COLUMNS, examples=EXAMPLES)
def peek(
    session: Session,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    topic: TopicOptions = None,
    before: Before = 2,
    after: After = 3,
) -> Report:
    """Show the records around the committed offsets of groups: what was read last, and what will be read next.

    Nothing is joined and nothing is committed. PLACE is `read` for records before the offset, `next` for the one that is read
    next (the poison message, if the group hangs there), `unread` for those after it. Bytes that are no text are escaped; tables
    show the first 200 of a key or a value, the other formats all. It needs READ on the topics.
    """
    from kgctl.admin.group_view import read_neighbours, view_offsets
    from kgctl.admin.topic_scopes import parse_topic_scopes
    from kgctl.cli.groups.describe_rows import MOST_SHOWN

    group_ids = merged_groups(groups, group)
    if not group_ids:
        raise UsageError("no group is named: give group ids")
    if not before and not after:
        raise UsageError("--before 0 and --after 0 leave nothing to show")
    scopes = parse_topic_scopes(topic or ())
    with session.connect() as admin:
        found = view_offsets(admin, as_shown(admin, group_ids), scopes)
        if found.views:
            check_topics(admin, {each.partition.topic for each in found.partitions}, scopes)
        lacks = admin.sight().lacks_topics if found.views and not scopes else ""
        around, errors = read_neighbours(admin, found, before, after)
    is_cut = session.flags.output is None or session.flags.output.is_for_people
    rows = [row for each in around for row in _rows(each, MOST_SHOWN if is_cut else None)]
    missing = list(_without_commits(found, scopes, lacks))
    unread = {(error.topic, error.partition) for error in errors}
    notices = list(_without_records(each for each in around if each.partition not in unread))
    if rows and any(view.description.type.has_start_offsets for view in found.views):
        notices.append("Of share groups: records past a start offset may be acknowledged already.")
    if lacks and around:
        notices.append(f"{lacks}: records of others are not shown.")
    report = Report(COLUMNS, rows, (*found.errors, *missing, *errors), notices, ("group", "topic", "partition", "offset"))
    return replace(report, something_done=bool(rows) or any(each.partition not in unread for each in around))


def _without_commits(found: GroupViews, scopes: Sequence[TopicScope], lacks: str) -> Iterator[KgctlError]:
    """The groups that have none there, and what is named on which the others have none. ``lacks``: the right for want of which
    nobody can tell."""
    from kgctl.admin.topic_scopes import absent

    for view in found.views:
        group_id, own = view.description.group_id, [each.partition for each in view.partitions if each.place]
        what = f"group {group_id!r} has no committed offsets"
        if not own and lacks:
            yield AuthError(f"{what} that are to be seen: {lacks}", group=group_id)
        elif not own:
            yield NotFoundError(f"{what} there", group=group_id)
        yield from nothing_on(absent(scopes, own) if own else (), what, group_id)


def _without_records(around: Iterable[Neighbours]) -> Iterator[str]:
    """A line for each group with the partitions of which there is nothing to show."""
    bare: dict[str, list[str]] = {}
    for each in around:
        if not each.read and not each.unread:
            bare.setdefault(each.group_id, []).append(str(each.partition))
    for group_id, partitions in bare.items():
        yield f"Group {group_id!r}: there is no record around its offset on {first_few(partitions, _MOST_NAMED)}."


def _rows(around: Neighbours, most: int | None) -> Iterator[PeekedRecord]:
    places = [*(READ for _ in around.read), *(UNREAD if index else NEXT for index, _ in enumerate(around.unread))]
    return (PeekedRecord(around, *each, most) for each in zip((*around.read, *around.unread), places, strict=True))
