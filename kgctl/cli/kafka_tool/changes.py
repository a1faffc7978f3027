"""What kafka-consumer-groups.sh changes, in its words. What it takes away is saved all the same, for ``kgctl undo``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone

from kgctl.admin import Committed, GroupAdmin, GroupResults, ItemError, item_error
from kgctl.admin.changes import may_be_done
from kgctl.admin.notation import UndoRow, parse_offset_file
from kgctl.admin.times import parse_duration_ms
from kgctl.cli.groups.targets import read_text
from kgctl.cli.groups.undo_files import Backup, not_saved, start_change
from kgctl.cli.kafka_tool.describe import NONE, consumer_groups, is_its_own
from kgctl.cli.kafka_tool.java import as_committed, exception_of, hash_of_partition, in_java_order, message_of
from kgctl.cli.kafka_tool.options import TARGETS, ToolOptions, WrongUse
from kgctl.cli.kafka_tool.tool import Tool, ToolFailed, raise_for, value_or_raise
from kgctl.errors import UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupType, LogOffsets, OffsetAndMetadata, StartOffset, TopicPartition
from kgctl.model.values import string_hash

Offsets = Mapping[TopicPartition, int]


def _groups(tool: Tool) -> list[str]:
    options = tool.options
    ids = [one.group_id for one in consumer_groups(tool.admin)] if options.has("all-groups") else options.values("group")
    return in_java_order(ids, string_hash)


def reset_offsets(tool: Tool) -> None:
    """A dry run, unless ``--execute``; a group with members is told, and left out."""
    admin, options = tool.admin, tool.options
    if not (options.has("dry-run") or options.has("execute")):
        tool.warn(
            "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require "
            "either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are scripting "
            "this command and want to keep the current default behavior without prompting."
        )
    ids = _groups(tool)
    described = admin.describe_groups(ids)
    plan: dict[str, Offsets] = {}
    for group_id in ids:
        plan[group_id] = {}
        error, group = described.errors.get(group_id), described.values.get(group_id)
        if group is not None and is_its_own(group) and not group.state.is_inactive:
            only = f"Assignments can only be reset if the group '{group_id}' is inactive"
            tool.error(f"{only}, but the current state is {group.state.value}.")
        elif error is not None and error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise ToolFailed.of(error, wrapped=True)
        else:
            plan[group_id] = _reset_of(tool, group_id)
    if options.has("export"):
        tool.say(_exported(plan, has_one=len(options.values("group")) == 1))
    else:
        _print_plan(tool, plan)


def _reset_of(tool: Tool, group_id: str) -> Offsets:
    admin, options = tool.admin, tool.options
    commits = _plain(value_or_raise(admin.list_committed_offsets([group_id]), group_id))
    partitions = _scope(admin, options, commits)
    _check_partitions(admin, partitions)
    offsets = _targets(tool, group_id, partitions, commits)
    if options.has("execute") and offsets:
        _commit(tool, group_id, offsets, commits)
    return {partition: offsets[partition] for partition in in_java_order(offsets, hash_of_partition)}


def _plain(commits: Mapping[TopicPartition, OffsetAndMetadata]) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """The commits: to this tool a share group has none."""
    return {partition: commit for partition, commit in commits.items() if not isinstance(commit, StartOffset)}


def _commit(tool: Tool, group_id: str, offsets: Offsets, commits: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
    session, admin = tool.session, tool.admin
    saved = [UndoRow(group_id, partition, commits.get(partition), offset) for partition, offset in offsets.items()]
    started = start_change(session, admin, session.cluster(admin), saved, Backup())
    wanted = {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()}
    results = admin.alter_offsets(group_id, wanted)
    changed = {(group_id, partition) for partition in offsets if may_be_done(results.errors.get(partition))}
    started.settle(changed, {"reset": len(offsets) - len(results.errors)})
    if results.errors:
        failed = ", ".join(map(str, in_java_order(results.errors, hash_of_partition)))
        raise ToolFailed(f"Failed altering group offsets for the following partitions: [{failed}]")


def _scope(admin: GroupAdmin, options: ToolOptions, commits: Mapping[TopicPartition, OffsetAndMetadata]) -> list[TopicPartition]:
    if options.has("all-topics"):
        return as_committed(commits)
    if options.has("topic"):
        named, whole = _topics(options.values("topic"))
        counts = admin.list_topics(whole) if whole else {}
        if any(topic not in counts for topic in whole):
            raise ToolFailed(message_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return [*named, *(TopicPartition(topic, number) for topic in whole for number in range(counts[topic]))]
    if not options.has("from-file"):
        raise WrongUse("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def _topics(words: Iterable[str]) -> tuple[list[TopicPartition], list[str]]:
    """Partitions that are named, and topics of which all are meant."""
    named: list[TopicPartition] = []
    whole: list[str] = []
    for word in words:
        if ":" not in word:
            whole.append(word)
            continue
        parts = word.rstrip(":").split(":")
        if len(parts) != 2:
            raise WrongUse(f"Invalid topic arg '{word}', expected topic name and partitions")
        for number in parts[1].split(","):
            if not re.fullmatch(r"[+-]?\d+", number, re.ASCII):
                raise WrongUse(f"Invalid partition '{number}' specified in topic arg '{word}''")
            named.append(TopicPartition(parts[0], int(number)))
    return named, whole


def _check_partitions(admin: GroupAdmin, partitions: Sequence[TopicPartition]) -> None:
    counts = admin.list_topics(sorted({partition.topic for partition in partitions})) if partitions else {}
    if any(partition.topic not in counts for partition in partitions):
        raise ToolFailed.unknown_topic()
    missing = [partition for partition in partitions if not 0 <= partition.partition < counts[partition.topic]]
    if missing:
        raise ToolFailed(f'The partitions "{",".join(map(str, missing))}" do not exist')
    errors = admin.list_log_offsets(partitions).errors if partitions else {}
    without = [partition for partition in partitions if _has_no_leader(errors.get(partition))]
    if without:
        raise ToolFailed(f'The partitions "{",".join(map(str, without))}" have no leader')


def _has_no_leader(error: ItemError | None) -> bool:
    return error is not None and error.code is ErrorCode.LEADER_NOT_AVAILABLE


def _targets(
    tool: Tool, group_id: str, partitions: Sequence[TopicPartition], commits: Mapping[TopicPartition, OffsetAndMetadata]
) -> Offsets:
    admin, options = tool.admin, tool.options
    target = next((name for name in TARGETS if options.has(name)), None)
    if target is None:
        shown = ", ".join(f"[{name}]" for name in TARGETS)
        raise WrongUse(f"Option '[reset-offsets]' requires one of the following scenarios: {shown}")
    value = options.value(target) or ""
    if target == "from-file":
        return _of_file(tool, group_id, value)
    if target in ("to-datetime", "by-duration"):
        now_ms = tool.session.environment.now_ms()
        at_ms = _instant_ms(value) if target == "to-datetime" else now_ms - _duration_ms(value)
        return _at_time(tool, partitions, at_ms)
    logs = _logs(admin, partitions)
    if target in ("to-earliest", "to-latest"):
        name = "log_start_offset" if target == "to-earliest" else "log_end_offset"
        return {partition: getattr(logs[partition], name) for partition in partitions}
    if target == "to-current":
        return {each: commits[each].offset if each in commits else logs[each].log_end_offset or 0 for each in partitions}
    if target == "to-offset":
        return _within(tool, logs, dict.fromkeys(partitions, int(value)))
    for each in partitions:
        if each not in commits:
            raise WrongUse(f"Cannot shift offset for partition {each} since there is no current committed offset")
    return _within(tool, logs, {each: commits[each].offset + int(value) for each in partitions})


def _logs(admin: GroupAdmin, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, LogOffsets]:
    found = admin.list_log_offsets(partitions)
    raise_for(found.errors.values(), wrapped=True)
    return found.values


def _within(tool: Tool, logs: Mapping[TopicPartition, LogOffsets], wanted: Offsets) -> Offsets:
    """Brought back into the log, with a warning."""
    found: dict[TopicPartition, int] = {}
    for partition, offset in wanted.items():
        start, end = logs[partition].log_start_offset or 0, logs[partition].log_end_offset or 0
        found[partition] = end if offset > end else max(offset, start)
        if found[partition] != offset:
            how = "higher than latest" if offset > end else "lower than earliest"
            tool.warn(
                f"WARN New offset ({offset}) is {how} offset for topic partition {partition}. "
                f"Value will be set to {found[partition]} (org.apache.kafka.tools.OffsetsUtils)"
            )
    return found


def _at_time(tool: Tool, partitions: Sequence[TopicPartition], at_ms: int) -> Offsets:
    admin = tool.admin
    found = admin.list_offsets_at(partitions, at_ms)
    raise_for(found.errors.values(), wrapped=True)
    without = in_java_order((each for each in partitions if found.values[each] is None), hash_of_partition)
    for each in without:
        tool.say("", f"Warn: Partition {each.partition} from topic {each.topic} is empty. Falling back to latest known offset.")
    ends = _logs(admin, without) if without else {}
    return {each: ends[each].log_end_offset or 0 if each in ends else found.values[each] or 0 for each in partitions}


def _instant_ms(text: str) -> int:
    """Utils#getDateTime: milliseconds are a must, no zone is UTC."""
    zone = re.search(r"(Z|[+-]\d\d(:?\d\d)?)$", text.partition("T")[2]) if "T" in text else None
    plain = text[: -len(zone[0])] if zone else text
    try:
        found = datetime.strptime(plain, "%Y-%m-%dT%H:%M:%S.%f").replace(tzinfo=UTC)
    except ValueError:
        raise ToolFailed(f'java.text.ParseException: Unparseable date: "{text}"') from None
    fraction = int(plain.rpartition(".")[2])
    found = found.replace(microsecond=0) + timedelta(milliseconds=fraction)
    if zone and zone[0] != "Z":
        digits = zone[0][1:].replace(":", "").ljust(4, "0")
        away = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        found = found.replace(tzinfo=timezone(away if zone[0][0] == "+" else -away))
    return int(found.timestamp() * 1000)


def _duration_ms(text: str) -> int:
    """Duration#parse: days and less, no weeks."""
    sign = -1 if text.startswith("-") else 1
    try:
        if not re.fullmatch(r"[+-]?P(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?", text, re.IGNORECASE):
            raise UsageError("")
        return sign * parse_duration_ms(text.lstrip("+-"))
    except UsageError:
        raise ToolFailed("Text cannot be parsed to a Duration") from None


def _of_file(tool: Tool, group_id: str, path: str) -> Offsets:
    try:
        text, name = read_text(path, tool.session.environment.stdin)
        found = parse_offset_file(text, name, tool.options.values("group"))
    except UsageError as error:
        raise ToolFailed(error.message) from None
    if group_id not in found.groups:
        tool.error(f"No reset plan for group {group_id} found")
        return {}
    wanted = {each: planned.target.offset for each, planned in found.groups[group_id].items() if planned.target is not None}
    return _within(tool, _logs(tool.admin, list(wanted)), wanted)


def _print_plan(tool: Tool, plan: Mapping[str, Offsets]) -> None:
    rows = [(group, each.topic, str(each.partition), str(offset)) for group, at in plan.items() for each, offset in at.items()]
    widths = (max([15, *map(len, plan)]), max([15, *(len(topic) for _, topic, _, _ in rows)]), 10)
    tool.table([("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), *rows] if plan else [], widths)


def _exported(plan: Mapping[str, Offsets], *, has_one: bool) -> str:
    rows = [(group, *each, offset) for group, at in plan.items() for each, offset in at.items()]
    return "".join(",".join(_quoted(str(cell)) for cell in row[has_one:]) + "\n" for row in rows)


def _quoted(text: str) -> str:
    """Jackson's CSV: what is long, or has a letter below the minus, stands in quotes."""
    return '"' + text.replace('"', '""') + '"' if len(text) > 24 or any(letter < "-" for letter in text) else text


def delete_groups(tool: Tool) -> None:
    """Deletes without a question."""
    session, admin = tool.session, tool.admin
    ids = _groups(tool)
    found = admin.list_committed_offsets(ids)
    saved = [UndoRow(group_id, *each) for group_id, offsets in found.values.items() for each in offsets.items()]
    for line in (*not_saved(found), *_hidden(admin, found)):
        session.notice(line)
    started = start_change(session, admin, session.cluster(admin), saved, Backup(), groups=ids, whole_groups=True)
    results = admin.delete_groups(ids)
    done = [group_id for group_id in ids if group_id not in results.errors]
    changed = {row[:2] for row in saved if may_be_done(results.errors.get(row.group_id))}
    started.settle(changed, {"deleted": len(done)})
    named = ", ".join(f"'{group_id}'" for group_id in done)
    if not results.errors:
        tool.say(f"Deletion of requested consumer groups ({named}) was successful.")
        return
    tool.error("Deletion of some consumer groups failed:")
    for group_id in in_java_order(results.errors, string_hash):
        error = results.errors[group_id]
        why = exception_of(error.code, message_of(error.code, error.message))
        tool.say(f"* Group '{group_id}' could not be deleted due to: {why}")
    if done:
        tool.say("", f"These consumer groups were deleted successfully: {named}")


def _hidden(admin: GroupAdmin, found: GroupResults[Committed]) -> Iterator[str]:
    if any(found.values.values()) and (lacks := admin.sight().lacks_topics):
        yield f"{lacks}: commits on others are deleted and not saved"


_OF_GROUP = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
_OF_PARTITIONS = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def delete_offsets(tool: Tool) -> None:
    """Of one group, the last that is named."""
    session, admin, options = tool.session, tool.admin, tool.options
    group_id = options.values("group")[-1]
    named, whole = _topics(options.values("topic"))
    counts = admin.list_topics(whole) if whole else {}
    partitions = [*named, *(TopicPartition(topic, number) for topic, count in counts.items() for number in range(count))]
    found = admin.list_committed_offsets([group_id])
    commits = found.values.get(group_id, {})
    for line in not_saved(found):
        session.notice(line)
    saved = [UndoRow(group_id, partition, commits[partition]) for partition in partitions if partition in _plain(commits)]
    started = start_change(session, admin, session.cluster(admin), saved, Backup(), groups=[group_id])
    errors = _deleted(admin, group_id, partitions)
    changed = {(group_id, partition) for partition in partitions if may_be_done(errors.get(partition))}
    started.settle(changed, {"deleted": len(partitions) - len(errors)})
    _print_headline(tool, group_id, next(iter(errors.values()), None))
    status = {partition: _status(errors.get(partition)) for partition in partitions}
    unknown = ItemError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    status |= {TopicPartition(topic, -1): _status(unknown) for topic in whole if topic not in counts}
    width = max([15, *(len(partition.topic) for partition in status)])
    by_text = sorted(status.items(), key=lambda item: f"{item[0].topic}{item[0].partition}")
    rows = [(each.topic, str(each.partition) if each.partition >= 0 else NONE, said) for each, said in by_text]
    tool.table([("TOPIC", "PARTITION", "STATUS"), *rows], (width, 10, 15))


def _deleted(admin: GroupAdmin, group_id: str, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, ItemError]:
    """The errors: the tool takes nothing from a share group, which is none to it."""
    found = admin.describe_groups([group_id]).values.get(group_id)
    if found is not None and found.type is GroupType.SHARE:
        return dict.fromkeys(partitions, item_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group_id))
    return admin.delete_offsets(group_id, partitions).errors if partitions else {}


def _print_headline(tool: Tool, group_id: str, error: ItemError | None) -> None:
    if error is None:
        tool.say(f"Request succeeded for deleting offsets from group {group_id}.")
    elif error.code in _OF_GROUP:
        tool.error(message_of(error.code))
    elif error.code in _OF_PARTITIONS:
        tool.error("Encountered some partition-level error, see the follow-up details.")
    else:
        tool.error(f"Encountered some unknown error: {error.code.name}")


def _status(error: ItemError | None) -> str:
    if error is None:
        return "Successful"
    return f"Error: {exception_of(error.code, message_of(error.code, error.message))}"
