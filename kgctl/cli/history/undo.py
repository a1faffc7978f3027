"""Resets to what was committed in the past: the history hands the planner its offsets as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.admin.plan.offset_reset import PastOffset, Strategy, ToHistory
from kgctl.admin.plan.times import format_instant
from kgctl.cli.history.asking import ask_about, limits, open_history
from kgctl.cli.selection import Selection
from kgctl.cli.session import Session
from kgctl.errors import RefusedError, UsageError
from kgctl.model.groups import NO_LEADER_EPOCH, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History
    from kgctl.pipeline.answers.series import CommitAt


def open_for_undo(session: Session, strategy: Strategy, warehouse: str | None, cluster: str | None) -> History | None:
    """The history that ``--warehouse`` and ``--history-cluster`` name; None for a reset to somewhere else.

    Raises:
        UsageError: the options stand beside another strategy.
        KgctlError: as `kgctl.cli.history.asking.open_history`.
    """
    if isinstance(strategy, ToHistory):
        return open_history(session, warehouse, cluster, "--history-cluster")
    for option, given in (("--warehouse", warehouse), ("--history-cluster", cluster)):
        if given is not None:
            raise UsageError(f"{option} has a place beside --to-history only")
    return None


def from_history(
    history: History, strategy: Strategy, chosen: Selection, cluster_id: str | None
) -> tuple[Selection, Strategy, list[str]]:
    """The strategy with what the chosen groups had committed, and what must be said of it.

    Groups that the history never heard of are errors of the selection from here on. Raises `RefusedError` where the history is
    known to be another cluster's than that with this id.
    """
    from kgctl.pipeline.answers.series import offsets_at

    assert isinstance(strategy, ToHistory)
    where = _whose(history, cluster_id)
    question = ask_about(history, chosen.group_ids)
    known = tuple(question.groups or ())
    groups: dict[str, dict[TopicPartition, PastOffset]] = {group: {} for group in known}
    for commit in offsets_at(history, known, strategy.timestamp_ms):
        groups[commit.group][TopicPartition(commit.topic, commit.partition)] = _past(commit, history, strategy.timestamp_ms)
    told = [where, *limits(question, strategy.timestamp_ms, strategy.timestamp_ms)]
    return Selection(known, (*chosen.errors, *question.errors)), ToHistory(strategy.timestamp_ms, groups), told


def _whose(history: History, cluster_id: str | None) -> str:
    where = f"Offsets are those of the history of cluster {history.cluster!r}"
    if history.cluster_id is None or cluster_id is None:
        return f"{where}; whether that is this cluster cannot be told, as one of the two has no id."
    if history.cluster_id != cluster_id:
        raise RefusedError(
            f"the history of {history.cluster!r} is of the cluster with the id {history.cluster_id}, and this one's is "
            f"{cluster_id}: offsets of one cluster mean nothing in another"
        )
    return f"{where}."


def _past(commit: CommitAt, history: History, at_ms: int) -> PastOffset:
    from kgctl.pipeline.answers.series import Exactness

    moment = format_instant(at_ms)
    if commit.offset is None:
        return PastOffset(None, f"what was committed at {moment} was not collected")
    metadata, notes = commit.metadata or "", []
    reach = history.reach([commit.group])
    if commit.exactness is Exactness.COMPACTED:
        notes.append(f"later commits before {moment} may have been compacted away")
    elif reach is not None and at_ms > reach.last_ms:
        notes.append(f"commits between {format_instant(reach.last_ms)} and {moment} are not known")
    if "\0" in metadata:
        metadata = ""
        notes.append("its metadata has a NUL, which librdkafka cannot write: left out")
    target = OffsetAndMetadata(commit.offset, metadata, NO_LEADER_EPOCH if commit.leader_epoch is None else commit.leader_epoch)
    return PastOffset(target, "; ".join(notes) or None)
