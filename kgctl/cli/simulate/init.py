"""``kgctl simulate init``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.cli.completers import complete_groups
from kgctl.cli.output.report import Column, Report
from kgctl.cli.session import Session, session_of
from kgctl.errors import KgctlError, NotFoundError, RefusedError, UsageError

if TYPE_CHECKING:
    from kgctl.admin.client import GroupAdmin
    from kgctl.model.groups import GroupDescription
    from kgctl.model.partitions import TopicPartition
    from kgctl.simulate.scenario.from_group import Observed

COLUMNS = (Column("file"), Column("text"))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl simulate init --from-group payments payments.yaml")(simulate_init)


def simulate_init(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where to write it; stdout if left out.", show_default=False)
    ] = None,
    *,
    from_group: Annotated[
        str | None,
        typer.Option(metavar="GROUP", help="A group of the cluster.", show_default=False, autocompletion=complete_groups),
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What kgctl describe group G --members -o json printed.", show_default=False),
    ] = None,
    sample: Annotated[str, typer.Option(metavar="TIME", help="How long to watch offsets for the rates; 0s: not at all.")] = "5s",
) -> Report:
    """Write a scenario: from a group of the cluster, from a saved description of one, or an example to start from."""
    session = session_of(ctx)
    if from_group is not None and from_file is not None:
        raise UsageError("say --from-group or --from-file, not both")
    if file is not None and file.exists():
        raise RefusedError(f"{file} is there already; name another file or remove it")
    text = _text(session, from_group, from_file, sample)
    if file is None:
        return Report(COLUMNS, [{"file": None, "text": text}], name_keys=("file",), text=text)
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise KgctlError(f"{file}: {error.strerror}", code="OS_ERROR") from None
    hints = (f"written: {file}; next: kgctl simulate run {file}",)
    return Report((Column("file"), Column("text", wide=True)), [{"file": str(file), "text": text}], (), hints, ("file",))


def _text(session: Session, from_group: str | None, from_file: Path | None, sample: str) -> str:
    from kgctl.simulate.scenario.from_group import observed_in, scenario_text
    from kgctl.simulate.scenario.sources import builtin_text

    if from_group is not None:
        return scenario_text(_live(session, from_group, _sample_s(sample)))
    if from_file is not None:
        try:
            return scenario_text(observed_in(from_file.read_text(encoding="utf-8"), str(from_file)))
        except FileNotFoundError:
            raise NotFoundError(f"there is no file {str(from_file)!r}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{from_file} cannot be read: {error}") from None
    return builtin_text("rolling-restart")


def _sample_s(text: str) -> float:
    from kgctl.simulate.scenario.quantities import parse_duration

    try:
        return parse_duration(text, bare_unit="s") / 1_000_000
    except ValueError as error:
        raise UsageError(f"--sample: {error}") from None


def _live(session: Session, group_id: str, sample_s: float) -> Observed:
    from kgctl.cli.simulate.live_group import group_with_members
    from kgctl.simulate.scenario.from_group import Observed

    with session.connect() as admin:
        group = group_with_members(admin, group_id, "to write a scenario about")
        topics = _topics(admin, group)
        first, lag = _positions(admin, group_id, topics)
        if not sample_s:
            return Observed(group=group, topics=topics, lag=lag)
        session.notice(f"watching the offsets of {len(first)} partitions for {sample_s:g}s")
        began = time.monotonic()
        time.sleep(sample_s)
        second, lag = _positions(admin, group_id, topics)
        passed_s = time.monotonic() - began
    written = dict.fromkeys(topics, 0.0)
    processed = 0.0
    for partition, (end, committed) in second.items():
        end_before, committed_before = first.get(partition, (end, committed))
        written[partition.topic] += max(end - end_before, 0) / passed_s
        if committed is not None and committed_before is not None:
            processed += max(committed - committed_before, 0) / passed_s
    return Observed(group=group, topics=topics, written=written, processed=processed or None, lag=lag)


def _topics(admin: GroupAdmin, group: GroupDescription) -> dict[str, int]:
    """The topics that members subscribe to or own, with their partitions."""
    names: dict[str, None] = {}
    for member in group.members:
        names.update(dict.fromkeys(member.subscribed_topics or ()))
        names.update(dict.fromkeys(member.assignment or ()))
    found = dict(admin.list_topics(list(names))) if names else {}
    if not found:
        raise UsageError(f"none of the topics of group {group.group_id!r} exists", group=group.group_id)
    return found


def _positions(
    admin: GroupAdmin, group_id: str, topics: dict[str, int]
) -> tuple[dict[TopicPartition, tuple[int, int | None]], int | None]:
    """Log end and commit of each partition, and the lag where all of it is known."""
    from kgctl.model.partitions import TopicPartition

    partitions = [TopicPartition(topic, number) for topic, count in sorted(topics.items()) for number in range(count)]
    logs = admin.list_log_offsets(partitions).values
    committed = admin.list_committed_offsets([group_id]).values.get(group_id, {})
    found: dict[TopicPartition, tuple[int, int | None]] = {}
    lag = 0
    for partition in partitions:
        log = logs.get(partition)
        if log is None or log.log_end_offset is None:
            continue
        offset = committed[partition].offset if partition in committed and committed[partition].offset >= 0 else None
        found[partition] = (log.log_end_offset, offset)
        lag += log.log_end_offset - offset if offset is not None else 0
    return found, lag
