"""How a command asks the history: which one, about which groups, and what should be said of the answer's limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgctl.admin.plan.times import format_instant
from kgctl.cli.history.options import warehouse_path
from kgctl.cli.options import merged_groups
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, NotFoundError, UsageError

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History


@dataclass(frozen=True, slots=True)
class Question:
    """An opened history, and the groups that are asked about and known to it; None stands for all of them.

    ``errors`` has the groups that it never heard of.
    """

    history: History
    groups: Sequence[str] | None
    errors: tuple[KgctlError, ...] = ()

    @property
    def is_answerable(self) -> bool:
        """Whether there is a group left to ask about."""
        return self.groups is None or bool(self.groups)


def ask(
    session: Session, positional: list[str] | None, by_option: list[str] | None, warehouse: str | None, cluster: str | None
) -> Question:
    """Open the history that the options name. No group given: all of them.

    Raises:
        KgctlError: there is none, it was not built yet, or it cannot be read.
    """
    groups = merged_groups(positional, by_option)
    if "" in groups:
        raise UsageError("a group id must not be empty")
    history = open_history(session, warehouse, cluster)
    return ask_about(history, groups) if groups else Question(history, None)


def open_history(session: Session, warehouse: str | None, cluster: str | None, option: str = "--cluster") -> History:
    """The built history of a cluster; ``option`` is what the command calls the cluster's name.

    Raises:
        KgctlError: there is none, it was not built yet, or it cannot be read.
    """
    from kgctl.pipeline.answers.history import History

    if cluster == "":
        raise UsageError(f"{option} is empty (an unset variable?): leave it out, or give it a name")
    return History.open(warehouse_path(warehouse, session.environment), cluster)


def ask_about(history: History, groups: Sequence[str]) -> Question:
    """The groups that the history knows, and errors for those that it does not."""
    unknown = history.unknown(groups)
    errors = tuple(_unknown(group, history) for group in unknown)
    return Question(history, [group for group in groups if group not in unknown], errors)


def _unknown(group: str, history: History) -> NotFoundError:
    return NotFoundError(f"group {group!r} is not in the history of cluster {history.cluster!r}", group=group)


def limits(question: Question, first_ms: int | None, last_ms: int | None) -> list[str]:
    """What a reader must know of an answer about the time between these two, both included; None: no limit."""
    notices = []
    reach = question.history.reach(question.groups)
    if reach is not None and first_ms is not None and first_ms < reach.first_ms:
        notices.append(f"Nothing from before {format_instant(reach.first_ms)} was collected.")
    if reach is not None and last_ms is not None and last_ms > reach.last_ms:
        notices.append(f"Collected up to {format_instant(reach.last_ms)}: what came later is not known.")
    if behind := question.history.records_behind():
        notices.append(f"{behind} records were collected after the last build: kgctl history build brings them in.")
    return notices
