"""``--fail-if-...``: how far behind is too far; what cannot be measured is not within the limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from kgctl.admin import GroupAdmin, Place, Sight
from kgctl.admin.group_view import GroupView, GroupViews, PartitionView, view_offsets
from kgctl.admin.times import parse_duration_ms
from kgctl.admin.topic_scopes import TopicScope, absent
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.parameters import flag, option
from kgctl.errors import AuthError, ExpectationError, KgctlError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupDescription, GroupListing, GroupType
from kgctl.model.values import frozen_in_order

UNKNOWN_LAG = "LAG_UNKNOWN"


@dataclass(frozen=True)
class Thresholds:
    """The limits that the user gave; None where not. A block of options (`kgctl.cli.parameters`).

    Raises:
        UsageError: the span cannot be read, or ``--allow-unknown`` stands alone.
    """

    fail_if_lag_over: Annotated[int | None, option("N", "Exit with 6 if a group's lag is over N records.", min=0)] = None
    fail_if_partition_lag_over: Annotated[
        int | None, option("N", "Exit with 6 if the lag of a partition is over N records.", min=0)
    ] = None
    fail_if_time_lag_over: Annotated[
        str | None, option("SPAN", "Exit with 6 if the next record of a partition is older than this: 5m, PT1H.")
    ] = None
    fail_if_flagged: Annotated[bool, flag("--fail-if-flagged", "Exit with 6 if anything has a flag.")] = False
    allow_unknown: Annotated[bool, flag("--allow-unknown", "With a --fail-if option: let pass what cannot be measured.")] = False

    def __post_init__(self) -> None:
        if self.allow_unknown and not self:
            raise UsageError("--allow-unknown has a place beside a --fail-if option only")
        _ = self.time_lag_ms

    @cached_property
    def time_lag_ms(self) -> int | None:
        try:
            return None if self.fail_if_time_lag_over is None else parse_duration_ms(self.fail_if_time_lag_over)
        except UsageError as error:
            raise UsageError(f"--fail-if-time-lag-over: {error.message}") from None

    def __bool__(self) -> bool:
        limits = (self.fail_if_lag_over, self.fail_if_partition_lag_over, self.fail_if_time_lag_over)
        return self.fail_if_flagged or any(limit is not None for limit in limits)


@frozen_in_order
class ThresholdJudgement:
    """What does not hold, what could not be told and is let pass, and the exit code of that, None where all holds."""

    errors: tuple[KgctlError, ...]
    notices: tuple[str, ...] = ()
    exit_code: ExitCode | None = None

    def beside(self, errors: Iterable[KgctlError]) -> list[KgctlError]:
        """The errors of a look, and these, each once."""
        known = {error.message for error in self.errors}
        return [*(error for error in errors if error.message not in known), *self.errors]


@frozen_in_order
class Scope:
    """What a check is about. ``names_groups``, and ``topics`` where there are any: the command line says which, so that none can
    be missed."""

    names_groups: bool = False
    topics: Sequence[TopicScope] = ()


def judge(admin: GroupAdmin, found: GroupViews, thresholds: Thresholds, now_ms: int, scope: Scope) -> ThresholdJudgement:
    """Hold groups against the limits.

    A commit that is out of its log's range is within no limit. A partition that has records and no commit, one whose log cannot
    be read, and a group of which nothing can be read, or whose type cannot, are unknown: no limit holds for them, unless they are
    allowed. So is what may be hidden from this user: groups, where not all are named, and commits on topics. Errors of ``found``
    that say why are replaced by these.
    """
    reasons: dict[tuple[str | None, int | None], KgctlError] = {
        (error.topic, error.partition): error for error in found.errors if error.partition is not None
    }
    apart = [error for error in found.errors if error.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL.name]
    others = [error for error in found.errors if error.partition is None and error not in apart]
    exceeded = [error for view in found.views for error in _exceeded(view, thresholds)]
    exceeded += _too_late(admin, found.views, thresholds, now_ms)
    unknown = [*map(_unmeasured, apart), *(error for view in found.views for error in _unknown(view, reasons))]
    unknown += _without_groups(found, scope.topics)
    unknown += hidden(admin.sight(), [view.description.group_id for view in found.views], scope)
    if thresholds.allow_unknown:
        notices = tuple(f"{error.message} (allowed)" for error in unknown)
        return ThresholdJudgement((*others, *exceeded), notices, ExitCode.EXPECTATION if exceeded else None)
    lacks_right = any(isinstance(error, AuthError) for error in (*unknown, *others))
    code = ExitCode.EXPECTATION if exceeded or (unknown and not lacks_right) else ExitCode.AUTH if lacks_right else None
    return ThresholdJudgement((*others, *exceeded, *unknown), (), code)


_EVERYTHING = Scope()


def judge_listed(
    admin: GroupAdmin, listed: Sequence[GroupListing], limits: Thresholds, now_ms: int, scope: Scope = _EVERYTHING
) -> ThresholdJudgement:
    """Look at these groups, and `judge` them."""
    found = view_offsets(admin, [listing.group_id for listing in listed])
    without = {view.description.group_id for view in found.views if not view.partitions and _is_of_others(view.description)}
    views = tuple(view for view in found.views if view.description.group_id not in without)
    judgement = judge(admin, replace(found, views=views), limits, now_ms, scope)
    told = [f"Group {group_id!r} is of no consumers and has no offsets: no limit is about it." for group_id in sorted(without)]
    return replace(judgement, notices=(*judgement.notices, *told))


def _is_of_others(description: GroupDescription) -> bool:
    """Whether it is a group of Connect workers, or the like."""
    return description.type is GroupType.CLASSIC and description.protocol_type not in ("", "consumer")


def _exceeded(view: GroupView, thresholds: Thresholds) -> Iterator[KgctlError]:
    group_id = view.description.group_id
    most, most_each = thresholds.fail_if_lag_over, thresholds.fail_if_partition_lag_over
    if most is not None and view.total_lag > most:
        yield ExpectationError(f"group {group_id!r}: total lag {view.total_lag} is over {most}", group=group_id)
    for each in view.partitions:
        if most_each is not None and each.lag is not None and each.lag > most_each:
            yield _of_partition(view, each, f"lag {each.lag} is over {most_each}")
        if each.is_out_of_range:
            where = f"a log of {each.log.log_start_offset} to {each.log.log_end_offset}"
            yield _of_partition(view, each, f"{each.flags[0]}: {each.current_offset} is committed, in {where}")
        elif thresholds.fail_if_flagged and each.flags:
            yield _of_partition(view, each, ", ".join(each.flags))


def _too_late(admin: GroupAdmin, views: Sequence[GroupView], thresholds: Thresholds, now_ms: int) -> list[KgctlError]:
    """Partitions whose next record to read is older than the limit.

    Every record before the first one at or after the limit is older than that, so none of these is fetched. One behind it may be
    older, too: not every log has its records in the order of their times.
    """
    if thresholds.time_lag_ms is None:
        return []
    behind = [(view, each) for view in views for each in view.partitions if each.lag]
    at_ms = max(0, now_ms - thresholds.time_lag_ms)
    found = admin.list_offsets_at(sorted({each.partition for _, each in behind}), at_ms)
    errors: list[KgctlError] = []
    passed: list[tuple[GroupView, PartitionView]] = []
    for view, each in behind:
        partition, committed, end = each.partition, each.current_offset, each.log.log_end_offset
        if partition in found.errors:
            error = found.errors[partition].to_exception(group=view.description.group_id, partition=partition)
            errors.append(_unknown_error(view, each, error))
        else:
            first = found.values.get(partition)
            limit = end if first is None else first
            if committed is not None and limit is not None and committed < limit:
                is_older = "is" if each.knows_next else "may be"
                what = f"its next record {is_older} older than {_span(thresholds.time_lag_ms)}"
                errors.append(_of_partition(view, each, what))
            elif each.knows_next:
                passed.append((view, each))
    times = _record_times(admin, passed)
    older = [(view, each) for view, each in passed if times.get((each.partition, each.current_offset or 0), at_ms) < at_ms]
    what = f"its next record is older than {_span(thresholds.time_lag_ms)}"
    return [*errors, *(_of_partition(view, each, what) for view, each in older)]


def _record_times(admin: GroupAdmin, wanted: Sequence[tuple[GroupView, PartitionView]]) -> dict[Place, int]:
    """When the next record of each was written, as far as this user may read it."""
    known = {each.place: each.record_time_ms for _, each in wanted if each.place}
    unread = sorted({place for place, at_ms in known.items() if at_ms is None})
    with suppress(KgctlError):
        known |= admin.list_record_times(unread).values if unread else {}
    return {place: at_ms for place, at_ms in known.items() if at_ms is not None}


def _span(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"


def _of_partition(view: GroupView, each: PartitionView, what: str) -> KgctlError:
    group_id, partition = view.description.group_id, each.partition
    message = f"group {group_id!r}, {partition}: {what}"
    return ExpectationError(message, group=group_id, topic=partition.topic, partition=partition.partition)


def _unmeasured(error: KgctlError) -> KgctlError:
    """Return the error of a group that cannot be described here, as one whose lag nobody can tell."""
    return ExpectationError(f"{error.message}: its lag is unknown", code=UNKNOWN_LAG, group=error.group)


def _unknown(view: GroupView, reasons: Mapping[tuple[str | None, int | None], KgctlError]) -> Iterator[KgctlError]:
    group_id = view.description.group_id
    if not view.partitions:
        what = "nothing is committed, or this user may not see it: its lag is unknown"
        yield ExpectationError(f"group {group_id!r}: {what}", code=UNKNOWN_LAG, group=group_id)
    for each in view.partitions:
        if each.is_unmeasured and not each.is_out_of_range:
            yield _unknown_error(view, each, reasons.get(each.partition))


def _without_groups(found: GroupViews, topics: Sequence[TopicScope]) -> Iterator[KgctlError]:
    """Topics and partitions that were named, and that no group has anything to do with; a group that has nothing to do with
    any of them is an error of its own."""
    known = {each.partition for each in found.partitions}
    for scope in absent(topics, known) if known else ():
        message = f"no group has offsets or members on topic {str(scope)!r}: its lag is unknown"
        yield ExpectationError(message, code=UNKNOWN_LAG, topic=scope.topic)


def _unknown_error(view: GroupView, each: PartitionView, reason: KgctlError | None) -> KgctlError:
    """Names what stands in the way: a right that lacks, a log that cannot be read, that nothing is committed, or that a share
    group's coordinator does not tell (DescribeShareGroupOffsets version 0)."""
    group_id, partition = view.description.group_id, each.partition
    unsaid = (
        "it has records, and nothing is committed" if each.commit is None else "its coordinator does not tell it before Kafka 4.2"
    )
    why = reason.message if reason else unsaid
    kind = AuthError if isinstance(reason, AuthError) else ExpectationError
    message = f"group {group_id!r}, {partition}: lag is unknown: {why}"
    code = reason.code if isinstance(reason, AuthError) else UNKNOWN_LAG
    return kind(message, code=code, group=group_id, topic=partition.topic, partition=partition.partition)


def hidden(sight: Sight, group_ids: Sequence[str], scope: Scope) -> Iterator[AuthError]:
    """What may be missing from what was asked, for want of a right: brokers leave it out without an error."""
    if not scope.names_groups and sight.lacks_groups:
        message = f"{sight.lacks_groups}: there may be groups that are not shown"
        yield AuthError(message, code=ErrorCode.GROUP_AUTHORIZATION_FAILED.name)
    if not scope.topics and sight.lacks_topics and group_ids:
        whose = f"group {group_ids[0]!r}" if len(group_ids) == 1 else f"{len(group_ids):,} groups"
        message = f"{whose}: {sight.lacks_topics}: commits on others are not shown, nor their lag"
        group = group_ids[0] if len(group_ids) == 1 else None
        yield AuthError(message, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED.name, group=group)
