"""``kgctl history offsets``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from kgctl.admin.plan.times import format_instant
from kgctl.cli.history import asking
from kgctl.cli.history.asking import ask, limits
from kgctl.cli.options import merged_groups
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import session_of

if TYPE_CHECKING:
    from kgctl.pipeline.answers.series import CommitAt

COLUMNS = (
    Column("group"),
    Column("topic"),
    Column("partition"),
    Column("offset"),
    Column("metadata", wide=True),
    Column("leader_epoch", wide=True),
    Column("committed_at"),
    Column("exactness"),
)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl history offsets payments --at '2h ago'")(history_offsets)


def history_offsets(
    ctx: typer.Context,
    groups: asking.GroupArguments = None,
    *,
    group: asking.Groups = None,
    topic: asking.Topics = None,
    at: asking.At = None,
    warehouse: asking.Warehouse = None,
    cluster: asking.Cluster = None,
    as_of_version: asking.AsOfVersion = None,
) -> Report:
    """What groups had committed at a moment of the past; now, if none is given. All groups, if none is named.

    A row says whether it is exact: `compacted` where records after this commit were compacted away before they were collected,
    so that a later one may have counted; `unknown`, without an offset, where only later commits were collected.
    """
    session = session_of(ctx)
    at_ms = asking.read_time_ms("--at", at, session.environment)
    if at_ms is None:
        at_ms = session.environment.now_ms()
    scopes = asking.scopes_of(topic)
    question = ask(session, merged_groups(groups, group), warehouse, cluster, as_of_version)
    if not question.is_answerable:
        return Report(COLUMNS, errors=question.errors)
    from kgctl.pipeline.answers.series import offsets_at

    found = [
        commit
        for commit in offsets_at(question.history, question.groups, at_ms)
        if asking.is_in(commit.topic, commit.partition, scopes)
    ]
    notices = [] if found else [f"Nothing was committed at {format_instant(at_ms)}."]
    return Report(
        COLUMNS,
        [_row(commit) for commit in found],
        question.errors,
        [*notices, *limits(question, at_ms, at_ms)],
        ("topic", "partition"),
        something_done=True,
        summary=asking.not_built(question.behind),
    )


def _row(commit: CommitAt) -> Row:
    return {
        "group": commit.group,
        "topic": commit.topic,
        "partition": commit.partition,
        "offset": commit.offset,
        "metadata": commit.metadata,
        "leader_epoch": commit.leader_epoch,
        "committed_at": None if commit.committed_ms is None else format_instant(commit.committed_ms),
        "exactness": commit.exactness.value,
    }
