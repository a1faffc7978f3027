"""``kgctl simulate assign``, and the answers of assignors as rows for people and as data for programs."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from kgctl.cli.columns import INSTANCE_ID
from kgctl.cli.completion import complete_groups
from kgctl.cli.parameters import argument, flag, option
from kgctl.cli.report import ANY, NUMBER, NUMBERS, WHOLE, Column, OutputFormat, Report, below, shows
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, UsageError

if TYPE_CHECKING:
    from kgctl.assignors.spec import PartitionsByTopic
    from kgctl.simulate.assign.evaluation import Answer, MemberChange
    from kgctl.simulate.assign.groups import ReadDocument


DATA_FORMATS = (OutputFormat.JSON, OutputFormat.YAML)
ID = Column("id", "the document's id, or its number", ANY)
ASSIGNOR = Column("assignor", "the assignor")
ROUND = Column("round", "the round, from 1", WHOLE)


class AssignedMember(NamedTuple):
    """A row: a member in a round, and the ``topics`` that it gets partitions of."""

    answer: Answer
    round: int
    change: MemberChange
    topics: PartitionsByTopic

    @property
    def assignment(self) -> str | None:
        return " ".join(f"{topic}:{ranges(numbers)}" for topic, numbers in self.topics.items()) or None


_OF_ANSWER = (ID.of("answer.id"), ASSIGNOR.of("answer.assignor"))
_OF_MEMBER = (
    Column("member", "the member's id", read="change.member.member_id"),
    Column("partitions", "how many partitions it gets", WHOLE, header="#PARTITIONS", read="change.partitions"),
    Column("topics", "of how many topics", WHOLE, header="#TOPICS", shown=len),
    Column("kept", "how many of them it had before", WHOLE, read="change.kept"),
    Column("gained", "how many it had not", WHOLE, read="change.gained"),
    Column("lost", "how many it has no more", WHOLE, read="change.lost"),
    Column("rack", "the member's `client.rack`", wide=True, read=lambda row: row.change.member.rack or None),
    INSTANCE_ID.of("change.member.instance_id", wide=True, if_any=False),
    Column("assignment", "what it gets: `orders:0-3 users:1`", wide=True),
)
COLUMNS = (*_OF_ANSWER, replace(ROUND, wide=True), *_OF_MEMBER)
ROUND_COLUMNS = (*_OF_ANSWER, ROUND, *_OF_MEMBER)
"""Where each round is shown, the table says which is which."""
_FIGURES = (
    Column("assignment.MEMBER.TOPIC", "the partitions of a topic that the member gets", NUMBERS),
    Column("moved", "partitions that get another owner", WHOLE),
    Column("moves_needed", "how many at least had to", WHOLE),
    Column("unassigned", "partitions that wait until they are revoked", WHOLE),
    Column("spread", "how many partitions the fullest member has more than the emptiest", WHOLE),
    Column("topic_spread.TOPIC", "the same of one topic", WHOLE),
    Column("cross_rack_share", "the share of partitions without a replica in their member's rack", NUMBER),
)
DOCUMENT = (
    ID,
    ASSIGNOR,
    *_FIGURES,
    replace(ROUND, key="rounds[].round"),
    *below("rounds[]", _FIGURES),
)


def rows_of(rounds: Sequence[Answer]) -> Iterator[AssignedMember]:
    """One row a member, in the order of the group; round after round."""
    for number, answer in enumerate(rounds, 1):
        for change in answer.changes:
            yield AssignedMember(answer, number, change, answer.assignment[change.member.member_id])


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers with runs drawn together: ``0,2-5``."""
    parts: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == previous + 1:
            previous = number
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        if number is not None:
            start = previous = number
    return ",".join(parts)


def data_of(rounds: Sequence[Answer], *, with_rounds: bool) -> dict[str, Any]:
    """The entry of one document and assignor: the first round's answer, and with ``with_rounds`` what each round did."""
    first = rounds[0]
    entry: dict[str, Any] = {"id": first.id, "assignor": first.assignor, **_figures(first)}
    if with_rounds:
        entry["rounds"] = [{"round": number, **_figures(answer)} for number, answer in enumerate(rounds, 1)]
    return entry


def _figures(answer: Answer) -> dict[str, Any]:
    by_member = dict(answer.assignment)
    told = {"assignment": by_member, "topic_spread": answer.topic_spreads(by_member)}
    keys = [column.key.partition(".")[0] for column in _FIGURES]
    return {key: told[key] if key in told else getattr(answer, key) for key in keys}


def summaries_of(rounds: Sequence[Answer]) -> list[str]:
    """A line for each round about the whole: how even, what moved and what had to, racks."""
    if len(rounds) == 1:
        return [_summary(rounds[0], "")]
    return [_summary(answer, f", round {number}") for number, answer in enumerate(rounds, 1)]


def _summary(answer: Answer, which: str) -> str:
    sizes = [change.partitions for change in answer.changes] or [0]
    even = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    parts = [f"{sum(sizes)} partitions on {len(answer.changes)} members, {even} each"]
    if any(change.kept or change.lost for change in answer.changes):
        parts.append(f"{answer.moved} moved, at least {answer.moves_needed} had to")
    if answer.unassigned:
        parts.append(f"{answer.unassigned} wait until they are revoked")
    if answer.cross_rack_share is not None:
        parts.append(f"{answer.cross_rack_share:.0%} across racks")
    return f"{answer.id} {answer.assignor}{which}: {'; '.join(parts)}"


@shows(
    COLUMNS, document=DOCUMENT, examples="kgctl simulate assign --members 3 --topic orders:12 --assignor range --assignor sticky"
)
def simulate_assign(
    session: Session,
    *,
    files: Annotated[list[str] | None, argument("FILE", "YAML, JSON or JSON lines; - is stdin.")] = None,
    assignor: Annotated[list[str] | None, option("NAME", "An assignor, or module:Class for one of your own; repeatable.")] = None,
    members: Annotated[int | None, option("N", "A fresh group of N members, without a file.")] = None,
    topic: Annotated[list[str] | None, option("NAME:PARTITIONS", "A topic for --members; repeatable.")] = None,
    from_group: Annotated[str | None, option("GROUP", "A group of the cluster, as it is now.", complete=complete_groups)] = None,
    rounds: Annotated[bool, flag("--rounds", "Go on until a cooperative group has settled, and show each round.")] = False,
) -> Report:
    """Show who would get which partitions, by Kafka's own assignors, and what would move.

    A file describes groups: topics, members, what they own. The format: kgctl manual group-files.
    """
    from kgctl.assignors import get_assignor

    for name in assignor or ():
        get_assignor(name)
    with _without_garbage_collection():
        return _report(session, _documents(session, files, members, topic, from_group), assignor, rounds=rounds)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """The search for reference cycles costs more than it frees while millions of small values are read."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # What is there now is never searched again, also not while the result is written.
        gc.freeze()
        if was_on:
            gc.enable()


def _documents(
    session: Session, files: list[str] | None, members: int | None, topics: list[str] | None, from_group: str | None
) -> Iterator[ReadDocument]:
    from kgctl.simulate.assign.groups import ReadDocument, quick_group, read_groups

    ways = [way for way, given in (("FILE", files), ("--members", members), ("--from-group", from_group)) if given is not None]
    if len(ways) != 1:
        raise UsageError(f"say which group: FILE, --members with --topic, or --from-group; not {' and '.join(ways) or 'none'}")
    if topics and members is None:
        raise UsageError("--topic goes with --members; a file has its own topics")
    if files is not None:
        return read_groups(files, session.environment.stdin, session.notice)
    if members is not None:
        return iter([ReadDocument(1, quick_group(members, topics or ()))])
    assert from_group is not None
    return iter([_live(session, from_group)])


def _live(session: Session, group_id: str) -> ReadDocument:
    from kgctl.cli.simulate.live_group import group_with_members
    from kgctl.simulate.assign.groups import ReadDocument, live_group

    with session.connect() as admin:
        group = group_with_members(admin, group_id, "to assign anything to")
        return ReadDocument(group_id, live_group(group, admin.list_topics()))


def _report(session: Session, documents: Iterator[ReadDocument], assignors: list[str] | None, *, rounds: bool) -> Report:
    answers: list[list[Answer]] = []
    errors: list[KgctlError] = []
    found = False
    for read in documents:
        found = True
        for result in _answers(read, assignors, rounds=rounds):
            if isinstance(result, KgctlError):
                errors.append(result)
            else:
                answers.append(result)
    if not found:
        raise UsageError("there is no document to answer")
    if session.flags.output in DATA_FORMATS:
        data = [data_of(rounds_of_one, with_rounds=rounds) for rounds_of_one in answers]
        return Report(COLUMNS, data=data, errors=errors, something_done=bool(answers))
    rows = [row for rounds_of_one in answers for row in rows_of(rounds_of_one)]
    is_table = session.flags.output in (None, OutputFormat.TABLE, OutputFormat.WIDE)
    notices = [line for rounds_of_one in answers for line in summaries_of(rounds_of_one)] if is_table else ()
    return Report(
        ROUND_COLUMNS if rounds else COLUMNS, rows, errors, notices, ("id", "assignor", "member"), something_done=bool(answers)
    )


def _answers(read: ReadDocument, assignors: list[str] | None, *, rounds: bool) -> Iterator[list[Answer] | KgctlError]:
    from kgctl.simulate.assign.evaluation import rounds as run
    from kgctl.simulate.assign.groups import DEFAULT_ASSIGNORS

    if read.document is None:
        assert read.error is not None
        yield read.error
        return
    for name in assignors or read.document.assignors or DEFAULT_ASSIGNORS:
        try:
            yield list(run(read.document, name, until_settled=rounds))
        except KgctlError as error:
            yield read.located(error)
