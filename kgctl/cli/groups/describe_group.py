"""``kgctl describe group``."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from kgctl.admin import TellsChanges
from kgctl.cli.frames import Frames, is_shown_in_frames, parse_interval_ms
from kgctl.cli.groups import describe_rows
from kgctl.cli.groups.describe_rows import DescribeShown
from kgctl.cli.groups.thresholds import Scope, Thresholds, hidden, judge
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import Report, shows
from kgctl.cli.selection import GroupChoice, check_topics, with_neighbours
from kgctl.cli.session import Session
from kgctl.cli.settings import cluster_reference
from kgctl.errors import UsageError
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.admin.group_view import GroupViews

EXAMPLES = """
kgctl describe group payments
kgctl describe group payments --members --verbose
kgctl describe group --all-groups -o csv
kgctl describe group payments --fail-if-lag-over 1000
kgctl describe group payments --members --watch --interval 5s
"""
SETTLE_MS = 100
"""How long is waited after a change that was told, so that what belongs to it is shown with it."""


@shows(*describe_rows.TABLES, summary=describe_rows.SUMMARY, examples=EXAMPLES)
def describe_group(
    session: Session,
    *,
    chosen: GroupChoice,
    offsets: Annotated[bool, flag("--offsets", "Offsets and lag of each partition (the default).")] = False,
    members: Annotated[bool, flag("--members", "The members, and how many partitions each owns.")] = False,
    state: Annotated[bool, flag("--state", "State, coordinator, assignor and number of members.")] = False,
    topology: Annotated[bool, flag("--topology", "The subtopologies of streams groups, and their topics.")] = False,
    verbose: Annotated[bool, flag("--verbose", "All columns in the table, as -o wide has them.")] = False,
    shown: DescribeShown,
    limits: Thresholds,
    watch: Annotated[bool, flag("--watch", "Show it again and again, until Ctrl-C.")] = False,
    interval: Annotated[str | None, option("SPAN", "With --watch, how often: 5s, 1m. [default: 2s]")] = None,
    iterations: Annotated[int | None, option("N", "With --watch, end after N times.", min=1)] = None,
) -> Report | int:
    """Show groups: offsets and lag of each partition, or their members, or their state.

    Partitions of the group's topics that have no commit are shown too, with `-`; total lag counts them as nothing, and no
    --fail-if limit holds for them. Flags: below-log-start and past-log-end are commits that no consumer can start from;
    no-consumer is a partition that no member of a stable group reads; stale one whose topic no member subscribes to any more;
    no-leader one whose log cannot be asked now. --watch draws the screen anew each time, and without a terminal writes frames,
    each under a line with its time; with -o json and the like it writes the rows of the last of --iterations.
    """
    if not watch and (interval is not None or iterations is not None):
        raise UsageError(f"{'--interval' if interval is not None else '--iterations'} belongs to --watch")
    interval_ms = parse_interval_ms(interval or "2s")
    chosen.check()
    if watch and not interval:
        _check_interval(chosen.groups or ())
    view = _chosen_view(offsets=offsets, members=members, state=state, topology=topology)
    shown.check(view, has_limits=bool(limits))
    question = DescribeQuestion(session, chosen, view, shown, limits, verbose)
    if not watch:
        with session.connect() as admin:
            return question.ask(admin)
    is_shown_in_frames(session, iterations)
    with session.connect() as admin:
        return _frames(question, admin, interval_ms, iterations).run()


def _check_interval(groups: Sequence[str]) -> None:
    """Refuse a span that was typed behind ``--watch``, as other tools have it, and would be watched as a group."""
    for name in groups:
        if re.fullmatch(r"\d+(\.\d+)?(ms|s|m|h)?", name):
            span = f"{name}s" if name[-1].isdigit() else name
            raise UsageError(
                f"{name!r} stands where groups do: write --watch --interval {span} (or --group {name}, if it is one)"
            )


@frozen_in_order
class DescribeQuestion:
    """What is to be shown, as the command line says it."""

    session: Session
    wanted: GroupChoice
    view: str
    shown: DescribeShown
    limits: Thresholds
    verbose: bool

    def ask(self, admin: GroupAdmin, changed: Callable[[], None] | None = None) -> Report:
        """The answer of this moment. ``changed`` is called when another is due, if the admin can tell that."""
        self.session.begin_look()
        chosen = self.wanted.select(admin)
        ids, scopes, limits = chosen.group_ids, self.shown.scopes, self.limits
        if changed and isinstance(admin, TellsChanges):
            admin.watch_groups(ids, changed)
        found = self._view(admin, ids)
        found = replace(found, errors=(*chosen.errors, *with_neighbours(admin, found.errors)))
        if found.views:
            check_topics(admin, {each.partition.topic for each in found.partitions}, scopes)
        scope = Scope(names_groups=bool(self.wanted.ids), topics=scopes)
        judgement = judge(admin, found, limits, self.session.environment.now_ms(), scope) if limits else None
        builders: dict[str, Callable[[GroupViews], Report]] = {
            "offsets": lambda views: describe_rows.offsets_report(views, self.shown, judgement),
            "members": describe_rows.members_report,
            "state": describe_rows.state_report,
            "topology": describe_rows.topology_report,
        }
        report = builders[self.view](found)
        if not limits and self.view == "offsets":
            unseen = hidden(admin.sight(), [view.description.group_id for view in found.views], scope)
            report = replace(report, notices=(*report.notices, *(error.message for error in unseen)))
        return replace(report, columns=[replace(each, wide=False) for each in report.columns]) if self.verbose else report

    def _view(self, admin: GroupAdmin, ids: Sequence[str]) -> GroupViews:
        from kgctl.admin.group_view import view_groups, view_offsets, with_commit_times, with_next_records, with_record_times

        if self.view != "offsets":
            return view_groups(admin, ids)
        found = view_offsets(admin, ids, self.shown.scopes, read_committed=self.shown.read_committed)
        now_ms = self.session.environment.now_ms
        found = with_record_times(admin, found, now_ms()) if self.shown.time_lag else found
        found = with_commit_times(admin, found, now_ms()) if self.shown.commit_age else found
        return with_next_records(admin, found) if self.shown.next_record else found


def _frames(question: DescribeQuestion, admin: GroupAdmin, interval_ms: int, iterations: int | None) -> Frames:
    """Frames that are due after the interval, or as soon as the admin tells of a change."""
    from kgctl.admin.times import format_instant

    session, environment = question.session, question.session.environment
    label, _ = cluster_reference(session.flags, environment)
    has_changed = threading.Event()

    def look_once() -> Report:
        has_changed.clear()
        return question.ask(admin, has_changed.set)

    def wait() -> None:
        if not isinstance(admin, TellsChanges):
            environment.sleep_ms(interval_ms)
        elif has_changed.wait(interval_ms / 1000):
            environment.sleep_ms(min(SETTLE_MS, interval_ms))

    return Frames(
        session,
        look_once,
        lambda: f"{format_instant(environment.now_ms())}  {label}",
        wait,
        iterations,
        redraws=environment.stdout_is_terminal,
    )


def _chosen_view(**views: bool) -> str:
    chosen = [name for name, wanted in views.items() if wanted]
    if len(chosen) > 1:
        raise UsageError(" and ".join(f"--{name}" for name in chosen) + " exclude each other")
    return chosen[0] if chosen else "offsets"
