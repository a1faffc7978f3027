"""When groups will have caught up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.history import asking
from kgctl.cli.history.columns import TOLD
from kgctl.cli.parameters import option
from kgctl.cli.report import NUMBER, TIME, WHOLE, Column, Report, Row, shows
from kgctl.cli.session import Session
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.pipeline.answers.forecast import Outlook

_WEEK_MS = 7 * 86_400_000
_MINUTE_MS = 60_000

COLUMNS = (
    Column("group", "the consumer group"),
    Column("topic", "a topic that it reads"),
    Column("lag", "what it has to read of it; null: not known of a partition", WHOLE, "records"),
    Column("reads_per_s", "how fast it read", NUMBER, "records per second"),
    Column("writes_per_s", "how fast was written", NUMBER, "records per second"),
    Column("catches_up", "when it will have no more to read than is written in a minute; null: never, or not known", TIME),
    Column("in_ms", "how long that is from now", WHOLE, "milliseconds", wide=True),
    Column("earliest", "the begin of the range in which that lies", TIME),
    Column("latest", "its end", TIME),
    Column("tried", "how many minutes of its history had a forecast whose outcome is known", WHOLE),
    Column("held", "of how many the outcome lay in the range", WHOLE),
    Column("why", "why there is no time", if_any=True),
)


@shows(COLUMNS, summary=TOLD, examples="kgctl history forecast payments --over 10m --fail-if-later 2h")
def history_forecast(
    session: Session,
    *,
    whom: asking.AskedGroups,
    at: asking.At = None,
    over: Annotated[str, option("TIME", "Go by how it read and was written in this time.", "--over")] = "10m",
    from_: asking.From = None,
    fail_if_later: Annotated[
        str | None,
        option("TIME", "Exit code 6 where a group has not caught up within this time, or that is not known.", "--fail-if-later"),
    ] = None,
    which: asking.AskedHistory,
) -> Report:
    """When groups will have caught up, if they go on as in the last minutes, and how often saying so held before.

    It is tried on the last week of their own history, or on that from --from on: at each minute the same was forecast.
    """
    over_ms = asking.span_ms("--over", over)
    if over_ms < _MINUTE_MS or over_ms % _MINUTE_MS:
        raise UsageError(f"--over {over}: whole minutes, one at least")
    limit_ms = None if fail_if_later is None else asking.span_ms("--fail-if-later", fail_if_later)
    now_ms = session.environment.now_ms()
    at_ms = asking.read_time_ms("--at", at, session.environment)
    at_ms = now_ms if at_ms is None else at_ms
    since_ms = asking.read_time_ms("--from", from_, session.environment)
    since_ms = at_ms - _WEEK_MS if since_ms is None else since_ms
    if since_ms >= at_ms:
        raise UsageError(f"--from {from_} is not before {'now' if at is None else f'--at {at}'}")
    question = asking.ask(session, whom.ids, which)
    if not question.is_answerable:
        return Report(COLUMNS, errors=question.errors)
    from kgctl.pipeline.answers.forecast import outlooks

    found = outlooks(question.history, question.groups, at_ms, over_ms, since_ms)
    late = [each for each in found if limit_ms is not None and (each.in_ms is None or each.in_ms > limit_ms)]
    absent = question.left_out(each.group for each in found)
    told = [] if found else ["No commit of these groups is known at that time."]
    told += [f"No commit of {', '.join(map(repr, absent))} is known at that time."] if found and absent else []
    told += [f"{each.group} on {each.topic}: {_late(each)}, {fail_if_later} at most." for each in late]
    return Report(
        COLUMNS,
        [_row(each, at_ms) for each in found],
        question.errors,
        [*told, *asking.limits(question, since_ms, at_ms)],
        ("group", "topic"),
        ExitCode.EXPECTATION if late or (limit_ms is not None and (absent or not found)) else None,
        something_done=True,
        summary=asking.told_of(question),
    )


def _late(each: Outlook) -> str:
    return f"catches up in {each.in_ms / 1000:.0f} s" if each.in_ms is not None else f"no time is known, {each.why}"


def _row(each: Outlook, at_ms: int) -> Row:
    def moment(in_ms: int | None) -> int | None:
        return None if in_ms is None else at_ms + in_ms

    pace = each.pace
    return {
        "group": each.group,
        "topic": each.topic,
        "lag": each.unread,
        "reads_per_s": None if pace is None else round(pace.read / 60, 3),
        "writes_per_s": None if pace is None else round(pace.written / 60, 3),
        "catches_up": moment(each.in_ms),
        "in_ms": each.in_ms,
        "earliest": moment(each.earliest_ms),
        "latest": moment(each.latest_ms),
        "tried": each.trials.count,
        "held": each.trials.held,
        "why": each.why or None,
    }
