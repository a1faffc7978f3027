"""``kgctl peek``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.cli.columns import GROUP, PARTITION, TOPIC
from kgctl.cli.groups.describe_group import check_topics
from kgctl.cli.options import GroupArguments, GroupOptions, TopicOptions, merged_groups
from kgctl.cli.report import Column, JsonKind, Report, Row, shows
from kgctl.cli.selection import as_shown
from kgctl.cli.session import session_of
from kgctl.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kgctl.admin import Record
    from kgctl.admin.group_view import GroupViews, Neighbours

EXAMPLES = """
kgctl peek payments --topic orders:3
kgctl peek payments --before 0 --after 20 -o ndjson
"""
COLUMNS = (
    GROUP,
    TOPIC,
    PARTITION,
    Column("offset", kind=JsonKind.WHOLE, meaning="the record's offset"),
    Column("place", meaning="read, next or unread: where the record lies, as seen from the commit"),
    Column("time", if_any=True, kind=JsonKind.TIME, meaning="when the record was written"),
    Column("key", if_any=True, meaning="the record's key, bytes that are no text escaped"),
    Column("value", if_any=True, meaning="the record's value, likewise"),
    Column("headers", if_any=True, kind=JsonKind.TEXTS, meaning="the record's headers, `name=value`"),
)
READ, NEXT, UNREAD = "read", "next", "unread"
MOST_RECORDS = 1_000

Before = Annotated[
    int, typer.Option("--before", "-B", metavar="N", min=0, max=MOST_RECORDS, help="So many records that the group has read.")
]
After = Annotated[
    int, typer.Option("--after", "-A", metavar="N", min=0, max=MOST_RECORDS, help="So many that it has not, the next one first.")
]


@shows(COLUMNS, examples=EXAMPLES)
def peek(
    ctx: typer.Context,
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

    group_ids = merged_groups(groups, group)
    if not group_ids:
        raise UsageError("no group is named: give group ids")
    if not before and not after:
        raise UsageError("--before 0 and --after 0 leave nothing to show")
    scopes = parse_topic_scopes(topic or ())
    session = session_of(ctx)
    with session.connect() as admin:
        found = view_offsets(admin, as_shown(admin, group_ids), scopes)
        check_topics(admin, found, scopes)
        around, errors = read_neighbours(admin, found, before, after)
    is_cut = session.flags.output is None or session.flags.output.is_for_people
    rows = [row for each in around for row in _rows(each, is_cut=is_cut)]
    missing = _without_commits(found, around)
    notices = [] if rows or errors or missing or found.errors else ["There is no record around these offsets."]
    if any(view.description.type.has_start_offsets for view in found.views):
        notices.append("Of share groups: records past a start offset may be acknowledged already.")
    report = Report(COLUMNS, rows, (*found.errors, *missing, *errors), notices, ("group", "topic", "partition", "offset"))
    return replace(report, something_done=bool(around))


def _without_commits(found: GroupViews, around: Sequence[Neighbours]) -> list[NotFoundError]:
    seen = {each.group_id for each in around}
    ids = [view.description.group_id for view in found.views if view.description.group_id not in seen]
    return [NotFoundError(f"group {group_id!r} has no committed offsets there", group=group_id) for group_id in ids]


def _rows(around: Neighbours, *, is_cut: bool) -> Iterator[Row]:
    for record in around.read:
        yield _row(around, record, READ, is_cut=is_cut)
    for index, record in enumerate(around.unread):
        yield _row(around, record, UNREAD if index else NEXT, is_cut=is_cut)


def _row(around: Neighbours, record: Record, place: str, *, is_cut: bool) -> Row:
    from kgctl.admin.times import format_instant
    from kgctl.cli.groups.describe_rows import MOST_SHOWN, shown_bytes

    most = MOST_SHOWN if is_cut else None
    return {
        "group": around.group_id,
        "topic": around.partition.topic,
        "partition": around.partition.partition,
        "offset": record.offset,
        "place": place,
        "time": None if record.timestamp_ms is None else format_instant(record.timestamp_ms),
        "key": shown_bytes(record.key, most),
        "value": shown_bytes(record.value, most),
        "headers": [f"{name}={shown_bytes(value, most) or ''}" for name, value in record.headers],
    }
