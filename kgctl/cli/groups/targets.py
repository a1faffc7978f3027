"""Where `reset-offsets` moves offsets to: an option each, with the strategy that its value means."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, NamedTuple, TextIO, get_type_hints

from kgctl.admin import EARLIEST_LOCAL, LATEST_TIERED
from kgctl.admin.notation import FromFile, PlannedOffset, parse_offset_file
from kgctl.admin.offset_reset import Heal, ShiftBy, Strategy, ToCurrent, ToEarliest, ToHistory, ToLatest, ToMark, ToOffset, ToTime
from kgctl.admin.times import format_instant, parse_duration_ms, parse_past_instant_ms, second_reading
from kgctl.admin.topic_scopes import TopicScope, parse_topic_scopes
from kgctl.cli.completion import complete_groups
from kgctl.cli.groups.undo_files import check_file_name
from kgctl.cli.parameters import flag, option
from kgctl.errors import UsageError
from kgctl.files import text_of
from kgctl.model.groups import OffsetAndMetadata, TopicPartition


class ReadBeside(NamedTuple):
    """What the value of an option is read beside."""

    option: str
    group_ids: Sequence[str]
    now_ms: int
    stdin: TextIO


class Means(NamedTuple):
    """What an option means: its strategy, made of its value."""

    strategy: Callable[[Any, ReadBeside], Strategy]


def _always(kind: Callable[..., Strategy], *given: int) -> Callable[[Any, ReadBeside], Strategy]:
    return lambda _value, _beside: kind(*given)


def _shift_by(count: int, _: ReadBeside) -> ShiftBy:
    return ShiftBy(count)


def _to_offset(offset: int, beside: ReadBeside) -> ToOffset:
    if offset < 0:
        raise UsageError(f"{beside.option} {offset} is negative: offsets begin at 0")
    return ToOffset(offset)


def _to_offsets(texts: Sequence[str], beside: ReadBeside) -> FromFile:
    """An offset for each partition, the same for every group that is named."""
    found: dict[TopicPartition, PlannedOffset] = {}
    for text in texts:
        topic, _, pairs = text.rpartition(":")
        for pair in pairs.split(","):
            number, _, offset = pair.partition("=")
            if not (topic and all(part.isdecimal() and part.isascii() and len(part) < 19 for part in (number, offset))):
                raise UsageError(f"{beside.option} {text!r}: write TOPIC:PARTITION=OFFSET, as in orders:0=5,1=10")
            if (partition := TopicPartition(topic, int(number))) in found:
                raise UsageError(f"{beside.option}: {partition} is given twice")
            found[partition] = PlannedOffset(OffsetAndMetadata(int(offset)))
    if not beside.group_ids:
        raise UsageError(f"{beside.option} needs groups by name")
    return FromFile(dict.fromkeys(beside.group_ids, found))


_CLOCKS_APART_MS = 60_000
"""A time that is no further in the future may be the present of another clock."""


def _time(text: str, beside: ReadBeside, read: Callable[[str, int], int], instead: str) -> int:
    try:
        at_ms = read(text, beside.now_ms)
    except UsageError as error:
        raise UsageError(f"{beside.option}: {error.message}") from None
    if at_ms > beside.now_ms + _CLOCKS_APART_MS:
        raise UsageError(f"{beside.option} {text} means {format_instant(at_ms)} (UTC), which lies in the future; {instead}")
    return at_ms


def _to_datetime(text: str, beside: ReadBeside) -> ToTime:
    return ToTime(_time(text, beside, parse_past_instant_ms, "--to-latest goes to the end of the log"))


def _by_duration(text: str, beside: ReadBeside) -> ToTime:
    return ToTime(_time(text, beside, lambda span, now_ms: max(0, now_ms - parse_duration_ms(span)), ""))


def _to_history(text: str, beside: ReadBeside) -> ToHistory:
    """Still without what was committed."""
    return ToHistory(_time(text, beside, parse_past_instant_ms, "a history has no commits of it"))


def _from_file(path: str, beside: ReadBeside) -> FromFile:
    return read_file(path, beside.group_ids, beside.stdin, beside.option)


def _plan(path: str, beside: ReadBeside) -> FromFile:
    """One of ``--plan-out``: it knows its cluster, and what each partition had."""
    strategy = _from_file(path, beside)
    if strategy.header is None or strategy.header.kind != "plan":
        raise UsageError(f"{path} is no plan that --plan-out wrote; --from-file takes other files")
    return strategy


@dataclass(frozen=True)
class OffsetTarget:
    """A block of options, of which one says where offsets go."""

    to_earliest: Annotated[bool, flag("--to-earliest", "To the start of the log."), Means(_always(ToEarliest))] = False
    to_latest: Annotated[bool, flag("--to-latest", "To the end of the log."), Means(_always(ToLatest))] = False
    to_current: Annotated[
        bool,
        flag("--to-current", "Keep what is valid, bring what is outside the log back into it, else to the log end."),
        Means(_always(ToCurrent)),
    ] = False
    to_offset: Annotated[int | None, option("N", "To this offset."), Means(_to_offset)] = None
    to_offsets: Annotated[
        list[str] | None,
        option("TOPIC:P=N,...", "To an offset for each partition: orders:0=5,1=10; repeatable."),
        Means(_to_offsets),
    ] = None
    shift_by: Annotated[int | None, option("N", "By N records; back if N is negative."), Means(_shift_by)] = None
    to_datetime: Annotated[
        str | None,
        option(
            "TIME",
            "To the first record at or after TIME: 2024-01-31T10:00:00Z (no zone: UTC), 2024-01-31, `2h ago`, or epoch ms.",
        ),
        Means(_to_datetime),
    ] = None
    by_duration: Annotated[
        str | None, option("SPAN", "To the first record of the last SPAN: PT1H, P7D, 1h30m, 2d."), Means(_by_duration)
    ] = None
    to_max_timestamp: Annotated[
        bool, flag("--to-max-timestamp", "To the record with the largest timestamp."), Means(_always(ToMark))
    ] = False
    to_earliest_local: Annotated[
        bool,
        flag("--to-earliest-local", "Tiered storage: to the first record that the broker has itself."),
        Means(_always(ToMark, EARLIEST_LOCAL)),
    ] = False
    to_latest_tiered: Annotated[
        bool,
        flag("--to-latest-tiered", "Tiered storage: to the last record that is in remote storage."),
        Means(_always(ToMark, LATEST_TIERED)),
    ] = False
    to_history: Annotated[
        str | None,
        option("TIME", "To what was committed at TIME, by the collected history; like --to-datetime, or `2h ago`."),
        Means(_to_history),
    ] = None
    heal: Annotated[
        bool,
        flag("--heal", "Only bring commits that lie outside their log back into it; leave the rest alone."),
        Means(_always(Heal)),
    ] = False
    from_group: Annotated[
        str | None, option("GROUP", "To what another group has committed.", complete=complete_groups), Means(_always(FromFile))
    ] = None
    from_file: Annotated[
        str | None,
        option("FILE", "To what a plan, an undo file, kgctl's output or Kafka's own CSV says; - is stdin."),
        Means(_from_file),
    ] = None
    plan: Annotated[
        str | None, option("FILE", "To what a plan of --plan-out says, if the cluster is still so."), Means(_plan)
    ] = None

    def strategy(self, group_ids: Sequence[str], now_ms: int, stdin: TextIO) -> Strategy:
        """What the one option given means.

        Raises:
            UsageError: none or several, or a value or file that cannot be read.
        """
        name = self._chosen
        (meant,) = (
            each for each in get_type_hints(OffsetTarget, include_extras=True)[name].__metadata__ if isinstance(each, Means)
        )
        return meant.strategy(getattr(self, name), ReadBeside(_option(name), group_ids, now_ms, stdin))

    def remarks(self, strategy: Strategy, now_ms: int) -> tuple[str, ...]:
        """What should be said of the strategy: a time is repeated in UTC, and one that came twice has both."""
        if not isinstance(strategy, ToTime | ToHistory):
            return ()
        name = self._chosen
        text = getattr(self, name)
        twice = "" if name == "by_duration" else second_reading(text, now_ms)
        return (f"{_option(name)} {text} means {format_instant(strategy.timestamp_ms)} (UTC).{twice}",)

    @property
    def file(self) -> str | None:
        """Return the file that the offsets are from."""
        return self.from_file if self.from_file is not None else self.plan

    @property
    def _chosen(self) -> str:
        names = [field.name for field in fields(self)]
        given = [name for name in names if not any(getattr(self, name) is none for none in (None, False))]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(map(_option, given))} exclude each other: give one")
        if not given:
            raise UsageError(f"no target given: use one of {', '.join(map(_option, names))}")
        return given[0]


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def read_scopes(strategy: Strategy, topics: Sequence[str], *, all_topics: bool) -> tuple[TopicScope, ...] | None:
    """The scope; None for all topics with a commit.

    Raises:
        UsageError: both, none for a strategy that has no partitions of its own, or one beside a file.
    """
    if isinstance(strategy, FromFile) and strategy.groups:
        if topics or all_topics:
            raise UsageError("the offsets say which partitions are meant: --topic and --all-topics have no place beside them")
        return None
    if topics and all_topics:
        raise UsageError("--topic and --all-topics exclude each other")
    if not topics and not all_topics and not isinstance(strategy, ToHistory | Heal | FromFile):
        raise UsageError("no scope given: use --topic TOPIC, --topic TOPIC:0,2-5 or --all-topics")
    return parse_topic_scopes(topics) if topics else None


def read_file(path: str, group_ids: Sequence[str], stdin: TextIO, option: str = "--from-file") -> FromFile:
    """What a file of offsets says; ``-`` is stdin.

    Raises:
        UsageError: it cannot be read, or is not as it should be; names the line.
    """
    check_file_name(option, path)
    return parse_offset_file(*read_text(path, stdin), group_ids)


def read_text(path: str, stdin: TextIO) -> tuple[str, str]:
    """The text of a file, ``-`` for stdin, and what messages call it.

    Raises:
        UsageError: it cannot be read, or is no text.
    """
    place = os.path.expanduser(path)  # noqa: PTH111 - which leaves a name as it was typed, ./ and all
    return text_of(place, stdin=stdin), "stdin" if path == "-" else path
